"""The same bits give the same report in the browser, byte for byte; what it is drawn with follows from the description alone."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from claims.probabilities import SEED, chance
from support.form_service import Fault, Site
from web.cases import case, next_version, plan_steps, story

from tidegate.errors import TidegateError
from tidegate.exact import say
from tidegate.policy import Category, Collection, Integer, Question
from tidegate.policy.attributes import Items
from tidegate.policy.fingerprint import fingerprint_of
from tidegate.policy.toml import collection_from_dict

if TYPE_CHECKING:
    from playwright.sync_api import Page

VECTORS = json.loads((Path(__file__).parent.parent / "collect" / "vectors.json").read_text("utf-8"))


def run(tab: Page, work: str, *args: Any, base: str = "/client") -> Any:
    """Run a function of draws.js in the page."""
    program = "async ([work, args]) => (await import('/tests/draws.js'))[work](...args)"
    return tab.evaluate(program, [work, [base, *args]])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("entry", VECTORS["operators"], ids=lambda entry: entry["seed"])
def test_browser_reproduces_the_vectors_of_single_values(entry: dict[str, Any], tab: Page) -> None:
    [drawn] = run(tab, "operators", [entry])
    assert drawn == {name: entry[name] for name in ("recipe", "permanent", "fresh")}


@pytest.mark.parametrize("entry", VECTORS["baskets"], ids=lambda entry: entry["seed"])
def test_browser_reproduces_the_vectors_of_baskets(entry: dict[str, Any], tab: Page) -> None:
    [drawn] = run(tab, "operators", [entry])
    assert (drawn["recipe"], drawn["permanent"]) == (entry["recipe"], entry["reports"])


@pytest.mark.parametrize("entry", VECTORS["texts"], ids=lambda entry: entry["seed"])
def test_browser_reproduces_the_vectors_of_texts(entry: dict[str, Any], tab: Page) -> None:
    [drawn] = run(tab, "texts", [entry])
    assert drawn == {name: entry[name] for name in ("recipe", "codes", "reports")}


@pytest.mark.parametrize("vector_name", ["client", "shopper"])
def test_whole_report_is_identical(vector_name: str, tab: Page) -> None:
    entry = VECTORS[vector_name]
    [result] = run(tab, "stories", [whole_report(vector_name)])
    assert result["steps"][0] == json.dumps(entry["report"], separators=(",", ":"))


def whole_report(vector_name: str) -> dict[str, Any]:
    entry = VECTORS[vector_name]
    steps = [{"work": "randomize", "answers": entry["answers"]}]
    return {"seed": entry["seed"], "description": entry["description"], "steps": steps}


def test_answers_are_stored_under_the_same_keys(tab: Page) -> None:
    assert run(tab, "keys", VECTORS["keys"]) == [entry["key"] for entry in VECTORS["keys"]]


def random_stories(cases: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Some hundred random collections, with the Python client's own stories."""
    result, expected = [], []
    for number in range(cases):
        seed = f"{SEED} {number}"
        collection, rounds = case(seed)
        draw = random.Random(f"steps {seed}")
        later, steps = next_version(collection, draw), plan_steps(rounds, draw)
        result.append(
            {"seed": seed, "description": collection.public_dict(), "later": later.public_dict(), "steps": steps}
        )
        expected.append(story([collection, later], steps, seed))
    return result, expected


@pytest.mark.parametrize("cases", [100, pytest.param(400, marks=pytest.mark.long)])
def test_any_report_equals_the_python_client(tab: Page, cases: int) -> None:
    """Reports, refusals, explanations, losses and memory have the same texts."""
    result, expected = random_stories(cases)
    output = run(tab, "stories", result)
    for scenario, ours, theirs in zip(result, output, expected, strict=True):
        assert ours["steps"] == theirs["steps"], scenario
        assert ours["account"] == theirs["account"], scenario
        assert json.loads(ours["memory"]) == json.loads(json.dumps(theirs["memory"])), scenario
        assert ours["epsilons"] == pytest.approx(theirs["epsilons"], rel=1e-12, abs=1e-12), scenario
        told_losses = [
            epsilon == 0 or epsilon > 1e-9 for epsilon in theirs["epsilons"]
        ]  # else: rounding of a logarithm
        assert list(compress(ours["given"], told_losses)) == list(compress(theirs["given"], told_losses)), scenario
    reports = [step for scenario in expected for step in scenario["steps"] if isinstance(step, str)]
    refused = [step for scenario in expected for step in scenario["steps"] if isinstance(step, dict)]
    assert len(reports) > cases
    assert len(refused) > cases / 4


