"""Idempotency-Key: a request that is sent again with the same key runs only once, and gets the same reply."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool

from tidegate.errors import Unsupported
from tidegate.ledger.replies import Replies

HEADER = "Idempotency-Key"
ALLOWED = re.compile(r"[\x21-\x7e]{1,100}")
PARAMETER: Any = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "maxLength": 100, "pattern": r"^[\x21-\x7e]*$"},
    "description": "A request that is repeated with the same key and the same body runs only once, and gets the same reply for a "
    "day. Another body gets 409. The key belongs to the token.",
}


async def run_once(
    request: Request, key: str, owner: str, inside: Callable[[Request], Coroutine[Any, Any, Response]]
) -> Response:
    """Run a request, or return the reply that the same request got before. A refused request frees its key."""
    if not ALLOWED.fullmatch(key):
        raise Unsupported(f"The header {HEADER} must have 1 to 100 visible ASCII characters.", "Send a random UUID.")
    replies = Replies(request.app.state.datasets.ledger.store)
    target = f"{request.method} {request.url.path}?{request.url.query}".encode("utf-8", "replace")
    digest = hashlib.sha256(target + b"\n" + await request.body()).hexdigest()
    stored = await run_in_threadpool(replies.begin, owner, key, digest)
    if stored is not None:
        status, content = stored
        return Response(content, status, {"idempotency-replayed": "true"}, media_type="application/json")
    is_done = False
    try:
        response = await inside(request)
        is_done = response.status_code < 300
    finally:
        if not is_done:
            await run_in_threadpool(replies.release, owner, key)
    await run_in_threadpool(replies.finish, owner, key, response.status_code, bytes(response.body))
    return response
