"""One Postgres database for many tests: a new one for each takes a second to make and more to remove."""

from __future__ import annotations

from typing import Any

import psycopg


def made(server: Any, name: str) -> str:
    """A new database on a server."""
    server.psql(f"CREATE DATABASE {name};")
    return str(server.get_uri()).replace("/postgres?", f"/{name}?")


def emptied(url: str) -> str:
    """The same database, empty again, and nobody else in it."""
    with psycopg.connect(url, autocommit=True) as connection:
        others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        connection.execute(f"SELECT pg_terminate_backend(pid, 5000) {others}")
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return url
