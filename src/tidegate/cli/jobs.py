"""job list|cancel: the background jobs of a service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.output import JSON, emit, say, table
from tidegate.errors import NotThere

job = typer.Typer(help="List and cancel the jobs of a service.", no_args_is_help=True)

LEDGER = typer.Option(
    "", "--ledger", help="The service's ledger, if it is not the policy's: a path or postgresql://..."
)
POLICY = typer.Argument(help="A policy or the folder of the service: its ledger stores the jobs.")


@job.command("list")
def list_jobs(policy: Path = POLICY, ledger: str = LEDGER, json: bool = JSON) -> None:
    """List the latest syntheses and audits of every data set."""
    from tidegate.ledger.jobs import AUDIT, SYNTHESIS, Jobs
    from tidegate.service.jobs import job_to_dict

    with _open(policy, ledger) as datasets:
        jobs = Jobs(datasets.ledger.store)
        kinds = [(name, kind) for name in datasets for kind in (SYNTHESIS, AUDIT)]
        listed = [job_to_dict(item) for name, kind in kinds for item in jobs.latest(name, kind=kind, limit=50)]
    if json:
        return emit(listed)
    columns = ["id", "dataset", "kind", "state", "says", "who", "made"]
    return table(columns, [[str(row[column])[:40] for column in columns] for row in listed], whole={0})


@job.command("cancel")
def cancel(
    policy: Path = POLICY,
    name: str = typer.Argument(help="The id of the job, from tidegate job list."),
    user: str = typer.Option("operator", "--user", help="Your name, shown with the job."),
    ledger: str = LEDGER,
    json: bool = JSON,
) -> None:
    """Cancel a waiting or running job. A charge stays; the same request later continues at no cost."""
    from tidegate.ledger.jobs import Jobs
    from tidegate.service.jobs import cancel_job, job_to_dict

    with _open(policy, ledger) as datasets:
        stored = Jobs(datasets.ledger.store).read([name]).get(name)
        if stored is None or stored.dataset not in list(datasets):
            raise NotThere("There is no job with this id.", "Run tidegate job list to see the latest jobs.")
        state = job_to_dict(cancel_job(datasets[stored.dataset], stored, user=user))
    return emit(state) if json else say(state["problem"]["what"])


@contextmanager
def _open(policy: Path, ledger: str) -> Iterator[Any]:
    from tidegate.service.datasets import ServedDatasets

    is_folder = policy.is_dir()
    datasets = ServedDatasets.from_files(
        [] if is_folder else [str(policy)], ledger=ledger, folder=str(policy) if is_folder else ""
    )
    try:
        yield datasets
    finally:
        datasets.close()
