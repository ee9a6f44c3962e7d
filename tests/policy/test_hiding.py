"""Hiding promises in policies: what is read, written, refused, and allowed to change."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from tidegate.accounting.explain import OpenSelection, explain, explain_hiding
from tidegate.errors import PolicyLoosened, PolicyUnreadable
from tidegate.policy import Category, Concealment, Dataset, Hiding, Integer, Key, Policy, parse_policy, write_policy
from tidegate.policy.changes import changes, refuse_loosening

ATTRIBUTES = {
    "name": Key(),
    "age": Integer(16, 60, bins=(20, 40)),
    "place": Category(("a", "b")),
    "unit": Category(("x", "y", "z")),
}
FILE = """
version = 2
[dataset]
name = "soldiers"
unit = "row"
[attributes]
name = { kind = "key" }
age = { kind = "integer", from = 16, to = 60, bins = [20, 40] }
place = { kind = "category", values = ["a", "b"] }
unit = { kind = "category", values = ["x", "y", "z"] }
[promise.hiding.base]
reveals = ["age"]
about = ["place"]
releases = ["name", "age", "place"]
mix = [0.1, 0.2, 0.05]
"""


def hiding(**more: Any) -> Hiding:
    return Hiding(**{"reveals": "age", "about": "place", "mix": ("0.1", "0.2", "0.05"), **more})


def policy(**promises: Hiding) -> Policy:
    return Policy(Dataset("soldiers"), ATTRIBUTES, hidings=promises)


@pytest.mark.parametrize(
    "promise",
    [
        hiding(),
        hiding(mix="table", margin="2.5", among=3, smallest=50, at_most="0.9", answers="allowed"),
        hiding(about=("place", "unit"), releases=("name", "age", "unit")),
    ],
    ids=["declared", "every setting", "two columns of groups"],
)
def test_policy_file_keeps_a_hiding_promise(promise: Hiding) -> None:
    written = policy(base=promise)
    assert parse_policy(write_policy(written)) == written
    assert parse_policy(write_policy(written)).fingerprint == written.fingerprint


def test_defaults_are_those_of_the_specification() -> None:
    promise = parse_policy(FILE).hidings["base"]
    assert (promise.at_most, promise.among, promise.margin) == (Fraction(3, 4), "all", 2)
    assert (promise.smallest, promise.answers, promise.shows) == (100, "refused", "bins")
    assert promise.refusal_factor == 4


WRONG = {
    "no mix": ("mix = [0.1, 0.2, 0.05]", "", "promise.hiding.base.mix is missing"),
    "another word": ("[0.1, 0.2, 0.05]", '"tables"', 'must be "table" or a list of shares'),
    "too few shares": ("[0.1, 0.2, 0.05]", "[0.1, 0.2]", "2 shares for 3 cells of age"),
    "more than everything": ("[0.1, 0.2, 0.05]", "[0.5, 0.5, 0.05]", "at most 1, not 1.05"),
    "a negative share": ("[0.1, 0.2, 0.05]", "[-0.1, 0.2, 0.05]", "must be 0 or more"),
    "nothing": ("[0.1, 0.2, 0.05]", "[0, 0, 0]", "more than 0"),
    "at most everything": ('reveals = ["age"]', 'at_most = 1\nreveals = ["age"]', "below 1, not 1"),
    "among one": ('reveals = ["age"]', 'among = 1\nreveals = ["age"]', 'must be "all" or a whole number of at least 2'),
    "among some": ('reveals = ["age"]', 'among = "some"\nreveals = ["age"]', 'must be "all" or a whole number'),
    "negative margin": ('reveals = ["age"]', 'margin = -1\nreveals = ["age"]', "`margin` must be 0 or more"),
    "no smallest group": ('reveals = ["age"]', 'smallest = 0\nreveals = ["age"]', "at least 1, not 0"),
    "values": ('reveals = ["age"]', 'shows = "values"\nreveals = ["age"]', "always released as bins"),
    "rho": ('reveals = ["age"]', 'rho = 0.5\nreveals = ["age"]', "it follows from `among`"),
    "tests": ('reveals = ["age"]', 'tests = ["dixon"]\nreveals = ["age"]', "hiding uses no test"),
    "names of groups": ('reveals = ["age"]', 'sensitive = ["a"]\nreveals = ["age"]', "a policy is public"),
    "the same column twice": ('about = ["place"]', 'about = ["age"]', "no column can be in both"),
    "a key": ('about = ["place"]', 'about = ["name"]', "is a key or a set"),
    "another column": ('"age", "place"]', '"age", "unit"]', "the promise does not cover it"),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_every_mistake_has_a_message(case: str) -> None:
    old, new, text = WRONG[case]
    assert old in FILE
    with pytest.raises(PolicyUnreadable) as raised:
        parse_policy(FILE.replace(old, new, 1))
    assert text in str(raised.value)


def test_hiding_and_concealment_cannot_be_promised_together() -> None:
    with pytest.raises(PolicyUnreadable, match="both hiding and concealment"):
        Policy(
            Dataset("soldiers"),
            ATTRIBUTES,
            concealments={"old": Concealment(reveals="age", about="place", baseline=(1, 1, 1))},
            hidings={"new": hiding()},
        )


def test_promises_of_one_selection_must_agree() -> None:
    with pytest.raises(PolicyUnreadable, match="different values of `at_most`"):
        policy(one=hiding(), two=hiding(about="unit", at_most="0.5"))
    with pytest.raises(PolicyUnreadable, match="in `reveals` of one hiding promise and in `about` of another"):
        policy(one=hiding(), two=hiding(reveals="place", about="unit"))
    joint = policy(one=hiding(), two=hiding(about="unit")).hiding
    assert joint is not None
    assert (joint.reveals, joint.about) == (("age",), ("place", "unit"))


@pytest.mark.parametrize(
    "after",
    [
        hiding(mix=("0.1", "0.21", "0.05")),
        hiding(mix="table"),
        hiding(at_most="0.8"),
        hiding(margin=1),
        hiding(among=2),
        hiding(smallest=99),
        hiding(answers="allowed"),
        hiding(about=("place", "unit")),
        hiding(releases=("name", "age", "place")),
        None,
    ],
    ids=str,
)
def test_weaker_promise_is_refused(after: Hiding | None) -> None:
    old = policy(base=hiding())
    new = policy(base=after) if after else replace(old, hidings={})
    with pytest.raises(PolicyLoosened):
        refuse_loosening(old, new)
    assert changes(old, new)


def test_lower_mix_and_larger_margin_are_allowed() -> None:
    refuse_loosening(policy(base=hiding()), policy(base=hiding(mix=("0.1", "0.1", "0"))))
    refuse_loosening(policy(base=hiding(mix="table")), policy(base=hiding(mix="table", margin=3)))
    refuse_loosening(policy(base=hiding(mix="table")), policy(base=hiding()))


def test_concealment_cannot_be_added_beside_hiding() -> None:
    new = Policy(
        Dataset("soldiers"),
        ATTRIBUTES,
        concealments={"old": Concealment(reveals="age", about="place", baseline=(1, 1, 1))},
    )
    with pytest.raises(PolicyLoosened):
        refuse_loosening(policy(base=hiding()), new)


def test_check_explains_the_promise_with_its_numbers() -> None:
    said = {finding.about: finding.says for finding in explain(policy(base=hiding()))}
    assert "All 2 groups of place release the same share of each value of age: 35% of each group leave" in said["base"]
    assert "cannot distinguish one group of place from another" in said["observers"]
    assert "by at most 4." in said["refusals"]
    assert "mix" not in said
    table = {finding.about: finding.says for finding in explain(policy(base=hiding(mix="table")))}
    assert "%" not in table["base"]  # it is never previewed
    assert "Declare the mix to hide that too" in table["mix"]


def test_check_explains_decoys() -> None:
    promise = hiding(among=2)
    opened = OpenSelection(Fraction(4, 5), 2, 5)
    said = {finding.about: finding.says for finding in explain_hiding("base", promise, groups=5, selection=opened)}
    assert (
        said["base"] == "2 of 5 groups of place are held to one mix of age, 3 leave in full: 80% of the records leave."
    )
    assert "with probability 50% that it is a sensitive one" in said["observers"]
    assert "to at most 4 to 1 for a hidden group" in said["refusals"]
