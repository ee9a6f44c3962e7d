"""What processes do that submit reports, and what must hold after any of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from collect.surveys import SHOPPERS, opened, report, reports, tallied

import tidegate as tg
from tidegate.collect.survey import Survey
from tidegate.collect.validation import check
from tidegate.ledger import verify
from tidegate.tables.segments import Segments

BATCH, STEP = 60, 40  # each batch has 20 reports of the one before: they must not count twice


def batch_of(number: int) -> list[dict[str, Any]]:
    """Batch by batch the reports go on, with an overlap and a bad one."""
    return [*reports(STEP * number, BATCH), {**report(10**9 + number), "version": 99}]


def submit_on(pipe: Any, url: str, place: Path, out: Path, first: int) -> None:
    """Submit batch after batch; what is in `out` has been told to whoever sent it."""
    told = os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    _, survey = opened(url, place)
    warm_up(survey, place.parent / "warm")
    pipe.send("ready")
    for number in count(first):
        done = survey.submit(batch_of(number), batch=f"batch {number}")
        line = {"number": number, "accepted": done.accepted, "entry": done.entry}
        os.write(told, f"{json.dumps(line)}\n".encode())


def warm_up(survey: Survey, place: Path) -> None:
    """Load what is loaded at the first batch, so that a kill soon after hits the batch and not an import."""
    survey.submit([None])
    columns = check(reports(0, 3), SHOPPERS, survey.operators).columns(survey.segments.columns)
    Segments(place, survey.segments.columns).write(columns, batch="warm")


def submit_all(pipe: Any, url: str, place: Path, numbers: list[int]) -> None:
    """Submit some batches under names of one's own."""
    _, survey = opened(url, place)
    pipe.send("ready")
    pipe.recv()
    for number in numbers:
        survey.submit(batch_of(number), batch=f"{os.getpid()} {number}")
    pipe.send("done")


def held(session: tg.Session, survey: Survey, first: int, last: int) -> None:
    """All reports of batches first .. last, each once; the chain, the counts and the segments agree."""
    assert verify(*session.ledger.snapshot()).problems == []
    assert survey.verify() == []
    whole = reports(STEP * first, STEP * (last - first) + BATCH) if last >= first else []
    assert survey.reports == len(whole)
    for question in SHOPPERS.questions:
        assert survey.counts(question).tolist() == tallied(whole, question)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, path.read_text().splitlines()) if path.exists() else iter(())
