"""Imports point one way; only tables/ knows an engine, only ledger/ writes the record."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "tidegate"
ORDER = [
    {"errors"},
    {"exact", "arrays"},
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


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_imports_only_from_further_left(path: Path) -> None:
    here = part(path)
    for name in imported(path):
        pieces = name.split(".")
        if pieces[0] == "tidegate" and len(pieces) > 1 and pieces[1] in LEVEL:
            assert pieces[1] == here or LEVEL[pieces[1]] < LEVEL[here], f"{here} imports {name}"
        if pieces[0] in ENGINES:
            assert here == "tables", f"{here} knows the engine {pieces[0]}"
        if pieces[0] in STORES:
            assert here == "ledger", f"{here} knows the store {pieces[0]}"


def test_every_part_of_the_tree_has_a_place_in_the_order() -> None:
    assert {part(path) for path in files()} <= set(LEVEL)
