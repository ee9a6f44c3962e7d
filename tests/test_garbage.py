"""Collecting tests switches the search for garbage off; while tests run, it is on."""

from __future__ import annotations

import gc


def test_garbage_is_collected_while_tests_run() -> None:
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0, "what was collected is left out"
