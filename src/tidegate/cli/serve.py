"""serve, token: run the service and manage its tokens."""

from __future__ import annotations

import getpass
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
POLICY = typer.Argument(help="A policy or the folder of the service: its ledger stores the tokens.")
FIRST_DAYS = 3660.0  # until the access of a folder's first owner expires; without a link it is of no use


def serve(
    context: typer.Context,
    policies: list[Path] | None = typer.Argument(None, help="Policy files, one per data set."),
    folder: Path | None = typer.Option(
        None,
        "--folder",
        help="A folder whose policies are served, and to which owners add data sets in the console. It is created.",
    ),
    databases: list[str] | None = typer.Option(
        None, "--database", help="A Postgres address whose tables owners can add: postgresql://host/database."
    ),
    polls: Path | None = typer.Option(
        None,
        "--polls",
        help="A file for polls, which is created if it does not exist: no data and no policy is needed.",
    ),
    ledger: str = LEDGER,
    host: str = typer.Option(
        "127.0.0.1", "--host", help="The address to listen on. Other than loopback, it needs --public-url."
    ),
    port: int = typer.Option(8480, "--port", min=1, max=65535, help="The port to listen on."),
    workers: int = typer.Option(1, "--workers", min=1, max=64, help="The number of processes; all share the ledger."),
    url: str = typer.Option(
        "",
        "--public-url",
        help="The https:// URL that browsers use, if there is a proxy in front of the service; it can have a path.",
    ),
    proxy: str = typer.Option("", "--proxy", help="Addresses of proxies whose X-Forwarded-For is trusted."),
    idle: float = typer.Option(
        30.0, "--idle-minutes", min=1, help="Minutes without a request after which a session of the console ends."
    ),
    issuer: str = typer.Option(
        "", "--oidc-issuer", help="The issuer of an OpenID Connect provider: users sign in with their accounts there."
    ),
    client: str = typer.Option(
        "",
        "--oidc-client",
        help="The client id at the provider. Its secret is in TIDEGATE_OIDC_SECRET, or in the file TIDEGATE_OIDC_SECRET_FILE.",
    ),
    provider: str = typer.Option("", "--oidc-name", help="The name of the provider on the sign-in page."),
    scope: str = typer.Option("openid profile", "--oidc-scope", help="The scopes to request from the provider."),
    claim: str = typer.Option("groups", "--oidc-claim", help="The claim that lists a user's groups."),
    groups: list[str] | None = typer.Option(
        None, "--oidc-group", help="GROUP=owner[:DATASET] or GROUP=analyst[:DATASET,DATASET][@SHARE]; can be repeated."
    ),
    config: str = typer.Option("", "--config", help="A TOML file with settings (default: TIDEGATE_CONFIG)."),
    pairs: list[str] | None = typer.Option(None, "--set", help="Any setting as NAME=VALUE; can be repeated."),
    show: bool = typer.Option(
        False, "--show-settings", help="List all settings and where each comes from, without secrets; serve nothing."
    ),
) -> None:
    """Serve data sets over HTTP: answers, releases, collections, synthetic tables, the ledger.

    With --folder no policy is needed: the command prints a sign-in link for the owner, who adds data sets in the console.
    Every setting can also come from a variable TIDEGATE_NAME or from a file; a flag has precedence.
    """
    from json import dumps

    from tidegate.service.access.groups import check_oidc
    from tidegate.service.app import ENVIRONMENT, ORIGINS
    from tidegate.service.configuration import read_settings
    from tidegate.service.datasets import ServedDatasets
    from tidegate.service.logs import to_stream
    from tidegate.service.server import run

    configuration = read_settings(_flags(context, pairs or []), os.environ, config)
    if show:
        table(["setting", "value", "from"], [list(row) for row in configuration.rows()])
        return
    settings = _prepared(configuration.settings)
    host, port, public = settings.host, settings.port, settings.public_url
    _refuse_open_host(host, public)
    _refuse_used_port(host, port)
    datasets = ServedDatasets.from_files(
        settings.policies, ledger=settings.ledger, folder=settings.folder
    )  # reports errors in a policy or the ledger
    names, refused = list(datasets), dict(datasets.refused)
    valid = [stored for stored in _tokens(datasets).all() if not stored.over(datetime.now(UTC))]
    has_owner = any(stored.role == "owner" and stored.hash for stored in valid)
    needs_link = settings.folder and not has_owner and not settings.oidc_issuer
    first = _first_link(datasets, public or f"http://{host}:{port}") if needs_link else ""
    datasets.close()
    if settings.oidc_issuer:
        check_oidc(settings)
    alias = f" as {public}" if public else ""
    say(f"Serving {', '.join(names) or 'no data set yet'} on http://{host}:{port}{alias}")
    say(*(f"! {name} is not served. {problem}" for name, problem in refused.items()))
    if first:
        say(
            "Sign in as the owner with this link. It works once, within 15 minutes:",
            f"  {first}",
            f"Later: tidegate token make {settings.folder} --role owner --name YOU, or restart for another link.",
        )
    elif not has_owner and not settings.oidc_issuer:
        say(
            "There is no valid token yet. Create one:"
            if not valid
            else "There is no valid token for an owner. Create one:"
        )
        named = next(iter(policies or ()), None) or polls or next(iter(settings.policies), settings.folder)
        say(f"  tidegate token make {named} --role owner --name YOU")
    os.environ[ENVIRONMENT] = settings.to_json()
    os.environ[ORIGINS] = dumps(dict(configuration.origins))
    to_stream()
    run("tidegate.service.app:from_environment", host=host, port=port, workers=settings.workers, proxy=settings.proxy)


