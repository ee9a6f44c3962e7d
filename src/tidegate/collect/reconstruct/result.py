"""The result of a reconstruction."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.reconstruct.bands import Band, applied, coefficients, default_band, limits, strict_band
from tidegate.collect.reconstruct.bank import Bank
from tidegate.collect.reconstruct.categories import Inverse
from tidegate.collect.reconstruct.cells import Cells
from tidegate.errors import Unsupported
from tidegate.extras import extra

with extra("collect", "Estimating from randomized reports"):
    from scipy.special import ndtri  # type: ignore[import-untyped]


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """An estimated distribution: masses on the grid, the method, and warnings."""

    masses: Floats
    method: str
    total: float
    features: int
    steps: int = 0
    warnings: tuple[str, ...] = ()
    _bank: Bank | None = field(default=None, repr=False)
    _inverse: Inverse | None = field(default=None, repr=False)
    _cells: Cells | None = field(default=None, repr=False)

    @property
    def weights(self) -> tuple[tuple[str, float, float], ...]:
        """Family, strength and weight of each model in the estimate, the heaviest first; none for other methods."""
        models = self._bank.models if self._bank else ()
        unsorted = ((model.fit.family, model.fit.strength, model.weight) for model in models)
        return tuple(sorted(unsorted, key=lambda model: -model[2]))

    @property
    def cdf(self) -> Floats:
        """The distribution function at the upper end of each bin."""
        return np.cumsum(self.masses)

    def band(self, kind: str = "default", *, confidence: float = 0.95, of: str | Floats = "bins") -> Band:
        """Return a band for the bins ("bins"), the distribution function ("cdf") or any rows of coefficients.

        Guarantee:
            None proven. Measured at 95%: see bands.py. "default" assumes that the values are not a few atoms;
            "strict" assumes only that no mass is negative.
        """
        if isinstance(of, str) and of not in ("bins", "cdf"):
            raise Unsupported(f'Unknown functional: of="{of}".', 'Use of="bins", of="cdf", or rows of coefficients.')
        if not 0 < confidence < 1:
            raise Unsupported(f"`confidence` must be between 0 and 1; it is {confidence:g}.", "Use 0.95, for example.")
        if kind == "default":
            return self._default(confidence, of)
        if kind == "strict":
            return self._strict(confidence, of)
        raise Unsupported(f'Unknown kind of band: "{kind}".', 'Use "default" or "strict".')

    def _default(self, confidence: float, of: str | Floats) -> Band:
        if self._bank is not None:
            return default_band(self._bank, self.masses, of=of, confidence=confidence)
        if self._inverse is not None:
            return _normal_band(self._inverse, self.masses, of=of, confidence=confidence)
        raise Unsupported(
            f'The method "{self.method}" has no default band, because its amount of smoothing is unknown.',
            'Use method="bank", or the strict band.',
        )

    def _strict(self, confidence: float, of: str | Floats) -> Band:
        cells = self._cells
        if cells is None:
            raise Unsupported(f'The method "{self.method}" has no strict band.', 'Use method="bank".')
        low, high = cells.named(of) if isinstance(of, str) else cells.rows(np.atleast_2d(of))
        return strict_band(cells.data, cells.gathered(self.masses), low, high, confidence=confidence)


def _normal_band(inverse: Inverse, masses: Floats, *, of: str | Floats, confidence: float) -> Band:
    """Return the interval of the unbiased estimate, clipped to possible values."""
    rows, raw = coefficients(of, masses.size), applied(of, inverse.raw)
    variance = np.maximum(np.einsum("ij,ij->i", rows @ inverse.covariance, rows), 0)
    wide = float(ndtri((1 + confidence) / 2)) * np.sqrt(variance)
    least, most = limits(of, masses.size)
    estimate = applied(of, masses)
    low, high = np.minimum(raw - wide, estimate), np.maximum(raw + wide, estimate)
    return Band(np.maximum(low, least), np.minimum(high, most), "default", confidence)
