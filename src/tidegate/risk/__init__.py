"""Measures, one per file: pure functions from counts or arrays to numbers.

identification.py   what an informed adversary concludes from a response: the posterior of every possible world
tightness.py        the least noise that keeps a rho for a known universe, and what that gives away
"""

from tidegate.risk.identification import equation_15, posterior, worst_risk
from tidegate.risk.tightness import tight_scale, window_scale

__all__ = ["equation_15", "posterior", "tight_scale", "window_scale", "worst_risk"]
