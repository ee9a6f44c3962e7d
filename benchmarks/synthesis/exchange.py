"""What a peer is given: the rows as Parquet and the public facts as JSON, in a folder that git does not see."""

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
    """A table to synthesize: its rows and what is publicly known of it."""

    name: str
    rows: pd.DataFrame
    policy: Policy


def write(case: Case, folder: Path) -> None:
    """train.parquet and facts.json."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pandas(case.rows, preserve_index=False)
    strings = [pa.field(f.name, pa.string() if pa.types.is_large_string(f.type) else f.type) for f in table.schema]
    pq.write_table(table.cast(pa.schema(strings)), folder / "train.parquet")  # without pandas' notes on its own types
    (folder / "facts.json").write_text(json.dumps(facts(case.policy), indent=1), encoding="utf-8")


def facts(policy: Policy) -> dict[str, dict[str, Any]]:
    """Every column's bounds and the first value of each of our cells, or its list, or whose function it is."""
    shapes = policy.synthesis
    said = {
        name: _fact(name, attribute, shapes.columns.get(name, Shape())) for name, attribute in policy.attributes.items()
    }
    for name, one in shapes.follows.items():
        said[name]["function"] = {"of": one.column, "values": list(one.values.items())}
    return said


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
