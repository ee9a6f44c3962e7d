"""The template environment. Everything is escaped, and a name that a view lacks is an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

FOLDERS: dict[str, jinja2.BaseLoader] = {"report": jinja2.PackageLoader("tidegate.html")}


def render(template: str, view: Mapping[str, Any]) -> str:
    """Return a template, such as "report/audit.html", filled with a view."""
    return _environment().get_template(template).render(view)


def add_templates(prefix: str, package: str, **names: Callable[..., Any]) -> None:
    """Make the folder `templates` of a package available as `prefix/NAME.html`. `names` are functions for all templates."""
    FOLDERS[prefix] = jinja2.PackageLoader(package)
    _environment().globals.update(names)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PrefixLoader(FOLDERS),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (amount, chance, whole, moment, sentence, percent, times)
    environment.filters.update({function.__name__: function for function in filters})
    environment.globals.update(chart_style=_chart_style)
    return environment


@cache
def _chart_style() -> Markup:
    """Return the style sheet of charts, to put into a report."""
    return Markup((files("tidegate.charts") / "chart.css").read_text("utf-8"))  # noqa: S704  (our own file)


def amount(number: Any, digits: int = 4) -> str:
    """Return a loss or another amount in a few digits: 0.3142, 12.5, 1,200."""
    if number in (None, ""):
        return "unlimited"
    value = float(number)
    shown = f"{value:,.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"
    return shown.rstrip("0").rstrip(".") if "." in shown and "e" not in shown else shown


def chance(probability: Any) -> str:
    """Return a probability in three digits, so that small ones stay distinguishable: 0.0312, 0.25."""
    return f"{float(probability):.3g}"


def whole(count: Any) -> str:
    """Return a count: 10,000."""
    return f"{int(count):,}"


def moment(time: str) -> str:
    """Return a time in a readable form: 15 Nov 2026, 10:02."""
    return datetime.fromisoformat(time).strftime("%-d %b %Y, %H:%M")


def sentence(text: str) -> str:
    """Return a text that starts with a capital letter."""
    return text[:1].upper() + text[1:]


def percent(share: float | None) -> str:
    """Return a share in two digits: 3.1%, 25%."""
    if share is None:
        return "–"
    return f"{100 * share:.2g}%" if 0 < share < 0.0995 else f"{100 * share:.0f}%"


def times(ratio: float | None) -> str:
    """Return a ratio or an overlap: 1.25, 1,200."""
    return "–" if ratio is None else f"{ratio:.2f}" if abs(ratio) < 10 else f"{ratio:,.0f}"
