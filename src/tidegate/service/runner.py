"""The runner of jobs: a thread of every process that takes jobs from the queue in the ledger's database.

Everything that must outlive a process is in that database: the job, and the diary of what a synthesis has learned. If a process
dies, another one takes over its job, on this machine or another, continues from the diary, and charges nothing more.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidegate.errors import LedgerError, LedgerUnavailable, TidegateError
from tidegate.ledger.entry import canonical
from tidegate.ledger.jobs import AUDIT, CANCELLED, DONE, FAILED, SYNTHESIS, WAITING, Job, Jobs
from tidegate.service.background import BackgroundTask
from tidegate.service.datasets import ServedDataset, ServedDatasets
from tidegate.service.errors import content_of, source_location
from tidegate.service.jobs import NOUNS, RESUMED, job_options, stopped
from tidegate.service.logs import log_event
from tidegate.service.metrics import Metrics
from tidegate.service.settings import Settings

PAUSE, LONG_PAUSE = 0.25, 5.0  # seconds between two polls; the same while the ledger does not respond
LAST_STAGE = 3.0  # seconds for a job to reach the end of its stage when the service stops


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
        if job is None:
            return
        if job.attempts > self._settings.job_attempts:
            self._give_up(job, "because the process ended each time")
        else:
            self._do(job)

    def _give_up(self, job: Job, why: str) -> None:
        text = f"The {NOUNS[job.kind]} was given up after {self._settings.job_attempts:,} attempts, {why}."
        self._jobs.tell(job, state=FAILED, problem=stopped(self._datasets[job.dataset], job, text))

    def _do(self, job: Job) -> None:
        """Run a job in its own thread and send heartbeats from here: a long stage must not look like a dead process."""
        work = Work(self._datasets[job.dataset], job)
        log_event("job-started", job=job.id, kind=job.kind, attempt=job.attempts)
        self._metrics.at_work(1)
        work.start()
        is_mine = True
        while work.is_alive() and not self._background.is_stopping:
            work.join(self._settings.job_beat)
            if work.is_alive() and is_mine:
                is_mine = self._beat(job, work)
        if not is_mine:
            self._explain(job, work)
        elif work.is_alive():  # the service stops, which is no failed attempt
            self._jobs.tell(job, state=WAITING, attempts=job.attempts - 1)
            work.stop("")
            work.join(LAST_STAGE)
        elif work.outcome:
            self._jobs.tell(job, **work.progress, **work.outcome)
        elif job.attempts >= self._settings.job_attempts:  # otherwise its heartbeat stops, and it is taken again
            self._give_up(job, "because the ledger did not respond")
        self._metrics.at_work(0)
        log_event("job-ended", job=job.id, state=work.outcome.get("state", "interrupted"))

    def _explain(self, job: Job, work: Work) -> None:
        """Say what a cancelled job was charged: when it was cancelled, its charge could still come."""
        now = self._jobs.read([job.id]).get(job.id)
        if now is not None and now.state == CANCELLED and not work.is_alive():
            user = json.loads(now.problem)["error"]["facts"]["by"]
            why = f"The {NOUNS[job.kind]} was cancelled by {user}."
            self._jobs.explain(job, stopped(work.served, job, why, by=user))

    def _beat(self, job: Job, work: Work) -> bool:
        """Send a heartbeat and stop a job that is above a limit; return whether the job is still this worker's."""
        if reason := self._limit(work):
            work.stop(reason)
        with suppress(LedgerError):  # the job's own next step fails as well, or the ledger responds again
            if not self._jobs.tell(job, **work.progress):
                work.stop("")
                return False
        return True

    def _limit(self, work: Work) -> str:
        """Return the limit that a job has exceeded; empty if there is none."""
        noun, seconds, most = NOUNS[work.job.kind], self._settings.job_seconds, self._settings.job_memory
        if time.monotonic() - work.started > seconds:
            return f"The {noun} was stopped because it took more than {seconds:,.0f} s, the time limit of a job."
        if memory_in_use() - work.memory > most:
            return f"The {noun} was stopped because it needed more than {most / 1e9:.3g} GB, the memory limit of a job."
        return ""


class Stopped(BaseException):
    """Ends a job between two stages. Not an `Exception`: a failure to read the source would be recorded for those."""


class Work(threading.Thread):
    """A running job: `progress` by stage, and the `outcome` once it has ended; empty if another attempt can succeed."""

    def __init__(self, served: ServedDataset, job: Job) -> None:
        super().__init__(name=job.kind, daemon=True)
        self.served, self.job = served, job
        self.started, self.memory = time.monotonic(), memory_in_use()
        self._before = RESUMED if job.stage else ""
        self._reason: str | None = None
        self.progress: dict[str, Any] = {}
        self._progress("beginning", 0, 1)
        self.outcome: dict[str, Any] = {}

    def stop(self, reason: str) -> None:
        """Stop before the next stage; the reason is reported unless it is empty."""
        self._reason = self._reason or reason

    def run(self) -> None:
        try:
            result = KINDS[self.job.kind](self)
            self._progress_now("done", 1, 1)
            self.outcome = {"state": DONE, **result}
        except Stopped:
            self.outcome = {"state": FAILED, "problem": stopped(self.served, self.job, self._reason or "")}
        except LedgerUnavailable as error:  # a later attempt continues from what was learned
            log_event("job-interrupted", job=self.job.id, problem=error.code)
        except TidegateError as error:
            self.outcome = {"state": FAILED, "problem": canonical({"error": content_of(error)})}
        except Exception as error:  # report the location only: the message could hold a private value
            log_event("defect", job=self.job.id, place=source_location(error))
            failed = TidegateError("Tidegate failed.", f"Please report it: {source_location(error)}.")
            self.outcome = {"state": FAILED, "problem": canonical({"error": content_of(failed)})}

    def _progress(self, stage: str, done: int, of: int) -> None:
        if self._reason is not None:
            raise Stopped
        self._progress_now(stage, done, of)

    def _progress_now(self, stage: str, done: int, of: int) -> None:
        self.progress = {"stage": f"{self._before}{stage}", "done": done, "of": of}

    def synthesize(self) -> dict[str, Any]:
        tables = self.served.session.synthesize(**job_options(self.job), user=self.job.who, progress=self._progress)
        return {"entry": tables.entry}

    def audit(self) -> dict[str, Any]:
        from tidegate.audit.run import audit, plan  # here: its attacks take long to load

        session, options = self.served.session, job_options(self.job)
        verbs = options["verbs"]
        attacks = [attack for attack in plan(session.policy) if not verbs or attack.verb in verbs]
        lines: list[str] = []

        def show(line: str) -> None:
            self._progress(line, len(lines), len(attacks) + 1)
            lines.append(line)

        report = audit(session.policy, **options, ledger=session.ledger_address, progress=show)
        return {"report": canonical({"report": report.to_dict(), "html": report.html()})}


def _leave_running_work() -> None:
    """End the process without Python's cleanup if a job is still at work: a thread inside an engine would abort it.

    Python runs this after the ledger was closed. The job is in the queue again, and what it has learned is on disk.
    """
    if any(isinstance(thread, Work) for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1 if hasattr(sys, "last_value") else 0)  # set if an exception ended the program


atexit.register(_leave_running_work)

KINDS: dict[str, Callable[[Work], dict[str, Any]]] = {SYNTHESIS: Work.synthesize, AUDIT: Work.audit}


def memory_in_use() -> int:
    """Return the bytes of memory that this process uses now; at its peak, where that is all the system reports."""
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    if sys.platform == "win32":  # not measured there
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
