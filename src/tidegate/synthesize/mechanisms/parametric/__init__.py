"""Parametric models g(theta): theta is chosen by the exact exponential mechanism, in rounds, over public candidates.

plan.py         stages, shares, who may be whose parent    candidates.py   public candidate sets, and one round over them
linear.py       a number given its parents                 levels.py       a category given its parents
sequential.py   "sequential/1": one regression a column    states.py       what was learnt, and rows drawn from it
copula.py       "copula/1": margins and correlations       private.py      private rows as residual cells
scores.py       what misfits mean, and their sensitivity

Reference:
    Snoke & Slavkovic 2018, "pMSE Mechanism: Differentially Private Synthetic Data with Maximal Distributional
    Similarity", Algorithm 2, with the total variation for a score and finite candidate sets for a chain.
"""
