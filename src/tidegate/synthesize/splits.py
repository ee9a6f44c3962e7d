"""Epsilon in whole parts: stages share a million of them, so that sums are exact and short."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from tidegate.errors import Unsupported

PARTS = 1_000_000


def overruled(parts: Mapping[str, int], split: Mapping[str, Fraction]) -> dict[str, int]:
    """The shares that were set, and the others scaled to what these leave."""
    given = {name: int(share * PARTS) for name, share in split.items()}
    if set(given) - set(parts) or sum(given.values()) > PARTS or min(given.values(), default=0) < 0:
        raise Unsupported(
            f"the split {', '.join(f'{name} = {share}' for name, share in split.items())} cannot be kept.",
            f"Give shares of at least 0, together at most 1, to some of: {', '.join(parts)}.",
        )
    others = sum(share for name, share in parts.items() if name not in given)
    left = PARTS - sum(given.values())
    return {name: given.get(name, left * share // max(others, 1)) for name, share in parts.items()}
