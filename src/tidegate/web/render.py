"""The console's templates, rendered in the environment of `tidegate.html`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.html import add_templates
from tidegate.html import render as render_template
from tidegate.web.assets import address_of

add_templates("console", "tidegate.web", file=address_of)


def render(name: str, view: Mapping[str, Any]) -> str:
    """Return the page `templates/NAME.html` of a view."""
    return render_template(f"console/{name}.html", view)
