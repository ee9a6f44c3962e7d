"""ledger witness|prove|check-proof|copy|rotate|expire: the care of a ledger over years."""

from __future__ import annotations

from datetime import datetime
from json import loads
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.ledger import address_of, ledger, open_ledger
from tidegate.cli.output import JSON, emit, say, working
from tidegate.errors import LedgerBroken, LedgerUnavailable

WHERE = typer.Argument(help="A policy file, a ledger file, or postgresql://...")


@ledger.command("witness", short_help="Show or change the witnesses and the signing key.")
def witness(
    where: str = WHERE,
    add: list[str] = typer.Option([], "--add", help="Send checkpoints to this file, fsspec or HTTP address as well."),
    remove: list[str] = typer.Option([], "--remove", help="Send no more checkpoints to this address."),
    new_key: bool = typer.Option(False, "--new-key", help="Replace the signing key. Older checkpoints stay valid."),
    json: bool = JSON,
) -> None:
    """Show the witnesses of a ledger with their state, or change them. An entry records each change."""
    from tidegate.ledger import Ledger
    from tidegate.ledger.notes import absolute
    from tidegate.ledger.witness import configure, public_keys, standings

    if add or remove or new_key:
        ledger_file = Ledger(address_of(where))
        named = {
            name: [absolute(address, Path()) for address in part] for name, part in (("add", add), ("remove", remove))
        }
        configure(ledger_file.store, **named, new_key=new_key)
        ledger_file.close()
        Ledger(address_of(where)).close()  # sends a checkpoint to a new witness
    with open_ledger(where).store.reading() as connection:
        states, keys = standings(connection), public_keys(connection)
    if json:
        return emit({"witnesses": [state.__dict__ for state in states], "keys": [str(key) for key in keys]})
    for state in states:
        say(f"{state.address}: {state.problem or f'has seen everything up to entry {state.entries - 1:,}'}")
    return say(*([] if states else ["There are no witnesses."]), *(f"key {key}" for key in keys))


@ledger.command("prove", short_help="Write the proof that the ledger contains an entry.")
def prove(
    where: str = WHERE,
    entry: str = typer.Argument("", help="The number of an entry, or the beginning of its hash."),
    since: Path | None = typer.Option(None, "--from", help="A checkpoint: prove that the ledger only grew since then."),
    out: Path | None = typer.Option(None, "--out", help="A new file (default: print)."),
) -> None:
    """Write a proof as JSON, for a person without access to the ledger."""
    from tidegate.ledger import proof

    if bool(entry) == bool(since):
        raise LedgerUnavailable(
            "Name an entry, or an earlier checkpoint with `--from`.", "tidegate ledger prove POLICY 12"
        )
    store = open_ledger(where).store
    content = proof.prove_growth(store, _read(since)) if since else proof.prove(store, entry)
    if out is None:
        return emit(content)
    problem = ""
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(proof.to_text(content) + "\n")
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise LedgerUnavailable(f"Cannot write {out}: {problem}.", "Name a new file.")
    return say(f"{out}: check it anywhere with tidegate ledger check-proof {out}")


@ledger.command("check-proof", short_help="Check a proof. This needs no ledger.")
def check_proof(
    file: Path = typer.Argument(help="A file of tidegate ledger prove."),
    key: list[str] = typer.Option([], "--key", help="A public key of the ledger, as tidegate ledger witness shows it."),
    json: bool = JSON,
) -> None:
    """Check that a ledger contains an entry, or that it only grew. This needs no ledger."""
    from tidegate.ledger import proof
    from tidegate.ledger.checkpoint import PublicKey

    content = _values(_read(file))
    checkpoint = proof.check(content, [PublicKey.parse(text) for text in key])
    is_inclusion = content["proof"] == proof.INCLUSION
    if json:
        result: dict[str, Any] = {"holds": True, "proof": content["proof"], "size": checkpoint.size}
        return emit({**result, "origin": checkpoint.origin, "is_signed": bool(key)})
    signed = "" if key else " Its signature was not checked: name the public key with --key."
    if is_inclusion:
        return say(
            f"Entry {content['index']:,} is one of the {checkpoint.size:,} entries of {checkpoint.origin}.{signed}"
        )
    return say(
        f"The {checkpoint.size:,} entries of {checkpoint.origin} start with those of the earlier checkpoint.{signed}"
    )


@ledger.command("copy", short_help="Move the ledger to another store.")
def copy(
    source: str = typer.Argument(help="A ledger file, or postgresql://..."),
    target: str = typer.Argument(help="A new file, or an empty database: postgresql://..."),
    json: bool = JSON,
) -> None:
    """Move a ledger from SQLite to Postgres, or back. The source can be read afterward, but not charged."""
    from tidegate.ledger.transfer import copy as copy_ledger

    with working("copying"):
        copied = copy_ledger(address_of(source), target)
    if json:
        return emit({"copied": copied.path, "entries": copied.entries, "head": copied.head})
    return say(
        f"{copied.path}: {copied.entries:,} entries, verified.",
        f"head {copied.head}",
        "Name it in the policy (`ledger` in [dataset]). The old ledger can be read, but not charged.",
    )


@ledger.command("rotate", short_help="Replace the service's secret or the signing key.")
def rotate(
    where: str = WHERE,
    secret: bool = typer.Option(
        False, "--secret", help="Replace the secret of the service. Revokes respondents' tokens."
    ),
    key: bool = typer.Option(False, "--key", help="Replace the key that signs checkpoints."),
    json: bool = JSON,
) -> None:
    """Replace the secret of the service or the signing key of checkpoints. An entry records it."""
    from tidegate.ledger import Ledger
    from tidegate.ledger.retention import rotate_secret
    from tidegate.ledger.witness import configure

    if not secret and not key:
        raise LedgerUnavailable("Name what to replace.", "Use --secret, --key, or both.")
    ledger_file = Ledger(address_of(where))
    revoked = rotate_secret(ledger_file) if secret else 0
    if key:
        configure(ledger_file.store, new_key=True)
    ledger_file.close()
    if json:
        return emit({"secret": secret, "key": key, "revoked": revoked})
    lines = [f"The secret was replaced. Revoked tokens of respondents: {revoked:,}."] if secret else []
    return say(*lines, *(["The signing key was replaced."] if key else []))


@ledger.command("expire", short_help="Delete the contents of old records.")
def expire(
    where: str = WHERE,
    before: datetime = typer.Option(..., "--before", formats=["%Y-%m-%d"], help="A day (UTC), such as 2026-01-31."),
    user: str = typer.Option("", "--user", help="The user's name, recorded in the entries."),
    json: bool = JSON,
) -> None:
    """Delete the contents of records that were released before a day; withdraw requests that have waited since then."""
    from tidegate.ledger import Ledger
    from tidegate.ledger.retention import expire as expire_records

    ledger_file = Ledger(address_of(where))
    counts = expire_records(ledger_file, before.date(), user=user)
    ledger_file.close()
    if json:
        return emit(counts)
    return say(
        f"Deleted the contents of {counts['deleted']:,} records; withdrew {counts['withdrawn']:,} waiting requests.",
        *([f"Deleted what {counts['diaries']:,} unfinished syntheses had learned."] if counts["diaries"] else []),
        "Backups and exports from before still contain them.",
    )


def _read(path: Path) -> str:
    problem = ""
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", "") or type(error).__name__
    raise LedgerUnavailable(f'Cannot read "{path}": {problem}.', "Check the path and its permissions.")


def _values(text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError):
        pass
    raise LedgerBroken("The file is not a proof.", "Name a file of tidegate ledger prove.")
