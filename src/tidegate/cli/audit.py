"""audit: attack the promises of a policy and report the results."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from tidegate.cli.output import JSON, emit, say, stop_listening
from tidegate.errors import Unsupported
from tidegate.extras import require

BROKEN = 3  # the exit code if a promise is broken; errors have 2, internal errors 1


def audit(
    policy: Path = typer.Argument(help="A policy file."),
    seconds: float = typer.Option(60.0, "--seconds", help="The approximate time for all attacks together."),
    out: Path | None = typer.Option(None, "--out", help="A folder for report.html and report.json."),
    verb: list[str] = typer.Option(
        [], "--verb", help="Audit only answer, release, collect, synthesize or ledger (can be repeated)."
    ),
    seed: int | None = typer.Option(None, "--seed", help="The seed of the simulated data sets, to repeat an audit."),
    ledger: str = typer.Option("", "--ledger", help="A ledger other than the policy's: a path or postgresql://..."),
    json: bool = JSON,
) -> None:
    """Attack every promise of a policy and report bounds. The audit spends nothing, reads no row of the table, and exits
    with 3 if a promise is broken."""
    import tidegate as tg

    require("audit", "The audit")
    from tidegate.audit.run import audit as attack

    if not 0 < seconds <= 86_400 or (seed is not None and seed < 0):
        raise Unsupported("`--seconds` must be above 0 and at most 86,400 (a day), and `--seed` must be 0 or more.")
    stop_listening()  # the ledgers that attacks create are temporary
    with tg.open(policy, ledger=ledger) as session:
        report = attack(
            session.policy,
            seconds=seconds,
            verbs=verb,
            seed=seed,
            ledger=session.ledger_address,
            progress=lambda line: print(line, file=sys.stderr, flush=True),
        )
    written = report.save(out) if out is not None else ()
    if json:
        emit({**report.to_dict(), **({"written": [str(path) for path in written]} if written else {})})
    else:
        say(*report.lines(), *(f"{path}" for path in written))
    if report.broken:
        raise typer.Exit(BROKEN)
