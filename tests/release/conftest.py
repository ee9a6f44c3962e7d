"""One Postgres database for all tests of the release desk."""

from __future__ import annotations

from typing import Any

import pytest
from support.databases import emptied, made


@pytest.fixture(scope="session")
def desk_database(postgres_server: Any) -> str:
    return made(postgres_server, "desks")


@pytest.fixture
def postgres_url(desk_database: str) -> str:
    return emptied(desk_database)
