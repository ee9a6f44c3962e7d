"""Whether draws have the probabilities that they should have, wrong about true ones with a stated chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.audit.bounds import highest, lowest


def unlike(draws: Iterable[Any], probabilities: Mapping[Any, float], *, alpha: float) -> str:
    """What is odd about draws: an outcome that cannot be, or one outside of its exact bounds (Clopper and Pearson,
    alpha shared by all outcomes and both sides)."""
    counts = Counter(draws)
    total = sum(counts.values())
    strange = [outcome for outcome in counts if probabilities.get(outcome, 0.0) <= 0]
    if strange:
        return f"{counts[strange[0]]} of {total:,} draws have a probability of 0"
    each = alpha / (2 * len(probabilities))
    for outcome, probability in probabilities.items():
        found = counts[outcome]
        low, high = lowest(found, total, alpha=each), highest(found, total, alpha=each)
        if not low <= probability <= high:
            return f"{found:,} of {total:,} draws where {probability * total:,.0f} were to be expected"
    return ""
