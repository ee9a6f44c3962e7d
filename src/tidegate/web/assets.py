"""The files that pages load: styles, scripts, the browser's randomizer, and the style sheet of charts.

All files are known by name when the program starts. No other file can be requested.
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
def served_files() -> dict[str, File]:
    """Return all files by address: static/console.css, client/form.js, client/operators/unary.js."""
    here = files("tidegate.web")
    folders = {"static": here / "static", "client": here / "client", "client/operators": here / "client" / "operators"}
    own = {
        f"{name}/{file.name}": _file(file)
        for name, folder in folders.items()
        for file in folder.iterdir()
        if file.is_file() and file.name.rpartition(".")[2] in KINDS
    }
    return {**own, f"static/{CHARTS}": _file(files("tidegate.charts") / CHARTS)}


def address_of(name: str) -> str:
    """Return the URL of a file; its tag changes with the content."""
    return f"/{name}?{served_files()[name].tag}"


def _file(path: Traversable) -> File:
    content = path.read_bytes()
    kind = f"{KINDS[path.name.rpartition('.')[2]]}; charset=utf-8"
    return File(content, kind, hashlib.sha256(content).hexdigest()[:16])
