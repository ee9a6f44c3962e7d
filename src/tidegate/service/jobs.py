"""Jobs of a service as its callers see them: their state, their limits, their tables, and what was charged for them."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tidegate.accounting import Amount
from tidegate.accounting.amount import ZERO
from tidegate.accounting.budget import SHORT
from tidegate.errors import JobStopped, NotThere, NotWaiting, TidegateError, Unsupported
from tidegate.ledger import Entry, Receipt, queries
from tidegate.ledger.entry import canonical, sha256
from tidegate.ledger.jobs import AUDIT, DONE, ENDED, RUNNING, SYNTHESIS, WAITING, Job, Jobs
from tidegate.ledger.tokens import stamp
from tidegate.service.datasets import ServedDataset
from tidegate.service.errors import content_of
from tidegate.service.settings import Settings
from tidegate.web.snippets.synthesize import describe_request, describe_stage

if TYPE_CHECKING:
    from tidegate.synthesize.result import SyntheticTables

RESUMED = "resumed: "  # prefix of a stage: another process started this job
NUMBER = 8  # bytes of a value in memory
CONTINUE = "Request the same tables again: it continues from there at no cost."
NOUNS = {SYNTHESIS: "synthesis", AUDIT: "audit"}


def new_job(dataset: str, options: Mapping[str, Any], *, user: str, request: str, kind: str = SYNTHESIS) -> Job:
    """Create a waiting job. Ids sort by creation time."""
    name = f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(4)}"
    return Job(name, dataset, user, request or name, canonical(dict(options)), stamp(datetime.now(UTC)), kind=kind)


def job_to_dict(job: Job) -> dict[str, Any]:
    """Return the state of a job as JSON values."""
    problem = json.loads(job.problem)["error"] if job.problem else None
    stage, options = job.stage.removeprefix(RESUMED), job_options(job)
    about = {"id": job.id, "dataset": job.dataset, "who": job.who, "made": job.made, "state": job.state}
    return {
        **about,
        "kind": job.kind,
        "progress": {"stage": stage, "done": job.done, "of": job.of},
        "says": _says(job, stage),
        "resumed": job.stage.startswith(RESUMED),
        "attempts": job.attempts,
        "seconds": _seconds(job),
        "problem": problem,
        "entry": job.entry or None,
        "asked": describe_request(options) if job.kind == SYNTHESIS else describe_audit(options),
        "wanted": options,
    }


def job_options(job: Job) -> dict[str, Any]:
    """Return the arguments of a job. A synthesis of an earlier version had shares of stages, and "auto" chose the model."""
    options: dict[str, Any] = json.loads(job.wanted)
    if options.pop("split", None) == {} and options.get("model") in ("auto", "forest"):
        options["model"] = "forest/1"
    return options


def describe_audit(options: Mapping[str, Any]) -> str:
    """Return ``audit of answer and ledger, about 60 s``."""
    verbs = " and ".join(options["verbs"]) if options["verbs"] else "all promises"
    return f"audit of {verbs}, about {options['seconds']:g} s"


def _says(job: Job, stage: str) -> str:
    """Describe the current step."""
    if job.state == WAITING:
        return "waiting to resume" if job.stage else "waiting to start"
    if job.state != RUNNING:
        return job.state
    return describe_stage(stage or "beginning") if job.kind == SYNTHESIS else stage or "beginning"


def _seconds(job: Job) -> float:
    """Return the seconds since the job was created; for a finished job, until it ended."""
    until = job.beat if job.state in ENDED else time.time()
    return round(max(0.0, until - datetime.fromisoformat(job.made).timestamp()), 1)


# Limits


def refuse_large(served: ServedDataset, options: Mapping[str, Any], settings: Settings) -> None:
    """Refuse a synthesis above the limits of the service, from public numbers only. Nothing is charged."""
    policy = served.policy
    tables, rows = options["tables"], options["rows"] or policy.dataset.rows or 0
    columns = len(options["columns"]) or len(policy.attributes)
    limits = (("tables", tables, settings.job_tables), ("rows per table", rows, settings.job_rows))
    for noun, count, most in limits:
        if count > most:
            raise Unsupported(
                f"The synthesis has {count:,} {noun}, but a job of this service can have {most:,} at most.",
                f"Request at most {most:,} {noun}, or ask the operator of the service.",
                asked=count,
                most=most,
            )
    size = tables * rows * columns * NUMBER
    if size > settings.job_memory:
        raise Unsupported(
            f"{tables:,} tables with {rows:,} rows and {columns:,} columns need about {size / 1e9:.3g} GB of memory, but a job "
            f"of this service can use {settings.job_memory / 1e9:.3g} GB.",
            "Request fewer tables, rows or columns, or ask the operator of the service.",
            asked=size,
            most=settings.job_memory,
        )


def cancel_job(served: ServedDataset, job: Job, *, user: str) -> Job:
    """Cancel a waiting or running job and return its new state. A charge stays, and so does what was learned."""
    jobs = Jobs(served.session.ledger.store)
    stops = " Its process stops at the next stage." if job.state == RUNNING else ""
    why = f"The {NOUNS[job.kind]} was cancelled by {user}.{stops}"
    if not jobs.cancel(job, stopped(served, job, why, by=user)):
        now = jobs.find(served.name, job.id, kind=job.kind)
        state = now.state if now else job.state
        raise NotWaiting(f"The {NOUNS[job.kind]} cannot be cancelled because it is {state}.")
    return jobs.find(served.name, job.id, kind=job.kind) or job


def stopped(served: ServedDataset, job: Job, why: str, **facts: Any) -> str:
    """Return the problem of a job that was stopped, as JSON: why, what was charged, and how to continue."""
    entry = charge_of(served, job)
    if entry is None:
        return canonical(
            {"error": content_of(JobStopped(f"{why} Nothing was charged.", "Start it again at any time.", **facts))}
        )
    unit = entry.content().get("unit", "epsilon")
    name, amount = SHORT[unit], Amount.parse(entry.amount).say()
    charged = f"{name[0].upper()}{name[1:]} {amount} was charged before (entry {entry.hash[:8]})"
    what = f"{why} {charged} and is not given back; what was learned is stored."
    return canonical({"error": content_of(JobStopped(what, CONTINUE, **facts))})


def charge_of(served: ServedDataset, job: Job) -> Entry | None:
    """Return the charge of a synthesis, also if it is not finished; None if there is none under the present policy."""
    question = None
    if job.kind == SYNTHESIS:
        with suppress(TidegateError):  # the policy has changed since
            question = _question(served, job)
    if question is None:
        return None
    with served.session.ledger.store.reading() as connection:
        return queries.asked(connection, served.name, sha256(canonical(question)))


# Tables


def tables_of(served: ServedDataset, job: Job) -> SyntheticTables:
    """Return the synthetic tables of a finished job. Never charges: tables without a ledger entry are not generated."""
    _receipt(served, job)
    return served.cached_tables(
        job.id, lambda: served.session.synthesize(**job_options(job), user=job.who, progress=False)
    )


def charged_for(served: ServedDataset, job: Job) -> Amount:
    """Return what a job was charged: zero if its tables had been paid for before.

    The charge is that of the first job with this entry, unless the entry is older than the job.
    """
    entry = _receipt(served, job).entry
    first = Jobs(served.session.ledger.store).first_with_entry(job.dataset, job.entry)
    return Amount.parse(entry.amount) if first == job.id and entry.at >= job.made else ZERO


def _receipt(served: ServedDataset, job: Job) -> Receipt:
    """Return the receipt of a finished job; refuse a job without tables."""
    if job.state != DONE:
        raise NotThere(f"This synthesis is {job.state}, so it has no tables yet.", "Try again when it is done.")
    receipt = served.session.ledger.asked_before(served.policy, question=_question(served, job))
    if receipt is None:
        raise NotThere("This table was generated under an earlier policy or edition.", "Start a new synthesis.")
    return receipt


def _question(served: ServedDataset, job: Job) -> Any:
    from tidegate.synthesize.plan import plan_for
    from tidegate.synthesize.request import resolve_request

    return plan_for(resolve_request(served.policy, **job_options(job)), served.policy).question()
