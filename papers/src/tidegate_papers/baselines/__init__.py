"""The baselines of the paper on the pMSE mechanism, as models. Tidegate loads them by name when they are requested.

bppd.py draws from noisy sufficient statistics (exact, for numbers). smooth_histogram.py draws rows from a histogram mixed
with the uniform distribution (exact, for few cells). metropolis.py is the published sampler with its diagnostics (only
asymptotic). plug_in.py is the best fit itself (NOT private, for comparison only). scores.py and trees.py measure how far a
table is from a model: pMSE and total variation, as integers.
"""
