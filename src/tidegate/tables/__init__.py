"""Table access through Ibis: DuckDB by default, Postgres, Spark. No other package knows an engine.

open.py      from a source to a table          table.py   counts, sums, moments, histograms, records, batches
codes.py     columns as codes                  axes.py    grids of cells, including empty ones
persons.py   at most k rows per person         guard.py   engine messages are withheld
"""

from tidegate.tables.axes import Axis
from tidegate.tables.source import open_table
from tidegate.tables.table import Table

__all__ = ["Axis", "Table", "open_table"]
