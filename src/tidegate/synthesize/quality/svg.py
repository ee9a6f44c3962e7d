"""Pictures as SVG inside a page. Places along the width are in percent, so that text keeps its size on a narrow screen."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def picture(parts: Iterable[str], *, height: float, says: str, box: str = "") -> str:
    """An image with a description. `box` (e.g. "0 0 320 320") makes it scale as a whole."""
    size = f'viewBox="{box}"' if box else f'height="{height:g}"'
    return f'<svg width="100%" {size} role="img" aria-label="{escape(says)}">{"".join(parts)}</svg>'


def bar(x: str, y: float, width: str, height: float, kind: str, *, says: str = "", style: str = "") -> str:
    """A rectangle; `says` shows where a pointer rests."""
    look = f' style="{style}"' if style else ""
    inside = f"<title>{escape(says)}</title>" if says else ""
    return (
        f'<rect class="{kind}" x="{x}" y="{y:.2f}" width="{width}" height="{max(height, 0):.2f}"{look}>{inside}</rect>'
    )


def line(x1: str, y1: float, x2: str, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1}" y1="{y1:.2f}" x2="{x2}" y2="{y2:.2f}"/>'


def dot(x: str, y: float, radius: float, kind: str) -> str:
    return f'<circle class="{kind}" cx="{x}" cy="{y:.2f}" r="{radius:g}"/>'


def words(x: str, y: float, text: str, *, anchor: str = "start", kind: str = "label", turn: float | None = None) -> str:
    turned = f' transform="rotate({turn:g} {x} {y:.2f})"' if turn is not None else ""
    return f'<text class="{kind}" x="{x}" y="{y:.2f}" text-anchor="{anchor}"{turned}>{escape(text)}</text>'


def share(part: float) -> str:
    """A place along the width."""
    return f"{100 * part:.3f}%"


def short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
