"""A plugin of pytest that runs the tests of a list, in its order: pytest -p mutants.selection, the list in MUTANTS_CHOSEN.

Names on the command line would be too many, and a missing one would look like a failing test.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    chosen = json.loads(Path(os.environ["MUTANTS_CHOSEN"]).read_text("utf-8"))
    order = {test: index for index, test in enumerate(chosen)}
    items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])
