"""One PostgreSQL database for many tests: to create one takes a second, and to remove it takes longer."""

from __future__ import annotations

from typing import Any

import psycopg


def create_database(server: Any, name: str) -> str:
    """Create a database on a server and return its URL."""
    server.psql(f"CREATE DATABASE {name};")
    return str(server.get_uri()).replace("/postgres?", f"/{name}?")


def empty_database(url: str) -> str:
    """Empty a database, close its other connections, and return its URL."""
    with psycopg.connect(url, autocommit=True) as connection:
        others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        connection.execute(f"SELECT pg_terminate_backend(pid, 5000) {others}")
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return url
