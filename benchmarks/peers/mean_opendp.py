"""OpenDP: clamp, sum and integer Laplace noise over a vector. FILE ROWS EPSILON"""

import sys

import opendp.prelude as dp
import pyarrow.parquet as pq
from serve import serve

file, rows, epsilon = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
dp.enable_features("contrib")
# A vector of a known size: neighbors replace a row, and two in a symmetric distance are one replaced row.
space = dp.vector_domain(dp.atom_domain(T=int), size=rows), dp.symmetric_distance()
summed = space >> dp.t.then_clamp((0, 100)) >> dp.t.then_sum()
mean = dp.binary_search_chain(lambda scale: summed >> dp.m.then_laplace(scale=scale), d_in=2, d_out=epsilon)


def load():
    return pq.read_table(file, columns=["x"])["x"].to_numpy()


column = load()
charged = {"epsilon": mean.map(2), "neighbours": "replace one row"}
tasks = {"in memory": lambda: mean(column) / rows, "from the file": lambda: mean(load()) / rows}
serve(tasks, "opendp", "pyarrow", charged=charged)