def _flags(context: typer.Context, pairs: list[str]) -> dict[str, Any]:
    """Return the settings of the command line by name: `--public-url` is `public_url`, a repeated option is a list."""
    from tidegate.service.configuration import kinds

    values: dict[str, Any] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator:
            raise Unsupported("`--set` needs a name and a value.", "Write it as --set threads=32.")
        values[name.strip().replace("-", "_")] = value
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        name = parameter.opts[0].lstrip("-").replace("-", "_")
        name = name if name in kinds() else f"{name}s"
        if name in kinds() and source is not None and source.name == "COMMANDLINE":
            value = context.params[parameter.name or ""]
            values[name] = [str(part) for part in value] if isinstance(value, list | tuple) else _plain(value)
    return values


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _prepared(settings: Any) -> Any:
    """Return settings with absolute paths, with the file for polls among the policies, and with checked addresses."""
    from dataclasses import replace

    paths = [*settings.policies, *([str(_polls_file(Path(settings.polls)))] if settings.polls else [])]
    folder = str(Path(settings.folder).expanduser().absolute()) if settings.folder else ""
    if not paths and not folder:
        raise Unsupported(
            "There is nothing to serve.",
            "Name a policy, a folder for data sets (--folder DIR), or a file for polls (--polls polls.toml).",
        )
    files = tuple(str(Path(path).absolute()) for path in paths)
    databases = tuple(_database(address) for address in settings.databases)
    return replace(settings, policies=files, folder=folder, databases=databases)


def _refuse_open_host(host: str, public: str) -> None:
    """Refuse to listen on a network without a public URL: cookies and tokens would be sent without https."""
    if not _is_loopback(host) and not public:
        raise Unsupported(
            f"`--host` {host} is open to the network, but the service has no public URL, so tokens would be sent without https.",
            "Name the https:// URL of the proxy in front of it with --public-url, or leave out --host.",
        )


def _first_link(datasets: Any, address: str) -> str:
    """Return a one-time link for the owner of a service in which no owner has a token."""
    from tidegate.ledger.sessions import Sessions
    from tidegate.service.access.links import make_link
    from tidegate.service.access.tokens import make_token

    tokens, now = _tokens(datasets), datetime.now(UTC)
    owners = [
        stored for stored in tokens.all() if stored.role == "owner" and not stored.over(now) and not stored.identity
    ]
    if owners:
        owner = owners[0]
    else:
        _, owner = make_token(tokens, role="owner", name="owner", days=FIRST_DAYS, maker=_operator(), is_sent=False)
    return make_link(Sessions(tokens.store), owner, address=address, user=_operator())[0]


def _operator() -> str:
    """Return the name of the user of this command, for entries of the ledger."""
    try:
        return f"{getpass.getuser()} (command line)"
    except (OSError, KeyError):  # a container without a name for its user
        return f"user {os.getuid()} (command line)"


