"""Requests to a service: errors come back as exceptions, and what may be done twice is sent again when a connection breaks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import httpx

from tidegate import errors
from tidegate.errors import TidegateError, Unreachable

T = TypeVar("T")
TIMEOUT, CONNECTING = 600.0, 10.0  # seconds
PAUSES = (0.1, 0.4, 1.0)  # seconds before a request is sent once more


class ServiceClient:
    """One service, and who asks it."""

    def __init__(self, url: str, token: str, *, transport: Any = None, timeout: float = TIMEOUT) -> None:
        self.signed, self._timeout = bool(token), timeout
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        limits = httpx.Timeout(timeout, connect=min(timeout, CONNECTING))
        self._client = httpx.Client(base_url=_address(url), headers=headers, timeout=limits, transport=transport)
        self.shown = _shown(self._client.base_url)

    def get(self, path: str, **params: Any) -> Any:
        given = {name: value for name, value in params.items() if value not in (None, "", [])}
        return self.call("GET", path, again=True, params=given).json()

    def post(self, path: str, content: Mapping[str, Any], *, key: str = "", again: bool = False) -> Any:
        """Send values. A key, or `again`, says that the service does it once however often it comes."""
        headers = {"Idempotency-Key": key} if key else {}
        sent = {name: value for name, value in content.items() if value is not None}
        return self.call("POST", path, again=again or bool(key), json=sent, headers=headers).json()

    def call(self, method: str, path: str, *, again: bool = False, **sent: Any) -> httpx.Response:
        """The response, where it is none of an error. With `again`, a broken connection is tried anew a few times."""
        problem: TidegateError | None = None
        for pause in (*(PAUSES if again else ()), None):
            try:
                response = self._client.request(method, path, **sent)
                break
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                problem = self._unreachable(error)
                if pause is None or not isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError):
                    raise problem from None
            time.sleep(pause)
        if response.status_code >= 400:
            raise error_from(response)
        return response

    def close(self) -> None:
        self._client.close()

    def _unreachable(self, error: Exception) -> Unreachable:
        """What happened and what to do, by how it failed."""
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return Unreachable(
                f"nothing answers at {self.shown}.",
                "Start the service (tidegate serve POLICY), or check the address and its port.",
            )
        if isinstance(error, httpx.TimeoutException):
            return Unreachable(
                f"{self.shown} did not answer within {self._timeout:g} seconds.",
                "It may be at work still: ask again, which is charged once; connect(..., timeout=...) waits longer.",
            )
        if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError):
            return Unreachable(
                f"the connection to {self.shown} broke before the answer came.",
                "Ask again, with the same key where there was one: what was charged is not charged twice.",
            )
        return Unreachable(
            f"{self.shown or 'this'} is no address of a service ({type(error).__name__}).",
            'Write it as "http://127.0.0.1:8480".',
        )


def read_response(build: Callable[[], T]) -> T:
    """Return what `build` makes of a response; Unreachable where its form is another one."""
    try:
        return build()
    except (LookupError, TypeError, ValueError):
        pass
    raise Unreachable(
        "The response of the service has another form than this version reads.",
        "Use the same version of Tidegate on both sides.",
    )


def error_from(response: httpx.Response) -> TidegateError:
    """The exception that a response tells; Unreachable where it is not one of ours."""
    try:
        return error_of(response.json()["error"])
    except (ValueError, LookupError, TypeError):
        return Unreachable(
            f"the answer is not one of this service (status {response.status_code}).", "Check the address."
        )


def error_of(told: Mapping[str, Any]) -> TidegateError:
    """The exception of an error as it is told."""
    facts = {str(name): value for name, value in dict(told["facts"]).items()}
    return _kinds().get(told["code"], TidegateError)(told["what"], told["do"], **facts)


def _kinds() -> dict[str, type[TidegateError]]:
    """Every class of our tree by its code."""
    found = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TidegateError)]
    return {kind("").code: kind for kind in found}


def _address(url: str) -> httpx.URL:
    problem = False
    try:
        found = httpx.URL(url)
        problem = found.scheme not in ("http", "https") or not found.host
    except (httpx.InvalidURL, TypeError):
        problem = True
    if problem:  # what was given is not quoted: it may be a token in the wrong place
        raise Unreachable("this is no address of a service.", 'Write it as "http://127.0.0.1:8480".')
    return found


def _shown(url: httpx.URL) -> str:
    """An address without the name and password that it may hold."""
    return f"{url.scheme}://{url.host}{f':{url.port}' if url.port else ''}"
