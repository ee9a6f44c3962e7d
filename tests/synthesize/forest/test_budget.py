"""The plan is public, its shares add up, and nothing is ever spent beyond it."""

from __future__ import annotations

import inspect
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthesize.forest.surveys import (
    COLUMNS,
    LIMITS,
    SHOP,
    Watched,
    by_z,
    is_inside,
    learn,
    learn_codes,
    pairwise,
    people,
    pure,
    sales,
    wide_column,
)

from tidegate.errors import Unsupported
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest import Forest, meter
from tidegate.synthesize.mechanisms.forest.meter import Meter
from tidegate.synthesize.mechanisms.forest.plan import make_plan
from tidegate.synthesize.private_rows import ArrayRows

STAGES = {"spikes": "spikes", "level": "margins", "margin": "margins", "choice": "choices", "pair": "pairs"}


@st.composite
def columns(draw: st.DrawFn) -> Column:
    name = draw(st.uuids()).hex
    if draw(st.booleans()):
        return wide_column(name, draw(st.sampled_from([161, 641, 5000, 10**7, 2**53])), missing=draw(st.booleans()))
    size = draw(st.integers(1, 400))
    inner = draw(st.sets(st.integers(1, max(size - 1, 1)), max_size=40))
    starts = (0, *sorted(start for start in inner if start < size))
    kinds = draw(st.tuples(*[st.booleans()] * 4))
    return Column(name, size, starts, ordered=kinds[0], even=kinds[1], missing=kinds[2], heaped=kinds[3])


facts = st.builds(
    Facts,
    st.lists(columns(), min_size=1, max_size=5).map(tuple),
    st.one_of(st.integers(0, 100), st.integers(0, 10**7)),
    st.sampled_from([1, 3]),
)
amounts = st.one_of(st.fractions(Fraction(1, 10**5), 100), st.just(Fraction(10**6)))
limits = st.builds(lambda kind, amount: kind(amount), st.sampled_from([pure, by_z, pairwise]), amounts)


def stage_of(name: str) -> str:
    return "maps" if " map" in f" {name}" or name.startswith("test") else STAGES[name.split()[0]]


def spent(diary: Diary, unit: str) -> dict[str, Fraction]:
    """Return the loss of each stage, in one of the units of a loss."""
    sums: dict[str, Fraction] = {}
    for step in diary.steps:
        stage = stage_of(step.name)
        sums[stage] = sums.get(stage, Fraction(0)) + getattr(step.loss, unit)
    return sums


def check_sums(diary: Diary, known: Facts, limit: Loss) -> None:
    """Check that sums are exact, within the limit, and within the shares of the stages."""
    pures = [step.loss.pure for step in diary.steps]
    assert diary.spent.z == sum((step.loss.z for step in diary.steps), Fraction(0))
    assert diary.spent.zcdp == sum((step.loss.zcdp for step in diary.steps), Fraction(0))
    shares = {stage.name: stage.share for stage in Forest().stages(known, limit=limit)}
    if limit.pure is not None:
        assert diary.spent.pure == sum((pure or Fraction(0) for pure in pures), Fraction(0))
        assert None not in pures
        assert diary.spent.pure <= limit.pure
        unit, whole = "pure", limit.pure
    else:
        assert not any(pures)
        assert diary.spent.z <= limit.z
        assert diary.spent.zcdp <= limit.zcdp
        unit, whole = "z", limit.z
    losses = spent(diary, unit)
    unused = whole * shares.get("maps", Fraction(0)) - losses.get("maps", Fraction(0))
    assert unused >= 0
    for stage, loss in losses.items():
        assert loss <= whole * shares[stage] + (unused if stage == "pairs" else 0), stage  # pairs get what maps leave


@given(facts, limits)
def test_shares_of_all_stages_add_up_to_one(known: Facts, limit: Loss) -> None:
    stages = Forest().stages(known, limit=limit)
    assert sum(stage.share for stage in stages) == 1
    assert all(stage.share > 0 and stage.says for stage in stages)


@pytest.mark.long  # test_run_with_maps_and_levels_spends_nearly_everything checks the same sums
@settings(max_examples=25)
@given(facts, limits, st.integers(0, 2**32))
def test_no_stage_spends_more_than_its_share_on_any_table(known: Facts, limit: Loss, seed: int) -> None:
    generator = np.random.default_rng(seed)
    codes = np.column_stack([generator.integers(-1, c.size + c.missing, min(known.rows, 50)) for c in known.columns])
    diary = Diary(limit)
    fitted = learn(known, ArrayRows(codes, known.columns), diary, seed=seed)
    check_sums(diary, known, limit)
    assert fitted.summary.spent == diary.spent
    assert is_inside(fitted.draw(20, seed=1), known.columns)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("reach", [1, 3])
