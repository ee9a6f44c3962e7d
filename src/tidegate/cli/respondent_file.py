"""True answers from a CSV file, for a client at home. What a row says is never quoted."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from tidegate.errors import SourceUnreadable
from tidegate.policy.attributes import Category, Items
from tidegate.policy.collection import Collection, Question

TRUTHS = {"true": True, "false": False}


def read_answers(path: Path, collection: Collection) -> tuple[list[dict[str, Any]], list[str]]:
    """One dictionary for each row, and the columns that nobody asks about. An empty field is a missing answer; the items of
    a set are set apart by semicolons."""
    rows, problem = [], ""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        problem = getattr(error, "strerror", None) or "it is not CSV in UTF-8"
    header = rows[0] if rows else []
    left = [name for name in collection.questions if name not in header]
    if problem or left:
        raise SourceUnreadable(
            f"cannot read answers from {path}: {problem or 'no column ' + ', '.join(left)}.",
            f"The first line names the columns: {', '.join(collection.questions)}.",
        )
    for number, row in enumerate(rows[1:], start=2):
        if row and len(row) != len(header):
            raise SourceUnreadable(
                f"line {number:,} of {path} has {len(row)} fields; the first line has {len(header)}."
            )
    places = {name: header.index(name) for name in collection.questions}
    asked = collection.questions.items()
    found = [{name: _value(question, row[places[name]]) for name, question in asked} for row in rows[1:] if row]
    return found, [name for name in header if name not in collection.questions]


def _value(question: Question, text: str) -> Any:
    """A field as the attribute's own kind of value; what cannot be read is handed on for the client to refuse."""
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
