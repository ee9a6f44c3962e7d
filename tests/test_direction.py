"""Imports point one way; only tables/ imports an engine, only ledger/ a database driver."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "tidegate"
ORDER = [
    {"errors"},
    {"exact", "arrays", "extras", "html"},
    {"frames", "kernels"},
    {"operators"},
    {"policy"},
    {"tables", "noise", "accounting", "risk", "charts"},
    {"ledger"},
    {"answer", "release", "collect", "synthesize"},
    {"session"},
    {"demo"},
    {"audit"},
    {"web"},
    {"service"},
    {"cli", "testing"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}
ENGINES = {"ibis", "duckdb", "pyspark", "polars", "pandas"}
DATA_FRAMES = {"polars", "pandas"}
STORES = {"sqlalchemy", "sqlite3", "psycopg", "alembic"}


def files() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def part(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_names(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def forbidden_imports(path: Path) -> list[str]:
    """Return the imports of a file that are not allowed."""
    folder, wrong = part(path), []
    for name in sorted(imported_names(path)):
        pieces = name.split(".")
        inside = pieces[0] == "tidegate" and len(pieces) > 1 and pieces[1] in LEVEL
        if inside and pieces[1] != folder and LEVEL[pieces[1]] >= LEVEL[folder]:
            wrong.append(f"{path.relative_to(SOURCE)} imports {name}")
        if pieces[0] in ENGINES and folder != "tables" and not (folder == "frames" and pieces[0] in DATA_FRAMES):
            wrong.append(f"{path.relative_to(SOURCE)} imports the engine {pieces[0]}")
        if pieces[0] in STORES and folder != "ledger":
            wrong.append(f"{path.relative_to(SOURCE)} imports the store {pieces[0]}")
    return wrong


def test_imports_follow_the_order() -> None:
    assert len(files()) > 300
    assert [wrong for path in files() for wrong in forbidden_imports(path)] == []


@pytest.mark.parametrize(
    ("name", "line", "wrong"),
    [
        ("noise/planted.py", "from tidegate.ledger import Ledger", "noise/planted.py imports tidegate.ledger.Ledger"),
        ("answer/planted.py", "import duckdb", "answer/planted.py imports the engine duckdb"),
        ("release/planted.py", "import sqlalchemy as sa", "release/planted.py imports the store sqlalchemy"),
    ],
)
def test_planted_import_is_detected(
    name: str, line: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(line + "\n", "utf-8")
    assert forbidden_imports(tmp_path / name) == [wrong]


def test_every_folder_is_in_the_order() -> None:
    assert {part(path) for path in files()} <= set(LEVEL)
