"""Run in a peer's environment: the rows and the public facts that it is given, and what it gave back, set right."""

import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

MISSING = "missing"


def quiet(task, log):
    """The task with its chatter in a file: the pipe to the one who asks carries answers only."""

    def done():
        with open(log, "w", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
            return task()

    return done


def given(folder):
    """The rows, integers as integers, and what is known of the columns."""
    rows = pq.read_table(Path(folder, "train.parquet")).to_pandas(ignore_metadata=True)
    return rows, json.loads(Path(folder, "facts.json").read_text())


def cells_of(rows, facts):
    """Every column as the label of its public cell, and the list of labels; functions of other columns left out."""
    coded, domain = {}, {}
    for name, known in facts.items():
        if "function" in known:
            continue
        if known["kind"] == "integer":
            numbers = rows[name].astype(float).fillna(known["lower"]).to_numpy()
            labels = [f"{place:04d}" for place in np.searchsorted(known["starts"], numbers, side="right") - 1]
            listed = [f"{place:04d}" for place in range(len(known["starts"]))]
        else:
            labels, listed = rows[name], known["values"]
        coded[name] = pd.Series(labels, dtype=object).where(rows[name].notna(), MISSING)
        domain[name] = {"categories": [*listed, *[MISSING] * known["missing"]]}
    return pd.DataFrame(coded), domain


def values_of(coded, facts, rng):
    """The way back: an even draw inside a cell; the functions computed."""
    found = {}
    for name, known in facts.items():
        if "function" in known:
            pairs = known["function"]
            found[name] = coded[pairs["of"]].map(dict(pairs["values"]))
        elif known["kind"] == "integer":
            starts, there = np.array([*known["starts"], known["upper"] + 1]), coded[name] != MISSING
            places = coded[name].where(there, "0000").astype(int).to_numpy()
            found[name] = pd.Series(rng.integers(starts[places], starts[places + 1])).where(there)
        else:
            found[name] = coded[name].where(coded[name] != MISSING)
    return pd.DataFrame(found)


def refilled(found, rows, facts, rng):
    """Integers as integers and inside their bounds; a code that came back empty in a column that never is gets a
    value from the column's own synthetic margin."""
    right = {}
    for name, known in facts.items():
        column = found[name].astype(object).reset_index(drop=True)
        empty = column.isna().to_numpy()
        if empty.any() and not known.get("missing"):
            column[empty] = rng.choice(column[~empty].to_numpy(), int(empty.sum()))
        if known["kind"] != "category":
            column = pd.to_numeric(column).clip(known["lower"], known["upper"])
        if known["kind"] == "integer":
            column = column.round().astype("Int64" if column.isna().any() else "int64")
        right[name] = column
    return pd.DataFrame(right)
