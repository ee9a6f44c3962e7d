"""How far from the baseline chance alone leads: critical values of the chi-square distribution."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from tidegate.errors import Unsupported
from tidegate.extras import extra


def chi_square_critical(freedom: float, significance: float | Fraction) -> float:
    """The value that a chi-square variable exceeds with probability `significance`.

    Needs      the degrees of freedom of the declared DOMAIN ((values - 1) x targets for mutual information, values - 1
               for one target), not of what was seen so far: those fall short at first, and the release freezes.
    Reference  Bezzi et al. 2012, Properties 5.2, 5.6 and 5.9.
    """
    level = checked_significance(significance)
    if not freedom > 0:
        raise Unsupported(
            f"A chi-square test needs at least one degree of freedom, not {freedom:g}.",
            "Declare at least two values for the attribute that is released.",
            freedom=float(freedom),
        )
    return _critical(float(freedom), level)


def checked_significance(significance: float | Fraction) -> float:
    """The level as a number, if it lies between 0 and 1."""
    level = float(significance)
    if not 0 < level < 1:
        raise Unsupported(
            f"A significance of {level:g} means nothing: it lies between 0 and 1.",
            "Choose 0.2 to be strict (an observer who may err one time in five learns nothing), 0.05 to be lenient.",
            significance=level,
        )
    return level


@lru_cache(maxsize=4096)
def _critical(freedom: float, level: float) -> float:
    with extra("release", "Releasing records"):
        from scipy.special import chdtri  # type: ignore[import-untyped] # here: it takes longer to load than all the rest

    return float(chdtri(freedom, level))
