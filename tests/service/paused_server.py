"""What a process does that is killed: it serves, and learns with a pause before every number."""

from __future__ import annotations

import time
from typing import Any

from support.service import faster, house

from tidegate.synthesize import diary

PAUSE = 0.3


def serve_slowly(pipe: Any, ledger: str) -> None:
    quick = diary.Diary.step

    def slow(self: Any, name: str, epsilon: Any, measure: Any) -> Any:
        time.sleep(PAUSE)
        return quick(self, name, epsilon, measure)

    diary.Diary.step = slow  # type: ignore[method-assign]
    with house(ledger, settings=faster(run_jobs=True, job_beat=0.05)):
        pipe.send("ready")
        time.sleep(600)


def serve_postgres(pipe: Any, ledger: str, first: int, many: int) -> None:
    """Ask `many` questions of its own and some that everybody asks, at a sign; tell what was charged."""
    with house(ledger, share="") as served:
        pipe.send("ready")
        pipe.recv()
        charged = []
        for number in range(many):
            for price in (first + number, 1_000_000 + number):
                asked = {"questions": [{"ask": "count"}], "epsilon": f"0.{price:09d}"}
                given = served.post("/data/people/answers", asked)
                charged.append((given.status_code, given.json()["cost"], price, given.json()["rows"]))
        pipe.send(charged)
