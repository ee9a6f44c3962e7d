"""Exact integer samplers: the only source of protective randomness, with bits from the operating system.

    bits.py              secure bits (and seeded ones for tests)
    bernoulli.py         coins of probability exp(-n/d)
    inversion.py         noise from secure bits: tables of exact cumulative probabilities
    laplace.py           discrete Laplace noise
    gaussian.py          discrete Gaussian noise
    box.py               noise for several integers at once, measured by a box
    exponential.py       selection from a list by the exponential mechanism or by permute-and-flip
    differences.py       tests of which differences between noisy values exceed their noise

These are our own samplers because they are vectorized over whole histograms (OpenDP 0.16 draws one integer in about
7 us, these in 0.02 to 0.06 us). The tests check exactness against a reference implementation and against OpenDP.
"""

from tidegate.noise.bits import Bits, SecureBits, SeededBits, below
from tidegate.noise.box import STEPS, box_noise
from tidegate.noise.exponential import exponential_choice, exponential_choices, permute_and_flip, rate_for
from tidegate.noise.gaussian import Gaussian, discrete_gaussian, sigma_for
from tidegate.noise.laplace import Laplace, difference_quantile, discrete_laplace, noise_quantile, round_up, scale_for

Noise = Laplace | Gaussian

__all__ = [
    "STEPS",
    "Bits",
    "Gaussian",
    "Laplace",
    "Noise",
    "SecureBits",
    "SeededBits",
    "below",
    "box_noise",
    "difference_quantile",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_choice",
    "exponential_choices",
    "noise_quantile",
    "permute_and_flip",
    "rate_for",
    "round_up",
    "scale_for",
    "sigma_for",
]
