"""ANSWER: noisy statistics whose privacy is stated as a probability of identification.

request.py    queries as values                  sql.py       queries as SQL
spending.py   rho, epsilon or error              run.py       check, charge, run, record
mechanisms/   one file each                      result.py    answers and previews
derive.py     answers that follow from earlier ones, free     charts.py    answers as charts
"""

from tidegate.answer.request import (
    Query,
    count,
    distinct,
    histogram,
    max,
    mean,
    median,
    min,
    persons,
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
    "distinct",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "persons",
    "quantile",
    "regression",
    "std",
    "sum",
    "variance",
]
