"""Tumult Analytics: 100 counts of ranges. FILE ROWS RHO (of zCDP, for all counts together)"""

import json
import math
import os
import sys
from pathlib import Path

os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
import pandas as pd
from pyspark.sql import SparkSession
from serve import serve
from tmlt.analytics import AddOneRow, QueryBuilder, RhoZCDPBudget, Session

file, rows, rho = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
content = json.loads(Path(file).read_text())
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.sql.shuffle.partitions", "1")
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
values = pd.Series(content["values"])
frame = spark.createDataFrame(pd.DataFrame({"x": values})).cache()
MANY = RhoZCDPBudget(1e6)  # each count is charged its part below; the session only needs to allow repetitions
session = Session.from_dataframe(privacy_budget=MANY, source_id="t", dataframe=frame, protected_change=AddOneRow())


def errors():
    """Return the root mean squared error of all counts."""
    squares = []
    for low, high in content["ranges"]:
        query = QueryBuilder("t").filter(f"x >= {low} and x <= {high}").count()
        answer = session.evaluate(query, RhoZCDPBudget(rho / len(content["ranges"]))).toPandas().iloc[0, 0]
        squares.append((float(answer) - int(values.between(low, high).sum())) ** 2)
    return math.sqrt(sum(squares) / len(squares))


charged = {"zcdp": rho, "neighbours": "add or remove one row"}
serve({"one by one": errors}, "tmlt.analytics", "pyspark", charged=charged)
