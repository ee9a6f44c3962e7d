"""Items and figures as one HTML page that needs nothing else: pictures are inside, there is no script."""

from __future__ import annotations

import base64
import io
import itertools
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tidegate_papers.item import Item, shown, summary

STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 3rem auto; padding: 0 1.5rem }
h1 { font-weight: 600; font-size: 1.7rem; margin-bottom: .2rem } h2 { font-weight: 600; font-size: 1.15rem; margin-top: 2.4rem }
table { border-collapse: collapse; width: 100%; font-size: .88rem }
th { text-align: left; font-weight: 600; border-bottom: 1px solid #999; padding: .3rem .6rem .3rem 0 }
td { border-bottom: 1px solid #e6eaec; padding: .3rem .6rem .3rem 0; vertical-align: top }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap } td.note { color: #555 }
.reproduced, .within-noise, .better { color: #1f6f8b } .erratum, .differs { font-weight: 600 }
figure { margin: 1.5rem 0 } img { max-width: 100% } figcaption, .paper { color: #555; font-size: .9rem }
"""


def picture_bytes(figure: Any) -> bytes:
    """A matplotlib figure as PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def page(
    title: str, paper: str, items: Sequence[Item], pictures: Sequence[tuple[bytes, str]], *, missing: str = ""
) -> str:
    """The whole page: a summary, every item by where it stands in the paper, every picture."""
    groups = itertools.groupby(items, key=lambda item: item.where.partition("(")[0])
    tables = "".join(f"<h2>{escape(where)}</h2>{_table(list(group))}" for where, group in groups)
    figures = "".join(_figure(content, words) for content, words in pictures)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body>'
        f'<h1>{escape(title)}</h1><p class="paper">{escape(paper)}</p>'
        f"<p><strong>{escape(summary(items))}.</strong> {escape(missing)}</p>{figures}{tables}</body></html>\n"
    )


def cell(value: Any) -> str:
    """A value in a few characters: a number to seven digits, many numbers as how many they are."""
    plain = shown(value)
    if isinstance(plain, dict):
        return f"{len(plain)} values"
    if isinstance(plain, list):
        return ", ".join(map(str, plain))
    return f"{plain:.7g}" if isinstance(plain, float) else str(plain)


def _table(items: list[Item]) -> str:
    head = "<tr><th>item</th><th>published</th><th>ours</th><th>status</th><th>note</th></tr>"
    return f"<table>{head}{''.join(map(_row, items))}</table>"


def _row(item: Item) -> str:
    numbers = "".join(f'<td class="number">{_value(value)}</td>' for value in (item.published, item.ours))
    status = f'<td class="{item.status.replace(" ", "-")}">{item.status}</td>'
    return f'<tr><td>{escape(item.id)}</td>{numbers}{status}<td class="note">{escape(item.note)}</td></tr>'


def _value(value: Any) -> str:
    """A value; many of them open on a click."""
    if not isinstance(value, Mapping):
        return escape(cell(value))
    lines = "<br>".join(escape(f"{key}: {_short(one)}") for key, one in value.items())
    return f"<details><summary>{escape(cell(value))}</summary>{lines}</details>"


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(one) if isinstance(one, int) else f"{one:.3g}" for one in value)
    return cell(value)


def _figure(content: bytes, words: str) -> str:
    inside = base64.b64encode(content).decode("ascii")
    return f'<figure><img alt="{escape(words)}" src="data:image/png;base64,{inside}"><figcaption>{escape(words)}</figcaption></figure>'
