"""Files that appear complete: synthetic tables with a page that states the promise, and models to draw from elsewhere.

A saved model is a ZIP archive with one JSON file. It contains what is public: the policy's attributes and promises, the charge,
and the fitted model, which is a function of the diary. Nothing in it is executed when it is read.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from tidegate.errors import TidegateError, Unsupported
from tidegate.ledger import Charge
from tidegate.policy.fingerprint import fingerprint_of
from tidegate.policy.toml import policy_from_dict
from tidegate.synthesize.columns import Columns, columns_of
from tidegate.synthesize.description import Description, summary_lines
from tidegate.synthesize.learn import LearnedTable, restore
from tidegate.synthesize.model import Stage
from tidegate.synthesize.plan import Plan
from tidegate.synthesize.result import SyntheticTable, SyntheticTables
from tidegate.synthesize.source import Drawn

WRITERS: dict[str, Callable[..., Any]] = {
    "parquet": pq.ParquetWriter,
    "csv": pa_csv.CSVWriter,
    "arrow": pa.ipc.new_file,
}
ABOUT, READ_ME, REPORT = "synthetic.json", "README.md", "public-quality.html"
FORMAT, VERSION, INSIDE = "tidegate-model", 1, "model.json"
MOST_BYTES = 2**30  # of a saved model, decompressed


def write_batches(batches: Iterable[pa.RecordBatch], file: Any, *, kind: str) -> None:
    """Write batches to a path or an open file, one after the other: the memory does not grow with the number of rows."""
    writer = None
    with ExitStack() as stack:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            table = _in_iso_8601(table) if kind == "csv" else table
            writer = writer or stack.enter_context(WRITERS[kind](file, table.schema))
            writer.write_table(table)


def write_table(table: pa.Table, file: Any, *, kind: str) -> None:
    """Write a whole table; one without rows is a file with its columns."""
    empty = pa.RecordBatch.from_pylist([], schema=table.schema)
    write_batches(table.to_batches() or [empty], file, kind=kind)


FORMATS: dict[str, Callable[[pa.Table, Any], None]] = {kind: partial(write_table, kind=kind) for kind in WRITERS}


def _in_iso_8601(table: pa.Table) -> pa.Table:
    """Return points in time as text: 2024-10-27T02:00:00, in UTC with a Z if the column has a zone; times as 14:30:00."""
    for index, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            zone = "Z" if column.type.tz else ""
            seconds = table.column(index).cast(pa.timestamp("s", "UTC" if zone else None))
            text = pc.strftime(seconds, format=f"%Y-%m-%dT%H:%M:%S{zone}")
            table = table.set_column(index, column.name, text)
        elif pa.types.is_time(column.type):
            table = table.set_column(index, column.name, table.column(index).cast(pa.time32("s")).cast(pa.string()))
    return table


def refuse_new_folder(folder: Path, kind: str) -> None:
    """Refuse a format that cannot be written, or a folder that is not new or empty."""
    _refuse_format(kind)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Unsupported(f'"{folder}" is not an empty folder.', "Name an empty or a new folder.")


def refuse_folder(folder: Path, kind: str, plan: Plan) -> None:
    """Refuse a folder or a format that cannot be written, before anything is charged."""
    _refuse_format(kind)
    if folder.exists() and not folder.is_dir():
        raise Unsupported(f'"{folder}" is a file.', "Name a folder for the synthetic tables.")
    about = folder / ABOUT
    if (
        folder.is_dir()
        and any(folder.iterdir())
        and (not about.exists() or _question(about) != fingerprint_of(plan.question()))
    ):
        raise Unsupported(f'The folder "{folder}" contains other files.', "Name an empty or a new folder.")


def _refuse_format(kind: str) -> None:
    if kind not in WRITERS:
        raise Unsupported(f'Unknown format: "{kind}".', f"Use one of {', '.join(WRITERS)}.")


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
        write_complete(paths[-1], _writer(table, kind))
    identity = {"files": [path.name for path in paths], "question": fingerprint_of(tables.plan.question())}
    about = {**tables.to_dict(), **identity}
    text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    write_complete(folder / READ_ME, lambda temporary: temporary.write_text(_page(tables, paths), "utf-8"))
    if tables.summary:
        report = tables.public_report().to_html()
        write_complete(folder / REPORT, lambda temporary: temporary.write_text(report, "utf-8"))
    write_complete(folder / ABOUT, lambda temporary: temporary.write_text(text, "utf-8"))
    return paths


def _writer(table: SyntheticTable, kind: str) -> Callable[[Path], Any]:
    return lambda temporary: write_batches(table.to_batches(), str(temporary), kind=kind)


def write_complete(path: Path, write: Callable[[Path], Any]) -> None:
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
    """Return what a reader of the files must know: a warning about the budget first, then the promise, then what was counted."""
    plan, first = tables.plan, tables[0]
    banner = f"**{tables.banner[0].upper()}{tables.banner[1:].rstrip('.')}.**\n\n" if tables.banner else ""
    stages = "".join(f"- {stage.name} ({float(100 * stage.share):.3g}%): {stage.says}\n" for stage in tables.stages)
    notes = "".join(f"- {note}\n" for note in plan.columns.says())
    counted = ""
    for path, summary in zip(paths, tables.summary, strict=False):
        lines = "".join(f"- {line}\n" for line in summary_lines(summary))
        counted += f"What was counted for {path.name}:\n{lines}\n"
    return (
        f"# Synthetic tables of {plan.policy.dataset.name}\n\n{banner}"
        f"Every row in these files is artificial: it was drawn from a model and describes no real person. "
        f"{tables.promise[0].upper()}{tables.promise[1:]}.\n\n"
        f"{len(paths)} file{'s' if len(paths) != 1 else ''} with {first.rows:,} rows{' each' if len(paths) != 1 else ''}, by {tables.model} "
        f"({tables.why}). Entry in the ledger: {tables.entry}\n\n"
        f"How the budget was split:\n{stages}\n{counted}"
        + (f"Columns:\n{notes}\n" if notes else "")
        + "What to expect: counts of single columns and of counted pairs come close to the original's; rare values, relations "
        "of three columns and more, and anything about few people do not. Do not read a single row as a person. More rows "
        "than the original add no information.\n"
    )


def describe_request(tables: SyntheticTables) -> dict[str, Any]:
    """Return what a saved model states about its request: the columns, the policy's public part, and the charge."""
    plan = tables.plan
    public = replace(plan.policy, concealments={}, hidings={}, collections={}).public_dict()
    request = {**tables.description.to_dict(tables.stages), **tables.charge.to_dict()}
    return {"policy": public, "columns": list(plan.request.columns), "learnt": _sizes(plan.columns), "request": request}


