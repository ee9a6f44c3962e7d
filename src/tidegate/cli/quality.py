"""quality: compare synthetic tables with the original, for the data holder; or charged numbers for analysts."""

from __future__ import annotations

import getpass
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.output import JSON, emit, say, working
from tidegate.cli.synthesize import staged
from tidegate.errors import SourceMissing, Unsupported

ENDINGS = (".csv", ".parquet")


def quality(
    policy: Path = typer.Argument(help="A policy file."),
    synthetic: Path = typer.Argument(help="A synthetic table (.csv, .parquet), or a folder of tables."),
    out: Path | None = typer.Option(
        None, "--out", help="Write the report: a .html or a .json file, or a folder for both."
    ),
    formula: str = typer.Option("", "--formula", help='A regression to compare, e.g. "income ~ age + sex".'),
    rule: str = typer.Option(
        "auto", "--rule", help="The rule that combines several tables: auto, single, between, raghunathan."
    ),
    rows: int = typer.Option(50_000, "--rows", help="The most rows per table for classifiers."),
    epsilon: str = typer.Option(
        "",
        "--epsilon",
        help="Instead of the report: noisy mean distances that analysts can see, charged to the budget.",
    ),
    ledger: str = typer.Option("", "--ledger", help="A ledger other than the policy's: a path or postgresql://..."),
    key: str = typer.Option("", "--key", help="With --epsilon: an idempotency key for this request."),
    json: bool = JSON,
) -> None:
    """Compare synthetic tables with the original. The report is NOT for analysts: it is computed from the true rows and not
    charged. With --epsilon: two charged numbers that analysts can see."""
    import tidegate as tg

    if epsilon and (out is not None or formula or rule != "auto"):
        raise Unsupported(
            "`--epsilon` returns two charged numbers and no report.", "Remove --out, --formula and --rule."
        )
    if rows < 1:
        raise Unsupported("`--rows` must be at least 1.")
    with tg.open(policy, ledger=ledger) as session:
        tables = read_tables(synthetic, session.policy)
        result = _paid(session, tables, epsilon, key) if epsilon else _report(session, tables, formula, rule, rows)
        written = result.save(out) if out is not None else ()
        if json:
            return emit({**result.to_dict(), **({"written": [str(path) for path in written]} if written else {})})
        say(result.says(), *(f"{path}" for path in written))
    return None


def read_tables(path: Path, policy: Any) -> list[Any]:
    """Return the synthetic tables of a file or a folder, ordered by name. They have no key and no person."""
    from tidegate.policy import EachRow, Policy
    from tidegate.tables import open_table

    paths = sorted(file for file in path.iterdir() if file.suffix.lower() in ENDINGS) if path.is_dir() else [path]
    if not paths or not paths[0].exists():
        raise SourceMissing(
            f"There is no synthetic table at {path}.", f"Name a {' or '.join(ENDINGS)} file, or a folder."
        )
    countable = {name: attribute for name, attribute in policy.attributes.items() if attribute.countable}
    if not countable:
        raise Unsupported("The policy has only keys and sets, which cannot be compared.")
    public = Policy(replace(policy.dataset, unit=EachRow(), source="", rows=None), countable)
    return [open_table(public, file.absolute()) for file in paths]


def _report(session: Any, tables: list[Any], formula: str, rule: str, rows: int) -> Any:
    from tidegate.synthesize.quality import quality_of

    with staged() as progress:
        return quality_of(
            session.table,
            tables,
            attributes=session.policy.attributes,
            name=session.policy.dataset.name,
            formula=formula,
            rule=rule,  # type: ignore[arg-type]
            at_most=rows,
            progress=progress,
        )


def _paid(session: Any, tables: list[Any], epsilon: str, key: str) -> Any:
    with working("counting"):
        return session.paid_quality(tables, epsilon=epsilon, key=key, user=getpass.getuser())
