"""Parametric models g(theta): theta is chosen by the exact exponential mechanism, in rounds, over public candidates.

candidates.py   public candidate sets and radii            choosing.py     one round: a step of the diary
plan.py         stages, shares, who may be whose parent    latent.py       private rows as residual cells
linear.py       a number given its parents                 levels.py       a category given its parents
sequential.py   "sequential/1": one regression a column    drawing.py      artificial rows from what was learnt
metropolis.py   the published sampler: only asymptotic     diagnostics.py  split R-hat, effective sample size
copula.py       "copula/1": margins and correlations       bivariate.py    rectangles of the bivariate normal

Reference  Snoke & Slavkovic 2018, "pMSE Mechanism: Differentially Private Synthetic Data with Maximal Distributional
           Similarity", Algorithm 2, with the total variation for a score and finite candidate sets for a chain.
"""
