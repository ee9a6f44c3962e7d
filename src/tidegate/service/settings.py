"""Configuration of a service: frozen values, the same in every worker process."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request

from tidegate.errors import Unsupported


@dataclass(frozen=True)
class Settings:
    """Settings of a service. `policies` are paths. A service has one ledger: `ledger`, or else the first policy's."""

    policies: tuple[str, ...] = ()
    ledger: str = ""
    secure: bool = False  # send cookies over https only; off on loopback
    public_url: str = ""  # the URL that browsers use, if there is a proxy in front of the service
    sign_in_hours: float = 12.0
    idle_minutes: float = 30.0  # without a request, after which a session of the console ends
    sign_in_rate: float = 0.1  # sign-ins per second of one user: each is an entry of the ledger
    sign_in_burst: float = 100.0

    oidc_issuer: str = ""  # of the OpenID Connect provider; empty: sign-in with tokens and links only
    oidc_client: str = ""
    oidc_name: str = ""  # of the provider, on the sign-in page
    oidc_scope: str = "openid profile"
    oidc_claim: str = "groups"
    oidc_groups: tuple[str, ...] = ()  # "stewards=owner", "research=analyst:people,survey@0.5"
    oidc_minutes: float = 15.0  # between two questions to the provider whether a user's groups still match

    largest_body: int = 64 * 1024
    largest_batch: int = 16 * 1024 * 1024  # bytes of randomized reports
    deepest_json: int = 32
    most_headers: int = 64
    largest_headers: int = 16 * 1024
    patience: float = 30.0  # seconds for a body to arrive

    caller_rate: float = 200.0  # requests per second with one token
    caller_burst: float = 400.0
    address_rate: float = 50.0  # requests per second without a token, from one address
    address_burst: float = 200.0
    poll_rate: float = 20.0  # invitation codes, and requests with reports of open polls, per second from one network
    poll_burst: float = 400.0
    wrong_rate: float = 0.5  # invalid tokens per second, from one address
    wrong_burst: float = 10.0

    threads: int = 16  # engines and databases block: the number of requests at a time
    run_jobs: bool = True
    job_beat: float = 1.0  # seconds between two heartbeats of a job
    job_patience: float = 20.0  # seconds without a heartbeat after which another process takes over a job

    folder: str = ""  # of policies, uploads and drafts; empty: no data set can be added in the console
    databases: tuple[str, ...] = ()  # Postgres addresses whose tables an owner can serve; they can contain a password
    largest_upload: int = 2 * 1024**3  # bytes
    upload_patience: float = 3600.0  # seconds for an upload to arrive
    largest_form: int = 2 * 1024**2  # bytes of a draft's form: hundreds of columns with lists of values

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        content: dict[str, Any] = json.loads(text)
        lists: dict[str, Any] = {
            name: tuple(content.get(name, ())) for name in ("policies", "databases", "oidc_groups")
        }
        return cls(**{**content, **lists})


def service_url(request: Request) -> str:
    """Return the URL that clients use: the public URL if it is set."""
    settings: Settings = request.app.state.settings
    return settings.public_url or str(request.base_url).rstrip("/")


def public_url(text: str) -> str:
    """Return a checked public URL: `https://host` or `https://host:port`; http is allowed on loopback only."""
    parts = urlsplit(text.strip())
    try:
        port = parts.port
    except ValueError:
        port = -1
    is_plain = not (parts.username or parts.password or parts.query or parts.fragment or parts.path.strip("/"))
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain or port == -1:
        raise Unsupported(
            "`--public-url` must be a scheme and a host, without a path.",
            "Use a URL such as https://gate.example.org.",
        )
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise Unsupported(
            "`--public-url` must start with https:// because sign-in cookies and tokens are sent to it.",
            "Put a proxy with a certificate in front of the service.",
        )
    return f"{parts.scheme}://{parts.netloc.lower()}"


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is a loopback address."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_name(header: str) -> str:
    """Return the host of a Host header, in lower case and without its port."""
    host = header.strip().lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
