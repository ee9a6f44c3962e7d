"""Background jobs: the user, the request, the progress, and the process that runs it.

A job outlives its process. If the process dies, the job's heartbeat stops, and the next process takes the job.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import select

from tidegate.errors import KeyReused
from tidegate.ledger.schema import jobs
from tidegate.ledger.store import Store

WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"


@dataclass(frozen=True)
class Job:
    """A stored job. `wanted` and `problem` are canonical JSON; `entry` is the charge, once the job is done."""

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
        if (row["wanted"], row["who"]) != (job.wanted, job.who):
            raise KeyReused("This idempotency key was used for another job.", "Use a new key for a new job.")
        return _job(row)

    def find(self, dataset: str, name: str) -> Job | None:
        """Return a job of a data set by its id."""
        with self._store.reading() as connection:
            query = select(jobs).where(jobs.c.dataset == dataset, jobs.c.id == name)
            row = connection.execute(query).mappings().first()
        return _job(row) if row else None

    def of(self, dataset: str, *, after: str = "", limit: int = 100) -> list[Job]:
        """Return the jobs of a data set in the order of their ids, which is the order of creation."""
        query = select(jobs).where(jobs.c.dataset == dataset, jobs.c.id > after).order_by(jobs.c.id).limit(limit)
        with self._store.reading() as connection:
            return [_job(row) for row in connection.execute(query).mappings()]

    def first_with_entry(self, dataset: str, entry: str) -> str:
        """Return the id of the first job whose charge is this entry; empty if there is none."""
        query = select(jobs.c.id).where(jobs.c.dataset == dataset, jobs.c.entry == entry).order_by(jobs.c.id).limit(1)
        with self._store.reading() as connection:
            return connection.execute(query).scalar() or ""

    def take(self, worker: str, *, datasets: list[str], patience: float) -> Job | None:
        """Take the oldest job that waits, or whose worker has been silent for `patience` seconds, and return it."""
        now = time.time()
        open_still = (jobs.c.state == WAITING) | ((jobs.c.state == RUNNING) & (jobs.c.beat < now - patience))
        query = select(jobs).where(open_still, jobs.c.dataset.in_(datasets)).order_by(jobs.c.made, jobs.c.id).limit(1)
        with self._store.reading() as connection:  # without a job, no writer has to wait
            if connection.execute(query).first() is None:
                return None
        with self._store.writing() as connection:
            row = connection.execute(query).mappings().first()
            if row is None:
                return None
            mine = {"state": RUNNING, "worker": worker, "beat": now}
            connection.execute(jobs.update().where(jobs.c.id == row["id"]).values(**mine))
        return _job({**row, **mine})

    def tell(self, job: Job, **now: Any) -> bool:
        """Update the state of a job, with a heartbeat; return False if another worker has taken it."""
        mine = (jobs.c.id == job.id) & (jobs.c.worker == job.worker) & (jobs.c.state == RUNNING)
        with self._store.writing() as connection:
            update = connection.execute(jobs.update().where(mine).values(beat=time.time(), **now))
        return bool(update.rowcount)


def _job(row: Mapping[Any, Any]) -> Job:
    return Job(**{name: row[name] for name in Job.__dataclass_fields__})
