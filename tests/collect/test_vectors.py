"""The same bits give the same report, byte for byte: vectors.json is for clients in any language.

python tests/collect/test_vectors.py      writes vectors.json anew (after a change that is meant)
"""

from __future__ import annotations

import datetime as dt
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from reference import recipes

from tidegate.collect.client import Client
from tidegate.collect.encoding import code_of
from tidegate.collect.memory import question_key
from tidegate.operators import BasketOperator, ChoiceOperator
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
    Question,
    Text,
    Time,
    Timestamp,
)
from tidegate.policy.collection import operator_for

FILE = Path(__file__).with_name("vectors.json")
AGE, PAY = Integer(16, 60), Grid(0, 10, "0.5")
TOWN, WORD = Category(("north", "east", "south", "west"), "value"), Category(tuple(f"w{i}" for i in range(300)))
JOINED = Date(dt.date(2024, 1, 1), dt.date(2024, 12, 31), "week")
ORDERED = Timestamp(dt.datetime(2024, 10, 26), dt.datetime(2024, 10, 28), "hour", "Europe/Paris")
OPENED, PRICE = Time(dt.time(8), dt.time(20), "15-minutes"), Decimal("0.00", "5.00", "0.05", outside="missing")
CODED = Category(("a1", "b2"), "value", "other", "codes.csv", "code", "0" * 64)
QUESTIONS = {
    "uniform by privacy": Question("age", AGE, "uniform-noise", privacy=1),
    "uniform by half-width": Question("pay", PAY, "uniform-noise", half_width="2.2"),
    "gaussian by privacy": Question("age", AGE, "gaussian-noise", privacy="0.5"),
    "gaussian by sigma": Question("pay", PAY, "gaussian-noise", sigma="1.25"),
    "laplace": Question("age", AGE, "laplace-noise", epsilon=2),
    "square wave": Question("age", AGE, "square-wave", epsilon=2),
    "square wave, weak": Question("pay", PAY, "square-wave", epsilon="0.5"),
    "response": Question("town", TOWN, "randomized-response", epsilon=1),
    "response among many": Question("word", WORD, "randomized-response", epsilon=4),
    "response, two layers": Question("town", TOWN, "randomized-response", epsilon=3, each=1),
    "unary": Question("town", TOWN, "unary", epsilon=1),
    "unary, two layers": Question("town", TOWN, "unary", epsilon=3, each=1),
    "subset": Question("word", WORD, "subset", epsilon=3),
    "projective geometry": Question("word", WORD, "projective-geometry", epsilon=2),
    "projective geometry, few": Question("town", TOWN, "projective-geometry", epsilon="0.5"),
    "projective geometry, large prime": Question("word", WORD, "projective-geometry", epsilon=5),
    "hash response": Question("word", WORD, "hash-response", epsilon=1),
    "hash response, two layers": Question("word", WORD, "hash-response", epsilon=3, each=1),
    "hash response, two values": Question("married", Boolean(), "hash-response", epsilon=2, each="0.5"),
    "hybrid": Question("age", AGE, "hybrid", epsilon=2),
    "hybrid, ends alone": Question("pay", PAY, "hybrid", epsilon="0.5"),
    "date": Question("joined", JOINED, "square-wave", epsilon=2),
    "timestamp": Question("ordered", ORDERED, "laplace-noise", epsilon=1),
    "time": Question("opened", OPENED, "uniform-noise", half_width=4),
    "decimal": Question("price", PRICE, "gaussian-noise", sigma="0.2"),
    "boolean": Question("married", Boolean("value"), "randomized-response", epsilon=1),
    "category from a file": Question("code", CODED, "unary", epsilon=1),
}
SHELF = Items(tuple(f"i{i}" for i in range(30)))
PLANS = [
    {"size": 0, "keep": [1], "insert": "0.1"},
    {"size": 1, "keep": ["0.25", "0.75"], "insert": "0.05"},
    {"size": 2, "keep": ["0.1", "0.2", "0.7"], "insert": "0.2"},
    {"size": 4, "keep": ["0.1", "0.1", "0.2", "0.2", "0.4"], "insert": "0.3"},
]
BASKETS = {
    "select-a-size": Question("bought", SHELF, "select-a-size", plans=PLANS),
    "select-a-size, one size": Question("bought", SHELF, "select-a-size", plans=PLANS, fixed=2),
    "cut-and-paste": Question("bought", SHELF, "cut-and-paste", cutoff=3, rho="0.1", largest=5),
    "cut-and-paste, one size": Question("bought", SHELF, "cut-and-paste", cutoff=3, rho="0.1", largest=5, fixed=3),
    "mask": Question("bought", SHELF, "mask", keep="0.9"),
    "privset": Question("bought", SHELF, "privset", epsilon=1, choose=4),
    "privset, all": Question("bought", SHELF, "privset", epsilon="0.25", choose=30),
    "one option": Question("bought", SHELF, "one-option", epsilon="1.5"),
    "mask, not symmetric": Question("bought", SHELF, "mask", keep="0.6", insert="0.05", largest=5),
}
WRITTEN = ["a", "curry", "Sauerkraut", "süß", "日本語です", "ééééé", "😀😀😀", "12345678", "123456789", "x" * 300]
TEXTS = {
    "prefix": Question("dish", Text(), "prefix", epsilon=2),
    "prefix, two": Question("dish", Text(), "prefix", epsilon="0.5"),
    "prefix, large prime": Question("dish", Text(), "prefix", epsilon=8),
    "prefix, hashed": Question("dish", Text(), "prefix", epsilon=4, hashed=1),
}
GIVEN = [[], [7], [3, 29], [29, 0, 11, 4], [12], [5, 6], [8, 1, 2, 9], [21, 20], [0], [23, 19, 17, 13]]
GIVEN += [[28, i, 27 - i, 2 * i + 1] for i in range(3, 11)] + [[29, i] for i in range(6)]  # in no order
COLLECTION = Collection(
    "shoppers", {"age": QUESTIONS["square wave"], "town": QUESTIONS["unary"], "pay": QUESTIONS["gaussian by sigma"]}
)
ANSWERS: dict[str, Any] = {"age": 34, "town": "south", "pay": 3.3}


