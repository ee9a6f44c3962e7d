"""From counts of randomized reports to the distribution of the values.

run.py          reconstruct(): checks, chooses, warns        result.py      Reconstruction, its bands
channel.py      A[s, j] of noise on a grid                   noise.py       the published continuous noises
bank.py         the default: an average of smooth fits       families.py, fit.py, cells.py   what it averages
em.py           the published methods
bands.py        error bounds                                 features.py    what N reports can show
categories.py   shares of categories by inversion            heaping.py     numbers that people rounded
"""

from tidegate.collect.reconstruct.bands import Band
from tidegate.collect.reconstruct.categories import Shares, nearest_distribution, shares
from tidegate.collect.reconstruct.channel import (
    Channel,
    Dense,
    Shifted,
    atoms_channel,
    bins_channel,
    build_channel,
    grid_channel,
    report_edges,
    square_wave_channel,
)
from tidegate.collect.reconstruct.features import expected_features, features
from tidegate.collect.reconstruct.heaping import with_heaping
from tidegate.collect.reconstruct.noise import GaussianNoise, LaplaceNoise, Noise, SquareWave, UniformNoise
from tidegate.collect.reconstruct.result import Reconstruction
from tidegate.collect.reconstruct.run import METHODS, reconstruct
from tidegate.operators import Support

__all__ = [
    "METHODS",
    "Band",
    "Channel",
    "Dense",
    "GaussianNoise",
    "LaplaceNoise",
    "Noise",
    "Reconstruction",
    "Shares",
    "Shifted",
    "SquareWave",
    "Support",
    "UniformNoise",
    "atoms_channel",
    "bins_channel",
    "build_channel",
    "expected_features",
    "features",
    "grid_channel",
    "nearest_distribution",
    "reconstruct",
    "report_edges",
    "shares",
    "square_wave_channel",
    "with_heaping",
]
