"""A table that stays in Postgres: postgresql://user@host/database?table=people (schema.people works too)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import ibis

from tidegate.errors import SourceMissing, SourceUnreadable
from tidegate.extras import require


def open_url(url: str) -> Any:
    """Return the table that a URL names. The password can come from PGPASSWORD or ~/.pgpass instead of the URL."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    name = query.pop("table", "")
    shown = f"{parts.hostname or query.get('host', 'the local server')}{parts.path}"
    if not name:
        raise SourceUnreadable("The Postgres source names no table.", "Write postgresql://host/database?table=people.")
    rest = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(query), ""))
    require("postgres", "Reading Postgres tables")
    connection = _quiet(lambda: ibis.connect(rest))
    if connection is None:
        raise SourceMissing(
            f"Postgres does not respond at {shown}.", "Check that the server is running and that the user can connect."
        )
    schema, _, table = name.rpartition(".")
    opened = _quiet(lambda: connection.table(table, database=schema or None))
    if opened is None:
        raise SourceMissing(f'There is no table "{name}" at {shown}.', "Correct `table=` in the policy's source.")
    return opened


def _quiet(run: Callable[[], Any]) -> Any:
    """Return the result, or None on failure: the driver's message can contain the URL with its password."""
    try:
        return run()
    except Exception:
        return None


def read_identity(table: Any) -> str:
    """Return what the server says of a table or view: cluster, database and object; empty if it does not say.

    A restored dump has other numbers. A role without the right to read the cluster's number has an empty identity.
    """
    text = _quoted_name(table).replace("'", "''")
    statement = f"""
        SELECT concat_ws(' ', 'postgres', s.system_identifier, d.oid, c.oid) AS identity
        FROM pg_control_system() s, pg_database d, pg_class c
        WHERE d.datname = current_database() AND c.oid = to_regclass('{text}')"""  # noqa: S608
    rows = _quiet(lambda: table.get_backend().sql(statement, schema={"identity": "string"}).to_pyarrow())
    return str(rows["identity"][0]) if rows is not None and rows.num_rows else ""


def read_counters(table: Any) -> str:
    """Return Postgres' counters of changes to a table; empty for views and partitions, which have no counters.

    The counters are up to a second late, and restart after a crash of the server.
    """
    text = _quoted_name(table).replace("'", "''")
    statement = f"""
        SELECT concat_ws(' ', current_database(), c.oid, c.relfilenode, s.n_tup_ins, s.n_tup_upd, s.n_tup_del) AS counters
        FROM pg_class c JOIN pg_stat_all_tables s ON s.relid = c.oid
        WHERE c.oid = to_regclass('{text}') AND c.relkind IN ('r', 'm')"""  # noqa: S608
    counters = _quiet(lambda: table.get_backend().sql(statement, schema={"counters": "string"}).to_pyarrow())
    return str(counters["counters"][0]) if counters is not None and counters.num_rows else ""


def _quoted_name(table: Any) -> str:
    name = getattr(table.op(), "name", "")
    schema = getattr(getattr(table.op(), "namespace", None), "database", None)
    return ".".join('"' + part.replace('"', '""') + '"' for part in (schema, name) if part)
