"""synthesize: artificial tables with an exact loss, or first what they would cost."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.output import JSON, emit, say
from tidegate.errors import Unsupported


def synthesize(
    policy: Path = typer.Argument(help="A policy file."),
    epsilon: str | None = typer.Option(None, "--epsilon", help="The loss of each table."),
    rho: str | None = typer.Option(
        None, "--rho", help="How likely somebody may be identified by all of these tables alone."
    ),
    tables: int = typer.Option(1, "--tables", help="How many, learnt independently: each costs epsilon."),
    rows: int | None = typer.Option(None, "--rows", help="Rows of each (default: as many as the original)."),
    model: str = typer.Option("auto", "--model", help="auto chooses by public facts and says why."),
    target: str = typer.Option("", "--target", help="A column whose relations matter most."),
    split: list[str] = typer.Option([], "--split", help="A stage's share of epsilon, e.g. margins=0.5."),
    columns: list[str] = typer.Option([], "--column", help="Only this column (again for more)."),
    seed: int | None = typer.Option(None, "--seed", help="The public seed that rows are drawn from; free to change."),
    out: Path | None = typer.Option(None, "--out", help="A folder for the tables and what is promised about them."),
    kind: str = typer.Option("parquet", "--format", help="parquet or csv."),
    preview: bool = typer.Option(
        False, "--preview", help="Say what it would cost and how it would be shared; spend nothing."
    ),
    quality: Path | None = typer.Option(
        None,
        "--quality",
        help="Also write a report beside the original here (.html or .json): for the data holder only.",
    ),
    ledger: str = typer.Option("", "--ledger", help="Another ledger than the policy's: a path or postgresql://..."),
    key: str = typer.Option("", "--key", help="An idempotency key for this request."),
    json: bool = JSON,
) -> None:
    """Make artificial tables like the original. A run that was cut short goes on when it is repeated, at no new cost."""
    import tidegate as tg
    from tidegate.synthesize.files import refuse_folder, write_tables
    from tidegate.synthesize.plan import plan_for
    from tidegate.synthesize.request import resolve_request

    wanted: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "tables": tables, "rows": rows, "model": model}
    wanted |= {"target": target, "split": dict(map(_share, split)), "seed": seed, "columns": columns}
    with tg.open(policy, ledger=ledger) as session:
        before = session.preview_synthesis(**wanted)
        if preview:
            return emit(before.to_dict()) if json else say(str(before))
        if out is None:
            raise Unsupported("it must be said where the tables go.", "Add --out synthetic/, or --preview.")
        refuse_folder(out, kind, plan_for(resolve_request(session.policy, **wanted), session.policy))
        with staged() as progress:
            made = session.synthesize(**wanted, key=key, user=getpass.getuser(), progress=progress)
            progress("writing", 0, 1)
            paths = write_tables(made, out, kind=kind)
            if quality is not None:
                progress("comparing with the original", 0, 1)
                made.quality().save(quality)
    if json:
        return emit({**made.to_dict(), "files": [str(path) for path in paths]})
    say(made.says(), *(f"{path}: {made[n].rows:,} rows" for n, path in enumerate(paths)))
    if quality is not None:
        say(f"{quality}: made from true rows and not paid for. Keep it to yourself.")
    return None


def _share(text: str) -> tuple[str, str]:
    name, sign, share = text.partition("=")
    if not (name and sign and share):
        raise Unsupported(f'"{text}" is no share of a stage.', "Write --split margins=0.5")
    return name.strip(), share.strip()


@contextmanager
def staged() -> Iterator[Any]:
    """A bar for the stage at work, with the time it has taken and what is left of it, where somebody is looking."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(
        *parts, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task, shown = bar.add_task("opening", total=None), ""

        def told(stage: str, done: int, of: int) -> None:
            nonlocal shown
            if stage != shown:
                bar.reset(task, description=stage)
                shown = stage
            bar.update(task, completed=done, total=of)

        yield told
