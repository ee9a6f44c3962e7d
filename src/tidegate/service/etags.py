"""Entity tags: a client that has a response already sends its tag, and gets 304 without a body if nothing changed."""

from __future__ import annotations

import hashlib
from typing import Any

from fastapi import Request, Response

UNCHANGED: Any = {304: {"description": "Not changed since the response with this ETag"}}
TAGGED: Any = {"ETag": {"description": "Send it back as If-None-Match.", "schema": {"type": "string"}}}
CONDITION: Any = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "The ETag of an earlier response. If nothing changed, the response is 304 and has no body.",
}


def tag_of(*parts: object) -> str:
    """Return the tag of something that these parts identify."""
    return f'"{hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:32]}"'


def is_known(request: Request, tag: str) -> bool:
    """Return whether the client has the response with this tag."""
    known = [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]
    return tag in known or "*" in known


def unchanged(response: Response, tag: str) -> Response:
    """Return a 304 for a response, with the headers that it would have had."""
    headers = {name: response.headers[name] for name in ("cache-control", "link") if name in response.headers}
    return Response(status_code=304, headers={**headers, "etag": tag})


def tagged(request: Request, response: Response) -> Response:
    """Return a response with the tag of its content, or a 304 if the client has it. Streams have no tag."""
    content = getattr(response, "body", None)
    if response.status_code != 200 or not isinstance(content, bytes):
        return response
    tag = response.headers.setdefault("etag", tag_of(content))
    return unchanged(response, tag) if is_known(request, tag) else response