def _sizes(columns: Columns) -> list[list[Any]]:
    return [[column.name, column.size, column.missing] for column in columns.learnt]


def save_model(tables: Sequence[SyntheticTable], path: Path) -> Path:
    """Write the models of some tables of one request to a file, and return its path."""
    contents = [table.source.content() for table in tables]
    about = {"format": FORMAT, "version": VERSION, **contents[0][0], "tables": [table for _, table in contents]}
    text = json.dumps(about, separators=(",", ":"), ensure_ascii=False)

    def write(temporary: Path) -> None:
        entry = zipfile.ZipInfo(INSIDE, date_time=(1980, 1, 1, 0, 0, 0))  # the same model gives the same file
        entry.compress_type = zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(temporary, "w") as archive:
            archive.writestr(entry, text)

    problem = ""
    try:
        write_complete(path, write)
        return path
    except OSError as error:
        problem = error.strerror or type(error).__name__
    raise Unsupported(f'The model cannot be written to "{path}": {problem}.', "Name a file in a folder that exists.")


def load_model(path: str | Path) -> SyntheticTables:
    """Return the synthetic tables of a file that `save` wrote: ``tidegate.load_model("people.model").draw(1_000)``.

    It needs no policy, no ledger and no rows, and drawing costs nothing. Nothing in the file is executed.
    """
    content = _read_model(Path(path))
    problem = None
    try:
        return _restore_tables(content)
    except Unsupported as error:
        problem = error
    except (TidegateError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        problem = _damaged(Path(path))
    raise problem


def _read_model(path: Path) -> dict[str, Any]:
    content: Any = None
    problem = ""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(INSIDE).file_size <= MOST_BYTES:
                content = json.loads(archive.read(INSIDE))
    except OSError as error:
        problem = error.strerror or type(error).__name__
    except (zipfile.BadZipFile, zlib.error, LookupError, ValueError, NotImplementedError, RuntimeError, RecursionError):
        content = None
    if problem:
        raise Unsupported(f'The model "{path}" cannot be read: {problem}.', "Name a file that `save` wrote.")
    if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get("version"), int):
        raise _damaged(path)
    if content["version"] > VERSION:
        raise Unsupported(
            f'The model "{path.name}" was saved by a newer version of Tidegate.',
            "Install that version, or a later one.",
        )
    return content


def _damaged(path: Path) -> Unsupported:
    return Unsupported(
        f'"{path.name}" is not a saved model, or it is damaged.', "Use a copy that is not damaged, or save it again."
    )


def _restore_tables(content: Mapping[str, Any]) -> SyntheticTables:
    """Return the tables of a file's content; every model is restored now, so that a damaged one is found."""
    policy, request = policy_from_dict(content["policy"]), content["request"]
    columns = columns_of(policy, content["columns"])
    if _sizes(columns) != content["learnt"]:
        raise Unsupported(
            "This version of Tidegate reads the columns of the model differently.", "Use the version that saved it."
        )
    about = {name: content[name] for name in ("policy", "columns", "learnt", "request")}
    tables = [_restore_table(columns, request["model"], about, table) for table in content["tables"]]
    stages = tuple(Stage.from_dict(stage) for stage in request["stages"])
    charge = Charge.from_dict(request, policy)
    return SyntheticTables(tuple(tables), Description.from_dict(request), charge, lambda: stages)


def _restore_table(columns: Columns, model: str, about: Mapping[str, Any], table: Mapping[str, Any]) -> SyntheticTable:
    learned = LearnedTable(restore(model, table["fitted"]), table["rows"], ())
    source = Drawn(columns, lambda: learned, lambda: about, table["number"], table["requested"], table["seed"])
    return SyntheticTable(source, source.number)
