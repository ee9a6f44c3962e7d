"""A service shared by many tests, and a fresh one for tests that check the spent budget."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.hashes import quick_hashes  # noqa: F401  a fixture
from support.service import RunningService, run_service


@pytest.fixture(scope="module")
def shared_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with run_service(str(tmp_path_factory.mktemp("service") / "all.ledger")) as running:
        yield running


@pytest.fixture
def fresh_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with run_service(str(tmp_path_factory.mktemp("service") / "all.ledger")) as running:
        yield running
