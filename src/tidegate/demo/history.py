"""What was asked of the samples before anybody looks: answers, requests for records, reports. All through sessions, as
anybody's, and each of them once: what is there already is left as it is.

python -m tidegate.demo.history FOLDER          what `tidegate demo` runs beside the service: the first time takes
                                                       longer, since decisions on records are compiled
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tidegate import demo
from tidegate.demo import shop, soldiers

OWNER, ANALYST, RESPONDENT = "olga", "ana", "sven"  # as their tokens say
REQUESTS, BATCHES = 300, 4


def missing(ledger: Any) -> list[str]:
    """The data sets that have fewer entries than their history."""
    from tidegate.ledger.entry import CHARGED, DECIDED, REPORTED
    from tidegate.ledger.explain import page

    wanted = {"people": (CHARGED, 2), "shop": (REPORTED, BATCHES), "soldiers": (DECIDED, 2)}  # the slowest comes last
    return [
        name for name, (kind, many) in wanted.items() if len(page(ledger, dataset=name, kind=kind, limit=many)) < many
    ]


def write(folder: Path) -> Iterator[str]:
    """Ask what was not asked yet of the samples in a folder; a sentence for each data set."""
    from tidegate.ledger import Ledger

    ledger = Ledger(str(folder / demo.LEDGER))
    try:
        wanted = missing(ledger)
    finally:
        ledger.close()
    for name in wanted:
        yield ASKED[name](folder)


def ask_people(folder: Path) -> str:
    """Two questions of the analyst."""
    import tidegate as tg

    with _opened(folder, "people") as session:
        session.answer(tg.count().by("town"), epsilon="0.2", user=ANALYST)
        session.answer(tg.mean("age"), error="0.5", user=ANALYST)
        account = session.account
    return f"people: {ANALYST} asked two questions; {account.spent.say()} of {account.ceiling.say()} is spent."


def ask_soldiers(folder: Path) -> str:
    """Requests for records in a mixed order, then that of one who has to wait."""
    with _opened(folder, "soldiers") as session:
        desk = session.release("headquarters")
        desk.request_many(islice(soldiers.in_mixed_order(), REQUESTS), user=OWNER)
        desk.request(soldiers.WAITS, user=RESPONDENT)
        asked, waiting = int(desk.asked_for().sum()), desk.waiting
    return f"soldiers: {asked:,} records were asked for, {asked - waiting:,} are out, {waiting:,} wait."


def send_reports(folder: Path) -> str:
    """The reports of all shoppers, each from a client of its own."""
    with _opened(folder, "shop") as session:
        survey = session.collect("shoppers")
        reports = list(randomized(survey.collection))
        part = -(-len(reports) // BATCHES)
        for start in range(0, len(reports), part):
            survey.submit(reports[start : start + part])
        many = survey.reports
    return f"shop: {many:,} shoppers sent randomized reports."


def randomized(collection: Any) -> Iterator[dict[str, Any]]:
    """The report of every shopper. Seeded, so that the demo shows the same in every run: there is nobody to protect."""
    from tidegate.collect.client import Client
    from tidegate.operators.exact_draws import SeededBytes

    memory: dict[str, Any] = {}
    client = Client(collection, memory=memory, source=SeededBytes("shoppers of the demo"))
    for answers in shop.shoppers():
        memory.clear()  # the next one is another person
        yield client.randomize(answers)


def _opened(folder: Path, name: str) -> Any:
    import tidegate as tg

    return tg.open(demo.policies(folder)[name], ledger=demo.LEDGER)


ASKED: dict[str, Callable[[Path], str]] = {"people": ask_people, "shop": send_reports, "soldiers": ask_soldiers}


def main() -> None:
    for told in write(Path(sys.argv[1])):
        print(told, flush=True)
