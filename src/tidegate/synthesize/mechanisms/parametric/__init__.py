"""Parametric models g(theta): the exact exponential mechanism chooses theta in rounds over public candidates.

plan.py         stages, shares, possible parents           candidates.py   public candidate sets, and one round
linear.py       a number given its parents                 levels.py       a category given its parents
sequential.py   "sequential/1": one regression a column    states.py       learned regressions, and rows drawn from them
copula.py       "copula/1": margins and correlations       private.py      private rows as residual cells
scores.py       the meaning of misfits, and their sensitivity

Reference:
    Snoke & Slavkovic 2018, "pMSE Mechanism: Differentially Private Synthetic Data with Maximal Distributional
    Similarity", Algorithm 2, with the total variation as the score and finite candidate sets instead of a chain.
"""
