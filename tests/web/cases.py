"""Random collections with answers, true and strange ones, and what the Python client makes of them."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tidegate.accounting.respondent import respondent_loss
from tidegate.collect.client import Client
from tidegate.errors import TidegateError
from tidegate.operators.exact_draws import SeededBytes
from tidegate.policy import (
    Boolean,
    Category,
    Collection,
    Date,
    Decimal,
    Grid,
    Integer,
    Items,
    Moment,
    Question,
    Text,
    Time,
    Timestamp,
)
from tidegate.policy.poll import Poll, Wording

NUMBERS, ANY = (
    ["uniform-noise", "gaussian-noise", "laplace-noise", "square-wave", "hybrid"],
    ["randomized-response", "unary", "subset", "projective-geometry", "hash-response"],
)
WORDS = ["north", "süd", 'the "east"', "w\\est", "<b>", "日本", "😀", "\x7f", "a b", "tab\t", "0", "", "True", "é"]


def integer(chance: random.Random) -> Integer:
    low = chance.choice([0, 16, -40, 999_990, -(10**9)])
    high = low + chance.choice([1, 2, 9, 44, 45, 120])
    cuts = sorted(chance.sample(range(low + 1, high + 1), min(high - low, chance.choice([0, 0, 0, 1, 3]))))
    outside = chance.choice(["clamp", "clamp", "missing"])
    return Integer(low, high, tuple(cuts), chance.choice(["dropped", "value", "lowest"]), outside)


def grid(chance: random.Random) -> Grid:
    low, step = (
        Fraction(chance.randint(-90, 90), chance.choice([1, 3, 8])),
        Fraction(chance.choice(["0.5", "1/3", "0.01", "7"])),
    )
    return Grid(low, low + step * chance.choice([1, 20, 63]), step, (), chance.choice(["dropped", "lowest"]))


def decimal(chance: random.Random) -> Decimal:
    low, step = Fraction(chance.randint(-999, 999), 100), Fraction(chance.choice(["0.01", "0.25"]))
    return Decimal(low, low + step * chance.choice([4, 63]), step, (), "dropped", chance.choice(["clamp", "missing"]))


def moment(chance: random.Random) -> Moment:
    """Dates, points in time and times of day, over a change of summer time or the end of a year."""
    missing = chance.choice(["dropped", "lowest"])
    outside = chance.choice(["missing", "clamp"])
    first = chance.choice([dt.date(1999, 12, 30), dt.date(2024, 2, 27), dt.date(2024, 10, 26), dt.date(1, 1, 1)])
    kind = chance.choice(["date", "timestamp", "time"])
    if kind == "date":
        grid = chance.choice(["day", "week", "month", "quarter", "year"])
        days = 800 if grid in ("quarter", "year") else chance.choice([40, 800])
        return Date(first, first + dt.timedelta(days), grid, missing, outside)
    grid = chance.choice(["15-minutes", "30-minutes", "hour"])
    if kind == "time":
        return Time(dt.time(chance.randint(0, 12)), dt.time(chance.randint(14, 23), 59), grid, missing, outside)
    zone = chance.choice(["", "", "Europe/Paris", "America/New_York"]) if first.year > 1 else ""
    return Timestamp(first, first + dt.timedelta(chance.choice([0, 3])), grid, zone, missing, outside)


def category(chance: random.Random) -> Category:
    if chance.random() < 0.2:
        return Boolean(chance.choice(["dropped", "value"]))
    values: list[Any] = chance.choice([WORDS, list(range(-3, 9)), [True, False]])
    count = chance.randint(2, len(values))
    outside = chance.choice(["missing", "missing", "other"])
    file = chance.choice([(), ("towns.csv", "town", "a" * 64)])
    return Category(tuple(chance.sample(values, count)), chance.choice(["dropped", "value"]), outside, *file)


def single(chance: random.Random, *, fresh: bool) -> Question:
    operator = chance.choice(["randomized-response", "unary", "hash-response"] if fresh else [*NUMBERS, *ANY])
    numbers = [integer, grid, decimal, moment]
    if operator == "hybrid":
        plain = chance.choice([grid, decimal])(chance)
        return Question(f"a{chance.randint(0, 9**6)}", plain, operator, epsilon=chance.choice(["0.5", "1", "7/3"]))
    universe = chance.choice(numbers if operator in NUMBERS else [*numbers, category])(chance)
    question = Question("it", universe, "randomized-response", epsilon=1)  # for its size and step
    if operator in ("uniform-noise", "gaussian-noise"):
        units = "half_width" if operator == "uniform-noise" else "sigma"
        value: dict[str, Any] = chance.choice(
            [
                {"privacy": chance.choice(["0.5", "1", "1/3"])},
                {units: question.step * Fraction(chance.randint(2, 30), 4)},
            ]
        )
        return Question(f"a{chance.randint(0, 9**6)}", universe, operator, **value)
    if operator == "randomized-response" and not fresh and chance.random() < 0.5:
        share = Fraction(chance.choice(["1/3", "0.5", "1/7", "0.001", "0.999"]))
        return Question(f"a{chance.randint(0, 9**6)}", universe, operator, random=share)
    each: dict[str, Any] = {"each": Fraction(chance.randint(1, 9), 10)} if fresh else {}
    epsilon = (
        Fraction(chance.randint(1, 8)) if fresh else Fraction(chance.choice(["0.01", "0.5", "1", "7/3", "4", "12.25"]))
    )
    return Question(f"a{chance.randint(0, 9**6)}", universe, operator, epsilon=epsilon, **each)


def text(chance: random.Random) -> Question:
    hashed: dict[str, Any] = chance.choice([{}, {"hashed": 1}, {"hashed": 0}])
    return Question(
        f"t{chance.randint(0, 9**6)}", Text(), "prefix", epsilon=chance.choice(["0.5", "2", "7/3"]), **hashed
    )


def basket(chance: random.Random) -> Question:
    items = Items(tuple(f"item {i}" for i in range(chance.choice([1, 3, 8, 40, 70]))))
    count = len(items.vocabulary)
    largest = min(count, chance.choice([1, 3, 6]))
    fixed: dict[str, Any] = {"fixed": chance.randint(0, largest)} if chance.random() < 0.5 else {}
    name = f"b{chance.randint(0, 9**6)}"
    kind = chance.choice(["mask", "cut-and-paste", "select-a-size", "privset", "one-option"])
    if kind in ("privset", "one-option"):
        choose = {"choose": largest} if kind == "privset" else {}
        return Question(name, items, kind, epsilon=chance.choice(["0.5", "1", "7/3"]), **choose)
    if kind == "mask":
        insert = chance.choice([{}, {"insert": chance.choice(["0.05", "0", "1/3"])}])
        return Question(name, items, "mask", keep=chance.choice(["0.9", "2/3", "1"]), largest=largest, **insert)
    if kind == "cut-and-paste":
        rho = chance.choice(["0.1", "1/7", "0.6", "0", "1"])
        return Question(name, items, kind, cutoff=min(count, chance.randint(0, 5)), rho=rho, largest=largest, **fixed)
    return Question(name, items, kind, plans=[plan(chance, size) for size in range(largest + 1)], **fixed)


def plan(chance: random.Random, size: int) -> dict[str, Any]:
    weights = [chance.randint(0, 5) for _ in range(size + 1)]
    weights[chance.randint(0, size)] += 1
    keep = [Fraction(weight, sum(weights)) for weight in weights]
    return {"size": size, "keep": keep, "insert": Fraction(chance.randint(0, 7), 7)}


def value_of(question: Question, chance: random.Random) -> Any:
    """Mostly a good answer."""
    universe = question.universe
    if isinstance(universe, Category):
        return chance.choice([*universe.values, *universe.values, *universe.values, None, "no such value"])
    if isinstance(universe, Items):
        words = universe.vocabulary
        items = chance.sample(words, min(len(words), chance.choice([0, 1, 1, 2, 3, 6])))
        return chance.choice([items, items, items, items, [*items, "no such item"], items + items[:1], "item 0", None])
    if isinstance(universe, Moment):
        return moment_of(universe, chance)
    if isinstance(universe, Text):
        return chance.choice([*WORDS, *WORDS, "süßsauer scharf", "x\0y", "\ud800", None, 7])
    value = universe.low + universe.width * Fraction(chance.randint(-8, 8 * int(universe.size) + 8), 8)  # type: ignore[attr-defined]
    near: list[Callable[[], Any]] = [
        lambda: float(value),
        lambda: math.floor(value),
        lambda: str(value),
        lambda: f" {float(value)!r} ",
    ]
    strange: list[Any] = [
        None,
        "",
        "x",
        "1e3",
        "-.5",
        "+7.",
        "1_0",
        "1/0",
        "1__0",
        "0x10",
        True,
        [],
        1e300,
        -1e-300,
        10**40,
        "inf",
    ]
    return chance.choice(near)() if chance.random() < 0.8 else chance.choice(strange)


def moment_of(universe: Moment, chance: random.Random) -> Any:
    """Return a date or time as text, mostly inside the range; the last ones are not valid."""
    if chance.random() < 0.3:
        strange = ["", None, "2024-02-30", "2024-1-1", "20240101", "now", "2024-10-27T02:30:00.5", "2024-10-27 02:30"]
        strange += [
            "2024-03-31T02:30",
            "2024-10-27T02:30+02:00",
            "24:00",
            "12:60",
            "23:59:59.999999",
            "0000-01-01",
            True,
        ]
        return chance.choice([*strange, 17, "0001-01-01", "9999-12-31", " 2024-03-01 ", "2024-03-01T00:00Z", "08:15"])
    value = universe.shown(Fraction(chance.randint(-8, 8 * universe.size + 8), 8))
    return value.isoformat()


def case(number: object) -> tuple[Collection, list[dict[str, Any]]]:
    """A collection and three rounds of answers, the last like the first."""
    chance = random.Random(f"browser {number}")
    repeats = chance.choice(["memoised", "memoised", "once", "two-layers"])
    make = [
        lambda: single(chance, fresh=repeats == "two-layers"),
        lambda: text(chance) if chance.random() < 0.2 else basket(chance),
    ]
    made_questions = [make[repeats != "two-layers" and chance.random() < 0.3]() for _ in range(chance.randint(1, 3))]
    names = chance.sample(["age", "B_2-x", "constructor", "toString", "items", "valueOf"], len(made_questions))
    questions = dict(zip(names, made_questions, strict=True))
    collection = Collection(
        chance.choice(["shop", "A-b_9"]), questions, repeats, chance.randint(1, 99), **limits(chance)
    )  # type: ignore[arg-type]
    collection = within_lifetime(as_poll(collection, chance), chance)
    rounds = [{name: value_of(question, chance) for name, question in questions.items()} for _ in range(2)]
    if chance.random() < 0.1:
        rounds[1].popitem()
    return collection, [*rounds, rounds[0]]


def limits(chance: random.Random) -> dict[str, Any]:
    return chance.choice(
        [{}, {"holder": chance.choice(["Works council", 'the "gäste" 😀', "constructor", "__proto__"])}]
    )


def as_poll(collection: Collection, chance: random.Random) -> Collection:
    """Sometimes a poll, or a collection that asks each person some of its questions."""
    names = list(collection.questions)
    settings: dict[str, Any] = {}
    if len(names) > 1 and chance.random() < 0.4:
        settings["ask"] = chance.randint(1, len(names) - 1)
    if len(names) == 3 and settings and chance.random() < 0.5:
        settings = {"ask": 1, "together": (tuple(chance.sample(names, 2)),)}
    if chance.random() < 0.3:
        texts = {"en": chance.choice(["Canteen", "<b>", "日本"]), "pt-BR": "Refeitório"}
        wordings = {name: Wording(texts, dict.fromkeys(("never", "1"), texts)) for name in names}
        closes = dt.datetime(2027, 1, 1, chance.randint(0, 23), tzinfo=dt.UTC)
        settings["poll"] = Poll(
            ("en", "pt-BR"), texts, texts, wordings, "open", closes, at_most=chance.choice([None, 9])
        )
    return replace(collection, **settings)


def within_lifetime(collection: Collection, chance: random.Random) -> Collection:
    """Sometimes with a stated lifetime: room for one report, a little more, or much more."""
    report = respondent_loss(collection).in_all
    if not report or chance.random() < 0.5:
        return collection
    return replace(collection, lifetime=report * Fraction(chance.choice(["1", "1.25", "5/3", "7"])))


def next_version(collection: Collection, chance: random.Random) -> Collection:
    """The next version of a collection, with its questions in another order."""
    questions = list(collection.questions.items())
    chance.shuffle(questions)
    return replace(collection, version=collection.version + 1, questions=dict(questions))


def plan_steps(rounds: list[dict[str, Any]], chance: random.Random) -> list[dict[str, Any]]:
    """What is done with the answers, one after the other, in two versions of the collection."""
    works = ["randomize", "tell", "draft", "start", "confirm", "randomize", "tell"]
    steps = [{"work": work, "answers": answers} for answers in rounds for work in ("randomize", "tell")]
    steps += [
        {"version": chance.randint(0, 1), "work": chance.choice(works), "answers": chance.choice(rounds)}
        for _ in range(6)
    ]
    if chance.random() < 0.2:
        steps.insert(chance.randint(0, len(steps)), {"version": chance.randint(0, 1), "work": "forget"})
    return steps


def story(
    versions: list[Collection], steps: list[dict[str, Any]], seed: str, memory: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What the Python client says, step by step, and what it remembers then."""
    memory, source = {} if memory is None else memory, SeededBytes(seed)
    clients = [Client(version.public_dict(), memory=memory, source=source) for version in versions]
    results = [outcome_of(lambda: do_step(clients[step.get("version", 0)], **step)) for step in steps]  # noqa: B023
    result = clients[-1].given()
    losses = {"given": list(map(str, result)), "epsilons": [item.epsilon for item in result]}
    return {"steps": results, **losses, "account": str(clients[-1].account()), "memory": memory}


def do_step(client: Client, work: str, answers: Any = None, version: int = 0) -> Any:
    result = getattr(client, work)(*([] if work == "forget" else [answers]))
    return json.dumps(result, separators=(",", ":")) if isinstance(result, dict) else result


def outcome_of(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except TidegateError as refused:
        return {"refused": refused.what}
