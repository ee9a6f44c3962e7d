"""ledger show|verify|export|backup|restore: the record, in words, checked, for the auditor, and kept safe."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.output import JSON, emit, say, working
from tidegate.errors import LedgerBroken

ledger = typer.Typer(help="Read, verify and export the durable record.", no_args_is_help=True)

WHERE = typer.Argument(help="A policy file, a ledger file, an exported .jsonl file, or postgresql://...")


def _open(where: str) -> Any:
    from tidegate.ledger import Ledger

    return Ledger(_address(where), read_only=True)


def _address(where: str) -> str:
    from tidegate.session import open_session

    return open_session(where).ledger_address if where.endswith(".toml") else where


@ledger.command("show")
def show(
    where: str = WHERE,
    account: str = typer.Option("", "--account", help="Only this data set."),
    last: int = typer.Option(0, "--last", help="Only so many of the latest entries."),
    json: bool = JSON,
) -> None:
    """Every entry as a sentence, and what is left."""
    from tidegate.ledger import moment, told

    opened = _open(where)
    lines = list(told(opened.entries(account or None)))
    lines = lines[-last:] if last else lines
    accounts = {entry.account: entry for entry, _ in lines}
    if json:
        entries = [{**entry.__dict__, "body": entry.content(), "says": text} for entry, text in lines]
        return emit({"entries": entries, "head": opened.head()})
    for entry, text in lines:
        say(f"{entry.number:>5}  {moment(entry)}  {entry.account}  {text}")
    for name in accounts:
        if (
            not name or "/" in name
        ):  # entry 0, or a collection: what one person gives stands in its first entry, and nothing is spent
            continue
        now = opened.account(name)
        say(f"{name}: {now.spent.say()} of {now.ceiling.say()} spent, {now.left.say()} left")
    return say(f"head {opened.head()}")


@ledger.command("verify")
def check(
    where: str = WHERE,
    head: str = typer.Option("", "--head", help="A head noted earlier: also finds entries that were cut off."),
    json: bool = JSON,
) -> None:
    """Hash, chain, price and add up every entry again."""
    from tidegate.ledger import verify_export

    with working("verifying"):
        exported = where.endswith(".jsonl")
        verdict = verify_export(Path(where), head=head) if exported else _open(where).verify(head=head)
    if json and verdict.holds:
        spent = {name: str(amount) for name, amount in verdict.spent.items()}
        found = {"holds": True, "entries": verdict.entries, "head": verdict.head, "spent": spent}
        return emit({**found, "notes": verdict.notes})
    verdict.refuse()
    return say(
        f"{verdict.entries:,} entries hold.",
        *(f"Note: {note}" for note in verdict.notes),
        f"head {verdict.head}",
        "Note the head elsewhere; --head then finds a tail that was cut off.",
    )


@ledger.command("export")
def export(
    where: str = WHERE,
    out: Path | None = typer.Option(None, "--out", help="A .jsonl file (default: print)."),
    json: bool = JSON,
) -> None:
    """Every entry and every stored result as JSON lines."""
    from tidegate.ledger import export_lines

    lines = export_lines(_open(where))
    if out is None:
        for line in lines:
            say(line)
        return None
    count = 0
    try:
        made = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # questions and answers of everybody
        with os.fdopen(made, "w", encoding="utf-8", newline="\n") as file:
            for line in lines:
                file.write(line + "\n")
                count += 1
    except OSError as error:
        problem = error.strerror or type(error).__name__
    else:
        problem = ""
    if problem:
        raise LedgerBroken(
            f"cannot write {out}: {problem}.", "Name a new file; an export is never written over another."
        )
    return (
        emit({"written": str(out), "lines": count})
        if json
        else say(f"{out}: {count:,} lines. Check it anywhere: tidegate ledger verify {out}")
    )


@ledger.command("backup", short_help="Copy the whole ledger into one verified file.")
def backup(
    where: str = typer.Argument(help="A policy file, a ledger file, or postgresql://..."),
    dest: Path = typer.Argument(help="A new file."),
    json: bool = JSON,
) -> None:
    """Copy everything the ledger holds into one file, while it is in use, and verify the copy."""
    from tidegate.ledger import backup as copy

    with working("copying"):
        copied = copy(_open(where), dest)
    if json:
        return emit({"written": copied.path, "entries": copied.entries, "head": copied.head, "bytes": copied.size})
    return say(
        f"{copied.path}: {copied.entries:,} entries, {copied.size:,} bytes, verified.",
        f"head {copied.head}",
        "It holds secrets and waiting records: keep it as private as the data. Note the head elsewhere.",
    )


@ledger.command("restore", short_help="Put a backup in the place of the ledger.")
def restore(
    where: str = typer.Argument(help="A policy file, a ledger file, or postgresql://..."),
    source: Path = typer.Argument(help="A file that tidegate ledger backup wrote."),
    head: str = typer.Option("", "--head", help="The newest head you noted: the backup must have it."),
    write_off: bool = typer.Option(
        False, "--write-off", help="Accept a backup that lacks entries; charge again what these entries charged."
    ),
    json: bool = JSON,
) -> None:
    """Verify a backup and put it in the place of the ledger, without giving any budget back."""
    from tidegate.ledger import restore as put_back

    with working("restoring"):
        restored = put_back(source, _address(where), head=head, write_off=write_off)
    if json:
        found = {"restored": restored.path, "entries": restored.entries, "head": restored.head}
        return emit({**found, "written_off": restored.written_off, "aside": restored.aside})
    return say(
        f"{restored.path}: restored with {restored.entries:,} entries.",
        *(
            f"{name}: {amount} that was spent after the backup is charged again."
            for name, amount in restored.written_off.items()
        ),
        *([f"The ledger that was replaced is {restored.aside}. It is never charged again."] if restored.aside else []),
        "What was charged after this backup and is in no other copy is lost: compare the head with the newest you noted.",
        f"head {restored.head}",
    )
