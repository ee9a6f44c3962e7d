"""The history of the samples: answers, requests for records, reports, a poll. All through sessions, each of them once.

`python -m tidegate.demo.history FOLDER` is what `tidegate demo` runs beside the service. The first run takes longer, because
decisions about records are compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tidegate import demo
from tidegate.demo import barracks, office, shop, soldiers

OWNER, ANALYST, RESPONDENT = "olga", "ana", "sven"  # as in their tokens
REQUESTS, BATCHES = 300, 4


def missing(ledger: Any) -> list[str]:
    """Return the data sets that have fewer entries than their history."""
    from tidegate.ledger.entry import CHARGED, DECIDED, REPORTED
    from tidegate.ledger.explain import page

    expected = {
        "people": (CHARGED, 2),
        "clinic": (CHARGED, 2),
        "office": (REPORTED, 1),
        "shop": (REPORTED, BATCHES),
        "barracks": (DECIDED, 1),
        "soldiers": (DECIDED, 2),
    }
    return [  # the slowest last
        name
        for name, (kind, count) in expected.items()
        if len(page(ledger, dataset=name, kind=kind, limit=count)) < count
    ]


def write(folder: Path) -> Iterator[str]:
    """Add the missing history of the samples in a folder; yield a sentence for each data set."""
    from tidegate.ledger import Ledger

    ledger = Ledger(str(folder / demo.LEDGER))
    try:
        names = missing(ledger)
    finally:
        ledger.close()
    for name in names:
        yield WRITERS[name](folder)


def ask_people(folder: Path) -> str:
    """Send two queries of the analyst."""
    import tidegate as tg

    with _open(folder, "people") as session:
        session.answer(tg.count().by("town"), epsilon="0.2", user=ANALYST)
        session.answer(tg.mean("age"), error="0.5", user=ANALYST)
        account = session.account
    return f"people: {ANALYST} ran two queries; {account.spent.say()} of {account.ceiling.say()} is spent."


def ask_clinic(folder: Path) -> str:
    """Send a workload, which is measured together, and a query by months."""
    import tidegate as tg

    counts = [tg.count().by("ward"), tg.count().by("admitted"), tg.count().by("ward", "sex")]
    with _open(folder, "clinic") as session:
        session.answer(counts, share="0.3", plan="auto", user=ANALYST)
        session.answer("SELECT ward, AVG(nights) FROM clinic GROUP BY ward", share="0.2", user=ANALYST)
        account = session.account
    return f"clinic: {ANALYST} ran a workload and a query; z {account.spent.say()} of {account.ceiling.say()} is spent."


def ask_soldiers(folder: Path) -> str:
    """Request records in a mixed order, then one that has to wait."""
    with _open(folder, "soldiers") as session:
        desk = session.release("headquarters")
        desk.request_many(islice(soldiers.in_mixed_order(), REQUESTS), user=OWNER)
        desk.request(soldiers.WAITS, user=RESPONDENT)
        requested, waiting = int(desk.asked_for().sum()), desk.waiting
    return f"soldiers: {requested:,} records were requested: {requested - waiting:,} released, {waiting:,} waiting."


def ask_barracks(folder: Path) -> str:
    """Open the selection and request records: each is released or withheld at once."""
    from tidegate.release.hiding import read_selections

    with _open(folder, "barracks") as session:
        if not read_selections(session.ledger, session.policy):  # an earlier run can have ended here
            session.open_release()
        desk = session.release("headquarters")
        desk.request_many(barracks.names(REQUESTS), user=OWNER)
        released, withheld = int(desk.counts().sum()), desk.withheld
    return f"barracks: {released + withheld:,} records were requested: {released:,} released, {withheld:,} withheld."


def send_reports(folder: Path) -> str:
    """Submit the reports of all shoppers, each from its own client."""
    with _open(folder, "shop") as session:
        survey = session.collect("shoppers")
        reports = list(reports_of(survey.collection, shop.shoppers()))
        part = -(-len(reports) // BATCHES)
        for start in range(0, len(reports), part):
            survey.submit(reports[start : start + part])
        count = survey.reports
    return f"shop: {count:,} shoppers sent randomized reports."


def run_polls(folder: Path) -> str:
    """Fill in both polls, and close one of them, so that it has results."""
    with _open(folder, "office") as session:
        for poll in office.PEOPLE:
            survey = session.poll(poll)
            if not survey.closed and not survey.received:  # an earlier run can have ended here
                survey.receive(list(reports_of(survey.collection, office.answers(poll))))
        closed = session.poll("commute")
        closed.close(user=OWNER)
        count = closed.reports
    return f'office: {count:,} employees answered the poll "commute", which is closed. The poll "canteen" is open.'


def reports_of(collection: Any, people: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the report of every person. Seeded, so that the demo is the same in every run: no one needs protection."""
    from tidegate.collect.client import Client
    from tidegate.operators.exact_draws import SeededBytes

    memory: dict[str, Any] = {}
    client = Client(collection, memory=memory, source=SeededBytes(f"{collection.name} of the demo"))
    for answers in people:
        memory.clear()  # this is another person
        yield client.randomize({name: answers[name] for name in client.asked})


def _open(folder: Path, name: str) -> Any:
    import tidegate as tg

    return tg.open(demo.policies(folder)[name], ledger=demo.LEDGER)


WRITERS: dict[str, Callable[[Path], str]] = {
    "people": ask_people,
    "clinic": ask_clinic,
    "office": run_polls,
    "shop": send_reports,
    "barracks": ask_barracks,
    "soldiers": ask_soldiers,
}


def main() -> None:
    for sentence in write(Path(sys.argv[1])):
        print(sentence, flush=True)