HOLDERS = ("", 'Works council, "Example" Ltd, Zürich')
SHOPPING = Collection("shopping", {"bought": BASKETS["select-a-size"]})


def make_vectors() -> dict[str, Any]:
    operators = [vector(name, question) for name, question in QUESTIONS.items()]
    report = Client(COLLECTION, source=SeededBytes("client")).randomize(ANSWERS)
    client = {"seed": "client", "description": COLLECTION.public_dict(), "answers": ANSWERS, "report": report}
    baskets = [basket_vector(name, question) for name, question in BASKETS.items()]
    bought = Client(SHOPPING, source=SeededBytes("shopper")).randomize({"bought": ["i3", "i29"]})
    shopper = {
        "seed": "shopper",
        "description": SHOPPING.public_dict(),
        "answers": {"bought": ["i3", "i29"]},
        "report": bought,
    }
    return {
        "stream": "block i is SHA-256(seed/i), see collect/_bits.py",
        "operators": operators,
        "baskets": baskets,
        "texts": [text_vector(name, question) for name, question in TEXTS.items()],
        "client": client,
        "shopper": shopper,
        "keys": [
            key_vector(holder, question)
            for holder in HOLDERS
            for question in (*QUESTIONS.values(), *BASKETS.values(), *TEXTS.values())
        ],
    }


def key_vector(holder: str, question: Question) -> dict[str, Any]:
    return {"holder": holder, "question": question.public_dict(), "key": question_key(holder, question)}


def basket_vector(name: str, question: Question) -> dict[str, Any]:
    operator, source = operator_for(question), SeededBytes(name)
    assert isinstance(operator, BasketOperator | ChoiceOperator)
    reports = [operator.sample_basket(basket, source) for basket in GIVEN]
    about = {"seed": name, "question": question.public_dict(), "recipe": operator.recipe()}
    return {**about, "baskets": GIVEN, "reports": reports}


