"""A service for many tests, and a fresh one for those that count what was spent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from service.serving import House, house

from tidegate.service.access import tokens


@pytest.fixture(autouse=True, scope="session")
def quick_hashes() -> Iterator[None]:
    """The slow hash is slow on purpose; tests of what is behind it do not wait for it."""
    slow = dict(tokens.COST)
    tokens.COST.update(n=2**4)
    yield
    tokens.COST.update(slow)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(str(tmp_path_factory.mktemp("service") / "all.ledger")) as running:
        yield running


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(str(tmp_path_factory.mktemp("service") / "all.ledger")) as running:
        yield running
