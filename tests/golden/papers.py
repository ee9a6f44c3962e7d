"""Facts from papers, as data files beside this one, and the mark that names the paper."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

Test = TypeVar("Test", bound=Callable[..., Any])


def paper(citation: str) -> Callable[[Test], Test]:
    """State the source of a test's expected numbers."""

    def cited(test: Test) -> Test:
        test.__doc__ = f"{citation}. {test.__doc__ or ''}".strip()
        return test

    return cited


@cache
def golden(name: str) -> Any:
    """Return all facts of one paper."""
    return json.loads(Path(__file__).with_name(f"{name}.json").read_text("utf-8"))
