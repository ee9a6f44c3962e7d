"""Names that say what they hold: file names are nouns, and vague locals only become fewer.

File names: no part of a file name under `src` and `papers/src` is a gerund or a participle. A part is a word between
underscores; one that ends in "ing" or "ed" is rejected unless it is a noun or a term of the field (NOUNS). Migrations keep
their names.

Vague locals: a local is a parameter of a function, or a name that the body of a function or a module assigns, loops over,
imports with `as`, or binds in a comprehension, `with`, `except` or `case`. Fields in the body of a class are not locals:
they are often stored names, which must not change. Each name of VAGUE counts once for every place that binds it. Tests are
counted as well. LIMITS holds the highest allowed count of a folder; a folder that is not listed must have none. Never raise
a limit.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from benchmarks.codebase import VAGUE, bound_names, is_verbal

ROOT = Path(__file__).parent.parent
PACKAGES = ("src/tidegate", "papers/src/tidegate_papers")
COUNTED = (*PACKAGES, "benchmarks", "tests", "papers/tests")
WORDS = re.compile(rf"\b({'|'.join(sorted(VAGUE))})\b")
LIMITS = {
    # `Ledger.charge(who=...)` and `Ledger.spent_by(who)`: parameters of the ledger that store and read its JSON key "who".
    "src/tidegate/ledger": 2,
}


def python_files(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.rglob("*.py") if not {"__pycache__", "results"} & set(path.parts)
    )  # results: environments of peers


def count_vague(path: Path) -> int:
    text = path.read_text("utf-8")
    if not WORDS.search(text):
        return 0  # a bound name is a word of the file
    counts = Counter(bound_names(ast.parse(text)))
    return sum(count for name, count in counts.items() if name in VAGUE)


def folder_of(path: Path, top: Path) -> str:
    """Return the first folder below `top`, or the file itself, as a path from the root of the repository."""
    return (top / path.relative_to(top).parts[0]).relative_to(ROOT).as_posix()


@cache
def vague_by_folder() -> dict[str, int]:
    counts: Counter[str] = Counter()
    for top in (ROOT / name for name in COUNTED):
        for path in python_files(top):
            counts[folder_of(path, top)] += count_vague(path)
    return dict(counts)


def test_file_names_are_nouns() -> None:
    paths = [path for package in PACKAGES for path in python_files(ROOT / package) if path.parent.name != "versions"]
    assert not {path.stem for path in paths if is_verbal(path.stem)}


@pytest.mark.parametrize("name", ["running", "rows_needed", "_opened"])
def test_gerunds_and_participles_are_rejected(name: str) -> None:
    assert is_verbal(name)


@pytest.mark.parametrize("name", ["middleware", "raking", "release_book", "__init__", "_kernels"])
def test_nouns_are_accepted(name: str) -> None:
    assert not is_verbal(name)


def test_vague_locals_only_become_fewer() -> None:
    counts = vague_by_folder()
    grown = {folder: count for folder, count in counts.items() if count > LIMITS.get(folder, 0)}
    assert not grown, f"Rename these locals (see VAGUE): {grown}"


def test_limits_name_folders_that_exist() -> None:
    assert set(LIMITS) <= set(vague_by_folder())


def test_every_kind_of_binding_is_counted() -> None:
    source = """
import numpy as found
def read(told, *, wanted=1):
    made = [one for one in told]
    with open(made) as held:
        pass
    for place, kept in held:
        if (given := place):
            pass
class Job:
    wanted: str
    asked = 1
"""
    counts = Counter(bound_names(ast.parse(source)))
    expected = {"found": 1, "told": 1, "wanted": 1, "made": 1, "one": 1, "held": 1, "place": 1, "kept": 1, "given": 1}
    assert counts == expected
