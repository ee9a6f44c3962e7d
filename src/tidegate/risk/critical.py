"""Critical values of the chi-square distribution."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from tidegate.errors import Unsupported
from tidegate.extras import extra


def chi_square_critical(freedom: float, significance: float | Fraction) -> float:
    """Return the value that a chi-square variable exceeds with probability `significance`.

    Needs:
        The degrees of freedom of the declared DOMAIN ((values - 1) x targets for mutual information, values - 1
        for one target), not of the values seen so far: those are too few at first, and the release freezes.

    Reference:
        Bezzi et al. 2012, Properties 5.2, 5.6 and 5.9.
    """
    level = check_significance(significance)
    if not freedom > 0:
        raise Unsupported(
            f"A chi-square test needs at least one degree of freedom, not {freedom:g}.",
            "Declare at least two values for the released attribute.",
            freedom=float(freedom),
        )
    return _critical(float(freedom), level)


def check_significance(significance: float | Fraction) -> float:
    """Return the level as a float, or raise Unsupported unless it is between 0 and 1."""
    level = float(significance)
    if not 0 < level < 1:
        raise Unsupported(
            f"The significance must be between 0 and 1, not {level:g}.",
            "Choose 0.2 to be strict (an observer who accepts an error rate of 20% learns nothing), 0.05 to be lenient.",
            significance=level,
        )
    return level


@lru_cache(maxsize=4096)
def _critical(freedom: float, level: float) -> float:
    with extra("release", "Releasing records"):
        from scipy.special import chdtri  # type: ignore[import-untyped] # imported late: it is slow to load

    return float(chdtri(freedom, level))
