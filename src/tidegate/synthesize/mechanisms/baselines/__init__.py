"""What the paper compares with, behind the same interface. None is a default.

bppd.py               noisy sufficient statistics, then a posterior predictive draw       exact, for numbers
smooth_histogram.py   a histogram mixed with the uniform distribution, rows drawn from it exact, for few cells
plug_in.py            the best fit as it is                                               NOT private: for comparison only
"""

from tidegate.synthesize.mechanisms.baselines.bppd import Bppd
from tidegate.synthesize.mechanisms.baselines.plug_in import PlugIn
from tidegate.synthesize.mechanisms.baselines.smooth_histogram import SmoothHistogram

__all__ = ["Bppd", "PlugIn", "SmoothHistogram"]
