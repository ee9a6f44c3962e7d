"""From a policy's source to a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tidegate.errors import SourceMissing
from tidegate.policy import Policy
from tidegate.tables.table import Table


def open_table(policy: Policy, source: Any = None, *, folder: Path | None = None) -> Table:
    """The policy's columns where they are. `source` replaces the policy's own: a path, a URL, or a table in memory.

    Relative paths start from `folder`, which is the policy file's own. No row is read, except from a CSV file, which
    is looked through once for rows that do not fit.
    """
    given = policy.dataset.source if source is None else source
    if isinstance(given, Path) or (isinstance(given, str) and given):
        return _open_named(str(given), policy, folder or Path())
    if given is None or isinstance(given, str | bytes):
        raise SourceMissing(
            f'the policy "{policy.dataset.name}" says not where its data is.',
            'Add source = "people.csv" to [dataset], or pass a table.',
        )
    return _open_object(given, policy)


def _open_named(source: str, policy: Policy, folder: Path) -> Table:
    if source.startswith(("postgresql://", "postgres://")):
        from tidegate.tables.engines import postgres

        return Table(postgres.open_url(source), policy, "postgres")
    if source.startswith("spark://"):
        from tidegate.tables.engines import spark

        return Table(spark.open_url(source), policy, "spark")
    from tidegate.tables.engines import duckdb

    return Table(duckdb.open_file(folder / Path(source).expanduser(), dict(policy.attributes)), policy, "duckdb")


def _open_object(table: Any, policy: Policy) -> Table:
    module = type(table).__module__
    if module.startswith("ibis."):
        return Table(table, policy, table.get_backend().name)
    if module.startswith("pyspark."):
        from tidegate.tables.engines import spark

        return Table(spark.open_frame(table), policy, "spark")
    if module.startswith(("pandas", "polars", "pyarrow")):
        from tidegate.tables.engines import duckdb

        return Table(duckdb.open_object(table, policy.attributes), policy, "duckdb")
    raise SourceMissing(
        f"a table cannot be made of {type(table).__name__}.",
        "Pass a path, a URL, or a pandas, polars, Arrow, Spark or Ibis table.",
    )
