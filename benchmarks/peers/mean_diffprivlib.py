"""diffprivlib: its bounded mean, in floating point. FILE ROWS EPSILON"""

import sys

import diffprivlib.tools as tools
import pyarrow.parquet as pq
from diffprivlib import BudgetAccountant
from serve import serve

file, rows, epsilon = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])


def load():
    return pq.read_table(file, columns=["x"])["x"].to_numpy()


def mean(values):
    return tools.mean(values, epsilon=epsilon, bounds=(0, 100))


column = load()
account = BudgetAccountant()
tools.mean(column[:1000], epsilon=epsilon, bounds=(0, 100), accountant=account)
charged = {"epsilon": account.total()[0], "neighbours": "replace one row (bounded by range / rows)"}
tasks = {"in memory": lambda: mean(column), "from the file": lambda: mean(load())}
serve(tasks, "diffprivlib", "scikit-learn", "numpy", "pyarrow", charged=charged)
