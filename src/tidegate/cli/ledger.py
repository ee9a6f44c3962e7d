"""ledger show|verify|export|backup|restore: read, check, export and save the durable record. See also ledger_custody.py."""

from __future__ import annotations

import os
from collections.abc import Iterable
from json import dumps
from pathlib import Path
from textwrap import indent
from typing import Any

import typer

from tidegate.cli.output import JSON, emit, say, working
from tidegate.errors import LedgerBroken, Unsupported

ledger = typer.Typer(help="Read, verify, export, back up and restore the ledger.", no_args_is_help=True)

WHERE = typer.Argument(help="A policy file, a ledger file, an exported .jsonl file, or postgresql://...")


def open_ledger(where: str) -> Any:
    from tidegate.ledger import Ledger

    return Ledger(address_of(where), read_only=True)


def address_of(where: str) -> str:
    from tidegate.session.address import ledger_of_file

    return ledger_of_file(where) if where.endswith(".toml") else where


def policy_of(where: str) -> Any:
    """Return the policy of a policy file; None for a ledger."""
    from tidegate.policy import read_policy

    return read_policy(where) if where.endswith(".toml") else None


def policy_witnesses(where: str, policy: Any) -> list[str]:
    """Return the addresses of a policy's witnesses, relative to its file."""
    from tidegate.ledger.notes import absolute

    return [absolute(address, Path(where).parent) for address in policy.dataset.witness]


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
    from tidegate.ledger.tail import latest
    from tidegate.ledger.witness import standings

    ledger_file = open_ledger(where)
    lines = (
        latest(ledger_file, last, account=account) if last else explain_entries(ledger_file.entries(account or None))
    )
    if json:
        return emit_entries(lines, ledger_file.head())
    names: dict[str, None] = {}
    for entry, text in lines:
        say(f"{entry.number:>5}  {moment(entry)}  {entry.account}  {text}")
        names[entry.account] = None
    for name in names:
        if not name or "/" in name:
            continue  # entry 0, or a collection: its first entry states the loss per person, and nothing is spent
        state = ledger_file.account(name)
        say(
            f"{name}: {PREFIX[state.unit]}{state.spent.say()} of {state.ceiling.say()} spent, {state.left.say()} remaining"
        )
    with ledger_file.store.reading() as connection:
        for standing in standings(connection):
            seen = (
                f"has seen everything up to entry {standing.entries - 1:,}"
                if not standing.problem
                else standing.problem
            )
            say(f"Witness {standing.address}: {seen}")
    return say(f"head {ledger_file.head()}")


def emit_entries(lines: Iterable[tuple[Any, str]], head: str) -> None:
    """Print entries as one JSON value, one after the other."""
    print('{\n  "entries": [', end="")
    for number, (entry, text) in enumerate(lines):
        value = {**entry.__dict__, "body": entry.content(), "says": text}
        encoded = dumps(value, indent=2, ensure_ascii=False)
        print(",\n" if number else "\n", indent(encoded, "    "), sep="", end="")
    print(f'\n  ],\n  "head": {dumps(head)}\n}}')


@ledger.command("verify", short_help="Verify hashes, chain, prices and totals.")
def check(
    where: str = WHERE,
    head: str = typer.Option("", "--head", help="A head noted earlier, to detect that entries were cut off."),
    selection: bool = typer.Option(
        False, "--selection", help="With a policy file: compute its hiding selections again from the key and the table."
    ),
    witness: list[str] = typer.Option(
        [], "--witness", help="Compare the ledger with the checkpoint at this address (can be repeated)."
    ),
    since: Path | None = typer.Option(
        None, "--since", help="A file of an earlier --save: verify only later entries in full."
    ),
    save: Path | None = typer.Option(
        None, "--save", help="Save the state of this verification to a new file, for --since."
    ),
    json: bool = JSON,
) -> None:
    """Verify the hashes, the chain, the prices and the totals of all entries."""
    from tidegate.ledger import verify_export

    if selection:
        _verify_selection(where)
    with working("verifying"):
        if where.endswith(".jsonl"):
            if witness or since or save:
                raise Unsupported("`--witness`, `--since` and `--save` need the ledger, not an export.")
            verdict = verify_export(Path(where), head=head)
        else:
            verdict = verify_ledger(where, head=head, witnesses=witness, since=since, save=save)
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


def verify_ledger(where: str, *, head: str, witnesses: list[str], since: Path | None, save: Path | None) -> Any:
    """Verify a ledger, and compare it with the named witnesses and with those in its settings."""
    from tidegate.ledger import notes
    from tidegate.ledger import witness as witnessing
    from tidegate.ledger.upkeep import note_work

    ledger_file = open_ledger(where)
    verdict = ledger_file.verify(head=head, since=since, save=save)
    with ledger_file.store.reading() as connection:
        for address in dict.fromkeys((*witnesses, *witnessing.stored_addresses(connection))):
            try:
                note = notes.read(address)
            except notes.Unreachable as error:
                verdict.notes.append(f"The witness {notes.shown(address)} cannot be reached ({error}).")
                continue
            if note is None:
                verdict.notes.append(f"The witness {notes.shown(address)} has no checkpoint yet.")
                continue
            seen = witnessing.compare(connection, note, address)
            verdict.notes.append(
                f"The witness {notes.shown(address)} has seen everything up to entry {seen.size - 1:,}."
            )
    note_work(ledger_file, "verification", holds=verdict.holds, entries=verdict.entries)
    return verdict


def _verify_selection(where: str) -> None:
    """Refuse a ledger whose hiding selections do not follow from the key and the table."""
    if not where.endswith(".toml"):
        raise Unsupported("`--selection` needs the policy file, because it reads the table.")
    from tidegate.release.recomputation import recompute_selections
    from tidegate.session import open_session

    with working("computing the selections again"), open_session(where) as session:
        problems = recompute_selections(session.policy, lambda: session.table, open_ledger(where))
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

    lines = export_lines(open_ledger(where))
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
    from tidegate.ledger.upkeep import note_work

    with working("copying"):
        opened = open_ledger(where)
        copied = copy_ledger(opened, dest)
    note_work(opened, "backup", entries=copied.entries)
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
    witness: list[str] = typer.Option(
        [], "--witness", help="Compare the backup with the checkpoint at this address (can be repeated)."
    ),
    json: bool = JSON,
) -> None:
    """Verify a backup and replace the ledger with it. No budget is returned."""
    from tidegate.ledger import restore as restore_ledger

    with working("restoring"):
        policy = policy_of(where)
        named = [*witness, *(policy_witnesses(where, policy) if policy else ())]
        options: dict[str, Any] = {
            "head": head,
            "write_off": write_off,
            "witnesses": named,
            "policies": [policy] if policy else [],
        }
        restored = restore_ledger(source, address_of(where), **options)
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


from tidegate.cli import ledger_custody  # noqa: E402, F401  (its commands are added to these)
