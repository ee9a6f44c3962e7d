"""What pages load: styles and scripts, the browser's randomizer, and the style sheet of charts.

All files are known when the program starts, by their names: no address leads to any other.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
CHARTS = "chart.css"


@dataclass(frozen=True)
class File:
    """A file as it is served; the tag changes with its content."""

    content: bytes
    kind: str
    tag: str


@cache
def served() -> dict[str, File]:
    """All files by address: static/console.css, client/form.js, client/operators/unary.js."""
    here = files("tidegate.web")
    folders = {"static": here / "static", "client": here / "client", "client/operators": here / "client" / "operators"}
    found = {
        f"{name}/{one.name}": _file(one)
        for name, folder in folders.items()
        for one in folder.iterdir()
        if one.is_file() and one.name.rpartition(".")[2] in KINDS
    }
    return {**found, f"static/{CHARTS}": _file(files("tidegate.charts") / CHARTS)}


def address_of(name: str) -> str:
    """Where a page finds a file; the tag makes a changed one a new address."""
    return f"/{name}?{served()[name].tag}"


def _file(place: Traversable) -> File:
    content = place.read_bytes()
    kind = f"{KINDS[place.name.rpartition('.')[2]]}; charset=utf-8"
    return File(content, kind, hashlib.sha256(content).hexdigest()[:16])
