"""Items and figures as one self-contained HTML page without scripts."""

from __future__ import annotations

import base64
import io
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.html import render
from tidegate_papers.item import Item, shown, summary


def picture_bytes(figure: Any) -> bytes:
    """Return a matplotlib figure as PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def page(
    title: str, paper: str, items: Sequence[Item], pictures: Sequence[tuple[bytes, str]], *, missing: str = ""
) -> str:
    """Return the whole page: a summary, every figure, every item by its section in the paper."""
    groups = itertools.groupby(items, key=lambda item: item.where.partition("(")[0])
    view = {
        "title": title,
        "paper": paper,
        "summary": summary(items),
        "missing": missing,
        "pictures": [{"source": _source(content), "text": text} for content, text in pictures],
        "groups": [{"place": section, "rows": [_row(item) for item in group]} for section, group in groups],
    }
    return render("report/paper.html", view)


def cell(value: Any) -> str:
    """Return a value in a few characters: a number to seven digits, many numbers as their count."""
    plain = shown(value)
    if isinstance(plain, dict):
        return f"{len(plain)} values"
    if isinstance(plain, list):
        return ", ".join(map(str, plain))
    return f"{plain:.7g}" if isinstance(plain, float) else str(plain)


def _row(item: Item) -> dict[str, Any]:
    numbers = {"published": _value(item.published), "ours": _value(item.ours)}
    return {"id": item.id, **numbers, "status": item.status, "note": item.note}


def _value(value: Any) -> dict[str, Any]:
    """Return a value and, for several numbers, the lines that a click shows."""
    lines = [f"{key}: {_short(item)}" for key, item in value.items()] if isinstance(value, Mapping) else []
    return {"text": cell(value), "lines": lines}


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(number) if isinstance(number, int) else f"{number:.3g}" for number in value)
    return cell(value)


def _source(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode('ascii')}"