def _database(address: str) -> str:
    """Return an address of the list of databases, without a table."""
    from urllib.parse import parse_qsl, urlsplit

    parts = urlsplit(address)
    if parts.scheme not in ("postgresql", "postgres") or "table" in dict(parse_qsl(parts.query)):
        raise Unsupported(
            "`--database` must be the address of a Postgres database, without a table.",
            "Use an address such as postgresql://host/database.",
        )
    return address


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
        secret, stored = make_token(
            tokens, role=role, name=name, dataset=named, record=record, share=share, days=days, maker=_operator()
        )
    if json:
        return emit({"token": secret, **token_to_dict(stored)})
    return say(secret, f"For {name} ({role}), valid until {stored.expires[:10]}. This token is not shown again.")


@token.command("link")
def link(
    policy: Path = POLICY,
    name: str = typer.Option("", "--name", help="The name of a new user, recorded in every ledger entry."),
    role: str = typer.Option("analyst", "--role", help="The role of a new user: owner, analyst or respondent."),
    dataset: str = typer.Option("", "--dataset", help="The data set (default: all data sets of the service)."),
    record: str = typer.Option("", "--record", help="The key of the record, for a respondent."),
    share: str = typer.Option("", "--share", help="The budget share, for an analyst: the most to spend in total."),
    days: float = typer.Option(90, "--days", help="Days until the access of a new user expires."),
    known: str = typer.Option("", "--id", help="The id of an existing token: a link for its user."),
    url: str = typer.Option("http://127.0.0.1:8480", "--url", help="The URL of the service in browsers."),
    ledger: str = LEDGER,
    json: bool = JSON,
) -> None:
    """Create a sign-in link that works once, within 15 minutes."""
    from tidegate.ledger.sessions import Sessions
    from tidegate.service.access.links import MINUTES, make_link
    from tidegate.service.access.tokens import make_token, token_to_dict

    if bool(name) == bool(known):
        raise Unsupported(
            "A link needs either a new user or a token.", "Use --name NAME, or --id from tidegate token list."
        )
    with _open_tokens(policy, ledger) as (tokens, served):
        named = dataset or (served if role == "respondent" else "")
        options: dict[str, Any] = {
            "dataset": named,
            "record": record,
            "share": share,
            "days": days,
            "maker": _operator(),
        }
        stored = tokens.find(known) if known else make_token(tokens, role=role, name=name, is_sent=False, **options)[1]
        if stored is None or stored.over(datetime.now(UTC)):
            raise NotThere("There is no valid token with this id.", "Run tidegate token list to see all tokens.")
        address_once, expires = make_link(Sessions(tokens.store), stored, address=url.rstrip("/"), user=_operator())
    if json:
        return emit({"link": address_once, "link_expires": expires.isoformat(), **token_to_dict(stored)})
    return say(address_once, f"For {stored.name} ({stored.role}). It works once, within {MINUTES} minutes.")


@token.command("list")
def list_all(policy: Path = POLICY, ledger: str = LEDGER, json: bool = JSON) -> None:
    """List all tokens without their secrets."""
    from tidegate.service.access.tokens import token_to_dict

    with _open_tokens(policy, ledger) as (tokens, _):
        listed = [token_to_dict(stored) for stored in tokens.all()]
    if json:
        return emit(listed)
    columns = ["id", "role", "name", "dataset", "share", "expires", "revoked"]
    rows = [[str(row[column] or "") for column in columns] for row in listed]
    return table(columns, [[*row[:-2], row[-2][:10], row[-1][:10]] for row in rows], whole={0, 5, 6})


@token.command("revoke")
def revoke(
    policy: Path = POLICY,
    name: str = typer.Argument(help="The id of the token, from tidegate token list."),
    ledger: str = LEDGER,
    json: bool = JSON,
) -> None:
    """Revoke a token. It stops working immediately."""
    with _open_tokens(policy, ledger) as (tokens, _):
        if not tokens.revoke(name, user=_operator()):
            raise NotThere("There is no valid token with this id.", "Run tidegate token list to see all tokens.")
    return emit({"revoked": name}) if json else say("Token revoked. It stops working immediately.")


@contextmanager
def _open_tokens(policy: Path, ledger: str) -> Iterator[tuple[Any, str]]:
    from tidegate.service.datasets import ServedDatasets

    is_folder = policy.is_dir()
    datasets = ServedDatasets.from_files(
        [] if is_folder else [str(policy)], ledger=ledger, folder=str(policy) if is_folder else ""
    )
    try:
        yield _tokens(datasets), next(iter(datasets), "")
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
