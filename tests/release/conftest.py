"""One Postgres database for all tests of the release desk."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest


@pytest.fixture(scope="session")
def desk_database(postgres_server: Any) -> str:
    postgres_server.psql("CREATE DATABASE desks;")
    return str(postgres_server.get_uri()).replace("/postgres?", "/desks?")


@pytest.fixture
def postgres_url(desk_database: str) -> str:
    """A database that is empty again: a new one for each test takes a second to make and more to remove."""
    with psycopg.connect(desk_database, autocommit=True) as connection:
        others = "FROM pg_stat_activity WHERE datname = 'desks' AND pid <> pg_backend_pid()"
        connection.execute(f"SELECT pg_terminate_backend(pid, 5000) {others}")
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return desk_database
