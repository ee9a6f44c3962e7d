"""The plan is public, its shares add up, and nothing is ever spent beyond it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthesize.forest.surveys import COLUMNS, Watched, learn, learn_codes, people

from tidegate.errors import Unsupported
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest import Forest
from tidegate.synthesize.mechanisms.forest import plan as planning
from tidegate.synthesize.mechanisms.forest.plan import make_plan
from tidegate.synthesize.private_rows import ArrayRows

STAGES = {"spikes": "spikes", "margin": "margins", "choice": "choices", "pair": "pairs"}


@st.composite
def columns(draw: st.DrawFn) -> Column:
    size = draw(st.integers(1, 400))
    inner = draw(st.sets(st.integers(1, max(size - 1, 1)), max_size=40))
    starts = (0, *sorted(start for start in inner if start < size))
    kinds = draw(st.tuples(*[st.booleans()] * 4))
    name = draw(st.uuids()).hex
    return Column(name, size, starts, ordered=kinds[0], even=kinds[1], missing=kinds[2], heaped=kinds[3])


facts = st.builds(
    Facts,
    st.lists(columns(), min_size=1, max_size=6).map(tuple),
    st.integers(0, 10**7),
    st.integers(1, 5),
)
epsilons = st.fractions(Fraction(1, 10**5), 100)


def spent(diary: Diary) -> dict[str, Fraction]:
    """Return the loss of each stage."""
    sums: dict[str, Fraction] = {}
    for step in diary.steps:
        stage = STAGES[step.name.split()[0]]
        sums[stage] = sums.get(stage, Fraction(0)) + step.epsilon
    return sums


@given(facts, epsilons)
def test_shares_of_all_stages_add_up_to_at_most_one(known: Facts, epsilon: Fraction) -> None:
    stages = Forest().stages(known, epsilon=epsilon, split={})
    assert Fraction(999, 1000) <= sum(stage.share for stage in stages) <= 1
    assert all(stage.share > 0 and stage.says for stage in stages)


@settings(max_examples=12)
@given(facts, epsilons, st.integers(0, 2**32))
def test_no_stage_spends_more_than_its_share_on_any_table(known: Facts, epsilon: Fraction, seed: int) -> None:
    generator = np.random.default_rng(seed)
    rows = min(known.rows, 50)
    codes = np.column_stack([generator.integers(-1, c.size + c.missing, rows) for c in known.columns])
    diary = Diary(epsilon)
    drawn = learn(known, ArrayRows(codes, known.columns), diary, seed=seed).draw(20, seed=1)
    shares = {stage.name: stage.share for stage in Forest().stages(known, epsilon=epsilon, split={})}
    assert diary.spent <= epsilon
    assert all(loss <= epsilon * shares[stage] for stage, loss in spent(diary).items())
    assert all(0 <= drawn[:, n].min() <= drawn[:, n].max() < c.size + c.missing for n, c in enumerate(known.columns))


def twice(self: planning.Plan, parts: int) -> Fraction:
    """Return twice the loss of each step: the planted fault."""
    return 2 * self.epsilon * Fraction(parts, planning.PARTS)


def test_doubled_loss_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning.Plan, "loss", twice)
    with pytest.raises(ValueError, match="more than the diary"):
        learn_codes(people(500), COLUMNS, Fraction(1))


def test_split_sets_shares_and_scales_the_others() -> None:
    known = Facts(COLUMNS, 30_000)
    stages = Forest().stages(known, epsilon=Fraction(1), split={"margins": Fraction(1, 10)})
    shares = {stage.name: stage.share for stage in stages}
    usual = {stage.name: stage.share for stage in Forest().stages(known, epsilon=Fraction(1), split={})}
    assert shares["margins"] == Fraction(1, 10)
    assert float(shares["pairs"] / shares["choices"]) == pytest.approx(
        float(usual["pairs"] / usual["choices"]), rel=1e-4
    )
    diary = Diary(Fraction(1))
    learn(known, ArrayRows(people(300), COLUMNS), diary, split={"margins": Fraction(1, 10)})
    assert spent(diary)["margins"] <= Fraction(1, 10)


@pytest.mark.parametrize(
    "split",
    [{"margin": Fraction(1, 2)}, {"margins": Fraction(2, 3), "pairs": Fraction(1, 2)}, {"pairs": Fraction(-1, 2)}],
)
def test_impossible_split_is_refused(split: dict[str, Fraction]) -> None:
    with pytest.raises(Unsupported, match="split"):
        Forest().stages(Facts(COLUMNS, 100), epsilon=Fraction(1), split=split)


def test_epsilon_too_small_for_noise_is_refused_before_a_row_is_read() -> None:
    with pytest.raises(Unsupported, match="too small"):
        Forest().stages(Facts(COLUMNS, 100), epsilon=Fraction(1, 10**12), split={})


# ---- nothing public depends on the data


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(8)])
def test_counted_pairs_do_not_depend_on_the_rows(epsilon: Fraction) -> None:
    known = Facts(COLUMNS, 30_000)
    here, there = people(30_000, 1), 1 - np.minimum(people(30_000, 2), 1)
    diary = Diary(epsilon)
    learn(known, ArrayRows(here, COLUMNS), diary)
    before = [step for step in diary.steps if step.name.split()[0] in ("spikes", "margin")]
    observed = []
    for codes in (here, there):
        rows = Watched(codes, COLUMNS)
        again = Diary(epsilon, before)
        learn(known, rows, again, seed="other")
        first = next(step for step in again.steps if step.name == "choice 1")
        observed.append((rows.asked, first.epsilon, [(step.name, step.epsilon) for step in again.steps[: len(before)]]))
    assert observed[0] == observed[1]  # the pairs' cells: groups at every resolution, in the same order
    assert [kind for kind, _ in observed[0][0]] == ["pairs"]


def test_first_steps_and_their_losses_do_not_depend_on_the_rows() -> None:
    observed = []
    for codes in (people(30_000, 1), 1 - np.minimum(people(30_000, 2), 1)):
        rows, diary = Watched(codes, COLUMNS), Diary(Fraction(1, 2))
        learn(Facts(COLUMNS, 30_000), rows, diary)
        observed.append((rows.asked[:4], [(step.name, step.epsilon) for step in diary.steps[:5]]))
    assert observed[0] == observed[1]
    assert [name for name, _ in observed[0][1]] == [*(f"margin of {c.name}" for c in COLUMNS), "choice 1"]


def test_plan_depends_on_facts_alone() -> None:
    known = Facts(COLUMNS, 30_000)
    assert make_plan(known, epsilon=Fraction(1), split={}) == make_plan(known, epsilon=Fraction(1), split={})
    assert make_plan.__annotations__.keys() == {"facts", "epsilon", "split", "charged", "return"}
