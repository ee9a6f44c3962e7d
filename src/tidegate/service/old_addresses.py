"""Addresses of version 0.1, which had no version in front. They redirect for one more version.

A device of a respondent does not follow redirects, so that a report goes only to the address that its page names. Its three
addresses therefore keep working without a redirect, and their errors also contain the member that such a device reads.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Scope

from tidegate.service.access.permissions import API, MOVED

SINCE = datetime(2026, 11, 18, tzinfo=UTC)  # when addresses with a version began
DEPRECATED = [(b"deprecation", f"@{int(SINCE.timestamp())}".encode())]  # RFC 9745
SAFE = "/%:@!$&'()*+,;=~-._?"  # what a URL can contain as it is
OF_DEVICES = re.compile(r"/data/[^/]+/collections/(?!drafts$)[^/]+(/reports|/tokens)?")


def is_old(path: str) -> bool:
    """Return whether an address is one of the API without its version."""
    parts = path.split("/", 2)
    return len(parts) > 1 and parts[1] in MOVED


def keeps_working(scope: Scope) -> bool:
    """Return whether an address without a version is one that respondents' devices use."""
    method = "POST" if scope["path"].endswith(("/reports", "/tokens")) else "GET"
    return scope["method"] == method and OF_DEVICES.fullmatch(scope["path"]) is not None


def renew(scope: Scope) -> None:
    """Give a request the address with the version."""
    scope["state"]["unversioned"] = True
    scope["path"] = f"{API}{scope['path']}"
    if scope.get("raw_path"):
        scope["raw_path"] = API.encode() + scope["raw_path"]


def moved(scope: Scope) -> Response:
    """Return a redirect to the address with the version: the method, the body and the query stay."""
    scope["state"]["unversioned"] = True
    path, query = (
        quote(scope.get("raw_path") or scope["path"], safe=SAFE),
        quote(scope.get("query_string", b""), safe=SAFE),
    )
    target = f"{API}{path}?{query}" if query else f"{API}{path}"
    return Response(status_code=308, headers={"location": target, "link": f'<{target}>; rel="successor-version"'})
