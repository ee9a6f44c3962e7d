"""What notebooks show of results: a title, a caption, bars of a budget, tables and notes. No script and no request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.html.render import render

Table = tuple[list[str], list[list["Cell"]]]
EMPTY: dict[str, Any] = {"caption": "", "bars": (), "tables": (), "notes": ()}


@dataclass(frozen=True)
class Cell:
    """A cell of a table. Numbers are aligned to the right."""

    text: str
    is_number: bool = False


@dataclass(frozen=True)
class Bar:
    """A budget: the spent share, and the share that a request would spend."""

    text: str
    spent: float
    planned: float = 0.0
    is_over: bool = False


def show(view: Mapping[str, Any]) -> str:
    """Return the HTML of a view with a `title` and any of `caption`, `bars`, `tables` and `notes`."""
    return render("report/notebook.html", {**EMPTY, **view})


def table_of(rows: Sequence[Mapping[str, Any]], headers: Mapping[str, str] | None = None) -> Table:
    """Return rows as a table; `headers` selects columns and names them."""
    headers = headers or {name: name.replace("_", " ") for name in (rows[0] if rows else {})}
    return list(headers.values()), [[cell(row[name]) for name in headers] for row in rows]


def cell(value: Any) -> Cell:
    """Return a value for people: numbers in a few digits, nothing for a missing one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Cell("" if value is None else str(value))
    text = f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1e4 else f"{value:,.4g}"
    return Cell(text, is_number=True)


def budget_bar(text: str, *, spent: float, limit: float, planned: float = 0.0) -> Bar:
    """Return the bar of a budget; it ends at the limit."""
    if limit <= 0:
        return Bar(text, 0.0, 1.0 if planned > 0 else 0.0, planned > 0)
    used = min(1.0, spent / limit)
    return Bar(text, used, min(1.0 - used, planned / limit), spent + planned > limit)
