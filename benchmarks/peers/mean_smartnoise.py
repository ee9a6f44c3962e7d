"""SmartNoise SQL: AVG over a data frame. FILE ROWS EPSILON"""

import sys

import pyarrow.parquet as pq
from serve import serve
from snsql import Privacy, from_df

file, rows, epsilon = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
QUERY = "SELECT AVG(x) AS m FROM s.t"
known = {"row_privacy": True, "rows": rows, "x": {"type": "int", "lower": 0, "upper": 100}}
# AVG is charged as three times what is asked (sum, number, number of rows): a third is asked for.
privacy = Privacy(epsilon=epsilon / 3, delta=1e-6)


def load():
    return pq.read_table(file, columns=["x"]).to_pandas()


def reader(frame):
    return from_df(frame, privacy=privacy, metadata={"": {"s": {"t": known}}})


column = load()
spent, delta = reader(column).get_privacy_cost(QUERY)
neighbours = "add or remove one row; for values from 0 to 100 its noise on the sum covers replacing one as well"
charged = {"epsilon": float(spent), "delta": float(delta), "asked": epsilon / 3, "neighbours": neighbours}
tasks = {"from the file": lambda: reader(load()).execute(QUERY)[1][0]}
serve(tasks, "smartnoise-sql", "opendp", "pandas", "pyarrow", charged=charged)