@pytest.mark.parametrize("kind", [pure, by_z, pairwise])
def test_run_with_maps_and_levels_spends_nearly_everything(kind: type, reach: int) -> None:
    limit = kind(Fraction(8) if kind is pure else Fraction(1))
    known, diary = Facts(SHOP, 20_000, reach), Diary(limit)
    learn(known, ArrayRows(sales(20_000), SHOP), diary)
    check_sums(diary, known, limit)
    assert {"margins", "maps", "choices", "pairs"} <= {stage_of(step.name) for step in diary.steps}
    if kind is pure:
        assert diary.spent.pure > Fraction(9, 10) * limit.pure
    else:
        assert diary.spent.z > Fraction(4, 5) * limit.z  # phases end early after rounds without a choice


def test_doubled_loss_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Meter._loss
    monkeypatch.setattr(Meter, "_loss", lambda self, parts: 2 * right(self, parts))
    for limit in (pure(1), by_z(1)):
        with pytest.raises(ValueError, match="more than the diary"):
            learn_codes(people(500), COLUMNS, limit)


def test_choices_cannot_exceed_the_pairwise_limit() -> None:
    """A grant of zcdp = 2 z admits no scalar or choice at the price of z."""
    diary = Diary(pairwise(1))
    at = Meter(diary, reach=1, bits=None)  # type: ignore[arg-type]
    at._pairwise = False
    with pytest.raises(ValueError, match="more than the diary"):
        at.scalar("scalar", meter.PARTS, lambda: 0)


@pytest.mark.parametrize("limit", [pure(Fraction(1, 10**12)), by_z(Fraction(1, 10**24))], ids=["pure", "z"])
def test_limit_too_small_for_noise_is_refused_before_a_row_is_read(limit: Loss) -> None:
    with pytest.raises(Unsupported, match="too small"):
        Forest().stages(Facts(COLUMNS, 100), limit=limit)


# ---- nothing public depends on the data


@pytest.mark.parametrize("mode", LIMITS)
def test_first_steps_and_their_losses_do_not_depend_on_the_rows(mode: str) -> None:
    observed = []
    for codes in (people(30_000, 1), 1 - np.minimum(people(30_000, 2), 1)):
        rows, diary = Watched(codes, COLUMNS), Diary(LIMITS[mode])
        learn(Facts(COLUMNS, 30_000), rows, diary)
        observed.append((rows.asked[:3], [(step.name, step.loss) for step in diary.steps[:3]]))
    assert observed[0] == observed[1]
    assert [name for name, _ in observed[0][1]] == [f"margin of {c.name}" for c in COLUMNS[:3]]


def test_plan_depends_on_facts_alone() -> None:
    known = Facts(COLUMNS, 30_000)
    assert make_plan(known, pure(1)) == make_plan(known, pure(1))
    assert list(inspect.signature(make_plan).parameters) == ["facts", "limit"]


# ---- the plan of the specification, computed from its formulas


@pytest.mark.parametrize(
    ("rows", "z", "columns", "reach", "margins", "sizes"),
    [
        # u = log4(n sqrt(z / d) / (60 reach))
        (15_000, "1/100", 4, 1, 0.60 - 0.12 * 1.82193, (25, 100, 400)),  # u = log4(12.5)
        (960, "1/100", 4, 1, 0.60, (12, 50)),  # u = log4(0.8)
        (60, "1/100", 4, 1, 0.60, (12, 50)),
        (10**7, "1", 4, 1, 0.25, (25, 100, 400)),
        (4_800, "1/100", 4, 1, 0.60 - 0.12, (25, 100)),  # u = 1
        (9_600, "1/100", 4, 2, 0.60 - 0.12, (25, 100)),
    ],
)
def test_plan_of_a_run_by_z_follows_its_formulas(
    rows: int, z: str, columns: int, reach: int, margins: float, sizes: tuple[int, ...]
) -> None:
    known = Facts(tuple(Column(f"c{n}", 5, tuple(range(5))) for n in range(columns)), rows, reach)
    result = make_plan(known, by_z(z))
    u = np.log(rows * np.sqrt(float(Fraction(z)) / columns) / (60 * reach)) / np.log(4)
    assert result.parts["margins"] == pytest.approx(1e6 * margins, abs=20)
    assert result.parts["maps"] == 100_000
    assert result.parts["choices"] == pytest.approx((1e6 - 1e6 * margins - 1e5) / 10, abs=20)
    assert result.sizes == sizes
    assert result.tree_rounds(columns) == columns - 1
    assert result.residual_rounds(columns) == min(max(round(columns * (0.5 + 0.6 * u)), 0), 3 * columns, 60)
    assert (result.pieces, result.power, result.tree_patience, result.residual_patience) == (8, 2 / 3, 3, 2)
