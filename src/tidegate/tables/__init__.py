"""Table access through Ibis: DuckDB by default, Postgres, Spark, SQLite. No other package knows an engine.

source.py      from a source to a table          snapshot.py   CSV files, read once
table.py       counts, sums, records, batches    links.py      linked tables, joined on the person key
boundary.py    columns as bytes and numbers      codes.py      columns as codes
universe.py    expressions over public values    tabulation.py their value for every combination
groups.py      groups of codes, and cells        persons.py    at most k rows per person
guard.py       engine messages are withheld
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.extras import late_names

if TYPE_CHECKING:
    from tidegate.tables.axes import Axis
    from tidegate.tables.links import open_linked
    from tidegate.tables.source import open_table
    from tidegate.tables.table import Table
else:  # a plan needs an axis, but no engine
    __getattr__ = late_names(
        __name__, {"Axis": "axes", "Table": "table", "open_linked": "links", "open_table": "source"}
    )

__all__ = ["Axis", "Table", "open_linked", "open_table"]
