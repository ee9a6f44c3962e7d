"""True answers from a CSV file, for a client on the device. Messages never quote a row."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from tidegate.errors import SourceUnreadable
from tidegate.policy.attributes import Items
from tidegate.policy.categories import Category
from tidegate.policy.collection import Collection, Question

TRUTHS = {"true": True, "false": False}


def read_answers(path: Path, collection: Collection) -> tuple[list[dict[str, Any]], list[str]]:
    """Return one dictionary per row, and the columns that are not questions.

    An empty field is a missing answer; the items of a set are separated by semicolons.
    """
    rows, problem = [], ""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        problem = getattr(error, "strerror", None) or "it is not CSV in UTF-8"
    header = rows[0] if rows else []
    missing = [name for name in collection.questions if name not in header]
    if problem or missing:
        raise SourceUnreadable(
            f"Cannot read answers from {path}: {problem or 'missing columns: ' + ', '.join(missing)}.",
            f"Write the column names into the first line: {', '.join(collection.questions)}.",
        )
    for number, row in enumerate(rows[1:], start=2):
        if row and len(row) != len(header):
            raise SourceUnreadable(
                f"Line {number:,} of {path} has {len(row)} fields, but the first line has {len(header)}."
            )
    indexes = {name: header.index(name) for name in collection.questions}
    questions = collection.questions.items()
    answers = [{name: _value(question, row[indexes[name]]) for name, question in questions} for row in rows[1:] if row]
    return answers, [name for name in header if name not in collection.questions]


def _value(question: Question, text: str) -> Any:
    """Convert a field to the attribute's type; the client refuses what cannot be converted."""
    universe, plain = question.universe, text.strip()
    if isinstance(universe, Items):
        return [item.strip() for item in text.split(";") if item.strip()]
    if plain == "":
        return None
    if not isinstance(universe, Category) or universe.value_type is str:
        return text if isinstance(universe, Category) else plain
    if universe.value_type is bool:
        return TRUTHS.get(plain.lower(), plain)
    return int(plain) if plain.lstrip("-").isdecimal() else plain
