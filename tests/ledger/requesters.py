"""The work of child processes that send requests, one after the other or concurrently."""

from __future__ import annotations

import json
import os
import time
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from ledger.charges import at_once
from support.people import people_policy

import tidegate as tg

TABLE = pa.table({"person": list(range(1000)), "age": [20 + n % 40 for n in range(1000)], "sex": ["f", "m"] * 500})


def epsilon(number: int) -> Fraction:
    """Return the loss of a request. Each request is a new query: the same counts at another price."""
    return Fraction(1, 1_000_000 + number)


def send_requests(pipe: Any, url: str, out: Path, first: int) -> None:
    """Send requests from number `first` on, and write each answer to `out`, as if a requester received it."""
    output = os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    session = tg.open(people_policy(), table=TABLE, ledger=url)
    session.account, session.table
    pipe.send("ready")
    for number in count(first):
        answer = session.answer(tg.count().by("sex"), epsilon=epsilon(number), key=f"request {number}", anyway=True)
        time.sleep(0.002)  # the way to the requester: recorded, but not received yet
        line = {"number": number, "result": answer.stored, "entry": answer.entry}
        os.write(output, f"{json.dumps(line)}\n".encode())


def ask_in_threads(pipe: Any, url: str, threads: int) -> None:
    """Send concurrent queries to one session, and report when all are answered."""
    session = tg.open(people_policy(), table=TABLE, ledger=url)
    session.account, session.table
    pipe.send("ready")

    def ask(worker: int) -> None:
        for turn in range(2):
            session.answer(tg.count().by("sex"), epsilon=epsilon(100 * worker + turn), anyway=True)

    at_once(ask, threads=threads)
    pipe.send("all answered")
