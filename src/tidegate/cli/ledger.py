"""ledger show|verify|export|backup|restore: read, check, export and save the durable record."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.output import JSON, emit, say, working
from tidegate.errors import LedgerBroken, Unsupported

ledger = typer.Typer(help="Read, verify, export, back up and restore the ledger.", no_args_is_help=True)

WHERE = typer.Argument(help="A policy file, a ledger file, an exported .jsonl file, or postgresql://...")


def _open(where: str) -> Any:
    from tidegate.ledger import Ledger

    return Ledger(_address(where), read_only=True)


def _address(where: str) -> str:
    from tidegate.session.address import ledger_of_file

    return ledger_of_file(where) if where.endswith(".toml") else where


@ledger.command("show")
def show(
    where: str = WHERE,
    account: str = typer.Option("", "--account", help="Show only this data set."),
    last: int = typer.Option(0, "--last", help="Show only this number of the latest entries."),
    json: bool = JSON,
) -> None:
    """Show a description of every entry, and the remaining budget."""
    from tidegate.accounting.budget import PREFIX
    from tidegate.ledger import explain_entries, moment

    ledger_file = _open(where)
    lines = list(explain_entries(ledger_file.entries(account or None)))
    lines = lines[-last:] if last else lines
    accounts = {entry.account: entry for entry, _ in lines}
    if json:
        entries = [{**entry.__dict__, "body": entry.content(), "says": text} for entry, text in lines]
        return emit({"entries": entries, "head": ledger_file.head()})
    for entry, text in lines:
        say(f"{entry.number:>5}  {moment(entry)}  {entry.account}  {text}")
    for name in accounts:
        if not name or "/" in name:
            continue  # entry 0, or a collection: its first entry states the loss per person, and nothing is spent
        state = ledger_file.account(name)
        say(
            f"{name}: {PREFIX[state.unit]}{state.spent.say()} of {state.ceiling.say()} spent, {state.left.say()} remaining"
        )
    return say(f"head {ledger_file.head()}")


@ledger.command("verify", short_help="Verify hashes, chain, prices and totals.")
def check(
    where: str = WHERE,
    head: str = typer.Option("", "--head", help="A head noted earlier, to detect that entries were cut off."),
    selection: bool = typer.Option(
        False, "--selection", help="With a policy file: compute its hiding selections again from the key and the table."
    ),
    json: bool = JSON,
) -> None:
    """Verify the hashes, the chain, the prices and the totals of all entries."""
    from tidegate.ledger import verify_export

    if selection:
        _verify_selection(where)
    with working("verifying"):
        exported = where.endswith(".jsonl")
        verdict = verify_export(Path(where), head=head) if exported else _open(where).verify(head=head)
    if json and verdict.holds:
        spent = {name: str(amount) for name, amount in verdict.spent.items()}
        result = {"holds": True, "entries": verdict.entries, "head": verdict.head, "spent": spent}
        return emit({**result, "notes": verdict.notes})
    verdict.refuse()
    return say(
        f"All {verdict.entries:,} entries are valid.",
        *(f"Note: {note}" for note in verdict.notes),
        f"head {verdict.head}",
        "Note the head elsewhere. Later, --head detects that entries were cut off.",
    )


def _verify_selection(where: str) -> None:
    """Refuse a ledger whose hiding selections do not follow from the key and the table."""
    if not where.endswith(".toml"):
        raise Unsupported("`--selection` needs the policy file, because it reads the table.")
    from tidegate.release.recomputation import recompute_selections
    from tidegate.session import open_session

    with working("computing the selections again"), open_session(where) as session:
        problems = recompute_selections(session.policy, lambda: session.table, _open(where))
    if problems:
        raise LedgerBroken(
            f"The selections do not follow from the key and the table: {problems[0]}"
            + (f" ({len(problems):,} problems)" if problems[1:] else ""),
            "If the table has changed since, verify with the state of that day. Otherwise keep this copy as evidence.",
            problems=problems[:20],
        )


@ledger.command("export")
def export(
    where: str = WHERE,
    out: Path | None = typer.Option(None, "--out", help="A .jsonl file (default: print)."),
    json: bool = JSON,
) -> None:
    """Export every entry and every stored result as JSON lines."""
    from tidegate.ledger import export_lines

    lines = export_lines(_open(where))
    if out is None:
        for line in lines:
            say(line)
        return None
    count = 0
    try:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # queries and answers of all users
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            for line in lines:
                file.write(line + "\n")
                count += 1
    except OSError as error:
        problem = error.strerror or type(error).__name__
    else:
        problem = ""
    if problem:
        raise LedgerBroken(f"Cannot write {out}: {problem}.", "Name a new file. An export never replaces a file.")
    return (
        emit({"written": str(out), "lines": count})
        if json
        else say(f"{out}: {count:,} lines. Verify it anywhere: tidegate ledger verify {out}")
    )


@ledger.command("backup", short_help="Copy the whole ledger into one verified file.")
def backup(
    where: str = typer.Argument(help="A policy file, a ledger file, or postgresql://..."),
    dest: Path = typer.Argument(help="A new file."),
    json: bool = JSON,
) -> None:
    """Copy the whole ledger into one file, even while it is in use, and verify the copy."""
    from tidegate.ledger import backup as copy_ledger

    with working("copying"):
        copied = copy_ledger(_open(where), dest)
    if json:
        return emit({"written": copied.path, "entries": copied.entries, "head": copied.head, "bytes": copied.size})
    return say(
        f"{copied.path}: {copied.entries:,} entries, {copied.size:,} bytes, verified.",
        f"head {copied.head}",
        "The backup contains secrets and waiting records: protect it like the data. Note the head elsewhere.",
    )


@ledger.command("restore", short_help="Replace the ledger with a backup.")
def restore(
    where: str = typer.Argument(help="A policy file, a ledger file, or postgresql://..."),
    source: Path = typer.Argument(help="A file from tidegate ledger backup."),
    head: str = typer.Option("", "--head", help="The newest head you noted: the backup must contain it."),
    write_off: bool = typer.Option(
        False, "--write-off", help="Accept a backup with missing entries, and charge their cost again."
    ),
    json: bool = JSON,
) -> None:
    """Verify a backup and replace the ledger with it. No budget is returned."""
    from tidegate.ledger import restore as restore_ledger

    with working("restoring"):
        restored = restore_ledger(source, _address(where), head=head, write_off=write_off)
    if json:
        result = {"restored": restored.path, "entries": restored.entries, "head": restored.head}
        return emit({**result, "written_off": restored.written_off, "aside": restored.aside})
    return say(
        f"{restored.path}: restored with {restored.entries:,} entries.",
        *(
            f"{name}: {amount} was spent after the backup and is charged again."
            for name, amount in restored.written_off.items()
        ),
        *([f"The replaced ledger is {restored.aside}. It is never charged again."] if restored.aside else []),
        "Charges after this backup that are in no other copy are lost. Compare the head with the newest one you noted.",
        f"head {restored.head}",
    )
