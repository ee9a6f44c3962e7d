"""Pages of lists: opaque cursors, and a link to the next page."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Query, Request, Response

from tidegate.errors import Unsupported

T = TypeVar("T")
LONGEST = 120
Limit = Annotated[int, Query(ge=1, le=1000, description="The most items to return.")]
Cursor = Annotated[
    str,
    Query(
        max_length=LONGEST,
        pattern=r"^[A-Za-z0-9_-]*$",
        description="Where the page starts: `next` of the page before, with the same filters.",
    ),
]


def write_cursor(listed: str, position: object) -> str:
    """Return the cursor of a position in a list. It is valid for that list only."""
    return urlsafe_b64encode(f"{listed} {position}".encode()).decode().rstrip("=")


def read_cursor(listed: str, cursor: str, kind: Callable[[str], T], start: T) -> T:
    """Return the position of a cursor; `start` if there is none."""
    if not cursor:
        return start
    position: T | None = None
    try:
        name, _, text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii").partition(" ")
        position = kind(text) if name == listed else None
    except ValueError:
        position = None
    if position is None:
        raise Unsupported("This cursor is not one of this list.", "Use `next` of the page before, or no cursor.")
    return position


def position_number(text: str) -> int:
    """Return the number of a position; a number that no list has is refused."""
    if not text.isdecimal() or len(text) > 16:
        raise ValueError
    return int(text)


def position_id(text: str) -> str:
    """Return the id of a position."""
    if not text or not set(text) <= set("0123456789abcdef"):
        raise ValueError
    return text


def link_next(request: Request, response: Response, cursor: str | None) -> str | None:
    """Add a link to the next page to the response, and return its cursor; None at the end."""
    if cursor is not None:
        url = request.url.include_query_params(cursor=cursor)
        response.headers["link"] = f'<{url.path}?{url.query}>; rel="next"'
    return cursor


def first_page(
    items: Sequence[T], limit: int, position: Callable[[T], object], listed: str
) -> tuple[Sequence[T], str | None]:
    """Return the first `limit` items, and the cursor after them; None if there are no more."""
    if len(items) <= limit:
        return items, None
    return items[:limit], write_cursor(listed, position(items[limit - 1]))


def page_after(
    items: Sequence[T], cursor: str, limit: int, position: Callable[[T], str], listed: str
) -> tuple[Sequence[T], str | None]:
    """Return the page of a whole list after a cursor, and the next cursor. An item that is gone ends the list."""
    after = read_cursor(listed, cursor, position_id, "")
    names = [position(item) for item in items]
    if after and after not in names:
        raise Unsupported("The item of this cursor was deleted.", "Start again without a cursor.")
    rest: Any = items[names.index(after) + 1 :] if after else items
    return first_page(rest, limit, position, listed)
