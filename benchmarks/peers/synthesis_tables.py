"""Runs in a peer's environment: reads codes and public facts, and writes codes."""

import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd


def silence(task, log):
    """Return the task with its output redirected to a file: the pipe carries results only."""

    def run():
        with open(log, "w", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
            return task()

    return run


def read_case(folder):
    """Return the codes, rows by columns, and the public facts of the columns."""
    return np.load(Path(folder, "train.npy")), json.loads(Path(folder, "facts.json").read_text())


def label(number):
    return f"v{number:05d}"


def labels(size):
    return [label(number) for number in range(size)]


def frame_of(codes, facts):
    """Return lists as labels, numbers as integers."""
    return pd.DataFrame(
        {
            known["name"]: np.array(labels(known["size"]), object)[column] if known["kind"] == "category" else column
            for known, column in zip(facts, codes.T, strict=True)
        }
    )


def cells_of(codes, facts):
    """Return every column as labels of its public cells."""
    columns = {}
    for known, column in zip(facts, codes.T, strict=True):
        indexes = np.searchsorted(known["starts"], column, side="right") - 1
        columns[known["name"]] = np.array(labels(len(known["starts"])), object)[indexes]
    return pd.DataFrame(columns)


def codes_of(frame, facts, rng, *, cells=False):
    """Return codes within their bounds: an even draw inside a cell. A value that is missing is drawn from its own margin."""
    columns = []
    for known in facts:
        column = frame[known["name"]].reset_index(drop=True)
        empty = column.isna().to_numpy()
        if empty.any():
            column = column.astype(object)
            column[empty] = rng.choice(column[~empty].to_numpy(), int(empty.sum()))
        if cells or known["kind"] == "category":
            numbers = column.astype(str).str[1:].astype(int).to_numpy()
        else:
            numbers = pd.to_numeric(column).round().clip(0, known["size"] - 1).astype(int).to_numpy()
        if cells:
            starts = np.array([*known["starts"], known["size"]])
            numbers = rng.integers(starts[numbers], starts[numbers + 1])
        columns.append(numbers)
    return np.column_stack(columns).astype(np.int64)
