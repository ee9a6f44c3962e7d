"""serve, token: run the service and manage its tokens."""

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

from tidegate.cli.output import JSON, emit, say, table, writing
from tidegate.errors import NotThere, Unsupported

token = typer.Typer(help="Create, list and revoke tokens of a service.", no_args_is_help=True)

LEDGER = typer.Option(
    "", "--ledger", help="The service's ledger, if it is not the policy's: a path or postgresql://..."
)
POLICY = typer.Argument(help="A policy of the service: its ledger stores the tokens.")


def serve(
    policies: list[Path] | None = typer.Argument(None, help="Policy files, one per data set."),
    polls: Path | None = typer.Option(
        None,
        "--polls",
        help="A file for polls, which is created if it does not exist: no data and no policy is needed.",
    ),
    ledger: str = LEDGER,
    host: str = typer.Option("127.0.0.1", "--host", help="The address to listen on."),
    port: int = typer.Option(8480, "--port", min=1, max=65535, help="The port to listen on."),
    workers: int = typer.Option(1, "--workers", min=1, max=64, help="The number of processes; all share the ledger."),
    url: str = typer.Option(
        "", "--public-url", help="The https:// URL that browsers use, if there is a proxy in front of the service."
    ),
    proxy: str = typer.Option("", "--proxy", help="Addresses of proxies whose X-Forwarded-For is trusted."),
) -> None:
    """Serve data sets over HTTP: answers, releases, collections, synthetic tables, the ledger."""
    from tidegate.service.app import ENVIRONMENT
    from tidegate.service.datasets import ServedDatasets
    from tidegate.service.logs import to_stream
    from tidegate.service.server import run
    from tidegate.service.settings import Settings, public_url

    public = public_url(url) if url else ""
    secure = public.startswith("https:") or not _is_loopback(host)
    named = [*(policies or []), *([_polls_file(polls)] if polls else [])]
    if not named:
        raise Unsupported(
            "There is nothing to serve.", "Name a policy, or a file for polls: tidegate serve --polls polls.toml"
        )
    files = tuple(str(path.absolute()) for path in named)
    datasets = ServedDatasets.from_files(files, ledger=ledger)  # errors in a policy or the ledger are reported here
    valid = [stored for stored in _tokens(datasets).all() if not stored.over(datetime.now(UTC))]
    datasets.close()
    settings = Settings(files, ledger, secure=secure, public_url=public)
    _refuse_used_port(host, port)
    alias = f" as {public}" if public else ""
    say(f"Serving {', '.join(datasets)} on http://{host}:{port}{alias}")
    if not any(stored.role == "owner" for stored in valid):
        say(
            "There is no valid token yet. Create one:"
            if not valid
            else "There is no valid token for an owner. Create one:"
        )
        say(f"  tidegate token make {named[0]} --role owner --name YOU")
    os.environ[ENVIRONMENT] = settings.to_json()
    to_stream()
    run("tidegate.service.app:from_environment", host=host, port=port, workers=workers, proxy=proxy)


def _polls_file(path: Path) -> Path:
    """Return a file for polls; it is created if it does not exist, and its data set has the name of the file."""
    from tidegate.policy.toml import account_name

    if not path.exists():
        with writing(path), path.open("x", encoding="utf-8") as file:
            file.write(f'[dataset]\nname = "{account_name(path.stem)}"\n')
        say(f"Created {path}. Polls that you open in the console are added to it.")
    return path


def _refuse_used_port(host: str, port: int) -> None:
    """Refuse a port that is in use before anything starts: the server would report it in the middle of its log."""
    problem = ""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise Unsupported(
            f"Cannot listen on {host}, port {port}: {problem}.", "Choose another: tidegate serve POLICY --port 9000"
        )


@token.command("make")
def make(
    policy: Path = POLICY,
    role: str = typer.Option(..., "--role", help="owner, analyst or respondent."),
    name: str = typer.Option(..., "--name", help="The user's name, recorded in every ledger entry."),
    dataset: str = typer.Option("", "--dataset", help="The data set (default: all data sets of the service)."),
    record: str = typer.Option("", "--record", help="The key of the record, for a respondent."),
    share: str = typer.Option("", "--share", help="The budget share, for an analyst: the most to spend in total."),
    days: float = typer.Option(90, "--days", help="Days until the token expires."),
    ledger: str = LEDGER,
    json: bool = JSON,
) -> None:
    """Create a token. It is shown only once; the service stores a slow hash of it."""
    from tidegate.service.access.tokens import make_token, token_to_dict

    with _open_tokens(policy, ledger) as (tokens, served):
        named = dataset or (served if role == "respondent" else "")
        secret, stored = make_token(tokens, role=role, name=name, dataset=named, record=record, share=share, days=days)
    if json:
        return emit({"token": secret, **token_to_dict(stored)})
    return say(secret, f"For {name} ({role}), valid until {stored.expires[:10]}. This token is not shown again.")


@token.command("list")
def list_all(policy: Path = POLICY, ledger: str = LEDGER, json: bool = JSON) -> None:
    """List all tokens without their secrets."""
    from tidegate.service.access.tokens import token_to_dict

    with _open_tokens(policy, ledger) as (tokens, _):
        listed = [token_to_dict(stored) for stored in tokens.all()]
    if json:
        return emit(listed)
    columns = ["id", "role", "name", "dataset", "share", "expires", "revoked"]
    return table(columns, [[str(row[column] or "")[:19] for column in columns] for row in listed])


@token.command("revoke")
def revoke(
    policy: Path = POLICY,
    name: str = typer.Argument(help="The id of the token, from tidegate token list."),
    ledger: str = LEDGER,
    json: bool = JSON,
) -> None:
    """Revoke a token. It stops working immediately."""
    with _open_tokens(policy, ledger) as (tokens, _):
        if not tokens.revoke(name):
            raise NotThere("There is no valid token with this id.", "Run tidegate token list to see all tokens.")
    return emit({"revoked": name}) if json else say("Token revoked. It stops working immediately.")


@contextmanager
def _open_tokens(policy: Path, ledger: str) -> Iterator[tuple[Any, str]]:
    from tidegate.service.datasets import ServedDatasets

    datasets = ServedDatasets.from_files([str(policy)], ledger=ledger)
    try:
        yield _tokens(datasets), next(iter(datasets))
    finally:
        datasets.close()


def _tokens(datasets: Any) -> Any:
    from tidegate.ledger.tokens import Tokens

    return Tokens(datasets.ledger.store)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    raise Unsupported(
        "`--host` must be an address, such as 127.0.0.1 or 0.0.0.0.", "Put a proxy with https in front of the service."
    )
