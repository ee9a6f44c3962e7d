"""Each clause of a contract can be broken, and the contract then names it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from testing.test_contracts import AGE, POLICY, QUESTIONS, TOWN, people, plan_of, some_rows
from tidegate_papers.baselines.smooth_histogram import SmoothHistogram

from tidegate.answer.mechanisms.counts import Counts
from tidegate.operators import Operator, RandomizedResponse
from tidegate.policy import Policy
from tidegate.release.mechanisms import KullbackLeibler, Test
from tidegate.synthesize.facts import Facts
from tidegate.tables import Table, open_table
from tidegate.testing import (
    Contract,
    ContractBroken,
    LiteralGate,
    check_engine,
    check_mechanism,
    check_model,
    check_operator,
    check_release_test,
)

F = Fraction


def assert_refuted(contract: Contract, clause: str) -> None:
    """Assert that the broken clause is named, and that `refuse` raises."""
    assert clause in [check.clause for check in contract.broken], str(contract)
    with pytest.raises(ContractBroken, match="does not keep its contract"):
        contract.refuse()


# ---- operators


class Undocumented(RandomizedResponse):
    pass


class Boastful(RandomizedResponse):
    """An operator that states less loss than it has.

    Reference:
        None.
    """

    @property
    def gamma(self) -> Fraction | None:
        gamma = super().gamma
        return gamma / 2 if gamma else None


class Leaning(RandomizedResponse):
    """An operator that reports the truth too often.

    Reference:
        None.
    """

    def sample(self, value: int, source: Any) -> Any:
        return value if source.take(1)[0] < 13 else super().sample(value, source)


class Leaking(RandomizedResponse):
    """An operator whose probabilities add up to more than 1.

    Reference:
        None.
    """

    def probability(self, report: Any, value: int) -> Fraction:
        return super().probability(report, value) * F(11, 10)


class Gullible(RandomizedResponse):
    """An operator that accepts any report.

    Reference:
        None.
    """

    def accepts(self, report: Any) -> bool:
        return True


class Elsewhere(RandomizedResponse):
    """An operator that uses other randomness.

    Reference:
        None.
    """

    def sample(self, value: int, source: Any) -> Any:
        return int(np.random.default_rng().integers(self.values))


OPERATOR_FAULTS: dict[type[Operator], str] = {
    Boastful: "gamma is the largest ratio of its channel, exactly",
    Leaning: "reports of value 0 are drawn from its channel",
    Leaking: "every value's reports have probabilities that add up to 1, exactly",
    Gullible: "it refuses what it cannot send",
    Elsewhere: "the same bytes give the same report",
}


@pytest.mark.parametrize("fault", OPERATOR_FAULTS, ids=lambda fault: fault.__name__)
def test_faulty_operator_is_refuted(fault: Any) -> None:
    assert_refuted(check_operator(fault(6, epsilon=F(1))), OPERATOR_FAULTS[fault])


# ---- mechanisms


class Cheap(Counts):
    """A mechanism that adds a fifth of the stated noise.

    Reference:
        None.
    """

    def perturb(self, exact: Any, event: Any, *, bits: Any, size: int | None = None) -> Any:
        from dataclasses import replace

        return super().perturb(exact, replace(event, scale=event.scale / 5), bits=bits, size=size)


class Expensive(Counts):
    """A mechanism that charges more than the requested loss.

    Reference:
        None.
    """

    def event(self, query: Any, policy: Any, *, epsilon: Fraction) -> Any:
        return super().event(query, policy, epsilon=2 * epsilon)


class Restless(Counts):
    """A mechanism with a different result each time.

    Reference:
        None.
    """

    def perturb(self, exact: Any, event: Any, *, bits: Any, size: int | None = None) -> Any:
        from tidegate.noise import SecureBits

        return super().perturb(exact, event, bits=SecureBits(), size=size)


MECHANISM_FAULTS = {
    Cheap: "draws on two neighbors prove no more loss than was charged",
    Expensive: "it states an event without data, at no more than the requested loss",
    Restless: "the same bits give the same result, as JSON",
}


@pytest.mark.parametrize("fault", MECHANISM_FAULTS, ids=lambda fault: fault.__name__)
def test_faulty_mechanism_is_refuted(fault: Any) -> None:
    neighbors = people((0, "Aby")), people((9, "Berg"))
    contract = check_mechanism(fault(), QUESTIONS["count"], POLICY, neighbors, draws=400)
    assert_refuted(contract, MECHANISM_FAULTS[fault])


# ---- tests of released records


class Sleeping(KullbackLeibler):
    def holds(self, counts: Any, target: int) -> bool:
        return True


class Wordless(KullbackLeibler):
    blind = ""


class Frightened(KullbackLeibler):
    def holds(self, counts: Any, target: int) -> bool:
        return False


TEST_FAULTS: dict[type[Test], str] = {
    Sleeping: "a group in which one value dominates has to wait",
    Wordless: "it states its name, its measure, what it detects and what it does not",
    Frightened: "records that follow the baseline are released",
}


@pytest.mark.parametrize("fault", TEST_FAULTS, ids=lambda fault: fault.__name__)
def test_faulty_test_is_refuted(fault: Any) -> None:
    assert_refuted(check_release_test(fault, plan_of("kullback-leibler"), requests=60), TEST_FAULTS[fault])


def test_literal_gate_decides_like_the_compiled_one() -> None:
    from tidegate.release.gate import Gate

    plan = plan_of("kullback-leibler")
    requests = np.random.default_rng(5).integers(0, plan.values * plan.targets, 60)
    slow = LiteralGate(plan, [KullbackLeibler(plan)]).decide(requests, np.arange(60))
    fast = Gate(plan).decide(requests, np.arange(60))
    assert slow.released.tolist() == fast.released.tolist()
    assert slow.ends.tolist() == fast.ends.tolist()


# ---- models


class Knowing(SmoothHistogram):
    """A model that stores an exact count outside its diary.

    Reference:
        None.
    """

    name: ClassVar[str] = "knowing/1"

    def learn(self, facts: Any, rows: Any, diary: Any, **options: Any) -> Any:
        learned, true = super().learn(facts, rows, diary, **options), int(rows.margin(facts.columns[0])[0])

        class ExactCount:
            def draw(self, rows: int, *, seed: int) -> Any:
                codes = learned.draw(rows, seed=seed)
                codes[: min(true, rows), 0] = 0
                return codes

        return ExactCount()


class Nameless(SmoothHistogram):
    """A model without a version.

    Reference:
        None.
    """

    name: ClassVar[str] = "nameless"


class Noiseless(SmoothHistogram):
    """A model that always draws the same noise.

    Reference:
        None.
    """

    name: ClassVar[str] = "noiseless/1"

    def learn(self, facts: Any, rows: Any, diary: Any, **options: Any) -> Any:
        from tidegate.noise import SeededBits

        return super().learn(facts, rows, diary, **{**options, "bits": SeededBits("always")})


MODEL_FAULTS = {
    Knowing: "its diary alone gives the same model again, without reading rows",
    Nameless: "its name has a version",
    Noiseless: "its noise comes from the bits that are passed to it",
}


@pytest.mark.parametrize("fault", MODEL_FAULTS, ids=lambda fault: fault.__name__)
def test_faulty_model_is_refuted(fault: Any) -> None:
    columns = (AGE, TOWN)
    assert_refuted(check_model(fault(), Facts(columns, 400), some_rows(columns)), MODEL_FAULTS[fault])


# ---- engines


def without_missing(policy: Policy, rows: pa.Table) -> Table:
    import pyarrow.compute as pc

    return open_table(policy, rows.set_column(1, "age", pc.fill_null(rows["age"], 18)))


def a_row_twice(policy: Policy, rows: pa.Table) -> Table:
    return open_table(policy, pa.concat_tables([rows, rows.slice(0, 1)]))


@pytest.mark.parametrize(
    ("fault", "clause"),
    [(without_missing, "counts of age, empty cells too"), (a_row_twice, "batches contain every row once")],
)
def test_faulty_engine_is_refuted(fault: Callable[..., Table], clause: str) -> None:
    assert_refuted(check_engine(fault), clause)


def test_contract_without_clauses_does_not_hold() -> None:
    with pytest.raises(ContractBroken, match="nothing was checked"):
        Contract("nothing").refuse()
