"""Pages of large answers: a part of the cells of all answers of a request, in their order.

A page has the rows and the stored numbers of its cells, so that no response grows with the answer. Together the pages contain what
`to_dict` of the whole answer contains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from math import prod
from typing import Any

from tidegate.answer.mechanisms.mechanism import axes_of, cells_of
from tidegate.answer.query_json import query_from_dict
from tidegate.answer.request import Query
from tidegate.answer.result import Answer, Answers
from tidegate.errors import TooManyCells
from tidegate.policy import Policy

PAGE = 10_000  # cells


def refuse_large(queries: Sequence[Query], policy: Policy, most: int) -> None:
    """Raise TooManyCells if the answers to queries have more than `most` cells together. No row is read."""
    cells = sum(cells_of(query, query.target(policy)) for query in queries)
    if cells > most:
        raise TooManyCells(
            f"The request has {cells:,} cells; this service answers at most {most:,} at once.",
            "Group by fewer columns, split the request, or ask the operator for a higher limit (`most_cells`).",
        )


def to_page(result: Answer | Answers, first: int, limit: int) -> dict[str, Any]:
    """Return the cells from number `first` on, at most `limit`; the whole answer if it has no more.

    A page also has `cells`, the number of all cells, and `first`. `next` is the number of the first cell of the next page, or None.
    """
    answers = result.answers if isinstance(result, Answers) else (result,)
    ends = list(accumulate(prod(shape_of(answer.query, answer.policy)) for answer in answers))
    total = ends[-1] if ends else 0
    if not first and total <= limit:
        return result.to_dict()
    stop, charge = min(first + limit, total), result.charge.to_dict()
    parts = []
    for answer, start, end in zip(answers, [0, *ends], ends, strict=False):
        cells = slice(max(first - start, 0), max(min(stop, end) - start, 0))
        if cells.start < cells.stop or isinstance(result, Answer):  # beyond its end, a single answer has no rows
            parts.append({"cells_from": cells.start, **_page_part(answer, cells, charge)})
    about = {"cells": total, "first": first, "next": stop if stop < total else None}
    if isinstance(result, Answer):
        return {**parts[0], **about, **charge}
    tables = {"tables": [table.to_dict() for table in result.tables]} if result.tables and not first else {}
    return {"answers": parts, **tables, **about, **charge}


def _page_part(answer: Answer, cells: slice, charge: Mapping[str, Any]) -> dict[str, Any]:
    shape = shape_of(answer.query, answer.policy)
    content = {name: value for name, value in answer.describe().items() if name not in charge}
    return {**content, "rows": answer.rows(cells), "result": _cut(answer.stored, shape, cells)}


def join_pages(pages: Sequence[Mapping[str, Any]], policy: Policy) -> dict[str, Any]:
    """Return the whole answer, without its rows, which follow from it: the charge is that of the first page.

    Raises:
        ValueError: A page is missing.
    """
    parts: list[dict[str, Any]] = []
    for page in pages:
        for part in page.get("answers", [page]):
            if part["cells_from"] == 0:
                parts.append({**part, "rows": [], "pieces": []})
            parts[-1]["pieces"].append(part["result"])
    for part in parts:
        query = query_from_dict(part["query"])
        part["result"] = _join(part.pop("pieces"), shape_of(query, query.target(policy)))
    first = pages[0]
    return {**first, "answers": parts} if "answers" in first else {**first, **parts[0]}


def shape_of(query: Query, policy: Policy) -> tuple[int, ...]:
    """Return the number of cells along each axis of an answer."""
    return tuple(axis.length for axis in axes_of(query, policy))


def _cut(stored: Any, shape: tuple[int, ...], cells: slice) -> Any:
    """Return stored numbers with every array of the cells' shape cut to a flat list of some cells."""
    if _has_shape(stored, shape):
        flat = stored
        for _ in shape[1:]:
            flat = list(chain.from_iterable(flat))
        return flat[cells]
    if isinstance(stored, dict):
        return {name: _cut(value, shape, cells) for name, value in stored.items()}
    return [_cut(value, shape, cells) for value in stored] if isinstance(stored, list) else stored


def _has_shape(value: Any, shape: tuple[int, ...]) -> bool:
    """Return whether a value is a nested list of numbers of this shape, by its first elements."""
    for length in shape:
        if not isinstance(value, list) or len(value) != length:
            return False
        value = value[0]
    return bool(shape) and isinstance(value, int | float)


def _join(pieces: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Return stored numbers from their pieces: the reverse of `_cut`."""
    first = pieces[0]
    if isinstance(first, dict):
        return {name: _join([piece[name] for piece in pieces], shape) for name in first}
    if not isinstance(first, list):
        return first
    if first and not isinstance(first[0], int | float):
        return [_join([piece[index] for piece in pieces], shape) for index in range(len(first))]
    flat = list(chain.from_iterable(pieces))
    if len(flat) != prod(shape):
        raise ValueError(f"{len(flat):,} of {prod(shape):,} cells")
    for length in shape[:0:-1]:
        flat = [flat[start : start + length] for start in range(0, len(flat), length)]
    return flat
