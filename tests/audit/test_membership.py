"""Attacks on synthetic tables do not accuse correct models, and detect every planted fault.

Exact checks have no error rate. For sampled findings ALPHA is the probability with which one of them accuses correct code;
about 20 such findings are made here. The noise is the operating system's, as in every session: these tests have no seed for
it. Half the noise was refuted in 15 of 15 runs (bounds from 1.17 to 1.47 with 1 promised; the correct model's were 0.40 to
0.63); at Z in 12 of 12 (bounds from 0.713 to 0.726 with 0.694 promised; the correct model's were 0.548 to 0.575).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthesize.margins import Margins

from tidegate.accounting import FilteredGaussian
from tidegate.arrays import Ints
from tidegate.audit import leaks
from tidegate.audit.finding import Finding
from tidegate.audit.leaks import check_grid, files_with_sentinels, look_for_leaks
from tidegate.audit.syntheses.membership import Z, attack_attribute, attack_diaries, attack_synthesis, attack_tables
from tidegate.audit.syntheses.neighbors import World, attackable, world
from tidegate.audit.syntheses.prices import check_prices
from tidegate.noise import SeededBits
from tidegate.policy import Category, Dataset, EachPerson, Grid, Identification, Integer, Key, Loss, Policy, Unit
from tidegate.session import Session
from tidegate.synthesize.diary import NOTHING, Diary
from tidegate.synthesize.diary import Loss as Spent
from tidegate.synthesize.facts import Facts
from tidegate.synthesize.mechanisms import model_for
from tidegate.synthesize.model import Learnt, Rows, Stage, Summary
from tidegate.synthesize.request import DEFAULT

ALPHA, LONG = 1e-6, 300.0  # no attack here is limited by time: draws are limited instead
ONE = Fraction(1)


def people(unit: Unit | None = None) -> Policy:
    attributes = {
        "who": Key(),
        "age": Integer(16, 40),
        "town": Category(("north", "south", "east", "west")),
        "pay": Grid("0", "10", "0.25"),
    }
    options = {"unit": unit} if unit else {}
    return Policy(Dataset("people", **options), attributes, loss=Loss(3))  # type: ignore[arg-type]


def towns(
    model: Any = DEFAULT, *, epsilon: Fraction = ONE, z: Fraction | None = None, unit: Unit | None = None
) -> World:
    return world(people(unit), ["town"], epsilon=epsilon, z=z, model=model)


# Faulty models: each runs in the real session, like a user's own model


class HalfPrice(Diary):
    """A diary with a budget for half the noise that it records: twice the epsilon, or four times Z."""

    def __init__(self, outer: Diary) -> None:
        limit = outer.limit
        super().__init__(2 * limit.pure if limit.pure else Spent(None, 4 * limit.z, 4 * limit.zcdp))
        self._outer = outer

    def step(self, name: str, loss: Fraction | Spent, measure: Callable[[], Ints]) -> Ints:
        stated = loss if isinstance(loss, Spent) else Spent.of_pure(loss)
        self.spent = self.spent + stated
        recorded = stated.pure / 2 if stated.pure else Spent(None, stated.z / 4, stated.zcdp / 4)
        return self._outer.step(name, recorded, measure)


class HalvedNoise:
    """A forest that learns with half the noise of the loss that it records."""

    name: ClassVar[str] = "halved/1"

    def stages(self, facts: Facts, *, limit: Spent) -> tuple[Stage, ...]:
        return model_for(DEFAULT).stages(facts, limit=limit)

    def learn(self, facts: Facts, rows: Rows, diary: Diary, **options: Any) -> Learnt:
        return model_for(DEFAULT).learn(facts, rows, HalfPrice(diary), **options)


class NoNoise(Margins):
    """Margins of which one is recorded without noise."""

    name: ClassVar[str] = "true/1"

    def learn(self, facts: Facts, rows: Rows, diary: Diary, **options: Any) -> Learnt:
        true = diary.step(
            f"margin of {facts.columns[0].name}", diary.epsilon / 2, lambda: rows.margin(facts.columns[0])
        )
        inner = Diary(diary.epsilon / 2)
        learned = super().learn(facts, rows, inner, **options)
        learned.counts[0] = true  # type: ignore[attr-defined]
        for step in inner.steps:
            diary.step(step.name, step.loss, lambda step=step: step.value)  # type: ignore[misc]
        return learned


@dataclass(frozen=True)
class Copied:
    """A stored model of which every twentieth row is an original one."""

    inner: Ints
    true: Ints
    summary: ClassVar[Summary] = Summary({}, {}, (), (), (), 0.0, "", NOTHING)

    def draw(self, rows: int, *, seed: int) -> Ints:
        source = np.random.default_rng(seed)
        codes = self.inner[source.integers(0, len(self.inner), rows)]
        chosen = source.random(rows) < 0.05
        return np.where(chosen[:, None], self.true[source.integers(0, len(self.true), rows)], codes)

    def chunks(self, rows: int, *, seed: int, where: Any = None) -> Iterator[Ints]:
        yield self.draw(rows, seed=seed)

    def share(self, where: Any) -> float:
        return 1.0

    def to_dict(self) -> dict[str, Any]:
        return {"inner": self.inner.tolist(), "true": self.true.tolist()}


class Copying(Margins):
    name: ClassVar[str] = "copying/1"

    def learn(self, facts: Facts, rows: Rows, diary: Diary, **options: Any) -> Learnt:
        true = rows.codes(facts.columns)
        drawn = super().learn(facts, rows, diary, **options).draw(5_000, seed=1)
        return Copied(drawn, true[(true >= 0).all(axis=1)])

    def restore(self, content: dict[str, Any]) -> Copied:
        return Copied(np.array(content["inner"]), np.array(content["true"]))


class SeededNoise(Margins):
    """Margins whose noise follows from a public number."""

    name: ClassVar[str] = "seeded/1"

    def learn(self, facts: Facts, rows: Rows, diary: Diary, **options: Any) -> Learnt:
        return super().learn(facts, rows, diary, **{**options, "bits": SeededBits(7)})


class ForFree(Margins):
    """Margins that record numbers without a price."""

    name: ClassVar[str] = "free/1"

    def learn(self, facts: Facts, rows: Rows, diary: Diary, **options: Any) -> Learnt:
        diary.step("true counts", Fraction(0), lambda: rows.margin(facts.columns[0]))
        return super().learn(facts, rows, diary, **options)


# Correct models are not accused


@pytest.mark.one_in(2)
@pytest.mark.claim
@pytest.mark.parametrize("model", [DEFAULT, Margins()], ids=["forest", "margins"])
def test_diaries_of_correct_models_distinguish_neighbors_within_epsilon(model: Any) -> None:
    (finding,) = attack_diaries(towns(model), alpha=ALPHA, seconds=LONG, most=1_000)
    assert finding.verdict == "held"
    assert finding.tries == 2_000
    assert 0.1 < (finding.bound or 0) <= 1  # the attack works: it proves a part of the spent loss


@pytest.mark.claim
@pytest.mark.long  # the same attack on diaries stays
def test_correct_table_distinguishes_neighbors_and_members_within_epsilon() -> None:
    apart, member = attack_tables(towns(Margins()), alpha=ALPHA, seconds=LONG, most=150)
    assert (apart.verdict, member.verdict) == ("held", "held")
    assert member.promised == pytest.approx(0.4621, abs=1e-4)


@pytest.mark.claim
def test_target_value_is_named_more_often_than_by_guessing_and_within_rho() -> None:
    (finding,) = attack_attribute(towns(epsilon=Fraction(2)), alpha=ALPHA, seconds=LONG, most=400)
    assert finding.verdict == "held"
    assert finding.promised == pytest.approx(1 / (1 + 3 * np.exp(-2)))
    assert 0.25 < (finding.bound or 0) <= (finding.promised or 0)


@pytest.mark.claim
def test_all_rows_of_a_person_change_and_the_correct_model_is_not_accused() -> None:
    at = towns(unit=EachPerson("who", 3))
    assert (at.table(at.farthest).column("who").to_pylist().count("target"), at.reach) == (3, 3)
    (finding,) = attack_diaries(at, alpha=ALPHA, seconds=LONG, most=300)
    assert finding.verdict == "held"


@pytest.mark.claim
@pytest.mark.parametrize("unit", [None, EachPerson("who", 3)], ids=["rows", "persons"])
def test_diaries_at_z_distinguish_neighbors_within_z_and_zcdp(unit: Unit | None) -> None:
    (finding,) = attack_diaries(towns(z=Z, unit=unit), alpha=ALPHA, seconds=LONG, most=1_000)
    assert (finding.verdict, finding.unit, finding.tries) == ("held", "probability", 2_000)
    assert finding.promised == pytest.approx(
        (1 + np.sqrt(12 / 5 / 8 / 2)) / 2
    )  # zCDP and Pinsker; Z alone allows 0.745
    assert 0.53 < (finding.bound or 0) <= 0.65  # all of Z in one count allows 0.638


@pytest.mark.claim
def test_target_value_at_z_is_named_more_often_than_by_guessing_and_within_the_average_promise() -> None:
    (finding,) = attack_attribute(towns(z=2 * ONE / 5), alpha=ALPHA, seconds=LONG, most=400)
    assert finding.verdict == "held"
    limit = finding.promised or 0
    assert limit * np.log(4 * limit) + (1 - limit) * np.log((1 - limit) * 4 / 3) == pytest.approx(
        2 / 5
    )  # order 1 decides
    assert 0.27 < (finding.bound or 0) <= (finding.promised or 0)


@pytest.mark.claim
def test_tables_at_z_distinguish_neighbors_and_members_within_z() -> None:
    apart, member = attack_tables(towns(z=Z), alpha=ALPHA, seconds=LONG, most=10)
    assert {apart.verdict, member.verdict} <= {"held", "not tried"}  # few: the same attack on diaries has more runs
    assert member.promised == pytest.approx(2 * (apart.promised or 0) - 1)


@pytest.mark.claim
@pytest.mark.parametrize("z", [None, Z], ids=["epsilon", "z"])
def test_correct_model_has_no_other_leaks(z: Fraction | None) -> None:
    findings = look_for_leaks(people(), ["town", "pay"], z=z, alpha=ALPHA, seed=3)
    assert [finding.verdict for finding in findings] == ["held"] * 5
    assert [finding.attack for finding in findings] == ["low bits", "copied rows", "seed", "diary", "sentinels"]


def test_too_few_runs_are_reported_as_not_tried() -> None:
    (finding,) = attack_diaries(towns(Margins()), alpha=ALPHA, seconds=LONG, most=20)
    assert finding.verdict == "not tried"
    assert finding.says.startswith("too few runs")


def test_policy_without_a_promise_for_tables_is_not_attacked() -> None:
    bare = Policy(Dataset("people"), {"age": Integer(1, 9)})
    keys = Policy(Dataset("people"), {"who": Key()}, loss=Loss(1))
    for policy in (bare, keys):
        (finding,) = attack_synthesis(policy, alpha=ALPHA, seconds=1, seed=1)
        assert finding.verdict == "not tried"


def test_protected_columns_are_attacked_first() -> None:
    plain = people()
    promised = Policy(plain.dataset, plain.attributes, Identification("0.2", protect=("pay",)))
    assert attackable(plain) == ["town", "age", "pay"]
    assert attackable(promised)[0] == "pay"


# Planted faults are detected


@pytest.mark.claim
def test_a_forest_with_half_the_noise_is_refuted_by_its_diary() -> None:
    (finding,) = attack_diaries(towns(HalvedNoise()), alpha=ALPHA, seconds=LONG, most=1_000)
    assert finding.broken
    assert 1 < (finding.bound or 0) <= 2


@pytest.mark.claim
def test_half_the_noise_at_z_is_refuted_by_its_diary() -> None:
    (finding,) = attack_diaries(towns(HalvedNoise(), z=Z), alpha=ALPHA, seconds=LONG, most=4_000)
    assert finding.broken
    assert finding.unit == "probability"


@pytest.mark.claim
def test_synthesis_that_is_charged_half_of_its_z_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    full = FilteredGaussian.price.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(FilteredGaussian, "price", property(lambda event: full(replace(event, z=event.z / 2))))
    findings = look_for_leaks(people(), ["town", "pay"], z=Z, alpha=ALPHA, seed=3)
    assert [finding.attack for finding in findings if finding.broken] == ["diary"]


@pytest.mark.long  # test_a_forest_with_half_the_noise_is_refuted_by_its_diary is cheaper
@pytest.mark.claim
def test_a_margin_without_noise_is_refuted_by_diary_table_and_guess() -> None:
    at = towns(NoNoise())
    (diary,) = attack_diaries(at, alpha=ALPHA, seconds=LONG, most=400)
    apart, member = attack_tables(at, alpha=ALPHA, seconds=LONG, most=200)
    (value,) = attack_attribute(at, alpha=ALPHA, seconds=LONG, most=100)
    assert {finding.verdict for finding in (diary, apart, member, value)} == {"broken"}
    assert (value.bound or 0) > 0.9


def findings_of(model: Any) -> dict[str, Finding]:
    findings = look_for_leaks(people(), ["town", "pay"], epsilon=ONE, model=model, alpha=ALPHA, seed=3)
    return {finding.attack: finding for finding in findings}


@pytest.mark.claim
@pytest.mark.parametrize(
    ("model", "attacks"),
    [(Copying(), {"copied rows", "diary"}), (SeededNoise(), {"seed"}), (ForFree(), {"diary"})],
    ids=["copied rows", "noise of a seed", "numbers for free"],
)
def test_leaking_model_is_detected_by_the_right_checks(model: Any, attacks: set[str]) -> None:
    """A model that stores rows in the ledger is detected by its draws, and because its diary does not give them."""
    findings = findings_of(model)
    assert {name for name, finding in findings.items() if finding.broken} == attacks


def test_values_off_the_grid_are_detected() -> None:
    policy = people()
    on = pa.table({"pay": [0.25, 0.5], "town": ["north", "east"]})
    off = pa.table({"pay": [0.25, np.nextafter(0.5, 1)], "town": ["north", "east"]})
    strange = pa.table({"pay": [0.25, 0.5], "town": ["north", "nowhere"]})
    assert [check_grid(table, policy).verdict for table in (on, off, strange)] == ["held", "broken", "broken"]


def test_excess_prices_and_unpriced_or_fractional_numbers_are_detected() -> None:
    step: Mapping[str, Any] = {"name": "a", "epsilon": "1/2", "value": [1]}
    good = {"model": "m/1", "rows": 9, "tables": [[step, step]]}
    faults = [
        {**good, "tables": [[step, step, step]]},
        {**good, "tables": [[{**step, "value": [0.5]}]]},
        {**good, "tables": [[{**step, "true": [1]}]]},
        {**good, "mean": 3},
        {**good, "fitted": [{"shares": [1, 0.5]}]},
        {**good, "tables": [[{**step, "epsilon": "0"}]]},
    ]
    pure, stored = Spent.of_pure(ONE), {**good, "fitted": [{"shares": [1, 2]}]}
    assert [check_prices(content, pure).verdict for content in (good, stored)] == ["held", "held"]
    assert {check_prices(fault, pure).verdict for fault in faults} == {"broken"}


def test_stored_model_that_does_not_follow_from_its_diary_is_detected(tmp_path: Path) -> None:
    rows = pa.table({"town": ["a", "b"] * 40})
    about = Policy(Dataset("towns", rows=80), {"town": Category(["a", "b"])}, loss=Loss(1))
    with Session(about, table=rows, folder=tmp_path) as session:
        tables = session.synthesize(epsilon=1)
        stored = session.ledger.asked_before(about, question=tables.plan.question()).stored  # type: ignore[union-attr]
    limit = tables.plan.request.limit
    assert check_prices(stored, limit, tables.plan).verdict == "held"
    stored["fitted"][0]["model"]["shares"][0][0] += 1
    assert "does not follow from its diary" in check_prices(stored, limit, tables.plan).says


def test_excess_of_z_or_zcdp_is_detected() -> None:
    step: Mapping[str, Any] = {"name": "a", "z": "1/2", "zcdp": "1", "value": [1]}
    two = {"model": "m/1", "rows": 9, "tables": [[step, step]]}
    limits = [Spent(None, ONE, 2 * ONE), Spent(None, ONE / 2, 2 * ONE), Spent(None, ONE, ONE)]
    assert [check_prices(two, limit).verdict for limit in limits] == ["held", "broken", "broken"]
    assert "add up to Z 1 of 1" in check_prices(two, limits[0]).says


@pytest.mark.parametrize("kind", ["csv", "parquet", "text", "float"])
def test_file_with_an_original_value_is_detected(tmp_path: Path, kind: str) -> None:
    """Also compressed Parquet, in which none of its bytes may be visible."""
    (tmp_path / "clean.txt").write_text("north 3")
    assert files_with_sentinels(tmp_path) == set()
    values = [float(leaks.HUGE)] * 3 if kind == "float" else [f"{leaks.WORD}-1", "north"]
    if kind == "parquet":
        pq.write_table(pa.table({"town": values * 100}), tmp_path / "dirty.parquet", compression="zstd")
    else:
        content = np.array(values).tobytes() if kind == "float" else ",".join(map(str, values)).encode()
        (tmp_path / f"dirty.{kind}").write_bytes(content)
    assert {Path(name).stem for name in files_with_sentinels(tmp_path)} == {"dirty"}


@pytest.mark.long  # each guarantee is attacked apart in every run
@pytest.mark.claim
def test_average_policy_is_attacked_at_z_and_at_a_pure_loss() -> None:
    promise = Identification("0.4", protect=("age",), guarantee="average")
    findings = attack_synthesis(replace(people(), identification=promise, loss=None), alpha=ALPHA, seconds=1, seed=5)
    assert not [finding.says for finding in findings if finding.broken]
    diaries = [finding.promise for finding in findings if finding.attack.startswith("neighbors by the diary")]
    assert ["at epsilon 1 " in promise for promise in diaries] == [True, False, False]
    assert ["at Z 0.125 " in promise for promise in diaries] == [False, True, True]


@pytest.mark.long
@pytest.mark.claim
def test_correct_model_is_accused_by_no_attack() -> None:
    findings = attack_synthesis(people(), alpha=ALPHA, seconds=240, seed=5)
    assert not [finding.says for finding in findings if finding.broken]
    diaries = [finding for finding in findings if finding.attack.startswith("neighbors by the diary")]
    assert [finding.verdict for finding in diaries] == ["held"] * 2
