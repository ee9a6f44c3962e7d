"""Work that takes longer than a request: who asked for what, how far it is, and which process is at it.

A job outlives its process. One that was at work when its process died has no beat any more, and the next process takes it.
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
    """A job as it is kept. `wanted` and `problem` are canonical JSON; `entry` is the charge, once it is done."""

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
    """The jobs in a ledger's database. Any process may take one; only one at a time has it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, job: Job) -> Job:
        """Keep a new job, or find the one with the same idempotency key."""
        with self._store.writing() as connection:
            same = (jobs.c.dataset == job.dataset) & (jobs.c.request == job.request)
            found = connection.execute(select(jobs).where(same)).mappings().first()
            if found is None:
                connection.execute(jobs.insert(), asdict(job))
                return job
        if (found["wanted"], found["who"]) != (job.wanted, job.who):
            raise KeyReused("this idempotency key was used for another job.", "Use a new key for a new job.")
        return _job(found)

    def find(self, dataset: str, name: str) -> Job | None:
        """A job of a data set by its id."""
        with self._store.reading() as connection:
            query = select(jobs).where(jobs.c.dataset == dataset, jobs.c.id == name)
            row = connection.execute(query).mappings().first()
        return _job(row) if row else None

    def of(self, dataset: str, *, after: str = "", limit: int = 100) -> list[Job]:
        """The jobs of a data set in the order of their ids, which is that of their making."""
        query = select(jobs).where(jobs.c.dataset == dataset, jobs.c.id > after).order_by(jobs.c.id).limit(limit)
        with self._store.reading() as connection:
            return [_job(row) for row in connection.execute(query).mappings()]

    def first_with_entry(self, dataset: str, entry: str) -> str:
        """Return the id of the first job whose charge is this entry; empty if there is none."""
        query = select(jobs.c.id).where(jobs.c.dataset == dataset, jobs.c.entry == entry).order_by(jobs.c.id).limit(1)
        with self._store.reading() as connection:
            return connection.execute(query).scalar() or ""

    def take(self, worker: str, *, datasets: list[str], patience: float) -> Job | None:
        """The oldest job that waits, or whose worker has been silent for `patience` seconds; it is this worker's now."""
        now = time.time()
        open_still = (jobs.c.state == WAITING) | ((jobs.c.state == RUNNING) & (jobs.c.beat < now - patience))
        query = select(jobs).where(open_still, jobs.c.dataset.in_(datasets)).order_by(jobs.c.made, jobs.c.id).limit(1)
        with self._store.reading() as connection:  # nobody is kept waiting where there is nothing to do
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
        """Say how a job stands, with a beat; False where another worker has taken it meanwhile."""
        mine = (jobs.c.id == job.id) & (jobs.c.worker == job.worker) & (jobs.c.state == RUNNING)
        with self._store.writing() as connection:
            told = connection.execute(jobs.update().where(mine).values(beat=time.time(), **now))
        return bool(told.rowcount)


def _job(row: Mapping[Any, Any]) -> Job:
    return Job(**{name: row[name] for name in Job.__dataclass_fields__})