FAULTS = {
    "below without a rejection": Fault("bits.js", "if (drawn < last)", "if (drawn >= 0)"),
    "a basket in no order": Fault("operators/baskets.js", "return basket;", "return basket.reverse();"),
    "a subset in no order": Fault("operators/subset.js", "[...held].sort((one, other) => one - other)", "[...held]"),
    "a coin that is a hair off": Fault("operators/response.js", "(FULL * power) /", "1n + (FULL * power) /"),
    "rare rounded down": Fault(
        "operators/unary.js", "expBelow(epsilon) + ONE).ceil()", "expBelow(epsilon) + ONE).floor()"
    ),
    "little endian": Fault("bits.js", "bytes.reduce(", "bytes.reverse().reduce("),
    "the seal before the answers": Fault("client.js", "    this.#meet();\n", "    this.#meet(); this.#identity();\n"),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", FAULTS)
def test_vectors_detect_planted_faults(name: str, tab: Page, site: Site) -> None:
    planted = name.replace(" ", "-")  # modules are kept by their address: each fault has its own
    site.faults[planted] = FAULTS[name]
    base = f"/fault/{planted}"
    entries = [*VECTORS["operators"], *VECTORS["baskets"]]
    drawn = run(tab, "operators", entries, base=base)
    response = [entry.get("permanent", entry.get("reports")) for entry in entries]
    recipes = [story["recipe"] == entry["recipe"] for story, entry in zip(drawn, entries, strict=True)]
    whole = [whole_report(item) for item in ("client", "shopper")]
    result = [story["steps"][0] for story in run(tab, "stories", whole, base=base)]
    reports = [json.dumps(VECTORS[item]["report"], separators=(",", ":")) for item in ("client", "shopper")]
    assert not (all(recipes) and [story["permanent"] for story in drawn] == response and result == reports)


ALPHA, DRAWS = 1e-6, 60_000
TOWN = Question("town", Category(tuple(range(150))), "randomized-response", epsilon=3)


def expected_counts() -> Any:
    from tidegate.policy.collection import operator_for

    operator = operator_for(TOWN)
    return np.array([float(operator.probability(report, 7)) for report in range(operator.values)])


def test_random_bytes_of_the_browser_follow_the_channel(tab: Page) -> None:
    """60,000 responses of one value; fails by chance once in a million runs."""
    counts = np.array(run(tab, "counts", TOWN.public_dict(), 7, DRAWS))
    assert chance(counts, expected_counts()) > ALPHA


def test_channel_claim_detects_planted_faults(tab: Page, site: Site) -> None:
    """Without the rejection codes below 107 come twice as often as the others."""
    site.faults["biased"] = FAULTS["below without a rejection"]
    counts = np.array(run(tab, "counts", TOWN.public_dict(), 7, DRAWS, base="/fault/biased"))
    assert chance(counts, expected_counts()) < ALPHA


SHOP = Collection(
    "shop",
    {
        "age": Question("age", Integer(16, 60, (18, 30)), "square-wave", epsilon=2),
        "town": Question("town", Category(("nörd", "<south>"), "value"), "unary", epsilon=1),
        "bought": Question("bought", Items(("milk", "bread", "tea")), "mask", keep="0.9"),
    },
)


def change_description(*path: str, to: Any) -> dict[str, Any]:
    """A description with another value somewhere, under a fingerprint that fits (None: taken out)."""
    content: dict[str, Any] = deepcopy(SHOP.public_dict())
    part = content
    for word in path[:-1]:
        part = part[word]
    if to is None:
        part.pop(path[-1])
    else:
        part[path[-1]] = to
    promised = {name: value for name, value in content.items() if name not in ("fingerprint", "closed", "clients")}
    return {**content, "fingerprint": fingerprint_of(promised)} if path[-1] != "fingerprint" else content


AGE, TOWNS, BOUGHT = ("questions", "age"), ("questions", "town"), ("questions", "bought")
GRID = {"kind": "grid", "from": 0, "to": 1, "step": "0.3", "missing": "dropped"}
HOSTILE = {
    "a fingerprint of something else": change_description("fingerprint", to="0" * 64),
    "no fingerprint": change_description("fingerprint", to=None),
    "a recipe beside the question": change_description(*AGE, "recipe", to={"draw": "even", "reach": 0}),
    "a key that nobody knows": change_description("noise", to="none"),
    "an unknown operator": change_description(*AGE, "operator", to="none"),
    "an operator of the language": change_description(*AGE, "operator", to="constructor"),
    "no operator": change_description(*AGE, "operator", to=None),
    "an epsilon that hides nothing": change_description(*AGE, "epsilon", to=21),
    "an epsilon of nothing": change_description(*AGE, "epsilon", to=0),
    "an epsilon below nothing": change_description(*AGE, "epsilon", to="-1"),
    "an epsilon in words": change_description(*AGE, "epsilon", to="much"),
    "no epsilon": change_description(*AGE, "epsilon", to=None),
    "another parameter": change_description(*AGE, "privacy", to=1),
    "each without layers": change_description(*TOWNS, "each", to="0.5"),
    "numbers for a category": change_description(*TOWNS, "operator", to="square-wave"),
    "bins outside": change_description(*AGE, "universe", "bins", to=[18, 61]),
    "bins that fall": change_description(*AGE, "universe", "bins", to=[30, 18]),
    "bounds the wrong way": change_description(*AGE, "universe", "to", to=3),
    "an unknown kind": change_description(*AGE, "universe", "kind", to="words"),
    "a key": change_description(*AGE, "universe", to={"kind": "key"}),
    "a grid that does not reach its end": change_description(*AGE, "universe", to=GRID),
    "a strange missing": change_description(*AGE, "universe", "missing", to="never"),
    "a value listed twice": change_description(*TOWNS, "universe", "values", to=["a", "a"]),
    "values of two kinds": change_description(*TOWNS, "universe", "values", to=["a", 1]),
    "no values": change_description(*TOWNS, "universe", "values", to=[]),
    "an item named twice": change_description(*BOUGHT, "universe", "vocabulary", to=["tea", "tea"]),
    "a set by a single operator": change_description(*BOUGHT, "operator", to="unary"),
    "a probability above 1": change_description(*BOUGHT, "keep", to="1.5"),
    "a set without its parameter": change_description(*BOUGHT, "keep", to=None),
    "plans where none belong": change_description(*BOUGHT, "plans", to=[{"size": 0, "keep": [1], "insert": 0}]),
    "more items than there are": change_description(*BOUGHT, "largest", to=4),
    "a version of nothing": change_description("version", to=0),
    "a version in words": change_description("version", to="1"),
    "strange repeats": change_description("repeats", to="always"),
    "two layers of one": change_description("repeats", to="two-layers"),
    "no question": change_description("questions", to={}),
    "questions in a list": change_description("questions", to=[]),
    "a name with a slash": change_description("questions", "a/b", to=SHOP.public_dict()["questions"]["town"]),
    "one attribute in two ways": change_description(*TOWNS, "attribute", to="age"),
    "closed in words": change_description("closed", to="no"),
    "a holder without a name": change_description("holder", to=""),
    "a holder on two lines": change_description("holder", to="two\nlines"),
    "a holder of 121 letters": change_description("holder", to="x" * 121),
    "a lifetime in words": change_description("lifetime", to="long"),
    "a lifetime of nothing": change_description("lifetime", to=0),
    "a lifetime below one report": change_description("lifetime", to="2.9"),
}


def test_description_refused_by_python_is_refused_in_the_browser(tab: Page) -> None:
    for description in HOSTILE.values():
        with pytest.raises(TidegateError):
            collection_from_dict(json.loads(json.dumps(description)))
    why = run(tab, "readings", list(HOSTILE.values()))
    assert [name for name, reason in zip(HOSTILE, why, strict=True) if not reason] == []


def test_published_description_is_accepted(tab: Page) -> None:
    council = replace(SHOP, holder="Works council 😀", lifetime=Fraction("30.5")).public_dict()
    described = [{**SHOP.public_dict(), "closed": True, "clients": 9}, change_description("version", to=7), council]
    assert run(tab, "readings", described) == [None, None, None]
    for item in described:
        collection_from_dict(json.loads(json.dumps(item)))
    assert run(tab, "readings", [{**SHOP.public_dict(), "version": 2}])[0].startswith("The description of")


def test_numbers_have_the_same_text_as_in_python(tab: Page) -> None:
    draw = random.Random(f"{SEED} sayings")
    pairs = [
        (draw.randint(-(10**k), 10**k), draw.choice([1, 3, 7, 8, 1000, 2**60, 10**40, 10**5]))
        for k in range(1, 25)
        for _ in range(20)
    ]
    ties = [(k, under) for under in (8, 16, 40, 80, 2000) for k in range(1, 400, 2)]
    edges = [
        (9995, 1000),
        (99995, 10**9),
        (10**6 - 1, 10**10),
        (10**7 - 5, 10),
        (10**400, 3),
        (1, 10**330),
        (0, 1),
        (10**15, 1),
        (10**15 - 1, 1),
    ]
    numbers = [(*pair, digits) for pair in [*pairs, *ties, *edges] for digits in (2, 3)]
    expected = [say(Fraction(over, under), digits) for over, under, digits in numbers]
    assert run(tab, "saying", [[str(over), str(under), digits] for over, under, digits in numbers]) == expected


def test_digests_equal_the_standard(tab: Page) -> None:
    texts = ["", "abc", "ä" * 31, *("x" * size for size in (54, 55, 56, 63, 64, 65, 119, 120, 1000))]
    expected = [
        [hashlib.sha256(text.encode()).hexdigest(), hmac.new(text.encode(), b"message", hashlib.sha256).hexdigest()]
        for text in texts
    ]
    assert run(tab, "digests", texts) == expected
