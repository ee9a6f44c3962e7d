"""Collections, reports and surveys that the tests of the server side share."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

import tidegate as tg
from tidegate.collect.survey import Survey
from tidegate.policy import Category, Collection, Dataset, Integer, Policy, Question
from tidegate.policy.collection import operator_for

AGE, TOWN = Integer(16, 60), Category(("north", "south", "east"), "value")
SHOPPERS = Collection(
    "shoppers",
    {
        "age": Question("age", AGE, "square-wave", epsilon=2),
        "town": Question("town", TOWN, "unary", epsilon=1),
        "shop": Question("town", TOWN, "subset", epsilon=1),
    },
)
OPERATORS = {name: operator_for(question) for name, question in SHOPPERS.questions.items()}


def policy_of(collection: Collection = SHOPPERS, **dataset: Any) -> Policy:
    attributes = {question.attribute: question.universe for question in collection.questions.values()}
    return Policy(Dataset("people", **dataset), attributes, collections={collection.name: collection})


def open_survey(url: str, location: Path | str, collection: Collection = SHOPPERS) -> tuple[tg.Session, Survey]:
    session = tg.open(policy_of(collection), ledger=url)
    return session, session.collect(collection.name, reports=str(location))


def reports(first: int, count: int, collection: Collection = SHOPPERS) -> list[dict[str, Any]]:
    """Return reports that clients could have sent. Number n is always the same."""
    return [report(number, collection) for number in range(first, first + count)]


def report(number: int, collection: Collection = SHOPPERS) -> dict[str, Any]:
    chance = random.Random(number)
    operators = OPERATORS if collection is SHOPPERS else {n: operator_for(q) for n, q in collection.questions.items()}
    answers = {name: _answer(operator, chance) for name, operator in operators.items()}
    about = {"collection": collection.name, "fingerprint": collection.fingerprint, "version": collection.version}
    return {**about, "answers": answers, "id": hashlib.sha256(f"report {number}".encode()).hexdigest()[:32]}


def _answer(operator: Any, chance: random.Random) -> Any:
    if operator.form == "code":
        return chance.randrange(operator.report_size)
    size = getattr(operator, "size", None)
    count = chance.randrange(operator.values + 1) if size is None else size
    return sorted(chance.sample(range(operator.values), count))


def tally(batch: list[dict[str, Any]], question: str, collection: Collection = SHOPPERS) -> list[int]:
    """Return the counts of one question, counted report by report."""
    operator = operator_for(collection.questions[question])
    counts = [0] * operator.report_size
    for sent_report in batch:
        answer = sent_report["answers"][question]
        for code in [answer] if isinstance(answer, int) else answer:
            counts[code] += 1
    return counts
