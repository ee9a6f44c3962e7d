"""Code of a process that is killed: it serves, and learns with a pause before every number."""

from __future__ import annotations

import time
from typing import Any

from support.service import quiet_settings, run_service

from tidegate.synthesize import diary

PAUSE = 0.3


def serve_slowly(pipe: Any, ledger: str) -> None:
    quick = diary.Diary.step

    def slow(self: Any, name: str, epsilon: Any, measure: Any) -> Any:
        time.sleep(PAUSE)
        return quick(self, name, epsilon, measure)

    diary.Diary.step = slow  # type: ignore[method-assign]
    with run_service(ledger, settings=quiet_settings(run_jobs=True, job_beat=0.05)):
        pipe.send("ready")
        time.sleep(600)


def serve_postgres(pipe: Any, ledger: str, first: int, count: int) -> None:
    """Run `count` queries of its own and some that all processes run, on a signal; report the charges."""
    with run_service(ledger, share="") as service:
        pipe.send("ready")
        pipe.recv()
        charged = []
        for number in range(count):
            for price in (first + number, 1_000_000 + number):
                body = {"questions": [{"ask": "count"}], "epsilon": f"0.{price:09d}", "anyway": True}
                response = service.post("/v1/data/people/answers", body)
                charged.append((response.status_code, response.json()["cost"], price, response.json()["rows"]))
        pipe.send(charged)
