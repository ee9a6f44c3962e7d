"""The console's templates, rendered in the environment of `tidegate.html`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tidegate.html import add_templates
from tidegate.html import render as render_template
from tidegate.web.assets import address_of

add_templates("console", "tidegate.web", file=address_of)


# What a browser follows by itself. Text cannot match: its quotation marks are escaped, and those of JSON never precede a slash.
LINKS = re.compile(r'(\s(?:(?:href|src|action|formaction)="|content="\d+; url=))/(?!/)')


def render(name: str, view: Mapping[str, Any], *, base: str = "") -> str:
    """Return the page `templates/NAME.html` of a view. Its links start with a slash; `base` is put in front of them."""
    page = render_template(f"console/{name}.html", view)
    return LINKS.sub(rf"\g<1>{base}/", page) if base else page
