"""serve, token: the service, and who may use it."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.output import JSON, emit, say, table
from tidegate.errors import NotThere, Unsupported

token = typer.Typer(help="Make, list and revoke the tokens of a service.", no_args_is_help=True)

LEDGER = typer.Option(
    "", "--ledger", help="The service's ledger, where it is not the policy's: a path or postgresql://..."
)
POLICY = typer.Argument(help="A policy that is served: its ledger keeps the tokens.")


def serve(
    policies: list[Path] = typer.Argument(help="Policy files, one for each data set."),
    ledger: str = LEDGER,
    host: str = typer.Option("127.0.0.1", "--host", help="The address to listen on."),
    port: int = typer.Option(8480, "--port", min=1, max=65535, help="The port to listen on."),
    workers: int = typer.Option(1, "--workers", min=1, max=64, help="Processes; all share the ledger."),
    url: str = typer.Option(
        "", "--public-url", help="The https:// URL under which browsers reach the service, where a proxy is before it."
    ),
    proxy: str = typer.Option("", "--proxy", help="Addresses of proxies whose X-Forwarded-For is believed."),
) -> None:
    """Serve data sets over HTTP: answers, releases, collections, synthetic tables, the ledger."""
    from tidegate.service.app import ENVIRONMENT
    from tidegate.service.datasets import Holdings
    from tidegate.service.logs import to_stream
    from tidegate.service.server import run
    from tidegate.service.settings import Settings, public_url

    public = public_url(url) if url else ""
    secure = public.startswith("https:") or not _loopback(host)
    files = tuple(str(path.absolute()) for path in policies)
    held = Holdings.from_files(files, ledger=ledger)  # what is wrong with a policy or the ledger is told here
    valid = [kept for kept in _tokens(held).all() if not kept.over(datetime.now(UTC))]
    held.close()
    settings = Settings(files, ledger, secure=secure, public_url=public)
    _refuse_taken(host, port)
    shown = f" as {public}" if public else ""
    say(f"Serving {', '.join(held)} on http://{host}:{port}{shown}")
    if not any(kept.role == "owner" for kept in valid):
        say("Nobody has a valid token yet. Make one:" if not valid else "No owner has a valid token. Make one:")
        say(f"  tidegate token make {policies[0]} --role owner --name YOU")
    os.environ[ENVIRONMENT] = settings.to_json()
    to_stream()
    run("tidegate.service.app:from_environment", host=host, port=port, workers=workers, proxy=proxy)


def _refuse_taken(host: str, port: int) -> None:
    """Refuse before anything is said or started: the server would tell it in the middle of its log."""
    problem = ""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
        with socket.socket(family, kind) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise Unsupported(
            f"cannot listen on {host}, port {port}: {problem}.", "Name another: tidegate serve POLICY --port 9000"
        )


@token.command("make")
def make(
    policy: Path = POLICY,
    role: str = typer.Option(..., "--role", help="owner, analyst or respondent."),
    name: str = typer.Option(..., "--name", help="Who: it stands in every entry."),
    dataset: str = typer.Option("", "--dataset", help="Only this data set (default: all that are served)."),
    record: str = typer.Option("", "--record", help="Of a respondent: the key of the record."),
    share: str = typer.Option("", "--share", help="Of an analyst: the most to spend in all."),
    days: float = typer.Option(90, "--days", help="After which it expires."),
    ledger: str = LEDGER,
    json: bool = JSON,
) -> None:
    """Make a token. It is shown this once; only a slow hash of it is kept."""
    from tidegate.service.access.tokens import make_token, told

    with _opened(policy, ledger) as (tokens, served):
        chosen = dataset or (served if role == "respondent" else "")
        shown, kept = make_token(tokens, role=role, name=name, dataset=chosen, record=record, share=share, days=days)
    if json:
        return emit({"token": shown, **told(kept)})
    return say(shown, f"For {name} ({role}), until {kept.expires[:10]}. It is not shown again.")


@token.command("list")
def list_all(policy: Path = POLICY, ledger: str = LEDGER, json: bool = JSON) -> None:
    """All tokens, without their secrets."""
    from tidegate.service.access.tokens import told

    with _opened(policy, ledger) as (tokens, _):
        found = [told(kept) for kept in tokens.all()]
    if json:
        return emit(found)
    columns = ["id", "role", "name", "dataset", "share", "expires", "revoked"]
    return table(columns, [[str(one[column] or "")[:19] for column in columns] for one in found])


@token.command("revoke")
def revoke(
    policy: Path = POLICY,
    name: str = typer.Argument(help="The id of the token, as listed."),
    ledger: str = LEDGER,
    json: bool = JSON,
) -> None:
    """Let a token open nothing from now on."""
    with _opened(policy, ledger) as (tokens, _):
        if not tokens.revoke(name):
            raise NotThere("no token with this id opens anything.", "See tidegate token list.")
    return emit({"revoked": name}) if json else say("Revoked: it opens nothing from now on.")


@contextmanager
def _opened(policy: Path, ledger: str) -> Iterator[tuple[Any, str]]:
    from tidegate.service.datasets import Holdings

    held = Holdings.from_files([str(policy)], ledger=ledger)
    try:
        yield _tokens(held), next(iter(held))
    finally:
        held.close()


def _tokens(held: Any) -> Any:
    from tidegate.ledger.tokens import Tokens

    return Tokens(held.ledger.store)


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    raise Unsupported("--host is an address, such as 127.0.0.1 or 0.0.0.0.", "Put a proxy with https before it.")
