"""Section 4: the example of two intervals. X is even on [0, 1] and [4, 5], the noise Y on [-1, 1]."""

from __future__ import annotations

from tidegate.risk.entropy import uniform_in_uniform
from tidegate.risk.interval import uniform_width
from tidegate_papers.item import Found

HALF_WIDTH, PIECES, PROPERTY = 1.0, 2, 0.01


def section_4() -> dict[str, Found]:
    """Intervals, entropies and the breach that an average does not notice."""
    entropy = uniform_in_uniform(1.0, half_width=HALF_WIDTH, pieces=PIECES)
    certain = width_left(-1 + PROPERTY)
    return {
        "s4_interval": Found(uniform_width(HALF_WIDTH, confidence=1.0)),
        "s4_interval_left": Found(max(width_left(z / 1000) for z in range(-1000, 2001))),
        "s4_interval_at_half": Found(width_left(-0.5)),
        "s4_pi": Found(entropy.privacy_before),
        "s4_pi_left": Found(entropy.privacy_after),
        "s4_loss": Found(entropy.loss),
        "s4_prior": Found(PROPERTY / PIECES),
        "s4_posterior": Found(min(PROPERTY, certain) / certain),
        "s4_rare": Found(rare(), f"1 in {1 / rare():,.0f}"),
        "s4_either": Found(1 / PIECES),
    }


def width_left(report: float) -> float:
    """How long the part of [0, 1] is from which a report near it can come."""
    return min(1.0, report + HALF_WIDTH) - max(0.0, report - HALF_WIDTH)


def rare() -> float:
    """P(-1 <= Z <= -0.99): both X (in the left piece) and Y + 1 are small, and their sum is at most 0.01."""
    return (1 / PIECES) * PROPERTY**2 / 2 / (2 * HALF_WIDTH)
