"""A template and its view, made into HTML. Everything is escaped; a name that the view lacks is an error."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

import jinja2

from tidegate.web.assets import address_of


def render(name: str, view: Mapping[str, Any]) -> str:
    """The page `templates/NAME.html` of a view."""
    return _templates().get_template(f"{name}.html").render(view)


@cache
def _templates() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("tidegate.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(amount=amount, chance=chance, whole=whole, moment=moment)
    made.globals.update(file=address_of)
    return made


def amount(given: Any, digits: int = 4) -> str:
    """A loss or another amount, in a few digits: 0.3142, 12.5, 1,200."""
    if given in (None, ""):
        return "unlimited"
    number = float(given)
    shown = f"{number:,.{digits}g}" if abs(number) < 1000 else f"{number:,.0f}"
    return shown.rstrip("0").rstrip(".") if "." in shown and "e" not in shown else shown


def chance(given: Any) -> str:
    """A probability, so that small ones stay apart: 0.0312, 0.25."""
    return f"{float(given):.3g}"


def whole(given: Any) -> str:
    """A count: 10,000."""
    return f"{int(given):,}"


def moment(given: str) -> str:
    """A time as people write it: 15 Nov 2026, 10:02."""
    return datetime.fromisoformat(given).strftime("%-d %b %Y, %H:%M")
