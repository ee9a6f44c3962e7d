"""synthesize: create synthetic tables with an exact privacy loss, or preview their cost."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tidegate.cli.output import JSON, emit, say
from tidegate.errors import Unsupported

if TYPE_CHECKING:
    from tidegate.session import Session


def synthesize(
    policy: Path = typer.Argument(help="A policy file."),
    epsilon: str | None = typer.Option(None, "--epsilon", help="The privacy loss per table."),
    rho: str | None = typer.Option(
        None, "--rho", help="The largest probability of identification by all these tables together."
    ),
    z: str | None = typer.Option(None, "--z", help="The loss per table under the average guarantee."),
    share: str | None = typer.Option(
        None, "--share", help="The part of the total budget for all these tables, e.g. 0.5."
    ),
    delta: str | None = typer.Option(
        None, "--delta", help="With --epsilon: spend the z that is shown as this epsilon and delta, e.g. 0.000001."
    ),
    tables: int = typer.Option(
        1, "--tables", help="The number of tables, learned independently; each has its own loss."
    ),
    rows: int | None = typer.Option(None, "--rows", help="Rows per table (default: as many as the original)."),
    model: str = typer.Option(
        "forest/2", "--model", help='"forest/2", or "forest/1" for tables that an earlier version stored.'
    ),
    target: str = typer.Option("", "--target", help="The column whose relations matter most."),
    columns: list[str] = typer.Option([], "--column", help="Synthesize only this column (can be repeated)."),
    seed: int | None = typer.Option(None, "--seed", help="The public seed of the rows; changing it is free."),
    out: Path | None = typer.Option(None, "--out", help="A folder for the tables and a description of their promise."),
    kind: str = typer.Option("parquet", "--format", help="parquet or csv."),
    preview: bool = typer.Option(
        False, "--preview", help="Show the cost and how the budget is split, without spending anything."
    ),
    quality: Path | None = typer.Option(
        None,
        "--quality",
        help="Also write a comparison with the original to this file (.html or .json), for the data holder only.",
    ),
    ledger: str = typer.Option("", "--ledger", help="A ledger other than the policy's: a path or postgresql://..."),
    key: str = typer.Option("", "--key", help="An idempotency key for this request."),
    json: bool = JSON,
) -> None:
    """Create synthetic tables. An interrupted run resumes when it is repeated, at no extra cost."""
    import tidegate as tg
    from tidegate.synthesize.files import refuse_folder, write_tables
    from tidegate.synthesize.plan import plan_for
    from tidegate.synthesize.request import resolve_request

    settings: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "z": z, "share": share, "delta": delta}
    settings |= {"tables": tables, "rows": rows, "model": model, "target": target, "seed": seed, "columns": columns}
    with tg.open(policy, ledger=ledger) as session:
        if session.policy.tables:
            return _synthesize_linked(
                session, settings, out, kind, json=json, key=key, refused=preview or bool(quality)
            )
        before = session.preview_synthesis(**settings)
        if preview:
            return emit(before.to_dict()) if json else say(str(before))
        if out is None:
            raise Unsupported(
                "`--out` is missing, so there is no folder for the tables.", "Add --out synthetic/, or --preview."
            )
        refuse_folder(out, kind, plan_for(resolve_request(session.policy, **settings), session.policy))
        with staged() as progress:
            synthetic = session.synthesize(**settings, key=key, user=getpass.getuser(), progress=progress)
            progress("writing", 0, 1)
            paths = write_tables(synthetic, out, kind=kind)
            if quality is not None:
                progress("comparing with the original", 0, 1)
                synthetic.quality(progress=progress).save(quality)
    if json:
        return emit({**synthetic.to_dict(), "files": [str(path) for path in paths]})
    say(synthetic.says(), *(f"{path}: {synthetic[n].rows:,} rows" for n, path in enumerate(paths)))
    if quality is not None:
        say(f"{quality}: computed from true rows and not charged. Do not share it with analysts.")
    return None


def _synthesize_linked(
    session: Session, settings: dict[str, Any], out: Path | None, kind: str, *, json: bool, key: str, refused: bool
) -> None:
    """Write the linked tables of a policy with several."""
    from tidegate.synthesize.files import refuse_new_folder

    unused = {"tables": 1, "model": "forest/2", "target": "", "columns": ()}
    others = [name for name, default in unused.items() if (settings.pop(name) or default) != default]
    if refused or others:
        raise Unsupported(
            f"Linked tables have no {', '.join(f'--{name}' for name in [*others, *(['preview', 'quality'] if refused else [])])}.",
            "Omit these options; [synthesis] in the policy says which columns are learned.",
        )
    if out is None:
        raise Unsupported("`--out` is missing, so there is no folder for the tables.", "Add --out synthetic/.")
    refuse_new_folder(out, kind)
    with staged() as progress:
        linked = session.synthesize_linked(**settings, key=key, user=getpass.getuser(), progress=progress)
        paths = linked.write(out, kind=kind)
    if json:
        return emit({**linked.to_dict(), "files": [str(path) for path in paths]})
    return say(str(linked), *(str(path) for path in paths))


@contextmanager
def staged() -> Iterator[Any]:
    """Show a progress bar for the current stage with elapsed and remaining time, only in a terminal."""
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

        def show_progress(stage: str, done: int, of: int) -> None:
            nonlocal shown
            if stage != shown:
                bar.reset(task, description=stage)
                shown = stage
            bar.update(task, completed=done, total=of)

        yield show_progress
