"""A table that stays in Postgres: postgresql://user@host/database?table=people (schema.people works too)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import ibis

from tidegate.errors import SourceMissing, SourceUnreadable
from tidegate.extras import require


def open_url(url: str) -> Any:
    """The table that a URL names. Passwords may come from PGPASSWORD or ~/.pgpass instead of the URL."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    name = query.pop("table", "")
    shown = f"{parts.hostname or query.get('host', 'the local server')}{parts.path}"
    if not name:
        raise SourceUnreadable("a Postgres source names its table.", "Write postgresql://host/database?table=people.")
    rest = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(query), ""))
    require("postgres", "Reading Postgres tables")
    connection = _quiet(lambda: ibis.connect(rest))
    if connection is None:
        raise SourceMissing(
            f"Postgres does not answer at {shown}.", "Check that the server runs and that the user may connect."
        )
    schema, _, table = name.rpartition(".")
    found = _quiet(lambda: connection.table(table, database=schema or None))
    if found is None:
        raise SourceMissing(f'there is no table "{name}" at {shown}.', "Correct table= in the policy's source.")
    return found


def _quiet(run: Callable[[], Any]) -> Any:
    """The result, or None: the driver's message may hold the address with its password."""
    try:
        return run()
    except Exception:
        return None


def read_counters(table: Any) -> str:
    """Return what Postgres counts of changes to a table; empty for views and partitions, of which it counts nothing.

    The counters arrive up to a second late, and start again after a crash of the server.
    """
    name = getattr(table.op(), "name", "")
    schema = getattr(getattr(table.op(), "namespace", None), "database", None)
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, name) if part)
    text = quoted.replace("'", "''")
    statement = f"""
        SELECT concat_ws(' ', current_database(), c.oid, c.relfilenode, s.n_tup_ins, s.n_tup_upd, s.n_tup_del) AS counters
        FROM pg_class c JOIN pg_stat_all_tables s ON s.relid = c.oid
        WHERE c.oid = to_regclass('{text}') AND c.relkind IN ('r', 'm')"""  # noqa: S608
    found = _quiet(lambda: table.get_backend().sql(statement, schema={"counters": "string"}).to_pyarrow())
    return str(found["counters"][0]) if found is not None and found.num_rows else ""
