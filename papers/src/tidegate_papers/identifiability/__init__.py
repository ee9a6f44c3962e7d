"""Lee & Clifton 2012, Differential Identifiability.

paper.py      what the paper prints            examples.py   Sections 3.5 and 4.1, Table 2, Figure 1
adult.py      the Adult table, exact integers  tables.py     Section 5, Tables 3 and 4
boxes.py      Figures 2 to 4, simulated        drawing.py    the figures as pictures
run.py        all of it, item by item
"""

from tidegate_papers.identifiability.adult import HOW_TO_GET
from tidegate_papers.identifiability.run import Reproduction, reproduce

__all__ = ["HOW_TO_GET", "Reproduction", "reproduce"]
