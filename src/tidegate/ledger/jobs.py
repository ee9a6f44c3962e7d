"""Background jobs: the user, the request, the progress, and the process that runs it.

A job outlives its process. If the process dies, the job's heartbeat stops, and the next process takes the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import select

from tidegate.errors import KeyReused
from tidegate.ledger.schema import jobs
from tidegate.ledger.store import Store

WAITING, RUNNING, DONE, FAILED, CANCELLED = "waiting", "running", "done", "failed", "cancelled"
ENDED = (DONE, FAILED, CANCELLED)
SYNTHESIS, AUDIT = "synthesis", "audit"  # kinds


@dataclass(frozen=True)
class Job:
    """A stored job. `wanted`, `problem` and `report` are canonical JSON; `entry` is the charge, once the job is done."""

    id: str
    dataset: str
    who: str
    request: str
    wanted: str
    made: str
    state: str = WAITING
    stage: str = ""
    problem: str = ""
    entry: str = ""
    worker: str = ""
    done: int = 0
    of: int = 0
    beat: float = 0.0
    kind: str = SYNTHESIS
    attempts: int = 0  # how often a process took it
    report: str = ""


class Jobs:
    """The jobs in a ledger's database. Any process can take a job; only one process has it at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, job: Job) -> Job:
        """Store a new job, or return the one with the same idempotency key."""
        with self._store.writing() as connection:
            same = (jobs.c.dataset == job.dataset) & (jobs.c.request == job.request)
            row = connection.execute(select(jobs).where(same)).mappings().first()
            if row is None:
                connection.execute(jobs.insert(), asdict(job))
                return job
        if (row["kind"], row["wanted"], row["who"]) != (job.kind, job.wanted, job.who):
            raise KeyReused("This idempotency key was used for another job.", "Use a new key for a new job.")
        return _job(row)

    def find(self, dataset: str, name: str, *, kind: str = SYNTHESIS) -> Job | None:
        """Return a job of a data set by its id."""
        with self._store.reading() as connection:
            query = select(jobs).where(jobs.c.dataset == dataset, jobs.c.id == name, jobs.c.kind == kind)
            row = connection.execute(query).mappings().first()
        return _job(row) if row else None

    def read(self, names: Iterable[str]) -> dict[str, Job]:
        """Return jobs by their ids."""
        with self._store.reading() as connection:
            rows = connection.execute(select(jobs).where(jobs.c.id.in_(list(names)))).mappings()
            return {row["id"]: _job(row) for row in rows}

    def of(self, dataset: str, *, kind: str = SYNTHESIS, after: str = "", limit: int = 100) -> list[Job]:
        """Return the jobs of a data set in the order of their ids, which is the order of creation."""
        own = (jobs.c.dataset == dataset) & (jobs.c.kind == kind) & (jobs.c.id > after)
        with self._store.reading() as connection:
            rows = connection.execute(select(jobs).where(own).order_by(jobs.c.id).limit(limit)).mappings()
            return [_job(row) for row in rows]

    def latest(self, dataset: str, *, kind: str = SYNTHESIS, limit: int) -> list[Job]:
        """Return the latest jobs of a data set, newest first."""
        own = (jobs.c.dataset == dataset) & (jobs.c.kind == kind)
        with self._store.reading() as connection:
            rows = connection.execute(select(jobs).where(own).order_by(jobs.c.id.desc()).limit(limit)).mappings()
            return [_job(row) for row in rows]

    def unfinished(self, dataset: str) -> list[Job]:
        """Return the waiting and running jobs of a data set, of all kinds."""
        own = (jobs.c.dataset == dataset) & jobs.c.state.in_((WAITING, RUNNING))
        with self._store.reading() as connection:
            return [_job(row) for row in connection.execute(select(jobs).where(own).order_by(jobs.c.id)).mappings()]

    def first_with_entry(self, dataset: str, entry: str) -> str:
        """Return the id of the first job whose charge is this entry; empty if there is none."""
        query = select(jobs.c.id).where(jobs.c.dataset == dataset, jobs.c.entry == entry).order_by(jobs.c.id).limit(1)
        with self._store.reading() as connection:
            return connection.execute(query).scalar() or ""

    def take(self, worker: str, *, datasets: list[str], patience: float) -> Job | None:
        """Take the oldest job that waits, or whose worker has been silent for `patience` seconds, and return it."""
        with self._store.reading() as connection:  # without a job, no writer has to wait
            if connection.execute(self._open_still(connection, datasets, patience)).first() is None:
                return None
        with self._store.writing() as connection:
            row = connection.execute(self._open_still(connection, datasets, patience)).mappings().first()
            if row is None:
                return None
            now = self._store.clock(connection)
            mine = {"state": RUNNING, "worker": worker, "beat": now, "attempts": row["attempts"] + 1}
            connection.execute(jobs.update().where(jobs.c.id == row["id"]).values(**mine))
        return _job({**row, **mine})

    def _open_still(self, connection: Any, datasets: list[str], patience: float) -> Any:
        silent = jobs.c.beat < self._store.clock(connection) - patience
        can_start = (jobs.c.state == WAITING) | ((jobs.c.state == RUNNING) & silent)
        return select(jobs).where(can_start, jobs.c.dataset.in_(datasets)).order_by(jobs.c.made, jobs.c.id).limit(1)

    def tell(self, job: Job, **now: Any) -> bool:
        """Update the state of a job, with a heartbeat; return False if it was cancelled or another worker has taken it."""
        return self._update(job, RUNNING, now)

    def explain(self, job: Job, problem: str) -> bool:
        """Replace the problem of a job that was cancelled while this worker ran it."""
        return self._update(job, CANCELLED, {"problem": problem})

    def cancel(self, job: Job, problem: str) -> bool:
        """Cancel a job that has not ended; return whether it could be. Its worker stops when it notices."""
        with self._store.writing() as connection:
            still = (jobs.c.id == job.id) & jobs.c.state.in_((WAITING, RUNNING))
            now = {"state": CANCELLED, "problem": problem, "beat": self._store.clock(connection)}
            return bool(connection.execute(jobs.update().where(still).values(**now)).rowcount)

    def _update(self, job: Job, state: str, now: dict[str, Any]) -> bool:
        mine = (jobs.c.id == job.id) & (jobs.c.worker == job.worker) & (jobs.c.state == state)
        with self._store.writing() as connection:
            values = {"beat": self._store.clock(connection), **now}
            return bool(connection.execute(jobs.update().where(mine).values(**values)).rowcount)


def _job(row: Mapping[Any, Any]) -> Job:
    return Job(**{name: row[name] for name in Job.__dataclass_fields__})
