"""SmartNoise SQL: 100 counts of ranges. FILE ROWS EPSILON (of all counts together, at delta 1e-6)"""

import json
import math
import sys
from pathlib import Path

from serve import serve
from snsql import Privacy, from_df

file, rows, epsilon = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])


def load():
    import pandas as pd

    content = json.loads(Path(file).read_text())
    return pd.DataFrame({"x": content["values"]}), content["ranges"]


frame, ranges = load()
known = {"row_privacy": True, "rows": rows, "x": {"type": "int", "lower": 0, "upper": 72}}
privacy = Privacy(epsilon=epsilon / len(ranges), delta=1e-6 / len(ranges))
known["censor_dims"] = False  # every range is public, so that small counts are shown as well
reader = from_df(frame, privacy=privacy, metadata={"": {"s": {"t": known}}})


def errors():
    """Return the root mean squared error of all counts."""
    squares = []
    for low, high in ranges:
        answer = reader.execute(f"SELECT COUNT(*) AS n FROM s.t WHERE x >= {low} AND x <= {high}")[1][0]
        squares.append((float(answer) - int(frame.x.between(low, high).sum())) ** 2)
    return math.sqrt(sum(squares) / len(squares))


charged = {"epsilon": epsilon, "delta": 1e-6, "neighbours": "add or remove one row; the losses of the counts add up"}
serve({"one by one": errors}, "smartnoise-sql", "opendp", charged=charged)
