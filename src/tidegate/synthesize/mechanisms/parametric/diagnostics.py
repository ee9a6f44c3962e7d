"""How far chains are from having met: split R-hat and effective sample size. Private: for the data holder's eyes.

Reference  Gelman, Carlin, Stern, Dunson, Vehtari, Rubin 2013, "Bayesian Data Analysis", Sections 11.4 and 11.5.
"""

from __future__ import annotations

import numpy as np

from tidegate.arrays import Floats


def split_rhat(chains: Floats) -> float:
    """Of chains (chains, draws), each cut in half: 1 where all halves tell the same."""
    halves = _halves(chains)
    draws = halves.shape[1]
    within = halves.var(1, ddof=1).mean()
    between = draws * halves.mean(1).var(ddof=1)
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt((within * (draws - 1) / draws + between / draws) / within))


def effective_size(chains: Floats) -> float:
    """To how many independent draws they amount, by Geyer's initial positive pairs of autocorrelations."""
    halves = _halves(chains)
    many, draws = halves.shape
    within = halves.var(1, ddof=1).mean()
    spread = within * (draws - 1) / draws + halves.mean(1).var(ddof=1)
    if spread == 0:
        return float(many * draws)
    centred = halves - halves.mean(1, keepdims=True)
    covariance = np.stack([_autocovariance(chain) for chain in centred]).mean(0)
    rho = 1 - (within * (draws - 1) / draws - covariance) / spread
    pairs = rho[: 2 * (draws // 2)].reshape(-1, 2).sum(1)
    ends = np.flatnonzero(pairs < 0)
    kept = pairs[: ends[0]] if ends.size else pairs
    kept = np.minimum.accumulate(kept)
    return float(many * draws / max(2 * kept.sum() - 1, 1 / np.log10(many * draws)))


def _autocovariance(chain: Floats) -> Floats:
    size = 2 ** int(np.ceil(np.log2(2 * chain.size)))
    power = np.abs(np.fft.rfft(chain, size)) ** 2
    return np.asarray(np.fft.irfft(power)[: chain.size] / chain.size)


def _halves(chains: Floats) -> Floats:
    half = chains.shape[1] // 2
    return np.vstack([chains[:, :half], chains[:, half : 2 * half]])
