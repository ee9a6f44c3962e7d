"""Snoke & Slavkovic 2018, the pMSE mechanism.

paper.py        what the paper prints                      simulation.py   its data, and tables as codes
failures.py     Section 5: how often greedy trees break the bound, and by how much
similarity.py   Section 7: mean pMSE of every method       coefficients.py Section 6: errors of regression coefficients
chains.py       its sampler as published                   drawing.py      the figures as pictures
run.py          all of it, item by item
"""

from tidegate_papers.pmse.run import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