def text_vector(name: str, question: Question) -> dict[str, Any]:
    operator, source = operator_for(question), SeededBytes(name)
    codes = [code_of(question, text) for text in WRITTEN]
    reports = [operator.sample(code, source) for code in codes]
    about = {"seed": name, "question": question.public_dict(), "recipe": operator.recipe()}
    return {**about, "texts": WRITTEN, "codes": [f"{code:016x}" for code in codes], "reports": reports}


def vector(name: str, question: Question) -> dict[str, Any]:
    operator, source = operator_for(question), SeededBytes(name)
    codes = [i * 7 % operator.values for i in range(20)]
    permanent = [operator.sample(code, source) for code in codes]
    fresh = [operator.repeated(report, source) for report in permanent]
    return {
        "seed": name,
        "question": question.public_dict(),
        "recipe": operator.recipe(),
        "codes": codes,
        "permanent": permanent,
        "fresh": fresh,
    }


def test_client_draws_the_vectors() -> None:
    assert json.loads(json.dumps(make_vectors())) == json.loads(FILE.read_text("utf-8"))


@pytest.mark.parametrize(
    "entry", json.loads(FILE.read_text("utf-8"))["operators"] if FILE.exists() else [], ids=lambda entry: entry["seed"]
)
def test_client_built_from_recipes_draws_the_same_reports(entry: dict[str, Any]) -> None:
    stream = recipes.stream(entry["seed"])
    reports = [recipes.permanent(entry["recipe"], code, stream) for code in entry["codes"]]
    assert reports == entry["permanent"]
    assert [recipes.fresh(entry["recipe"], report, stream) for report in reports] == entry["fresh"]


@pytest.mark.parametrize(
    "entry",
    json.loads(FILE.read_text("utf-8")).get("baskets", []) if FILE.exists() else [],
    ids=lambda entry: entry["seed"],
)
def test_client_built_from_recipes_draws_the_same_baskets(entry: dict[str, Any]) -> None:
    stream = recipes.stream(entry["seed"])
    assert [recipes.permanent(entry["recipe"], basket, stream) for basket in entry["baskets"]] == entry["reports"]


@pytest.mark.parametrize(
    "entry",
    json.loads(FILE.read_text("utf-8")).get("texts", []) if FILE.exists() else [],
    ids=lambda entry: entry["seed"],
)
def test_client_built_from_recipes_draws_the_same_prefixes(entry: dict[str, Any]) -> None:
    stream = recipes.stream(entry["seed"])
    codes = [int(code, 16) for code in entry["codes"]]
    assert [recipes.permanent(entry["recipe"], code, stream) for code in codes] == entry["reports"]


@pytest.mark.parametrize("index", [0, 1, 2, 3])
def test_client_that_does_not_sort_a_basket_is_detected(index: int, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = json.loads(FILE.read_text("utf-8"))["baskets"][index]
    monkeypatch.setattr(recipes, "sorted", list, raising=False)
    stream = recipes.stream(entry["seed"])
    assert [recipes.permanent(entry["recipe"], basket, stream) for basket in entry["baskets"]] != entry["reports"]


def test_every_operator_has_a_vector() -> None:

    from tidegate.operators import BASKET_OPERATORS, CHOICE_OPERATORS, TEXT_OPERATORS, VALUE_OPERATORS

    assert set(VALUE_OPERATORS) == {question.operator for question in QUESTIONS.values()}
    assert {*BASKET_OPERATORS, *CHOICE_OPERATORS} == {question.operator for question in BASKETS.values()}
    assert set(TEXT_OPERATORS) == {question.operator for question in TEXTS.values()}


def test_parameters_in_units_are_rounded_up_to_whole_steps() -> None:
    assert operator_for(QUESTIONS["uniform by half-width"]).recipe()["reach"] == 5  # 2.2 in steps of 0.5
    assert operator_for(QUESTIONS["gaussian by sigma"]).sigma == Fraction(5, 2)


if __name__ == "__main__":
    FILE.write_text(json.dumps(make_vectors(), indent=1) + "\n", "utf-8")
