"""Synthesis as a job: started by one request, done by a thread of any process, told of by stages.

Everything that must outlive a process is in the ledger's database (the job) and in the diary (what was learnt). A job whose
process dies is taken by the next one, goes on from its diary, and costs nothing more.
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
from tidegate.service.datasets import Holding, Holdings
from tidegate.service.errors import body_of, place_of
from tidegate.service.logs import tell
from tidegate.service.metrics import Metrics
from tidegate.service.settings import Settings
from tidegate.web.snippets.synthesize import in_words, stage_in_words

if TYPE_CHECKING:
    from tidegate.synthesize.result import SyntheticTables

RESUMED = "resumed: "  # before the name of a stage: another process had begun this job
PAUSE, LONG_PAUSE = 0.25, 5.0  # seconds between two looks for work; and when the ledger does not answer


def new_job(dataset: str, wanted: Mapping[str, Any], *, user: str, request: str) -> Job:
    """A job that waits. Ids sort by the time of their making."""
    name = f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(4)}"
    return Job(name, dataset, user, request or name, canonical(dict(wanted)), stamp(datetime.now(UTC)))


def told(job: Job) -> dict[str, Any]:
    """How a job stands, for who asks."""
    problem = json.loads(job.problem)["error"] if job.problem else None
    stage, wanted = job.stage.removeprefix(RESUMED), json.loads(job.wanted)
    about = {"id": job.id, "dataset": job.dataset, "who": job.who, "made": job.made, "state": job.state}
    return {
        **about,
        "progress": {"stage": stage, "done": job.done, "of": job.of},
        "says": _says(job, stage),
        "resumed": job.stage.startswith(RESUMED),
        "seconds": _seconds(job),
        "problem": problem,
        "entry": job.entry or None,
        "asked": in_words(wanted),
        "wanted": wanted,
    }


def _says(job: Job, stage: str) -> str:
    """What is being done, in words."""
    if job.state == WAITING:
        return "waits to go on where it was" if job.stage else "waits for its turn"
    return stage_in_words(stage or "beginning") if job.state == RUNNING else job.state


def _seconds(job: Job) -> float:
    """Since it was asked for; of one that has ended: until then."""
    until = job.beat if job.state in (DONE, FAILED) else time.time()
    return round(max(0.0, until - datetime.fromisoformat(job.made).timestamp()), 1)


def tables_of(held: Holding, job: Job) -> SyntheticTables:
    """The synthetic tables of a job that is done. Never charges: what is not in the ledger is not made here."""
    _receipt(held, job)
    return held.drawn(job.id, lambda: held.session.synthesize(**json.loads(job.wanted), user=job.who))


def charged_for(held: Holding, job: Job) -> Amount:
    """Return what a job was charged: zero if its tables had been paid for before.

    The charge is that of the first job with this entry, unless the entry is older than the job.
    """
    entry = _receipt(held, job).entry
    first = Jobs(held.session.ledger.store).first_with_entry(job.dataset, job.entry)
    return Amount.parse(entry.amount) if first == job.id and entry.at >= job.made else ZERO


def _receipt(held: Holding, job: Job) -> Receipt:
    """The receipt of a job that is done; refuses where there is no table to give."""
    from tidegate.synthesize.plan import plan_for
    from tidegate.synthesize.request import resolve_request

    if job.state != DONE:
        raise NotThere(f"this synthesis is {job.state}: there is no table yet.", "Ask again when it is done.")
    wanted = json.loads(job.wanted)
    question = plan_for(resolve_request(held.policy, **wanted), held.policy).question()
    receipt = held.session.ledger.asked_before(held.policy, question=question)
    if receipt is None:
        raise NotThere("this table was made under an earlier policy or edition.", "Ask for a new one.")
    return receipt


class Runner:
    """Does the jobs of one process, one after the other."""

    def __init__(self, holdings: Holdings, settings: Settings, metrics: Metrics) -> None:
        self._holdings, self._settings, self._metrics = holdings, settings, metrics
        self._jobs, self._name = Jobs(holdings.ledger.store), secrets.token_hex(8)
        self._background = BackgroundTask(
            "jobs", self._do_next, pause=PAUSE, failure="job-lost", failure_pause=LONG_PAUSE
        )

    def start(self) -> None:
        self._background.start()

    def stop(self) -> None:
        """Take no more jobs. One at work goes back to those that wait, and goes on from its diary in another process."""
        self._background.stop()

    def _do_next(self) -> None:
        """Take a job that waits, if there is one, and do it."""
        job = self._jobs.take(self._name, datasets=list(self._holdings), patience=self._settings.job_patience)
        if job is not None:
            self._do(job)

    def _do(self, job: Job) -> None:
        """Work in a thread of its own, with a beat from here: a long stage must not look like a dead process."""
        work = Work(self._holdings[job.dataset], job)
        tell("job-started", job=job.id)
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
        tell("job-ended", job=job.id, state=work.outcome.get("state", "interrupted"))


class Work(threading.Thread):
    """One synthesis at work: `progress` by stage, and the `outcome` once it has ended."""

    def __init__(self, held: Holding, job: Job) -> None:
        super().__init__(name="synthesis", daemon=True)
        self._held, self._job = held, job
        self._before = RESUMED if job.stage else ""
        self.progress: dict[str, Any] = {}
        self._progress("beginning", 0, 1)
        self.outcome: dict[str, Any] = {}

    def run(self) -> None:
        try:
            wanted = json.loads(self._job.wanted)
            made = self._held.session.synthesize(**wanted, user=self._job.who, progress=self._progress)
            self._progress("done", 1, 1)
            self.outcome = {"state": DONE, "entry": made.entry}
        except TidegateError as error:
            self.outcome = {"state": FAILED, "problem": canonical(body_of(error))}
        except Exception as error:  # its message could hold a private value: told is where, not what
            tell("defect", job=self._job.id, place=place_of(error))
            failed = TidegateError("Tidegate failed.", f"Please report it: {place_of(error)}.")
            self.outcome = {"state": FAILED, "problem": canonical(body_of(failed))}

    def _progress(self, stage: str, done: int, of: int) -> None:
        self.progress = {"stage": f"{self._before}{stage}", "done": done, "of": of}
