"""ANSWER: noisy statistics whose privacy is stated as a probability of identification.

request.py       what is asked, as values           sql.py         ... and as SQL
calibration.py   rho, epsilon or error              run.py         check, charge, run, record
mechanisms/      one file each                      result.py      what is given back
derive.py        what follows from earlier answers, free           pictures.py    answers as pictures
"""

from tidegate.answer.request import (
    Query,
    count,
    histogram,
    max,
    mean,
    median,
    min,
    quantile,
    regression,
    std,
    sum,
    variance,
)
from tidegate.answer.result import Answer, Answers, Preview

__all__ = [
    "Answer",
    "Answers",
    "Preview",
    "Query",
    "count",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "regression",
    "std",
    "sum",
    "variance",
]
