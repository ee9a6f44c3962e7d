"""The command `tidegate reproduce`: a paper's numbers, tables and figures beside ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.output import JSON, counted, emit, say, table, working
from tidegate.errors import TidegateError

reproduce = typer.Typer(help="Compute a paper's numbers, tables and figures again.", no_args_is_help=True)

FULL = typer.Option(False, "--full", help="Simulate ten times as many sequences, in minutes.")
OUT = typer.Option(None, "--out", help="Also write the figures and one HTML page into this folder.")


@reproduce.command("identifiability", short_help="Identification instead of epsilon (Lee, Clifton 2012).")
def identifiability(out: Path | None = OUT, json: bool = JSON) -> None:
    """Lee & Clifton 2012: a probability of identification instead of epsilon."""
    from tidegate_papers.identifiability import HOW_TO_GET, reproduce

    if out is not None:
        _create_folder(out)
    with working("computing every number of the paper again"):
        done = reproduce(_data("adult.csv"))
    missing = f"{HOW_TO_GET} {done.left_out} items were left out." if done.left_out else ""
    written = _identifiability_files(out, done, missing) if out is not None else []
    _print_items(done.items, written, json=json)
    if missing:
        print(missing, file=sys.stderr)


@reproduce.command("release", short_help="True records that reveal no group (Bezzi et al. 2012).")
def release(out: Path | None = OUT, full: bool = FULL, json: bool = JSON) -> None:
    """Bezzi et al. 2012: true records that do not reveal a group."""
    from tidegate_papers.release import reproduce

    if out is not None:
        _create_folder(out)
    with working("computing every number of the paper again"):
        done = reproduce(full=full)
    written = _release_files(out, done) if out is not None else []
    _print_items(done.items, written, json=json)


@reproduce.command("randomization", short_help="Randomization on the device (Evfimievski 2002).")
def randomization(
    out: Path | None = OUT,
    full: bool = typer.Option(
        False, "--full", help="Accuracies from 25% to 200% privacy and 5,000,000 baskets, in about ten minutes."
    ),
    part: str = typer.Option("all", "--part", help="values (numbers and categories), sets (of items), or all."),
    json: bool = JSON,
) -> None:
    """Evfimievski 2002: distributions, trees and itemsets learned from values and baskets randomized on the device."""
    from tidegate_papers.randomization import FILES, HOW_TO_GET, Reproduction, reproduce, reproduce_sets

    if part not in ("values", "sets", "all"):
        raise TidegateError(f'Unknown part: "{part}".', "Use values, sets or all.")
    if out is not None:
        _create_folder(out)
    done = Reproduction(())
    if part != "sets":
        with counted("growing trees of randomized records") as progress:
            done += reproduce(full=full, progress=progress)
    if part != "values":
        files = {name: path for name, file in FILES.items() if (path := _data(file)) is not None}
        with counted("recovering itemsets of millions of baskets") as progress:
            done += reproduce_sets(files, full=full, progress=progress)
    missing = f"{HOW_TO_GET} Left out: {', '.join(done.left_out)}." if done.left_out else ""
    written = _randomization_files(out, done, missing) if out is not None else []
    _print_items(done.items, written, json=json)
    if done.recoveries and not json:
        _show_recoveries(done.recoveries)
    if missing:
        print(missing, file=sys.stderr)


@reproduce.command("pmse", short_help="Synthetic tables (Snoke, Slavkovic 2018).")
def pmse(
    out: Path | None = OUT,
    full: bool = typer.Option(False, "--full", help="Fifty times as many simulations and longer chains, in hours."),
    json: bool = JSON,
) -> None:
    """Snoke & Slavkovic 2018: synthetic tables as similar as their epsilon allows."""
    from tidegate_papers.pmse import reproduce

    if out is not None:
        _create_folder(out)
    with counted("simulating tables, trees and chains") as progress:
        done = reproduce(full=full, progress=progress)
    written = _pmse_files(out, done) if out is not None else []
    _print_items(done.items, written, json=json)


def _show_recoveries(done: Any) -> None:
    from tidegate_papers.randomization.itemsets import rows

    say("Recovered and frequent itemsets, + those by chance, and the deviation for 5,000,000 baskets:")
    table(["baskets", "operator", "1 item", "2 items", "3 items"], rows(done))


def _data(name: str) -> Path | None:
    """Return the path of a public data file, if it exists."""
    folder = os.environ.get("TIDEGATE_DATA")
    path = Path(folder, name) if folder else None
    return path if path is not None and path.exists() else None


def _print_items(items: Any, written: list[Path], *, json: bool) -> None:
    if json:
        emit([item.to_dict() for item in items])
    else:
        _show(items)
        say(*(f"wrote {path}" for path in written))


def _show(items: Any) -> None:
    from tidegate_papers import summary
    from tidegate_papers.report import cell

    rows = [[item.where, item.id, cell(item.published), cell(item.ours), item.status] for item in items]
    table(["where", "item", "published", "ours", "status"], rows, right={2, 3})
    for item in items:
        if item.status != "reproduced":
            say(f"{item.status} {item.id}: {item.note}.")
    say(f"{summary(items)}.")


def _identifiability_files(folder: Path, done: Any, missing: str) -> list[Path]:
    from tidegate_papers.identifiability.figures import pictures
    from tidegate_papers.identifiability.paper import FACTS

    titles = "Differential identifiability, computed again", FACTS["paper"]
    return _write(folder, "identifiability", titles, done.items, lambda: pictures(done.panels), missing)


def _release_files(folder: Path, done: Any) -> list[Path]:
    from tidegate_papers.release.figures import pictures
    from tidegate_papers.release.paper import FACTS

    titles = "Release control, computed again", FACTS["paper"]
    return _write(folder, "release", titles, done.items, lambda: pictures(done))


def _randomization_files(folder: Path, done: Any, missing: str) -> list[Path]:
    from tidegate_papers.randomization.figures import pictures
    from tidegate_papers.randomization.paper import FACTS

    titles = "Randomization, computed again", FACTS["paper"]
    return _write(folder, "randomization", titles, done.items, lambda: pictures(done), missing)


def _pmse_files(folder: Path, done: Any) -> list[Path]:
    from tidegate_papers.pmse.figures import pictures
    from tidegate_papers.pmse.paper import FACTS

    titles = "The pMSE mechanism, computed again", FACTS["paper"]
    return _write(folder, "pmse", titles, done.items, lambda: pictures(done))


def _write(
    folder: Path, name: str, titles: tuple[str, str], items: Any, draw: Callable[[], Any], missing: str = ""
) -> list[Path]:
    from tidegate_papers.report import page, picture_bytes

    with working("drawing the figures"):
        drawn = [(picture.name, picture_bytes(picture.figure), picture.words) for picture in draw()]
    files = {name: content for name, content, _ in drawn}
    shown = [(content, words) for _, content, words in drawn]
    files[f"{name}.html"] = page(*titles, items, shown, missing=missing).encode()
    return [_save(folder / name, content) for name, content in files.items()]


def _create_folder(folder: Path) -> None:
    problem = ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise TidegateError(f'The folder "{folder}" cannot be created: {problem}.', "Choose another folder with --out.")


def _save(path: Path, content: bytes) -> Path:
    problem = ""
    try:
        path.write_bytes(content)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise TidegateError(f'The file "{path}" cannot be written: {problem}.', "Choose another folder with --out.")
    return path
