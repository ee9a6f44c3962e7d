"""Forms that a browser posts without scripts."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import parse_qs

from fastapi import Request

from tidegate.errors import TooLarge

TYPE = "application/x-www-form-urlencoded"
MOST_FIELDS = 20_000


async def form_fields(request: Request) -> dict[str, list[str]]:
    """Return the fields of a posted form by name; none if the body is not a form. Line ends are those of text files."""
    if not request.headers.get("content-type", "").lower().startswith(TYPE):
        return {}
    text = (await request.body()).decode("utf-8", "replace")
    fields: dict[str, list[str]] | None = None
    with suppress(ValueError):
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    if fields is None:
        raise TooLarge(f"The form has more than {MOST_FIELDS:,} fields.", "Leave out columns that no query needs.")
    return {name: [value.replace("\r\n", "\n") for value in values] for name, values in fields.items()}
