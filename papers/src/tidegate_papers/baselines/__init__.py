"""The baselines of the paper on the pMSE mechanism, as models (`tidegate.synthesize.model`) for rows in memory.

sequential.py   one regression per column, chosen in rounds by the exact exponential mechanism; with
                rounds.py (plan, candidates, choices), fits.py (rounds of one column), regressions.py (what was learned)
copula.py       histograms of columns joined by a normal copula (exact)
bppd.py         draws from noisy sufficient statistics (exact, for numbers)
smooth_histogram.py  rows from a histogram mixed with the uniform distribution (exact, for few cells)
metropolis.py   the published sampler with its diagnostics (only asymptotic)
plug_in.py      the best fit itself (NOT private, for comparison only)
scores.py, trees.py  how far a table is from a model: pMSE and total variation, as integers

All of them measure pure losses. Tidegate itself makes tables with `forest/2` only.

Reference:
    Snoke & Slavkovic 2018, "pMSE Mechanism: Differentially Private Synthetic Data with Maximal Distributional
    Similarity", Algorithm 2; sequential.py uses the total variation as the score and finite candidate sets instead of a
    chain.
"""
