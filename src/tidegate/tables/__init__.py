"""Table access through Ibis, the only place that knows an engine: DuckDB by default, Postgres, Spark.

opening.py   from a source to a table      table.py     the verbs: count, sums, moments, histogram, record, batches
codes.py     columns as codes              axes.py      grids of cells, empty ones too
persons.py   at most k rows a person       guard.py     what an engine says never gets out
"""

from tidegate.tables.axes import Axis
from tidegate.tables.source import open_table
from tidegate.tables.table import Table

__all__ = ["Axis", "Table", "open_table"]
