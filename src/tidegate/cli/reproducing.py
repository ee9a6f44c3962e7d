"""reproduce: a paper's numbers, tables and figures beside ours."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.show import JSON, emit, say, table, working
from tidegate.errors import TidegateError

reproduce = typer.Typer(help="A paper's numbers, tables and figures, computed again.", no_args_is_help=True)

OUT = typer.Option(None, "--out", help="Also write the figures and one HTML page into this folder.")


@reproduce.command("identifiability")
def identifiability(out: Path | None = OUT, json: bool = JSON) -> None:
    """Lee & Clifton 2012: a probability of identification instead of epsilon."""
    from tidegate.reproduce.identifiability import HOW_TO_GET, reproduce

    if out is not None:
        _folder(out)
    with working("computing every number of the paper again"):
        done = reproduce(_data("adult.csv"))
    missing = f"{HOW_TO_GET} {done.left_out} items were left out." if done.left_out else ""
    written = _write(out, done, missing) if out is not None else []
    if json:
        emit([item.to_dict() for item in done.items])
    else:
        _show(done.items)
        say(*(f"wrote {path}" for path in written))
    if missing:
        print(missing, file=sys.stderr)


def _data(name: str) -> Path | None:
    """A file of the folder of public data, where there is one."""
    folder = os.environ.get("TIDEGATE_DATA")
    path = Path(folder, name) if folder else None
    return path if path is not None and path.exists() else None


def _show(items: Any) -> None:
    from tidegate.reproduce import summary
    from tidegate.reproduce.page import cell

    rows = [[item.where, item.id, cell(item.published), cell(item.ours), item.status] for item in items]
    table(["where", "item", "published", "ours", "status"], rows, right={2, 3})
    for item in items:
        if item.status != "reproduced":
            say(f"{item.status} {item.id}: {item.note}.")
    say(f"{summary(items)}.")


def _write(folder: Path, done: Any, missing: str) -> list[Path]:
    from tidegate.reproduce.identifiability.drawing import pictures
    from tidegate.reproduce.identifiability.paper import FACTS
    from tidegate.reproduce.page import page, picture_bytes

    with working("drawing the figures"):
        drawn = [(picture.name, picture_bytes(picture.figure), picture.words) for picture in pictures(done.panels)]
    files = {name: content for name, content, _ in drawn}
    shown = [(content, words) for _, content, words in drawn]
    text = page("Differential identifiability, computed again", FACTS["paper"], done.items, shown, missing=missing)
    files["identifiability.html"] = text.encode()
    return [_save(folder / name, content) for name, content in files.items()]


def _folder(folder: Path) -> None:
    problem = ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise TidegateError(f"{folder} cannot be made a folder: {problem}.", "Name another folder with --out.")


def _save(path: Path, content: bytes) -> Path:
    problem = ""
    try:
        path.write_bytes(content)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise TidegateError(f"{path} cannot be written: {problem}.", "Name another folder with --out.")
    return path
