"""Choices of a run by z: the exponential mechanism by rejection, at a rate that is never above its price."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from claims.probabilities import bits, chance
from hypothesis import given
from hypothesis import strategies as st
from reference import exponential as slow
from synthesize.forest.surveys import by_z, pairwise

from tidegate.noise import SeededBits
from tidegate.noise import permute_and_flip as sample_permute_and_flip
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.mechanisms.forest import meter
from tidegate.synthesize.mechanisms.forest.meter import Meter, rate_for_z

LIMITS = {"z": by_z(4), "pairwise z": pairwise(4)}


@given(st.integers(1, 50), st.fractions(Fraction(1, 10**6), 100))
def test_rate_is_the_largest_multiple_of_its_grid_that_the_loss_allows(moved: int, z: Fraction) -> None:
    rate = rate_for_z(moved, z)
    assert (rate * moved) ** 2 <= 8 * z < ((rate + Fraction(1, 2**32)) * moved) ** 2
    assert (rate * 2**32).denominator == 1


@given(st.integers(1, 500_000), st.integers(1, 5), st.integers(1, 4), st.sampled_from(["z", "pairwise z"]))
def test_choice_never_states_more_than_its_parts_or_less_than_its_rate(
    parts: int, reach: int, sensitivity: int, mode: str
) -> None:
    diary, rates = Diary(LIMITS[mode]), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meter, "exponential_choice", lambda scores, rate, *, bits: rates.append(rate) or 0)
        Meter(diary, reach=reach, bits=SeededBits(1)).choice(
            "choice", parts, lambda: np.arange(3), sensitivity=sensitivity
        )
    (step,), (rate,) = diary.steps, rates
    share = Fraction(parts, meter.PARTS)
    assert step.loss.z == (rate * sensitivity * reach) ** 2 / 8
    assert step.loss.z <= share * LIMITS[mode].z
    assert step.loss.zcdp == 4 * step.loss.z
    if mode == "pairwise z":
        assert step.loss.zcdp <= share * LIMITS[mode].zcdp


SCORES, DRAWS = np.array([0, 3, 5, 5, 9]), 12_000
FALSE_ALARM = 1e-6


def draw_choices(seed: str) -> tuple[np.ndarray, Fraction]:
    """Return how often a run by z chooses each of 5 candidates, and the rate of the choice."""
    stream, counts = bits(seed), np.zeros(SCORES.size, np.int64)
    for _ in range(DRAWS):
        counts[Meter(Diary(by_z(1)), reach=1, bits=stream).choice("c", 10_000, lambda: SCORES, sensitivity=1)] += 1
    return counts, rate_for_z(1, Fraction(1, 100))


@pytest.mark.long  # claims/test_noise_claims.py has the same claim
@pytest.mark.claim
def test_choices_by_z_follow_the_exponential_mechanism() -> None:
    """Correct code fails with probability at most FALSE_ALARM."""
    counts, rate = draw_choices("choices by z")
    assert chance(counts, np.array([float(p) for p in slow.probabilities(SCORES.tolist(), rate)])) > FALSE_ALARM


@pytest.mark.long  # claims/test_noise_claims.py has the same claim
@pytest.mark.claim
def test_choices_without_replacement_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "exponential_choice", sample_permute_and_flip)
    counts, rate = draw_choices("choices without replacement")
    assert chance(counts, np.array([float(p) for p in slow.probabilities(SCORES.tolist(), rate)])) < FALSE_ALARM
