"""The queries of a data set as a notebook: it runs them again through the service at no cost and shows the answers.

Reference:
    The Jupyter notebook format, version 4.5: https://nbformat.readthedocs.io/en/latest/format_description.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.answer.repeat import Again
from tidegate.web.snippets.answer import connection_code, python_options, python_queries

TOKEN = "TIDEGATE_TOKEN"  # noqa: S105  (the name of a variable, not a token)
READ = f'os.environ["{TOKEN}"]'
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
MARKS = str.maketrans({mark: f"\\{mark}" for mark in r"\`*_{}[]<>()#+-.!|~$&"})


@dataclass(frozen=True)
class StoredQuery:
    """One charge. `again` is the repeatable request, if there is one; `rows` are the stored answers, one list per query."""

    number: int
    says: str
    again: Again | None = None
    rows: Sequence[Any] | None = None


def notebook(
    queries: Sequence[StoredQuery], *, address: str, dataset: str, promise: str, more: str = ""
) -> dict[str, Any]:
    """Return the notebook as JSON values."""
    cells = [_markdown(f"# {plain(dataset)}", _introduction(promise), more), _code(_connect(address, dataset))]
    for query in queries:
        cells += _cells(query)
    cells += [_markdown("## Remaining budget"), _code('remote.describe()["account"]')]
    numbered = [{"id": f"cell-{number}", **cell} for number, cell in enumerate(cells, start=1)]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": KERNEL, "cells": numbered}


def plain(text: str) -> str:
    """Escape a text so that Markdown and HTML show it unchanged."""
    return " ".join(text.split()).translate(MARKS)


def _introduction(promise: str) -> str:
    promised = f"Promise: {plain(promise)}. " if promise else ""
    return (
        f"{promised}Every query below was charged and answered. Running it again returns the stored answer and costs "
        f"nothing. Set the environment variable `{TOKEN}` to your token before you run this notebook."
    )


def _connect(address: str, dataset: str) -> str:
    return f"import os\nfrom fractions import Fraction\n\n{connection_code(address, dataset, READ)}"


def _cells(query: StoredQuery) -> list[dict[str, Any]]:
    heading = _markdown(f"## Entry {query.number}", plain(query.says))
    if query.again is None:
        return [
            heading,
            _markdown("*This entry cannot be run again: it is not a query, or the policy has changed since.*"),
        ]
    name = f"answer_{query.number}"
    options = python_options({query.again.unit: str(query.again.loss), "plan": query.again.planning})
    several = len(query.again.queries) > 1
    shown = f"[part.rows() for part in {name}]" if several else f"{name}.rows()"
    source = f"{name} = remote.answer({python_queries(query.again.queries)}, {options})\n{shown}"
    stored = None if query.rows is None else repr(list(query.rows) if several else query.rows[0])
    return [heading, _code(source, stored)]


def _markdown(*paragraphs: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": _lines("\n\n".join(part for part in paragraphs if part))}


def _code(source: str, output: str | None = None) -> dict[str, Any]:
    shown: list[dict[str, Any]] = []
    if output is not None:
        data = {"text/plain": _lines(output)}
        shown.append({"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data})
    cell: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": shown}
    return {**cell, "source": _lines(source)}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
