"""A table that stays on a Spark cluster: spark://MASTER?table=NAME or spark://MASTER?parquet=FOLDER.

MASTER is host:port, local[2], or empty for the existing session (or Spark's own default).
"""

from __future__ import annotations

import os
import sys
from typing import Any
from urllib.parse import parse_qsl, unquote

from tidegate.errors import SourceUnreadable
from tidegate.extras import extra
from tidegate.tables.guard import ask_engine


def open_url(url: str) -> Any:
    """Return the table that a URL names, on the cluster that it names."""
    address, _, tail = url.removeprefix("spark://").partition("?")
    query = dict(parse_qsl(tail))
    if bool(query.get("table")) == bool(query.get("parquet")):
        raise SourceUnreadable(
            "The Spark source must name either a table or a folder.", "Write spark://local[2]?parquet=/data/people."
        )
    connection = connect(_session(unquote(address)))
    if query.get("table"):
        return ask_engine(lambda: connection.table(query["table"]), what="opening the Spark table")
    return ask_engine(lambda: connection.read_parquet(query["parquet"]), what="opening the Parquet folder on Spark")


def open_frame(frame: Any) -> Any:
    """Return a live Spark data frame as a table."""
    name = f"tidegate_people_{id(frame)}"  # several frames can be open at once
    frame.createOrReplaceTempView(name)
    return connect(frame.sparkSession).table(name)


def connect(session: Any) -> Any:
    import ibis

    return ibis.pyspark.connect(session)


def _session(master: str) -> Any:
    with extra("spark", "Reading Spark tables"):
        from pyspark.sql import SparkSession
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("tidegate").config("spark.ui.enabled", "false")
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.sql.shuffle.partitions", "4")
    if master:
        builder = builder.master(master if master.startswith(("local", "yarn", "k8s")) else f"spark://{master}")
    return ask_engine(builder.getOrCreate, what="starting Spark")
