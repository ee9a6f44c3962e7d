"""Eight concurrent submitters with overlapping batches: every report counts once, and there is no deadlock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from collect.report_processes import BATCH, STEP, assert_counted, batch_of, submit_all
from collect.surveys import SHOPPERS, open_survey, report
from ledger.charges import at_once
from ledger.children import Child

from tidegate.ledger import collection_book as book
from tidegate.ledger import counts


def test_8_threads_with_overlapping_batches_count_every_report_once(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_survey(ledger_url, tmp_path / "r")
    accepted = []

    def submit(worker: int) -> None:
        for number in range(worker, worker + 6):  # neighbors submit the same batches under their own names
            accepted.append(survey.submit(batch_of(number), batch=f"{worker}/{number}").accepted)

    at_once(submit, threads=8)
    assert_counted(session, survey, 0, 12)
    assert sum(accepted) == survey.reports


def test_8_threads_with_the_same_batches_get_the_same_result(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_survey(ledger_url, tmp_path / "r")
    results: dict[int, set[tuple[str, tuple[str | None, ...]]]] = {number: set() for number in range(4)}

    def submit(worker: int) -> None:
        for number in sorted(results, key=lambda batch_number: (batch_number + worker) % 4):
            done = survey.submit(batch_of(number))
            results[number].add((done.entry, done.reasons))

    at_once(submit, threads=8)
    assert_counted(session, survey, 0, 3)
    assert all(len(distinct) == 1 for distinct in results.values())


@pytest.mark.parametrize("processes", [3, pytest.param(8, marks=pytest.mark.long)])
def test_processes_with_overlapping_batches_count_every_report_once(
    ledger_url: str, processes: int, tmp_path: Path
) -> None:
    session, survey = open_survey(ledger_url, tmp_path / "r")
    children = [Child(submit_all, ledger_url, tmp_path / "r", list(range(n, n + 4))) for n in range(processes)]
    for child in children:
        assert child.hear() == "ready"
    for child in children:
        child.tell("go on")
    for child in children:
        assert child.hear() == "done"
    for child in children:
        child.kill()
    assert_counted(session, survey, 0, processes + 2)


def test_closing_meanwhile_does_not_change_earlier_results(ledger_url: str, tmp_path: Path) -> None:
    _, survey = open_survey(ledger_url, tmp_path / "r")
    accepted = []

    def submit(worker: int) -> None:
        if worker == 3:
            survey.close()
        for number in range(5):
            accepted.append(survey.submit([report(1000 * worker + number)]).accepted)

    at_once(submit, threads=8)
    assert survey.reports == sum(accepted)
    assert survey.submit([report(10**6)]).accepted == 0
    assert survey.verify() == []


# The check detects planted faults


def counts_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids are not kept, so a replay is not seen."""
    monkeypatch.setattr(book, "add_ids", lambda *_: None)


def forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch replaces the counts instead of adding to them."""
    true = book.add_counts

    def replacing(connection: Any, opening: int, adds: Any, *, reports: int) -> Any:
        after = true(connection, opening, adds, reports=reports)
        rows = [
            {"of": opening, "asked": name, "all": tally.reports, "packed": counts.packed(adds[name])}
            for name, tally in after.items()
        ]
        connection.execute(counts._SET_COUNTS, rows)
        return after

    monkeypatch.setattr(book, "add_counts", replacing)


@pytest.mark.parametrize("fault", [counts_twice, forgets])
def test_server_that_counts_wrongly_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: object) -> None:
    session, survey = open_survey(str(tmp_path / "p.ledger"), tmp_path / "r")
    fault(monkeypatch)  # type: ignore[operator]
    for number in range(3):
        survey.submit(batch_of(number))
    with pytest.raises(AssertionError):
        assert_counted(session, survey, 0, 2)
    assert BATCH > STEP
    assert set(SHOPPERS.questions) == set(survey.operators)
