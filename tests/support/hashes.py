"""The slow hash of tokens is slow on purpose; tests of what is behind it do not wait for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidegate.service.access import tokens


@pytest.fixture(autouse=True, scope="session")
def quick_hashes() -> Iterator[None]:
    slow = dict(tokens.COST)
    tokens.COST.update(n=2**4)
    yield
    tokens.COST.update(slow)
