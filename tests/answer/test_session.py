"""Sessions: one way to set the loss, previews that equal the charge, stored answers, helpful refusals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest
from answer.conftest import policy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegate.accounting import Amount
from tidegate.answer import Answers, Query, count, histogram, max, mean, median, quantile, std, sum, variance
from tidegate.answer.run import plan
from tidegate.answer.spending import RequestedLoss, error_of, resolve_loss
from tidegate.errors import BudgetExceeded, Infeasible, KeyReused, SourceMissing, UnknownColumn, Unsupported
from tidegate.policy import Dataset, Identification, Integer, Policy
from tidegate.policy.predicates import col
from tidegate.risk import worst_risk
from tidegate.session import Session

OpenSession = Callable[..., Session]
QUERIES = [
    count(),
    count().where(col("age") >= 30),
    count().by("town"),
    histogram("age"),
    histogram("town").by("sex"),
    sum("age"),
    sum("pay").by("sex"),
    mean("age"),
    mean("pay"),
    mean("age").where(col("town") == "Aby").by("sex"),
    variance("pay"),
    std("age").by("sex"),
    median("age"),
    quantile("pay", "0.9").by("town"),
    max("age"),
]
queries = st.lists(st.sampled_from(QUERIES), min_size=1, max_size=3)


@pytest.mark.long  # service/test_answers.py compares a quote with its charge
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(query=queries, epsilon=st.fractions("1/1000", 3))
def test_preview_equals_the_charge_exactly(open_session: OpenSession, query: list[Query], epsilon) -> None:
    with open_session(epsilon="1e6") as session:
        spent = session.account.spent
        before = session.preview(query, epsilon=epsilon)
        answer = session.answer(query, epsilon=epsilon, anyway=True)
        after = session.account.spent
    assert before.cost.value <= epsilon
    assert answer.cost in (before.cost, Amount(0))  # a query of an earlier example is free
    assert after == spent + answer.cost


@given(query=st.sampled_from(QUERIES), first=st.fractions("1/50", "49/50"), second=st.fractions("1/50", "49/50"))
def test_larger_rho_never_adds_noise(query: Query, first, second) -> None:
    people = policy(rho="0.9")
    low, high = sorted((first, second))
    losses = [resolve_loss((query,), people, rho=rho) for rho in (low, high)]
    assert losses[0].amount <= losses[1].amount
    errors = [error_of(query, people, loss, 0.95) for loss in losses]
    assert errors[0] is None or errors[0] >= errors[1]


@given(query=st.sampled_from(QUERIES), epsilon=st.fractions("1/10000", 20))
def test_price_is_at_most_the_requested_loss_and_close_to_it(query: Query, epsilon) -> None:
    price = plan((query,), policy(), loss=RequestedLoss(epsilon))[0].price.pure.value
    assert epsilon * Fraction(1999, 2000) <= price <= epsilon


@pytest.mark.parametrize(
    "query", [count(), histogram("age"), mean("pay"), sum("age"), mean("age")], ids=lambda query: query.says()
)
@pytest.mark.parametrize("error", [1, 5, 40])
def test_error_costs_just_enough(open_session: OpenSession, query: Query, error: int) -> None:
    people = policy()
    loss = resolve_loss((query,), people, error=error)
    assert (error_of(query, people, loss, 0.95) or 0) <= error
    assert (error_of(query, people, RequestedLoss(loss.amount * 9 / 10), 0.95) or 0) > error * 0.9


def test_repeated_query_is_free_and_has_the_same_answer(open_session: OpenSession) -> None:
    with open_session() as session:
        first, again = (session.answer(sum("age").by("sex"), epsilon="0.3") for _ in range(2))
        assert (first.values == again.values).all()
        assert (str(first.cost), str(again.cost)) == ("0.3", "0")
        more = session.answer(sum("age").by("sex"), epsilon="0.31")
        assert more.cost


def test_stored_answer_needs_no_table(open_session: OpenSession, tmp_path) -> None:
    with open_session() as session:
        first = session.answer(count().by("sex"), epsilon="0.3")
    with Session(policy(), table=tmp_path / "gone.csv", folder=tmp_path) as session:
        assert (session.answer(count().by("sex"), epsilon="0.3").values == first.values).all()
        with pytest.raises(SourceMissing):
            session.answer(count().by("sex"), epsilon="0.4")
        assert str(session.account.spent) == "0.3"


def test_several_queries_are_one_charge(open_session: OpenSession) -> None:
    with open_session() as session:
        answer = session.answer([count(), mean("age"), median("pay")], epsilon="0.6")
        assert isinstance(answer, Answers)
        assert len(answer) == 3
        assert sum_of(session) == 1
        assert answer.cost.value <= Amount.up("0.6").value


def sum_of(session: Session) -> int:
    return len([entry for entry in session.ledger.entries() if entry.kind == "charge"])


def test_idempotency_key_identifies_one_query(open_session: OpenSession) -> None:
    with open_session() as session:
        first = session.answer(count(), epsilon="0.1", key="k1")
        assert session.answer(count(), epsilon="0.1", key="k1").value == first.value
        with pytest.raises(KeyReused):
            session.answer(count(), epsilon="0.2", key="k1")
        assert str(session.account.spent) == "0.1"


def test_refusal_names_the_largest_loss_that_fits(open_session: OpenSession) -> None:
    with open_session(epsilon="1") as session:
        session.answer(count(), epsilon="0.9")
        with pytest.raises(BudgetExceeded) as refused:
            session.answer(sum("pay"), epsilon="0.5")
        assert refused.value.facts == {"asked": "0.5", "spent": "0.9", "left": "0.1", "ceiling": "1"}
        assert "Request at most 0.1 (its error would be at most" in refused.value.do
        assert session.answer(sum("pay"), epsilon="0.1").cost
        with pytest.raises(BudgetExceeded, match="No budget remains"):
            session.fit([count()])


def test_fit_shows_the_errors_within_the_remaining_budget(open_session: OpenSession) -> None:
    with open_session(epsilon="1") as session:
        session.answer(count(), epsilon="0.5")
        five = [count().by("town"), mean("pay"), sum("age"), median("age"), histogram("age")]
        fitted = session.fit(five)
        assert fitted.fits
        assert fitted.cost.value <= session.account.left.value
        assert [expected.error is None for expected in fitted.expected] == [False, False, False, True, False]
        assert session.answer(five, epsilon="0.5").cost == fitted.cost


WAYS = [
    {},
    {"rho": "0.1", "epsilon": "1"},
    {"epsilon": "0"},
    {"epsilon": "nan"},
    {"error": "-1"},
    {"epsilon": "1", "confidence": 1.5},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_ambiguous_or_invalid_loss_is_refused(open_session: OpenSession, way: dict) -> None:
    with open_session(rho="0.1") as session, pytest.raises(Unsupported):
        session.answer(count(), **way)
    assert not session.account.spent


def test_infeasible_rho_is_refused_at_no_cost(open_session: OpenSession) -> None:
    with open_session(rho="0.1") as session:
        with pytest.raises(Infeasible) as refused:
            session.answer(count(), rho="0.01")
        assert refused.value.facts["smallest_rho"] == 1 / 73
        assert refused.value.facts["worlds_needed"] == 101
        assert not session.account.spent
        assert session.answer(count(), rho="0.05").charge.identification()["age"]["after"] == pytest.approx(0.05)
    with open_session() as session, pytest.raises(Unsupported, match="identification promise"):
        session.answer(count(), rho="0.05")


def test_tight_calibration_shows_and_charges_the_loss_it_implies(open_session: OpenSession) -> None:
    with open_session(epsilon="100") as session:
        tight = session.preview(mean("pay"), rho="0.1", calibration="tight")
        guarded = session.preview(mean("pay"), rho="0.1", calibration="tight", window=3)
        assert tight.error < guarded.error
        assert tight.cost > guarded.cost
        answer = session.answer(mean("pay"), rho="0.1", calibration="tight")
        assert answer.cost == tight.cost
        with pytest.raises(Infeasible, match="4 neighboring values of 37"):
            session.preview(mean("pay"), rho="0.1", calibration="tight", window=4)
        with pytest.raises(Unsupported, match="Tight calibration requires"):
            session.preview(mean("age"), rho="0.1", calibration="tight")


def test_yes_no_certainty_is_shown_next_to_rho(open_session: OpenSession) -> None:
    with open_session(rho="0.1") as session:
        before = session.preview(count(), epsilon="0.5")
        assert before.to_dict()["yes_no"]["after"] == pytest.approx(math.exp(0.5) / (1 + math.exp(0.5)))
        assert before.to_dict()["yes_no"]["now"] == 0.5
        assert "yes/no certainty at most 0.622 afterwards (limit 0.889)" in str(before)
        answer = session.answer(count(), epsilon="0.5")
        assert answer.to_dict()["yes_no"]["after"] == before.yes_no()["after"]
        assert "yes/no certainty at most 0.622" in str(answer)


def policy_with_prior(prior: Any, values: int) -> Policy:
    """Return a policy over few values whose adversary has a prior."""
    promise = Identification("0.99", protect=("grade",), prior={"grade": prior})
    return Policy(Dataset("grades", rows=100), {"grade": Integer(1, values, missing="lowest")}, promise)


@pytest.mark.parametrize(
    ("prior", "rho", "charge"),
    [
        (("0.5", "0.2", "0.1", "0.1", "0.1"), "0.6", 0.783019),
        (("0.2",) * 5, "0.6", 3.598974),
        (("0.3", *["0.1"] * 7), "1/3", 0.275169),
        (("0.05", "0.05", "0.8", "0.05", "0.05"), "0.9", 2.268262),
        (("0.4", "0.3", "0.2", "0.1"), "0.5", 0.760633),
    ],
)
def test_tight_calibration_keeps_rho_against_the_policys_prior(prior: Any, rho: str, charge: float) -> None:
    policy = policy_with_prior(prior, len(prior))
    epsilon = resolve_loss((sum("grade"),), policy, rho=rho, calibration="tight").amount
    assert float(epsilon) == pytest.approx(charge, abs=1e-6)
    scale = (len(prior) - 1) / float(epsilon)
    assert worst_risk(range(len(prior)), scale=scale, prior=[float(p) for p in prior]) <= float(Fraction(rho))


def test_tight_calibration_needs_a_prior_of_every_value_and_a_rho_below_one() -> None:
    with pytest.raises(Unsupported, match="prior probability of every value"):
        resolve_loss((sum("grade"),), policy_with_prior("0.5", 5), rho="0.6", calibration="tight")
    with pytest.raises(Unsupported, match="below 1"):
        resolve_loss((sum("grade"),), policy_with_prior(("0.2",) * 5, 5), rho="1", calibration="tight")
    with pytest.raises(Infeasible, match=r"probability 0\.5"):
        resolve_loss((sum("grade"),), policy_with_prior(("0.5", "0.5"), 2), rho="0.5", calibration="tight")


BAD: dict[str, Query] = {
    "an unknown column": mean("agee"),
    "a mean of a category": mean("sex"),
    "a key": count().by("person"),
    "a group twice": count().by("sex", "sex"),
    "a category that is not listed": count().where(col("town") == "Dal"),
    "a category as a number": count().where(col("town") >= 5),
    "a number as text": count().where(col("age") == "old"),
}


@pytest.mark.parametrize("case", BAD)
def test_meaningless_query_is_refused(open_session: OpenSession, case: str) -> None:
    with open_session() as session, pytest.raises((Unsupported, UnknownColumn)):
        session.answer(BAD[case], epsilon="0.1")
    assert not session.account.spent


def test_answer_prints_value_noise_and_risk(open_session: OpenSession) -> None:
    with open_session(rho="0.1") as session:
        answer = session.answer(mean("pay"), rho="0.05")
        assert "(noise: " in str(answer)
        assert "identification of age at most 0.05" in str(answer)
        content = answer.to_dict()
        assert json.loads(json.dumps(content)) == content
        assert content["identification"]["age"]["before"] == pytest.approx(1 / 73)
        assert "<table>" in answer._repr_html_()
        assert answer.plot().marks
        low, high = answer.interval()
        assert low <= answer.value <= high


def test_public_number_of_rows_must_match_the_table(open_session: OpenSession) -> None:
    from tidegate.errors import SourceUnreadable

    with open_session(count=299) as session, pytest.raises(SourceUnreadable, match="declares 299 rows"):
        session.answer(mean("pay"), epsilon="0.1")
    assert not session.account.spent


def test_new_edition_is_answered_again_from_the_same_account(open_session: OpenSession, tmp_path) -> None:
    from dataclasses import replace

    import pyarrow as pa
    from answer.conftest import rows

    with open_session() as session:
        session.answer(count(), epsilon="0.3")
    newer = replace(policy(), dataset=replace(policy().dataset, edition="2026-12"))
    with Session(newer, table=pa.Table.from_pylist(rows()), folder=tmp_path) as session:
        assert session.answer(count(), epsilon="0.3").cost
        assert str(session.account.spent) == "0.6"
        assert "edition: none -> 2026-12" in str([entry.body for entry in session.ledger.entries()])


@pytest.mark.long  # ledger/test_concurrency.py shares a session between threads
def test_sessions_answer_several_threads_at_once(open_session: Callable[..., Session]) -> None:
    """The rehearsal on no rows and the real query share one connection, which takes one query at a time."""
    with open_session(epsilon="100") as session, ThreadPoolExecutor(8) as threads:
        queries = [mean("age").where(col("age") >= 18 + n % 40) for n in range(80)]
        answers = list(threads.map(lambda query: session.answer(query, epsilon="0.1"), queries))
    assert len({answer.entry for answer in answers}) == 40
