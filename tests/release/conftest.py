"""One Postgres database for all tests of the release desk."""

from __future__ import annotations

from typing import Any

import pytest
from support.databases import create_database, empty_database


@pytest.fixture(scope="session")
def desk_database(postgres_server: Any) -> str:
    return create_database(postgres_server, "desks")


@pytest.fixture
def postgres_url(desk_database: str) -> str:
    return empty_database(desk_database)
