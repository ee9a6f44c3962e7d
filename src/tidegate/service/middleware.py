"""Middleware around the whole application: limits before a body is read, response headers, one log line.

Every exception becomes an error response here. No traceback is ever printed.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidegate.errors import TooLarge, Unsupported
from tidegate.service.access.permissions import API
from tidegate.service.errors import defect, misdirected, respond, source_location, too_deep
from tidegate.service.logs import log_event
from tidegate.service.metrics import Metrics
from tidegate.service.old_addresses import DEPRECATED, is_old, keeps_working, moved, renew
from tidegate.service.settings import Settings, host_name, is_loopback

CONTENT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
LINKED, ADDRESS = {b"location", b"link"}, re.compile(rb"^(<?)/(?!/)")
STRICT = (b"strict-transport-security", b"max-age=31536000")
BATCHES = re.compile(rf"{API}/data/[^/]+/collections/[^/]+/reports")
UNRECORDED = re.compile(rf"{API}/data/[^/]+/collections/[^/]+/(reports|tokens)")
# Possessive, and a string that never ends matches up to the end: no byte is read twice, so the scan is linear.
BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|([\[{])|([\]}])', re.DOTALL)
UPLOADS = re.compile(rf"{API}/drafts/[0-9a-f]{{20}}/file")  # streamed: the route counts and limits the bytes
FORMS = re.compile(rf"({API}|/console)/drafts/[0-9a-f]{{20}}/.+|({API}|/console)/data/[^/]+/policy(/previews)?")
LARGE = 4 * 1024  # bytes: scanning these takes about a millisecond; longer bodies are scanned in a thread
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


class RequestMiddleware:
    """ASGI middleware that wraps the whole application."""

    def __init__(self, app: ASGIApp, *, settings: Settings, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = below(scope, self._settings.base)
        outgoing = OutgoingResponse(scope, send, self._settings)
        try:
            refused, inside = await self._read(scope, receive)
            if refused is not None:
                refused.headers["connection"] = "close"  # the rest of the request is not read
                await refused(scope, receive, outgoing.send)
            else:
                await self._app(scope, inside, outgoing.send)
        except Exception as error:  # report the location only: the message could hold a private value
            log_event("defect", request=outgoing.name, place=source_location(error))
            if not outgoing.status:
                await defect(error, scope["state"])(scope, receive, outgoing.send)
        finally:
            self._log(scope, outgoing)

    async def _read(self, scope: Scope, receive: Receive) -> tuple[Response | None, Receive]:
        """Read the body within its limits; return a refusal, or a `receive` that replays the body."""
        if refused := self._headers(scope):
            return refused, receive
        if is_old(scope["path"]):
            if not keeps_working(scope):
                return moved(scope), receive
            renew(scope)
        bulk = BATCHES.fullmatch(scope["path"]) is not None
        if scope["method"] == "PUT" and UPLOADS.fullmatch(scope["path"]):
            most = self._settings.largest_upload
            return (_too_large(most, scope) if _length(scope) > most else None), receive
        most = self._settings.largest_batch if bulk else self._settings.largest_body
        if FORMS.fullmatch(scope["path"]):
            most = self._settings.largest_form
        if _length(scope) > most:
            return _too_large(most, scope), receive
        try:
            async with asyncio.timeout(self._settings.patience):
                body = await _read_body(receive, most)
        except TimeoutError:
            late = TooLarge("The request took too long to arrive.", "Send it in smaller parts.")
            return respond(late, scope["state"]), receive
        except ClientDisconnect:  # a part of a form could be a valid form: it is not what the client sent
            broken = Unsupported("The request ended before its body was complete.", "Send it again.")
            return respond(broken, scope["state"]), receive
        if body is None:
            return _too_large(most, scope), receive
        if not bulk and await _is_deeper_async(body, self._settings.deepest_json):
            return too_deep(scope["state"]), receive
        return None, _replay(body, receive)

    def _headers(self, scope: Scope) -> Response | None:
        headers = scope["headers"]
        size = sum(len(name) + len(value) for name, value in headers) + len(scope.get("query_string", b""))
        most_headers = self._settings.most_headers
        if len(headers) > most_headers or size > self._settings.largest_headers:
            large = TooLarge(
                f"The request has more than {most_headers} headers or they are too long.", "Send fewer headers."
            )
            return respond(large, scope["state"])
        return self._other_host(scope)

    def _other_host(self, scope: Scope) -> Response | None:
        """Refuse a request for a host other than the public one; loopback names are accepted."""
        host = host_name(next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1"))
        public = host_name(urlsplit(self._settings.public_url).netloc)
        if (public and host == public) or is_loopback(host):
            return None
        return misdirected(scope["state"], is_public=bool(public))

    def _log(self, scope: Scope, outgoing: OutgoingResponse) -> None:
        if self._is_received_report(scope, outgoing.status):
            return
        route = getattr(scope.get("route"), "path", "elsewhere")
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        state = scope.get("state", {})
        seconds = time.perf_counter() - outgoing.began
        refused = str(state.get("refused", ""))
        self._metrics.request(method, route, outgoing.status, seconds, refused)
        caller = state.get("caller")
        role, token = getattr(caller, "role", "unknown"), getattr(caller, "token", "")
        facts: dict[str, Any] = {"method": method, "route": route, "status": outgoing.status}
        log_event(
            "request",
            **facts,
            ms=round(1000 * seconds, 1),
            role=role,
            token=token,
            request=outgoing.name,
            refused=refused,
        )

    def _is_received_report(self, scope: Scope, status: int) -> bool:
        """Return whether a request delivered reports or used a code. It is neither logged nor counted: both would reveal its time."""
        return scope["method"] == "POST" and status < 300 and UNRECORDED.fullmatch(scope["path"]) is not None


class OutgoingResponse:
    """A response on its way out: adds the headers and remembers the status."""

    def __init__(self, scope: Scope, send: Send, settings: Settings) -> None:
        self._send, self._settings = send, settings
        self.began, self.name, self.status = time.perf_counter(), secrets.token_hex(8), 0
        self._state = scope.setdefault("state", {})
        self._state["request"] = self.name

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            base = self._settings.base.encode()
            headers = [_public(header, base) for header in message.get("headers", ())]
            present = {name.lower() for name, _ in headers}
            headers += [added for added in _added(self._settings) if added[0] not in present]
            headers.append((b"x-request-id", self.name.encode()))
            if self._state.get("unversioned"):
                headers += DEPRECATED
            if self._settings.secure:
                headers.append(STRICT)
            message = {**message, "headers": headers}
        await self._send(message)


def below(scope: Scope, base: str) -> Scope:
    """Return a request without the path of the public URL. A proxy can remove it, or not."""
    path: str = scope["path"]
    if not base or not (path == base or path.startswith(f"{base}/")):
        return scope
    raw: bytes = scope.get("raw_path") or b""
    return {**scope, "path": path[len(base) :] or "/", "raw_path": raw.removeprefix(base.encode()) or b"/"}


def _public(header: tuple[bytes, bytes], base: bytes) -> tuple[bytes, bytes]:
    """Return a response header whose address, if it has one, is below the path of the public URL."""
    name, value = header
    if name.lower() in LINKED and base:
        value = ADDRESS.sub(rb"\g<1>" + base + b"/", value)
    return name, value


@cache
def _added(settings: Settings) -> list[tuple[bytes, bytes]]:
    """Return the headers of every response. Below a path, pages load files of that path only: the host has other pages."""
    own = f"{settings.public_url}/" if settings.base else "'self'"
    headers = {**HEADERS, "content-security-policy": CONTENT.replace("'self'", own), "cache-control": "no-store"}
    return [(name.encode(), value.encode()) for name, value in headers.items()]


async def _is_deeper_async(body: bytes, most: int) -> bool:
    """Return `is_deeper(body, most)`, computed off the event loop if the body is large."""
    return is_deeper(body, most) if len(body) <= LARGE else await asyncio.to_thread(is_deeper, body, most)


def is_deeper(body: bytes, most: int) -> bool:
    """Return whether JSON is nested more than `most` levels deep. Takes linear time; quoted text does not count."""
    if body.count(b"[") + body.count(b"{") <= most:
        return False
    depth = 0
    for match in BRACKETS.finditer(body):
        depth += 1 if match[1] else -1 if match[2] else 0
        if depth > most:
            return True
    return False


def _length(scope: Scope) -> int:
    """Return the announced length of a request, or 0 if the header is not a number."""
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(length) if length.isdigit() and len(length) < 20 else 0


async def _read_body(receive: Receive, most: int) -> bytes | None:
    """Read a body; return None as soon as it is too large. Raise ClientDisconnect if it does not arrive whole."""
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > most:
            return None
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that replays a body and then passes on further messages."""
    waiting = [True]

    async def inside() -> Message:
        if waiting.pop() if waiting else False:
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return inside


def _too_large(most: int, scope: Scope) -> Response:
    return respond(TooLarge(f"The request is larger than {most:,} bytes.", "Send it in parts."), scope["state"])
