"""Configuration of a service: frozen values, the same in every worker process."""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request

from tidegate.errors import Unsupported

BASE = re.compile(r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._-]+)*")  # the path of a public URL
MOST_CELLS = 2**25  # that a grouping of a table can have; the engines are loaded late


@dataclass(frozen=True)
class Settings:
    """Settings of a service. `policies` are paths. A service has one ledger: `ledger`, or else the first policy's."""

    policies: tuple[str, ...] = ()  # policy files, one per data set
    ledger: str = ""  # a path or postgresql://...; empty: the ledger of the first policy
    public_url: str = ""  # the https:// URL that browsers use; without it, only this machine can use the service
    sign_in_hours: float = 12.0  # until a sign-in to the console expires
    idle_minutes: float = 30.0  # without a request, after which a session of the console ends
    sign_in_rate: float = 0.1  # sign-ins per second of one user: each is an entry of the ledger
    sign_in_burst: float = 100.0  # sign-ins at once of one user

    oidc_issuer: str = ""  # of the OpenID Connect provider; empty: sign-in with tokens and links only
    oidc_client: str = (
        ""  # the client id at the provider; its secret is TIDEGATE_OIDC_SECRET or TIDEGATE_OIDC_SECRET_FILE
    )
    oidc_name: str = ""  # of the provider, on the sign-in page
    oidc_scope: str = "openid profile"  # the scopes to request from the provider
    oidc_claim: str = "groups"  # the claim that lists a user's groups
    oidc_groups: tuple[str, ...] = ()  # "stewards=owner", "research=analyst:people,survey@0.5"
    oidc_minutes: float = 15.0  # between two questions to the provider whether a user's groups still match

    largest_body: int = 64 * 1024  # bytes of a request
    largest_batch: int = 16 * 1024 * 1024  # bytes of randomized reports
    deepest_json: int = 32  # levels of nested lists and objects
    most_headers: int = 64  # headers of a request
    largest_headers: int = 16 * 1024  # bytes of all headers and the query of a URL
    patience: float = 30.0  # seconds for a body to arrive

    caller_rate: float = 200.0  # requests per second with one token
    caller_burst: float = 400.0  # requests at once with one token
    address_rate: float = 50.0  # requests per second without a token, from one address
    address_burst: float = 200.0  # requests at once without a token, from one address
    poll_rate: float = 20.0  # invitation codes, and requests with reports of open polls, per second from one network
    poll_burst: float = 400.0  # the same at once
    wrong_rate: float = 0.5  # invalid tokens per second, from one address
    wrong_burst: float = 10.0  # invalid tokens at once, from one address

    most_cells: int = 100_000  # of the answers of one request; above 10,000 they are sent in pages

    threads: int = 16  # engines and databases block: the number of requests at a time
    run_jobs: bool = True  # whether this process learns synthetic tables
    job_beat: float = 1.0  # seconds between two heartbeats of a job
    job_patience: float = 20.0  # seconds without a heartbeat after which another process takes over a job
    job_attempts: int = 3  # processes that can die, or lose the ledger, at one job
    job_tables: int = 100  # of one synthesis
    job_rows: int = 10_000_000  # of one synthetic table
    job_seconds: float = 4 * 3600.0  # of one attempt
    job_memory: int = 4 * 1024**3  # bytes, beyond what the process uses when the job starts

    most_streams: int = 200  # streams of progress that one process has open
    caller_streams: int = 10  # the same with one token
    stream_seconds: float = 60.0  # until a stream ends and its client connects again
    stream_beat: float = 10.0  # seconds without an event after which a comment shows that the stream is alive

    folder: str = ""  # of policies, uploads and drafts; empty: no data set can be added in the console
    databases: tuple[str, ...] = ()  # Postgres addresses whose tables an owner can serve; they can contain a password
    largest_upload: int = 2 * 1024**3  # bytes
    upload_patience: float = 3600.0  # seconds for an upload to arrive
    largest_form: int = 2 * 1024**2  # bytes of a draft's form: hundreds of columns with lists of values

    host: str = "127.0.0.1"  # the address to listen on; other than loopback only with a public URL
    port: int = 8480  # the port to listen on
    workers: int = 1  # the number of processes; all share the ledger
    proxy: str = ""  # addresses of proxies whose X-Forwarded-For is trusted
    polls: str = ""  # a file for polls, which is created if it does not exist

    def __post_init__(self) -> None:
        if not 1 <= self.most_cells <= MOST_CELLS:
            raise Unsupported(
                f"`most_cells` is {self.most_cells:,}; it must be between 1 and {MOST_CELLS:,}.",
                "Set it to, for example, 100000.",
            )

    @property
    def secure(self) -> bool:
        """Return whether browsers use https: cookies are then sent over https only, and browsers never go back to http."""
        return self.public_url.startswith("https:")

    @property
    def base(self) -> str:
        """Return the path of the public URL, such as "/privacy"; empty if the service has a host of its own."""
        return urlsplit(self.public_url).path

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        content: dict[str, Any] = json.loads(text)
        values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in content.items()}
        return cls(**values)


def service_url(request: Request) -> str:
    """Return the URL that clients use: the public URL if it is set."""
    settings: Settings = request.app.state.settings
    return settings.public_url or str(request.base_url).rstrip("/")


def public_url(text: str) -> str:
    """Return a checked public URL: `https://host`, with a port or a path if needed; http is allowed on loopback only."""
    parts = urlsplit(text.strip())
    try:
        port = parts.port
    except ValueError:
        port = -1
    base = parts.path.rstrip("/")
    is_plain = not (parts.username or parts.password or parts.query or parts.fragment) and BASE.fullmatch(base)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain or port == -1:
        raise Unsupported(
            "`--public-url` must be a scheme and a host, with a path of letters, digits, '-', '_' and '.' if there is one.",
            "Use a URL such as https://gate.example.org or https://www.example.org/privacy.",
        )
    if base.split("/")[1:2] and base.split("/")[1] in own_paths():
        raise Unsupported(
            f"`--public-url` cannot have the path {base}: it starts like an address of the service itself.",
            "Use another path, such as https://www.example.org/privacy.",
        )
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise Unsupported(
            "`--public-url` must start with https:// because sign-in cookies and tokens are sent to it.",
            "Put a proxy with a certificate in front of the service.",
        )
    return f"{parts.scheme}://{parts.netloc.lower()}{base}"


def own_paths() -> frozenset[str]:
    """Return the first parts of all addresses of the service: a request below them does not need the path of the proxy."""
    from tidegate.service.access.permissions import MOVED, TABLE

    return MOVED | {path.split("/")[1] for _, path in TABLE} - {""}


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
