"""Requests to a service. Error responses become exceptions; requests that are safe to repeat are retried."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import httpx

from tidegate import errors
from tidegate.errors import TidegateError, Unreachable

T = TypeVar("T")
API = "/v1"  # the version of the service's addresses
TIMEOUT, CONNECTING = 600.0, 10.0  # seconds
PAUSES = (0.1, 0.4, 1.0)  # seconds before a request is sent again


class ServiceClient:
    """A connection to one service, with the token of one user."""

    def __init__(self, url: str, token: str, *, transport: Any = None, timeout: float = TIMEOUT) -> None:
        self.signed, self._timeout = bool(token), timeout
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        limits = httpx.Timeout(timeout, connect=min(timeout, CONNECTING))
        self._client = httpx.Client(base_url=_parse_url(url), headers=headers, timeout=limits, transport=transport)
        self.shown = _shown(self._client.base_url)

    def get(self, path: str, **params: Any) -> Any:
        """Return the JSON content of a resource. Empty parameters are left out."""
        params = {name: value for name, value in params.items() if value not in (None, "", [])}
        return self.call("GET", path, again=True, params=params).json()

    def post(self, path: str, content: Mapping[str, Any], *, key: str = "", again: bool = False, **params: Any) -> Any:
        """Send JSON values. With a key, or with `again`, the request is safe to repeat: the service performs it once."""
        headers = {"Idempotency-Key": key} if key else {}
        sent = {name: value for name, value in content.items() if value is not None}
        options: dict[str, Any] = {"json": sent, "headers": headers, **({"params": params} if params else {})}
        return self.call("POST", path, again=again or bool(key), **options).json()

    def call(self, method: str, path: str, *, again: bool = False, **sent: Any) -> httpx.Response:
        """Return the response, or raise the exception of an error response. With `again`, broken connections are retried."""
        problem: TidegateError | None = None
        for pause in (*(PAUSES if again else ()), None):
            try:
                response = self._client.request(method, f"{API}{path}", **sent)
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
        """Return the exception for a request that got no response."""
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return Unreachable(
                f"No service responds at {self.shown}.",
                "Start the service (`tidegate serve POLICY`), or check the URL and its port.",
            )
        if isinstance(error, httpx.TimeoutException):
            return Unreachable(
                f"{self.shown} did not answer within {self._timeout:g} seconds.",
                "It may still be working. Send the request again (it is charged once), or wait longer: connect(..., timeout=...).",
            )
        if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError):
            return Unreachable(
                f"The connection to {self.shown} broke before the response arrived.",
                "Send the request again, with the same key if it had one. It is not charged twice.",
            )
        return Unreachable(
            f"{self.shown or 'This'} is not the URL of a service ({type(error).__name__}).",
            'Write it as "http://127.0.0.1:8480".',
        )


def read_response(build: Callable[[], T]) -> T:
    """Return what `build` makes of a response.

    Raises:
        Unreachable: The response has an unexpected form.
    """
    try:
        return build()
    except (LookupError, TypeError, ValueError):
        pass
    raise Unreachable(
        "The response of the service has a form that this version cannot read.",
        "Use the same version of Tidegate on both sides.",
    )


def error_from(response: httpx.Response) -> TidegateError:
    """Return the exception for an error response; Unreachable if the response is not from a Tidegate service."""
    try:
        problem = response.json()
        return error_of({**problem, "what": problem["detail"]})
    except (ValueError, LookupError, TypeError):
        return Unreachable(
            f"The response is not from a Tidegate service (status {response.status_code}).", "Check the URL."
        )


def error_of(data: Mapping[str, Any]) -> TidegateError:
    """Return the exception for an error as JSON values: code, what, do, facts."""
    facts = {str(name): value for name, value in dict(data["facts"]).items()}
    return _classes_by_code().get(data["code"], TidegateError)(data["what"], data["do"], **facts)


def _classes_by_code() -> dict[str, type[TidegateError]]:
    """Return every error class by its code."""
    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, TidegateError)]
    return {error_class("").code: error_class for error_class in classes}


def _parse_url(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
        is_valid = parsed.scheme in ("http", "https") and bool(parsed.host)
    except (httpx.InvalidURL, TypeError):
        is_valid = False
    if not is_valid:  # the text is not quoted: it may be a token in the wrong parameter
        raise Unreachable("This is not the URL of a service.", 'Write it as "http://127.0.0.1:8480".')
    return parsed


def _shown(url: httpx.URL) -> str:
    """Return a URL without the user name and password that it may contain."""
    return f"{url.scheme}://{url.host}{f':{url.port}' if url.port else ''}"
