"""What the paper on the pMSE mechanism compares with, as models. Tidegate loads them by name when they are requested.

bppd.py               noisy sufficient statistics, then a posterior predictive draw       exact, for numbers
smooth_histogram.py   a histogram mixed with the uniform distribution, rows drawn from it exact, for few cells
metropolis.py         the sampler as published, with its diagnostics                      only asymptotic
plug_in.py            the best fit as it is                                               NOT private: for comparison only
scores.py, trees.py   how far a table is from a model: pMSE and total variation, in whole numbers
"""
