"""Synthesis jobs: started by a request, run by a thread of any process, with progress by stage.

Everything that must outlive a process is in the ledger's database (the job) and in the diary (the learned model). If a process
dies, another one takes over its job, continues from the diary, and charges nothing more.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tidegate.accounting import Amount
from tidegate.accounting.amount import ZERO
from tidegate.errors import NotThere, TidegateError
from tidegate.ledger import Receipt
from tidegate.ledger.entry import canonical
from tidegate.ledger.jobs import DONE, FAILED, RUNNING, WAITING, Job, Jobs
from tidegate.ledger.tokens import stamp
from tidegate.service.background import BackgroundTask
from tidegate.service.datasets import ServedDataset, ServedDatasets
from tidegate.service.errors import content_of, source_location
from tidegate.service.logs import log_event
from tidegate.service.metrics import Metrics
from tidegate.service.settings import Settings
from tidegate.web.snippets.synthesize import describe_request, describe_stage

if TYPE_CHECKING:
    from tidegate.synthesize.result import SyntheticTables

RESUMED = "resumed: "  # prefix of a stage: another process started this job
PAUSE, LONG_PAUSE = 0.25, 5.0  # seconds between two polls; the same while the ledger does not respond


def new_job(dataset: str, options: Mapping[str, Any], *, user: str, request: str) -> Job:
    """Create a waiting job. Ids sort by creation time."""
    name = f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(4)}"
    return Job(name, dataset, user, request or name, canonical(dict(options)), stamp(datetime.now(UTC)))


def job_to_dict(job: Job) -> dict[str, Any]:
    """Return the state of a job as JSON values."""
    problem = json.loads(job.problem)["error"] if job.problem else None
    stage, options = job.stage.removeprefix(RESUMED), job_options(job)
    about = {"id": job.id, "dataset": job.dataset, "who": job.who, "made": job.made, "state": job.state}
    return {
        **about,
        "progress": {"stage": stage, "done": job.done, "of": job.of},
        "says": _says(job, stage),
        "resumed": job.stage.startswith(RESUMED),
        "seconds": _seconds(job),
        "problem": problem,
        "entry": job.entry or None,
        "asked": describe_request(options),
        "wanted": options,
    }


def job_options(job: Job) -> dict[str, Any]:
    """Return the arguments of a synthesis. A job of an earlier version had shares of stages, and "auto" chose the model."""
    options: dict[str, Any] = json.loads(job.wanted)
    if options.pop("split", None) == {} and options.get("model") in ("auto", "forest"):
        options["model"] = "forest/1"
    return options


def _says(job: Job, stage: str) -> str:
    """Describe the current step."""
    if job.state == WAITING:
        return "waiting to resume" if job.stage else "waiting to start"
    return describe_stage(stage or "beginning") if job.state == RUNNING else job.state


def _seconds(job: Job) -> float:
    """Return the seconds since the job was created; for a finished job, until it ended."""
    until = job.beat if job.state in (DONE, FAILED) else time.time()
    return round(max(0.0, until - datetime.fromisoformat(job.made).timestamp()), 1)


def tables_of(served: ServedDataset, job: Job) -> SyntheticTables:
    """Return the synthetic tables of a finished job. Never charges: tables without a ledger entry are not generated."""
    _receipt(served, job)
    return served.cached_tables(job.id, lambda: served.session.synthesize(**job_options(job), user=job.who))


def charged_for(served: ServedDataset, job: Job) -> Amount:
    """Return what a job was charged: zero if its tables had been paid for before.

    The charge is that of the first job with this entry, unless the entry is older than the job.
    """
    entry = _receipt(served, job).entry
    first = Jobs(served.session.ledger.store).first_with_entry(job.dataset, job.entry)
    return Amount.parse(entry.amount) if first == job.id and entry.at >= job.made else ZERO


def _receipt(served: ServedDataset, job: Job) -> Receipt:
    """Return the receipt of a finished job; refuse a job without tables."""
    from tidegate.synthesize.plan import plan_for
    from tidegate.synthesize.request import resolve_request

    if job.state != DONE:
        raise NotThere(f"This synthesis is {job.state}, so it has no tables yet.", "Try again when it is done.")
    question = plan_for(resolve_request(served.policy, **job_options(job)), served.policy).question()
    receipt = served.session.ledger.asked_before(served.policy, question=question)
    if receipt is None:
        raise NotThere("This table was generated under an earlier policy or edition.", "Start a new synthesis.")
    return receipt


class Runner:
    """Runs the jobs of one process, one after the other."""

    def __init__(self, datasets: ServedDatasets, settings: Settings, metrics: Metrics) -> None:
        self._datasets, self._settings, self._metrics = datasets, settings, metrics
        self._jobs, self._name = Jobs(datasets.ledger.store), secrets.token_hex(8)
        self._background = BackgroundTask(
            "jobs", self._do_next, pause=PAUSE, failure="job-lost", failure_pause=LONG_PAUSE
        )

    def start(self) -> None:
        self._background.start()

    def stop(self) -> None:
        """Accept no more jobs. A running job returns to the queue; another process continues it from its diary."""
        self._background.stop()

    def _do_next(self) -> None:
        """Run a waiting job, if there is one."""
        job = self._jobs.take(self._name, datasets=list(self._datasets), patience=self._settings.job_patience)
        if job is not None:
            self._do(job)

    def _do(self, job: Job) -> None:
        """Run a job in its own thread and send heartbeats from here: a long stage must not look like a dead process."""
        work = Work(self._datasets[job.dataset], job)
        log_event("job-started", job=job.id)
        self._metrics.at_work(1)
        work.start()
        while work.is_alive() and not self._background.is_stopping:
            work.join(self._settings.job_beat)
            if work.is_alive():
                self._jobs.tell(job, **work.progress)
        if work.is_alive():
            self._jobs.tell(job, state=WAITING)
        else:
            self._jobs.tell(job, **work.progress, **work.outcome)
        self._metrics.at_work(0)
        log_event("job-ended", job=job.id, state=work.outcome.get("state", "interrupted"))


class Work(threading.Thread):
    """A running synthesis: `progress` by stage, and the `outcome` once it has ended."""

    def __init__(self, served: ServedDataset, job: Job) -> None:
        super().__init__(name="synthesis", daemon=True)
        self._served, self._job = served, job
        self._before = RESUMED if job.stage else ""
        self.progress: dict[str, Any] = {}
        self._progress("beginning", 0, 1)
        self.outcome: dict[str, Any] = {}

    def run(self) -> None:
        try:
            tables = self._served.session.synthesize(
                **job_options(self._job), user=self._job.who, progress=self._progress
            )
            self._progress("done", 1, 1)
            self.outcome = {"state": DONE, "entry": tables.entry}
        except TidegateError as error:
            self.outcome = {"state": FAILED, "problem": canonical({"error": content_of(error)})}
        except Exception as error:  # report the location only: the message could hold a private value
            log_event("defect", job=self._job.id, place=source_location(error))
            failed = TidegateError("Tidegate failed.", f"Please report it: {source_location(error)}.")
            self.outcome = {"state": FAILED, "problem": canonical({"error": content_of(failed)})}

    def _progress(self, stage: str, done: int, of: int) -> None:
        self.progress = {"stage": f"{self._before}{stage}", "done": done, "of": of}
