"""Designed operators keep their limits exactly, and recover more than cut-and-paste under the same ones."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from golden.papers import golden, paper
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.collect.baskets import search, transitions
from tidegate.collect.baskets.baselines import best_cut_and_paste
from tidegate.collect.baskets.design import Design, Wishes, design, deviations, profile_of, usual_maximum
from tidegate.collect.baskets.recovery import support_variance
from tidegate.collect.baskets.search import Limits, exact_plan, lifted
from tidegate.errors import Infeasible, Unsupported
from tidegate.operators.basket_loss import exponential_below
from tidegate.risk import baskets

FACTS = golden("baskets")
HALF, SIX = Fraction(1, 2), Fraction(6)
LEAST = Fraction(2, 1000)


def wishes(size: int, breach: Fraction | None = HALF, epsilon: Fraction | None = SIX) -> Wishes:
    return Wishes(500, 5_000_000, LEAST, breach=breach, epsilon=epsilon, sizes={size: Fraction(1)})


@cache
def make_design(size: int, breach: Fraction | None = HALF, epsilon: Fraction | None = SIX) -> Design:
    return design(wishes(size, breach, epsilon))


def keeps_its_limits(candidate: Design) -> bool:
    """Every limit again from its definition, in rational arithmetic, by functions that the design does not decide with."""
    requirements, fine = candidate.wishes, True
    for size_design in candidate.sizes:
        supports = baskets.from_maximum(
            baskets.extend_maximum(
                requirements.maximum.get(size_design.plan.size, usual_maximum(size_design.plan.size)),
                size_design.plan.size,
            )
        )
        worst = max(
            breach.after for breach in baskets.breaches(size_design.plan.keep, size_design.plan.insert, supports)
        )
        ratio = baskets.local_loss(size_design.plan.keep, size_design.plan.insert).any_two
        fine &= size_design.plan.drawable and isinstance(worst, Fraction)
        fine &= requirements.breach is None or worst <= requirements.breach
        fine &= requirements.epsilon is None or ratio <= exponential_below(requirements.epsilon)
    return fine


falling = st.lists(st.integers(1, 40), min_size=1, max_size=4).map(
    lambda parts: [Fraction(1), *np.cumprod([Fraction(part, 100) for part in parts])]
)


@settings(max_examples=10, deadline=None)
@given(
    size=st.integers(1, 6),
    maximum=falling,
    breach=st.none() | st.fractions(Fraction(42, 100), Fraction(95, 100), max_denominator=50),
    epsilon=st.none() | st.fractions(Fraction(1, 2), 9, max_denominator=20),
    least=st.fractions(Fraction(1, 1000), Fraction(1, 50), max_denominator=1000),
)
def test_random_designs_keep_their_limits_exactly(
    size: int, maximum: list[Fraction], breach: Fraction | None, epsilon: Fraction | None, least: Fraction
) -> None:
    if breach is None and epsilon is None:
        return
    requirements = Wishes(
        40, 1000, least, breach=breach, epsilon=epsilon, sizes={size: Fraction(1)}, maximum={size: maximum}
    )
    if (
        breach is not None
        and max(baskets.prior(partials) for partials in requirements.limits(size).supports[1:]) >= breach
    ):
        with pytest.raises(Infeasible, match="before any report"):
            design(requirements)
        return
    assert keeps_its_limits(design(requirements))


def test_plan_rounded_from_the_solver_breaks_its_limits() -> None:
    """The planted fault: without repair, rounding leaves some limits broken by a hair, and the exact check sees it."""
    broken = 0
    for size in (2, 3, 4, 5):
        optimum = search.search(wishes(size).goal(size))
        assert optimum is not None
        limits = wishes(size).limits(size)
        near = [Fraction(probability) for probability in optimum.keep]
        near = [part / sum(near) for part in near]
        broken += not limits.hold(near, Fraction(optimum.insert))
        assert limits.hold(
            exact_plan(optimum.keep.tolist(), Fraction(optimum.insert), limits).keep, Fraction(optimum.insert)
        )
    assert broken


def test_repair_brings_an_infinite_loss_to_the_limit() -> None:
    keep = [Fraction(0), Fraction(1, 3), Fraction(0), Fraction(2, 3)]
    ratio = exponential_below(SIX)
    assert baskets.local_loss(keep, Fraction(1, 4)).any_two == math.inf
    again = lifted(keep, Fraction(1, 4), ratio)
    assert sum(again) == 1
    assert baskets.local_loss(again, Fraction(1, 4)).any_two <= ratio
    assert baskets.local_loss(again, Fraction(1, 4)).epsilon == pytest.approx(6, abs=1e-9)


@pytest.mark.parametrize("epsilon", ["0.001", "1", "6", "40"])
def test_bound_of_the_exponential_is_a_close_lower_bound(epsilon: str) -> None:
    import mpmath

    with mpmath.workdps(60):
        bound = exponential_below(Fraction(epsilon))
        true = mpmath.exp(mpmath.mpf(epsilon))
        gap = true - mpmath.mpf(bound.numerator) / bound.denominator
        assert 0 < gap < true * mpmath.mpf(2) ** -70


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", range(1, 7))
def test_design_recovers_more_than_cut_and_paste_under_the_same_limits(size: int) -> None:
    size_design = make_design(size).sizes[0]
    assert size_design.same_limits is not None
    assert size_design.same_limits.epsilon <= 6 + 1e-9
    ours, theirs = (sum(d * d for d in operator.deviations) for operator in (size_design, size_design.same_limits))
    assert ours < theirs


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [2, 4, 6])
def test_design_without_a_loss_limit_matches_cut_and_paste(size: int) -> None:
    size_design = make_design(size, HALF, None).sizes[0]
    assert size_design.breach_alone is not None
    ours, theirs = (sum(d * d for d in operator.deviations) for operator in (size_design, size_design.breach_alone))
    assert ours < theirs
    assert size_design.risk.loss.epsilon > 6


def test_design_beats_cut_and_paste_at_a_small_loss() -> None:
    """Baskets of five, epsilon 1: an operator found before deviates by 12.6 (times 1 / sqrt N, three items), a flip by 999."""
    size_design = make_design(5, None, Fraction(1)).sizes[0]
    assert size_design.deviations[2] <= 12.6 * 1.02
    flip = 1 / (1 + math.exp(-1 / 10))  # ten log odds are the loss of two baskets of five
    phi = transitions.flip_moments(flip, 3)
    target = [float(part) for part in wishes(5).targets(5)[2]]
    assert math.sqrt(support_variance(phi, 1 - flip, target)) == pytest.approx(999.05, abs=0.01)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [2, 3, 4])
def test_no_plan_of_a_fine_mesh_is_better(size: int) -> None:
    """Every plan in steps of 1/24 at 31 rates: none that keeps the limits beats the design."""
    goal = wishes(size).goal(size)
    best = search.search(goal)
    assert best is not None
    steps = np.array([parts for parts in np.ndindex(*[25] * size) if sum(parts) <= 24]) / 24
    mesh = np.column_stack([steps, 1 - steps.sum(axis=1)])
    tried = 0
    for number in range(1, 32):
        rate = search.Rate(goal, number / 32)
        low = (mesh / rate.binomial).min(axis=1)
        feasible = mesh[(np.column_stack([mesh, low]) @ rate.limits().T).max(axis=1) <= 0]
        tried += len(feasible)
        assert all(rate.value(keep) >= best.value * (1 - 1e-9) for keep in feasible)
    assert tried > 50


@pytest.mark.long
def test_designs_are_deterministic() -> None:
    assert design(wishes(4)) == design(wishes(4))


@pytest.mark.one_in(2)
@paper(FACTS["paper"])
@pytest.mark.parametrize("size", [1, 3, 6, pytest.param(10, marks=pytest.mark.long)])
def test_search_is_no_worse_than_an_earlier_operator(size: int) -> None:
    """Its maximum supports are not published: those that make its own breaches at most one half are taken, by scaling."""
    row = FACTS["optimal_breach_50_epsilon_6"][str(size)]
    maximum = _scaled_maximum(row["pj"], row["rho"], size)
    requirements = Wishes(500, 1, LEAST, breach=HALF, epsilon=SIX, sizes={size: Fraction(1)}, maximum={size: maximum})
    optimum = search.search(requirements.goal(size))
    assert optimum is not None
    assert optimum.value <= sum(d * d for d in row["sd_sqrtN"]) * 1.02


def _scaled_maximum(keep: list[float], insert: float, size: int) -> list[Fraction]:
    low, high = 0, 1024
    while high - low > 1:
        middle = (low + high) // 2
        supports = baskets.from_maximum([float(support) for support in _halving(Fraction(middle, 2048), size)])
        low, high = (middle, high) if baskets.worst_breach(keep, insert, supports).after <= 0.5 else (low, middle)
    return _halving(Fraction(low, 2048), size)


def _halving(top: Fraction, size: int) -> list[Fraction]:
    return [Fraction(1), *(top / 2**further for further in range(size))]


def test_pooled_deviations_are_means_by_share() -> None:
    pooled = design(Wishes(500, 10_000, LEAST, HALF, SIX, sizes={1: Fraction(3), 2: Fraction(1)}))
    first, second = pooled.sizes
    assert first.deviations == deviations(first.plan, pooled.wishes)
    assert pooled.sigma(2) == pytest.approx(math.sqrt(second.deviations[1] ** 2 / 4 / 10_000))
    expected = math.sqrt((3 * first.deviations[0] ** 2 + second.deviations[0] ** 2) / 4 / 10_000)
    assert pooled.sigma(1) == pytest.approx(expected)
    assert pooled.operator.sizes == (1, 2)


def test_cut_and_paste_is_none_if_no_cutoff_keeps_the_limits() -> None:
    assert best_cut_and_paste(wishes(4, None, Fraction(1, 1000)).goal(4)) is None


def test_sample_gives_sizes_supports_and_exempted_items() -> None:
    sample = [["a"], ["a"], ["b"], ["a", "b"], ["a", "c"], ["c", "b", "b"], ["a", "b", "c", "d"], []]
    profile = profile_of(sample, level=HALF, largest=3)
    assert profile.sizes == {1: Fraction(3, 7), 2: Fraction(3, 7)}
    assert profile.exempted == {1: ("a",), 2: ("a", "b", "c")}
    assert profile.maximum[1] == (1, Fraction(1, 3))
    assert profile.longer == Fraction(1, 7)
    assert profile_of(sample, level=None, largest=3).maximum[2] == (1, Fraction(2, 3), Fraction(1, 3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs a limit"),
        ({"breach": Fraction(2)}, "above 0 and below 1"),
        ({"epsilon": Fraction(0)}, "above 0"),
        ({"epsilon": SIX, "sizes": {30: Fraction(1)}}, "baskets of 1 to 20 items"),
        ({"epsilon": SIX, "sizes": {}}, "baskets of 1 to 20 items"),
        ({"epsilon": SIX, "sizes": {3: Fraction(0)}}, "not all 0"),
    ],
)
def test_invalid_wishes_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        Wishes(500, 1000, LEAST, **options)  # type: ignore[arg-type]


def test_limits_are_exact_numbers() -> None:
    limits = Limits(HALF, baskets.from_maximum(usual_maximum(2)), None)
    edge = [Fraction(0), Fraction(0), Fraction(1)]
    assert not limits.hold(edge, Fraction(1, 100))
    assert limits.hold(edge, Fraction(1, 2))
