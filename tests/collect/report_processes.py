"""Processes that submit reports, and the checks that hold after each of them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from collect.surveys import SHOPPERS, open_survey, report, reports, tally

import tidegate as tg
from tidegate.collect.survey import Survey
from tidegate.collect.validation import check
from tidegate.ledger import verify
from tidegate.tables.segments import Segments

ON_THE_WAY = (
    0.001  # seconds of an acknowledgment: a kill must be able to hit what is committed and not yet acknowledged
)
BATCH, STEP = 60, 40  # each batch has 20 reports of the one before: they must not count twice


def batch_of(number: int) -> list[dict[str, Any]]:
    """Return a batch that overlaps the previous one and contains one invalid report."""
    return [*reports(STEP * number, BATCH), {**report(10**9 + number), "version": 99}]


def submit_on(pipe: Any, url: str, location: Path, out: Path, first: int) -> None:
    """Submit batch after batch and append each returned result to `out`."""
    stream = os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    _, survey = open_survey(url, location)
    warm_up(survey, location.parent / "warm")
    pipe.send("ready")
    for number in count(first):
        done = survey.submit(batch_of(number), batch=f"batch {number}")
        time.sleep(ON_THE_WAY)
        line = {"number": number, "accepted": done.accepted, "entry": done.entry}
        os.write(stream, f"{json.dumps(line)}\n".encode())


def warm_up(survey: Survey, location: Path) -> None:
    """Load what is loaded at the first batch, so that a kill soon after hits the batch and not an import."""
    survey.submit([None])
    columns = check(reports(0, 3), SHOPPERS, survey.operators).columns(survey.segments.columns)
    Segments(location, survey.segments.columns).write(columns, batch="warm")


def submit_all(pipe: Any, url: str, location: Path, numbers: list[int]) -> None:
    """Submit batches under names that no other process uses."""
    _, survey = open_survey(url, location)
    pipe.send("ready")
    pipe.recv()
    for number in numbers:
        survey.submit(batch_of(number), batch=f"{os.getpid()} {number}")
    pipe.send("done")


def assert_counted(session: tg.Session, survey: Survey, first: int, last: int) -> None:
    """Assert that each report of batches first .. last counts once, and that chain, counts and segments agree."""
    assert verify(*session.ledger.snapshot()).problems == []
    assert survey.verify() == []
    whole = reports(STEP * first, STEP * (last - first) + BATCH) if last >= first else []
    assert survey.reports == len(whole)
    for question in SHOPPERS.questions:
        assert survey.counts(question).tolist() == tally(whole, question)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, path.read_text().splitlines()) if path.exists() else iter(())
