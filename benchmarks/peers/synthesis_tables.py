"""Runs in a peer's environment: reads the rows and the public facts, and repairs the synthetic rows."""

import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

MISSING = "missing"


def silence(task, log):
    """Return the task with its output redirected to a file: the pipe carries results only."""

    def run():
        with open(log, "w", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
            return task()

    return run


def read_case(folder):
    """Return the rows, with integers as integers, and the public facts of the columns."""
    rows = pq.read_table(Path(folder, "train.parquet")).to_pandas(ignore_metadata=True)
    return rows, json.loads(Path(folder, "facts.json").read_text())


def cells_of(rows, facts):
    """Return every column as labels of its public cells, and the lists of labels; without functions of other columns."""
    coded, domain = {}, {}
    for name, known in facts.items():
        if "function" in known:
            continue
        if known["kind"] == "integer":
            numbers = rows[name].astype(float).fillna(known["lower"]).to_numpy()
            labels = [f"{index:04d}" for index in np.searchsorted(known["starts"], numbers, side="right") - 1]
            listed = [f"{index:04d}" for index in range(len(known["starts"]))]
        else:
            labels, listed = rows[name], known["values"]
        coded[name] = pd.Series(labels, dtype=object).where(rows[name].notna(), MISSING)
        domain[name] = {"categories": [*listed, *[MISSING] * known["missing"]]}
    return pd.DataFrame(coded), domain


def values_of(coded, facts, rng):
    """Return values for labels: an even draw inside each cell; functions are computed."""
    synthetic = {}
    for name, known in facts.items():
        if "function" in known:
            pairs = known["function"]
            synthetic[name] = coded[pairs["of"]].map(dict(pairs["values"]))
        elif known["kind"] == "integer":
            starts, is_present = np.array([*known["starts"], known["upper"] + 1]), coded[name] != MISSING
            indexes = coded[name].where(is_present, "0000").astype(int).to_numpy()
            synthetic[name] = pd.Series(rng.integers(starts[indexes], starts[indexes + 1])).where(is_present)
        else:
            synthetic[name] = coded[name].where(coded[name] != MISSING)
    return pd.DataFrame(synthetic)


def repair(synthetic, rows, facts, rng):
    """Return integers as integers within their bounds.

    A missing value in a column without missing values is drawn from the column's own synthetic margin.
    """
    repaired = {}
    for name, known in facts.items():
        column = synthetic[name].astype(object).reset_index(drop=True)
        empty = column.isna().to_numpy()
        if empty.any() and not known.get("missing"):
            column[empty] = rng.choice(column[~empty].to_numpy(), int(empty.sum()))
        if known["kind"] != "category":
            column = pd.to_numeric(column).clip(known["lower"], known["upper"])
        if known["kind"] == "integer":
            column = column.round().astype("Int64" if column.isna().any() else "int64")
        repaired[name] = column
    return pd.DataFrame(repaired)
