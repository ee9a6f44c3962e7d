"""Synthetic tables as files that appear complete, with a page beside them that states the promise."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from tidegate.errors import Unsupported
from tidegate.policy.fingerprint import fingerprint_of
from tidegate.synthesize.plan import Plan
from tidegate.synthesize.result import SyntheticTables

FORMATS: dict[str, Callable[[pa.Table, str], Any]] = {
    "parquet": pq.write_table,
    "csv": pa_csv.write_csv,
}
ABOUT, READ_ME = "synthetic.json", "README.md"


def refuse_folder(folder: Path, kind: str, plan: Plan) -> None:
    """Refuse a folder or a format that cannot be written, before anything is charged."""
    if kind not in FORMATS:
        raise Unsupported(f'Unknown format: "{kind}".', f"Use one of {', '.join(FORMATS)}.")
    if folder.exists() and not folder.is_dir():
        raise Unsupported(f'"{folder}" is a file.', "Name a folder for the synthetic tables.")
    about = folder / ABOUT
    if (
        folder.is_dir()
        and any(folder.iterdir())
        and (not about.exists() or _question(about) != fingerprint_of(plan.question()))
    ):
        raise Unsupported(f'The folder "{folder}" contains other files.', "Name an empty or a new folder.")


def write_tables(tables: SyntheticTables, folder: Path, *, kind: str = "parquet") -> list[Path]:
    """Write every table and its promise, and return the paths. Writing the same tables again gives the same files."""
    refuse_folder(folder, kind, tables.plan)
    problem = ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _write(tables, folder, kind)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    raise Unsupported(
        f'The tables are in the ledger, but "{folder}" cannot be written: {problem}.',
        "Repeat the request with another folder, at no cost.",
    )


def _write(tables: SyntheticTables, folder: Path, kind: str) -> list[Path]:
    name = tables.plan.policy.dataset.name
    paths = []
    for number, table in enumerate(tables, start=1):
        paths.append(folder / f"{name}-{number}.{kind}")
        _write_complete(paths[-1], _writer(table.to_arrow(), kind))
    identity = {"files": [path.name for path in paths], "question": fingerprint_of(tables.plan.question())}
    about = {**tables.to_dict(), **identity}
    text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    _write_complete(folder / READ_ME, lambda temporary: temporary.write_text(_page(tables, paths), "utf-8"))
    _write_complete(folder / ABOUT, lambda temporary: temporary.write_text(text, "utf-8"))
    return paths


def _writer(table: pa.Table, kind: str) -> Callable[[Path], Any]:
    return lambda temporary: FORMATS[kind](table, str(temporary))


def _write_complete(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file under a temporary name and rename it, so that it appears complete."""
    temporary = path.with_name(f".{path.name}.part")
    write(temporary)
    os.replace(temporary, path)


def _question(path: Path) -> str:
    try:
        return str(json.loads(path.read_text("utf-8"))["question"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def _page(tables: SyntheticTables, paths: list[Path]) -> str:
    """Return what a reader of the files must know, in a few sentences."""
    plan, first = tables.plan, tables[0]
    stages = "".join(f"- {stage.name} ({float(100 * stage.share):.3g}%): {stage.says}\n" for stage in tables.stages)
    notes = "".join(f"- {note}\n" for note in plan.columns.says())
    return (
        f"# Synthetic tables of {plan.policy.dataset.name}\n\n"
        f"Every row in these files is artificial: it was drawn from a model and describes no real person. "
        f"{tables.promise[0].upper()}{tables.promise[1:]}.\n\n"
        f"{len(paths)} file{'s' if len(paths) != 1 else ''} with {first.rows:,} rows{' each' if len(paths) != 1 else ''}, by {tables.model} "
        f"({tables.why}). Entry in the ledger: {tables.entry}\n\n"
        f"How the budget was split:\n{stages}\n"
        + (f"Columns:\n{notes}\n" if notes else "")
        + "What to expect: counts of single columns and of related pairs come close to the original's; rare values, relations "
        "of three columns and more, and anything about few people do not. Do not read a single row as a person. More rows "
        "than the original add no information.\n"
    )
