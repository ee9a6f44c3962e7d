"""Imports point one way; only tables/ knows an engine, only ledger/ writes the record."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "tidegate"
ORDER = [
    {"errors"},
    {"exact", "arrays", "extras"},
    {"operators"},
    {"policy"},
    {"tables", "noise", "accounting", "risk", "charts", "html"},
    {"ledger"},
    {"answer", "release", "collect", "synthesize"},
    {"session"},
    {"demo"},
    {"audit"},
    {"web"},
    {"service"},
    {"cli", "testing"},
]
LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}
ENGINES = {"ibis", "duckdb", "pyspark", "polars", "pandas"}
STORES = {"sqlalchemy", "sqlite3", "psycopg", "alembic"}


def files() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def part(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def misplaced(path: Path) -> list[str]:
    """What a file imports and must not."""
    here, wrong = part(path), []
    for name in sorted(imported(path)):
        pieces = name.split(".")
        inside = pieces[0] == "tidegate" and len(pieces) > 1 and pieces[1] in LEVEL
        if inside and pieces[1] != here and LEVEL[pieces[1]] >= LEVEL[here]:
            wrong.append(f"{path.relative_to(SOURCE)} imports {name}")
        if pieces[0] in ENGINES and here != "tables":
            wrong.append(f"{path.relative_to(SOURCE)} knows the engine {pieces[0]}")
        if pieces[0] in STORES and here != "ledger":
            wrong.append(f"{path.relative_to(SOURCE)} knows the store {pieces[0]}")
    return wrong


def test_files_import_only_from_further_left() -> None:
    assert len(files()) > 300
    assert [wrong for path in files() for wrong in misplaced(path)] == []


@pytest.mark.parametrize(
    ("place", "line", "wrong"),
    [
        ("noise/planted.py", "from tidegate.ledger import Ledger", "noise/planted.py imports tidegate.ledger.Ledger"),
        ("answer/planted.py", "import duckdb", "answer/planted.py knows the engine duckdb"),
        ("release/planted.py", "import sqlalchemy as sa", "release/planted.py knows the store sqlalchemy"),
    ],
)
def test_a_planted_import_is_found(
    place: str, line: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    (tmp_path / place).parent.mkdir()
    (tmp_path / place).write_text(line + "\n", "utf-8")
    assert misplaced(tmp_path / place) == [wrong]


def test_every_part_of_the_tree_has_a_place_in_the_order() -> None:
    assert {part(path) for path in files()} <= set(LEVEL)
