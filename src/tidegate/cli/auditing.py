"""ledger show|verify|export: the record, in words, checked, and for the auditor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from tidegate.cli.show import JSON, emit, say, working
from tidegate.errors import LedgerBroken

ledger = typer.Typer(help="Read, verify and export the durable record.", no_args_is_help=True)

WHERE = typer.Argument(help="A policy file, a ledger file, an exported .jsonl file, or postgresql://...")


def _open(where: str) -> Any:
    from tidegate.ledger import Ledger
    from tidegate.session import open_session

    address = open_session(where).ledger_address if where.endswith(".toml") else where
    return Ledger(address, read_only=True)


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
        if "/" in name:  # a collection: what one person gives stands in its first entry, and nothing is spent
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
    from tidegate.ledger import arrivals, verify, verify_export

    with working("verifying"):
        if where.endswith(".jsonl"):
            verdict = verify_export(Path(where), head=head)
        else:
            opened = _open(where)
            verdict = verify(*opened.snapshot(), head=head)
            with opened.store.reading() as connection:
                verdict.problems += arrivals.problems(connection)
    if json and verdict.holds:
        spent = {name: str(amount) for name, amount in verdict.spent.items()}
        return emit({"holds": True, "entries": verdict.entries, "head": verdict.head, "spent": spent})
    verdict.refuse()
    return say(
        f"{verdict.entries:,} entries hold.",
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
        with out.open("x", encoding="utf-8", newline="\n") as file:
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
