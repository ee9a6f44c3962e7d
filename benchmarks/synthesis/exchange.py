"""The input of a peer: the rows as Parquet and the public facts as JSON, in a folder that git ignores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.policy import Attribute, Category, Integer, Numeric, Policy, Shape
from tidegate.synthesize.columns import column_of

PLENTY = 1_000_000  # of epsilon: a benchmark never runs out


class Case(NamedTuple):
    """A table to synthesize: its rows and its policy."""

    name: str
    rows: pd.DataFrame
    policy: Policy


def write(case: Case, folder: Path) -> None:
    """Write train.parquet and facts.json."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pandas(case.rows, preserve_index=False)
    strings = [pa.field(f.name, pa.string() if pa.types.is_large_string(f.type) else f.type) for f in table.schema]
    pq.write_table(table.cast(pa.schema(strings)), folder / "train.parquet")  # without the metadata of pandas
    (folder / "facts.json").write_text(json.dumps(facts(case.policy), indent=1), encoding="utf-8")


def facts(policy: Policy) -> dict[str, dict[str, Any]]:
    """Return each column's bounds and the first value of each of our cells, or its list, or its function."""
    shapes = policy.synthesis
    facts_by_column = {
        name: _fact(name, attribute, shapes.columns.get(name, Shape())) for name, attribute in policy.attributes.items()
    }
    for name, function in shapes.follows.items():
        facts_by_column[name]["function"] = {"of": function.column, "values": list(function.values.items())}
    return facts_by_column


def _fact(name: str, attribute: Attribute, shape: Shape) -> dict[str, Any]:
    column = column_of(name, attribute, shape)
    if isinstance(attribute, Category):
        return {"kind": "category", "values": list(attribute.values), "missing": column.missing}
    assert isinstance(attribute, Numeric)
    whole = isinstance(attribute, Integer)
    number = int if whole else float
    return {
        "kind": "integer" if whole else "number",
        "lower": number(attribute.low),
        "upper": number(attribute.high),
        "starts": [number(attribute.value(code)) for code in column.starts],
        "missing": column.missing,
    }
