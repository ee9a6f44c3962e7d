"""The only randomness: integers in, integers out, bits from the operating system.

    bits.py         secure bits (and seeded ones for tests)     bernoulli.py     coins of probability exp(-n/d)
    laplace.py      discrete Laplace noise                      exponential.py   choosing one of a list
    boxes.py        noise of several integers at once, measured by a box
    permute_and_flip.py   choosing one of a list, never worse than the exponential mechanism
    differences.py  which differences between noisy values exceed their noise

Our own samplers and not a library's: they are vectorised over whole histograms (OpenDP 0.16 draws one integer in
about 28 us, these in well under one), and exactness is checked against a slow twin and against OpenDP in the tests.
"""

from tidegate.noise.bits import Bits, SecureBits, SeededBits, below
from tidegate.noise.box import STEPS, box_noise
from tidegate.noise.exponential import exponential_choice
from tidegate.noise.laplace import difference_quantile, discrete_laplace, noise_quantile, round_up, scale_for
from tidegate.noise.permute_and_flip import permute_and_flip, rate_for

__all__ = [
    "STEPS",
    "Bits",
    "SecureBits",
    "SeededBits",
    "below",
    "box_noise",
    "difference_quantile",
    "discrete_laplace",
    "exponential_choice",
    "noise_quantile",
    "permute_and_flip",
    "rate_for",
    "round_up",
    "scale_for",
]
