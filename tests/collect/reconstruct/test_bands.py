"""Bands: they hold the estimate, nest as they should, and stay within what is possible."""

from __future__ import annotations

import numpy as np
import pytest
from collect.reconstruct.simulation import channel, reports, truth

from tidegate.collect.reconstruct import GaussianNoise, Reconstruction, grid_channel, reconstruct
from tidegate.errors import Unsupported


@pytest.fixture(scope="module")
def reconstruction() -> Reconstruction:
    counts = reports(truth("lognorm"), channel("sw", 1.0), total=20_000, rng=np.random.default_rng(21))
    return reconstruct(counts, channel("sw", 1.0))


POINTS = np.tri(100)[4:100:10]


def test_default_band_contains_the_estimate_and_stays_within_zero_and_one(reconstruction) -> None:
    for of, estimate in (
        ("bins", reconstruction.masses),
        ("cdf", reconstruction.cdf),
        (POINTS, POINTS @ reconstruction.masses),
    ):
        band = reconstruction.band(of=of)
        assert (band.low <= estimate + 1e-12).all()
        assert (estimate <= band.high + 1e-12).all()
        assert band.low.min() >= 0
        assert band.high.max() <= 1


def test_more_confidence_is_a_wider_band(reconstruction) -> None:
    for kind in ("default", "strict"):
        narrow, wide = (reconstruction.band(kind, confidence=level, of=POINTS) for level in (0.5, 0.99))
        assert (wide.low <= narrow.low + 1e-9).all()
        assert (narrow.high <= wide.high + 1e-9).all()
        assert (wide.high - wide.low).sum() > (narrow.high - narrow.low).sum()


def test_rows_of_coefficients_and_names_agree(reconstruction) -> None:
    for kind in ("default", "strict"):
        named, rows = reconstruction.band(kind, of="cdf"), reconstruction.band(kind, of=np.tri(100))
        assert named.low == pytest.approx(rows.low, abs=1e-9)
        assert named.high == pytest.approx(rows.high, abs=1e-9)
    assert reconstruction.band(of=np.eye(100)).high == pytest.approx(reconstruction.band(of="bins").high)


def test_mean_has_a_band(reconstruction) -> None:
    at = (np.arange(100) + 0.5) / 100
    for kind in ("default", "strict"):
        band = reconstruction.band(kind, of=at)
        assert band.low[0] < truth("lognorm") @ at < band.high[0]
        assert band.high[0] - band.low[0] < 0.05


def test_strict_band_ends_where_the_misfit_exceeds_the_cutoff() -> None:
    """Without noise the misfit of P(value <= 2) = v is that of a binomial: v +- 1.96 sqrt(v (1 - v) / N)."""
    counts = np.array([100.0, 200, 300, 250, 150, 120])
    band = reconstruct(counts, np.eye(6)).band("strict", of=np.array([1.0, 1, 1, 0, 0, 0]))
    share = 600 / 1120
    error = 1.96 * np.sqrt(share * (1 - share) / 1120)
    assert band.low[0] == pytest.approx(share - error, abs=0.002)
    assert band.high[0] == pytest.approx(share + error, abs=0.002)


def test_strict_band_is_wide_if_noise_hides_the_shape() -> None:
    counts = reports(truth("two-tri"), channel("gauss", 2.0), total=100_000, rng=np.random.default_rng(2))
    estimate = reconstruct(counts, channel("gauss", 2.0))
    strict = estimate.band("strict", of=POINTS)
    assert 0.2 < (strict.high - strict.low).mean() < 0.5
    assert ((strict.low <= POINTS @ truth("two-tri")) & (POINTS @ truth("two-tri") <= strict.high)).all()


@pytest.mark.long  # claims/test_reconstruction.py measures the coverage of bands
def test_bands_of_a_long_grid_bound_values_inside_a_cell() -> None:
    long, known = grid_channel(GaussianNoise(0.05), 1000), truth("triangle", 1000)
    estimate = reconstruct(reports(known, long, total=100_000, rng=np.random.default_rng(6)), long)
    for kind in ("default", "strict"):
        band = estimate.band(kind, of="cdf")
        assert band.low.shape == (1000,)
        assert ((band.low <= np.cumsum(known)) & (np.cumsum(known) <= band.high)).mean() > 0.95
    bins = estimate.band("strict", of="bins")
    assert (bins.low <= known).all()
    assert (known <= bins.high).all()


def test_methods_with_unknown_smoothing_have_only_a_strict_band() -> None:
    counts = reports(truth("triangle"), channel("sw", 1.0), total=20_000, rng=np.random.default_rng(1))
    estimate = reconstruct(counts, channel("sw", 1.0), method="em")
    assert (estimate.band("strict", of=POINTS).high > 0).all()
    with pytest.raises(Unsupported, match="its amount of smoothing is unknown"):
        estimate.band()


@pytest.mark.parametrize(
    "options", [{"kind": "loose"}, {"of": "median"}, {"confidence": 1.0}, {"confidence": 0.0}], ids=str
)
def test_unknown_bands_are_refused(reconstruction, options) -> None:
    with pytest.raises(Unsupported):
        reconstruction.band(**options)
