"""The concealment promise as a value and in a file: every option survives, and every mistake has a message."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Run, run
from hypothesis import given
from hypothesis import strategies as st
from policy.strategies import probabilities, words

from tidegate.errors import PolicyError, PolicyLoosened, PolicyUnreadable, UnknownColumn
from tidegate.policy import (
    Category,
    Concealment,
    Dataset,
    Grid,
    Integer,
    Items,
    Key,
    Policy,
    Profile,
    parse_policy,
    write_policy,
)
from tidegate.policy.changes import changes, refuse_loosening
from tidegate.policy.concealment import CHOICES, TESTS
from tidegate.policy.toml import policy_from_dict

__all__ = ["run"]

ATTRIBUTES: dict[str, Any] = {
    "name": Key(),
    "age": Integer(16, 60, bins=(30, 45)),
    "pay": Grid("0", "10", "0.5", bins=("5",)),
    "location": Category(("L1", "L2"), "value"),
    "unit": Category((1, 2)),
    "kit": Items(("map", "knife")),
}


def soldiers(promise: Concealment | None = None, **more: Concealment) -> Policy:
    named = {**({"hq": promise} if promise else {}), **more}
    return Policy(Dataset("soldiers"), ATTRIBUTES, concealments=named)


# Round trips

weights = st.one_of(
    st.integers(1, 10**6),
    st.decimals(Decimal("0.0001"), Decimal(99), places=4),
    st.fractions(Fraction(1, 997), 99, max_denominator=997),
)
days = st.dates().map(lambda day: day.isoformat())


@st.composite
def concealments(draw: Any) -> Concealment:
    reveals = draw(st.sampled_from([("age",), ("pay",), ("age", "pay")]))
    about = draw(st.sampled_from([("location",), ("unit",), ("location", "unit"), ("unit", "location")]))
    cells = {"age": 3, "pay": 2, "location": 3, "unit": 2}
    values, groups = (_product(cells[name] for name in names) for names in (reveals, about))
    tests = draw(st.lists(st.sampled_from(TESTS), min_size=1, unique=True))
    result: dict[str, Any] = {name: draw(st.sampled_from(allowed)) for name, allowed in CHOICES.items()}
    baseline = draw(st.sampled_from(["given", "a day", "none"]))
    if baseline == "given":
        result["baseline"] = draw(st.lists(weights, min_size=values, max_size=values))
    elif baseline == "a day":
        result["baseline_from_table_on"] = draw(days)
    if draw(st.booleans()):
        result["shares"] = draw(st.lists(weights, min_size=groups, max_size=groups))
    if draw(st.booleans()):
        result["releases"] = draw(
            st.permutations([*reveals, *about, "name"]).map(lambda names: names[: len(names) - 1])
        )
    if "posterior" in tests:
        shapes = draw(
            st.dictionaries(words, st.lists(weights, min_size=values, max_size=values), min_size=1, max_size=3)
        )
        priors = draw(st.lists(st.integers(1, 100), min_size=len(shapes), max_size=len(shapes)))
        result["profiles"] = {
            name: Profile(prior=Fraction(prior, 1000), values=[0, *shape[1:]])
            for (name, shape), prior in zip(shapes.items(), priors, strict=True)
        }
        result["rho"] = draw(st.fractions(Fraction(301, 1000), Fraction(999, 1000), max_denominator=1000))
    return Concealment(reveals=reveals, about=about, tests=tests, significance=draw(probabilities), **result)


def _product(numbers: Any) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


@given(st.dictionaries(words, concealments(), min_size=1, max_size=3))
def test_every_option_survives_a_file_and_the_ledger(promises: dict[str, Concealment]) -> None:
    policy = Policy(Dataset("soldiers"), ATTRIBUTES, concealments=promises)
    assert parse_policy(write_policy(policy)) == policy
    again = policy_from_dict(json.loads(json.dumps(policy.public_dict())))
    assert again.concealments == policy.concealments
    assert again.fingerprint == policy.fingerprint == parse_policy(write_policy(policy)).fingerprint


FULL = Concealment(
    reveals="age",
    about="location",
    releases=("name", "age"),
    tests=("kullback-leibler", "chi-square", "dixon", "posterior"),
    significance="0.15",
    baseline=(1, "1/3", 2.5),
    shares=(3, 4, 5),
    profiles={"p": Profile(prior="0.1", values=(0, 1, 2)), "q": Profile(prior="0.2", values=(1, 1, 0))},
    rho="0.5",
    merging="smaller-neighbour",
    dixon_table="printed",
    small_samples="published",
    shows="values",
)


def other_value(name: str) -> dict[str, Any]:
    """Return the same promise except for one option."""
    others: dict[str, dict[str, Any]] = {
        "reveals": {
            "reveals": ("pay",),
            "releases": ("name", "pay"),
            "baseline": (1, 1),
            "profiles": {"p": Profile(prior="0.1", values=(0, 1))},
        },
        "about": {"about": ("location", "unit"), "shares": (1,) * 6},
        "releases": {"releases": ("age",)},
        "tests": {"tests": ("kullback-leibler", "posterior")},
        "significance": {"significance": "0.16"},
        "baseline": {"baseline": (1, "1/3", 2.6)},
        "baseline_from_table_on": {"baseline": (), "baseline_from_table_on": "2026-04-01"},
        "shares": {"shares": (3, 4, 6)},
        "profiles": {"profiles": {"p": FULL.profiles["p"]}},
        "rho": {"rho": "0.51"},
        "merging": {"merging": "smallest-first"},
        "dixon_table": {"dixon_table": "exact"},
        "small_samples": {"small_samples": "until-valid"},
        "shows": {"shows": "bins"},
    }
    return others[name]


def but(promise: Concealment, **other: Any) -> Concealment:
    result = {field.name: getattr(promise, field.name) for field in fields(Concealment)}
    return Concealment(**{**result, **other})


@pytest.mark.parametrize("option", [field.name for field in fields(Concealment)])
def test_every_option_is_part_of_the_fingerprint_and_of_the_file(option: str) -> None:
    """An option that is lost in a file would not be promised."""
    old, new = soldiers(FULL), soldiers(but(FULL, **other_value(option)))
    assert old.fingerprint != new.fingerprint
    assert write_policy(old) != write_policy(new)
    assert parse_policy(write_policy(new)) == new
    assert changes(old, new) != []


# Mistakes

FILE = """
[dataset]
name = "soldiers"
unit = "row"

[attributes]
name     = { kind = "key" }
kit      = { kind = "items", vocabulary = ["map", "knife"] }
age      = { kind = "integer", from = 16, to = 60, bins = [30, 45] }
rank     = { kind = "integer", from = 1, to = 3 }
location = { kind = "category", values = ["L1", "L2"] }

[promise.concealment.hq]
reveals      = ["age"]
about        = ["location"]
releases     = ["name", "age", "location"]
tests        = ["kullback-leibler", "posterior"]
significance = 0.2
baseline     = [5, 3, 2]
shares       = [1, 1]
rho          = 0.5
profiles.p   = { prior = 0.2, values = [0, 1, 1] }
"""

WRONG = {
    "baseline too short": ("[5, 3, 2]", "[5, 3]", "baseline has 2 weights for 3 cells of age"),
    "baseline too long": ("[5, 3, 2]", "[5, 3, 2, 1]", "baseline has 4 weights for 3 cells of age"),
    "one weight": ("[5, 3, 2]", "[5]", "at least two weights"),
    "shares of the wrong length": ("[1, 1]\n", "[1, 1, 1]\n", "shares has 3 weights for 2 cells of location"),
    "profile of the wrong length": ("[0, 1, 1]", "[1, 1]", "profiles.p has 2 weights for 3 cells of age"),
    "a zero in the baseline": ("[5, 3, 2]", "[5, 0, 2]", "weight 0 for value 2 of 3"),
    "a zero in the shares": ("[1, 1]\n", "[0, 1]\n", "weight 0 for value 1 of 2"),
    "a weight below zero": ("[5, 3, 2]", "[5, -3, 2]", "none below 0"),
    "a profile of nothing": ("[0, 1, 1]", "[0, 0, 0]", "not all 0"),
    "an infinite weight": ("[5, 3, 2]", "[5, inf, 2]", "promise.concealment.hq.baseline: a finite number is required"),
    "a weight that is no number": (
        "[5, 3, 2]",
        "[5, true, 2]",
        "promise.concealment.hq.baseline: a number is required",
    ),
    "weights that are no list": ("[5, 3, 2]", "5", "promise.concealment.hq.baseline: a list is required"),
    "rho at the prior": ("rho          = 0.5", "rho = 0.2", "rho = 0.2 is already exceeded"),
    "rho below the prior": ("rho          = 0.5", "rho = 0.1", "already exceeded"),
    "rho of one": ("rho          = 0.5", "rho = 1", "a `rho` between 0 and 1"),
    "no rho": ("rho          = 0.5", "", "requires a `rho` between 0 and 1"),
    "a prior of zero": ("prior = 0.2", "prior = 0", "The prior of a profile must be between 0 and 1"),
    "a prior of one": ("prior = 0.2", "prior = 1", "The prior of a profile must be between 0 and 1"),
    "posterior without a profile": ("profiles.p   = { prior = 0.2, values = [0, 1, 1] }", "", "at least one profile"),
    "a profile without its values": (", values = [0, 1, 1]", "", "profiles.p.values is missing"),
    "a profile with a word too many": ("prior = 0.2", "prior = 0.2, priors = 1", "profiles.p.priors"),
    "profiles without posterior": (', "posterior"]', "]", "require the posterior test"),
    "an unknown test": ('"posterior"]', '"posteriori"]', 'Unknown test: "posteriori"'),
    "a test twice": ('"posterior"]', '"posterior", "posterior"]', "each named once"),
    "no test": ('["kullback-leibler", "posterior"]', "[]", "at least one test"),
    "a significance of one": ("significance = 0.2", "significance = 1", "must be between 0 and 1"),
    "a significance of zero": ("significance = 0.2", "significance = 0", "must be between 0 and 1"),
    "a day that is none": (
        "baseline     = [5, 3, 2]",
        'baseline_from_table_on = "April"',
        'a date such as "2026-04-01"',
    ),
    "a day without zeros": (
        "baseline     = [5, 3, 2]",
        'baseline_from_table_on = "2026-4-1"',
        "must be a date such as",
    ),
    "both baselines": ("shares  ", 'baseline_from_table_on = "2026-04-01"\nshares  ', "has two baselines"),
    "an extra column": ('"name", "age"', '"name", "rank", "age"', '"rank" cannot be released'),
    "a set that leaves": ('"name", "age"', '"name", "kit", "age"', '"kit" cannot be released'),
    "a key that is revealed": ('reveals      = ["age"]', 'reveals = ["name"]', "is a key or a set"),
    "items that are revealed": ('reveals      = ["age"]', 'reveals = ["kit"]', "is a key or a set"),
    "a key that it is about": ('["location"]\nrel', '["name"]\nrel', "is a key or a set"),
    "both sides": ('["location"]\nrel', '["age"]\nrel', "no column can be in both"),
    "nothing revealed": ('reveals      = ["age"]', "reveals = []", "requires columns in `reveals`"),
    "reveals left out": ('reveals      = ["age"]', "", "promise.concealment.hq.reveals is missing"),
    "an unknown column": ('reveals      = ["age"]', 'reveals = ["ages"]', 'Did you mean "age"'),
    "an unknown column that leaves": ('"name", "age"', '"nam", "age"', 'Did you mean "name"'),
    "an unknown way to merge": (
        "rho  ",
        'merging = "backward"\nrho  ',
        "promise.concealment.hq.merging: one of forward",
    ),
    "an unknown table": ("rho  ", 'dixon_table = "paper"\nrho  ', "one of exact, printed"),
    "an unknown rule for small samples": ("rho  ", 'small_samples = "never"\nrho  ', "one of until-valid, published"),
    "an unknown way to show": ("rho  ", 'shows = "all"\nrho  ', "one of bins, values"),
    "a misspelt option": ("significance =", "signifcance =", 'Did you mean "significance"'),
    "an open place": ("significance = 0.2", 'significance = "?"', "1 decision is still open"),
}


def test_policy_file_is_parsed() -> None:
    assert parse_policy(FILE).concealments["hq"].profiles["p"].prior == Fraction(1, 5)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", list(WRONG))
def test_every_mistake_has_a_message_that_check_shows(case: str, run: Run, tmp_path: Path) -> None:
    old, new, says = WRONG[case]
    assert old in FILE
    text = FILE.replace(old, new, 1)
    with pytest.raises(PolicyError) as raised:
        parse_policy(text)
    assert says in str(raised.value)
    assert raised.value.what.endswith(".")
    assert "\n" not in raised.value.what
    (tmp_path / "soldiers.toml").write_text(text)
    code, _, err = run("check", tmp_path / "soldiers.toml")
    assert code == 2
    assert says.split('"')[0] in " ".join(err.split())


@pytest.mark.parametrize("day", ["2026-02-30", "2026-13-01", "2026-00-00", "٢٠٢٦-٠٤-٠١"])
def test_invalid_day_is_refused(day: str) -> None:
    with pytest.raises(PolicyUnreadable, match="a date such as"):
        Concealment(reveals="age", about="location", baseline_from_table_on=day)


BAD_VALUES: dict[str, Callable[[], Any]] = {
    "a zero weight": lambda: Concealment(reveals="age", about="location", baseline=(1, 0)),
    "an unknown test": lambda: Concealment(reveals="age", about="location", tests="entropy"),
    "rho without posterior": lambda: Concealment(reveals="age", about="location", rho="0.4"),
    "a column on both sides": lambda: Concealment(reveals=("age", "pay"), about="age"),
    "an unknown way to merge": lambda: Concealment(reveals="age", about="location", merging="?"),  # type: ignore[arg-type]
    "priors above rho together": lambda: but(FULL, rho="0.3"),
    "a prior above one": lambda: Profile(prior=2, values=(1, 1)),
    "a baseline of the wrong length": lambda: soldiers(Concealment(reveals="age", about="location", baseline=(1, 1))),
    "an extra column": lambda: soldiers(Concealment(reveals="age", about="location", releases=("age", "pay"))),
}


@pytest.mark.parametrize("case", list(BAD_VALUES))
def test_mistake_in_a_value_is_reported_in_a_full_sentence(case: str) -> None:
    with pytest.raises(PolicyUnreadable) as raised:
        BAD_VALUES[case]()
    assert raised.value.what.endswith(".")


def test_unknown_column_is_reported_with_the_nearest() -> None:
    with pytest.raises(UnknownColumn, match='Did you mean "location"'):
        soldiers(Concealment(reveals="age", about="locaton"))


def test_check_describes_the_promise(run: Run, tmp_path: Path) -> None:
    (tmp_path / "soldiers.csv").write_text("name,kit,age,rank,location\na,map,20,1,L1\n")
    (tmp_path / "soldiers.toml").write_text(FILE.replace('unit = "row"', 'unit = "row"\nsource = "soldiers.csv"'))
    code, out, err = run("check", tmp_path / "soldiers.toml", "--json")
    assert (code, err) == (0, ""), out
    content = {finding["about"]: finding["says"] for finding in json.loads(out)["findings"]}
    assert "age must not reveal location" in content["hq"]
    assert "kullback-leibler and posterior" in content["hq"]


# What may change once the desk is open

TIGHTER: dict[str, dict[str, Any]] = {
    "a higher significance": {"significance": "0.3"},
    "one more test": {"tests": (*FULL.tests, "mutual-information")},
    "a lower rho": {"rho": "0.4"},
    "one more profile": {"profiles": {**FULL.profiles, "r": Profile(prior="0.1", values=(1, 0, 0))}},
    "fewer columns leave": {"releases": ("age",)},
    "nothing": {},
    "the tests in another order": {"tests": FULL.tests[::-1]},
}
LOOSER: dict[str, dict[str, Any]] = {
    "a lower significance": {"significance": "0.1"},
    "one test less": {"tests": ("kullback-leibler", "posterior")},
    "no posterior": {"tests": ("kullback-leibler", "chi-square", "dixon"), "profiles": {}, "rho": None},
    "a higher rho": {"rho": "0.6"},
    "one profile less": {"profiles": {"p": FULL.profiles["p"]}},
    "another profile": {"profiles": {**FULL.profiles, "p": Profile(prior="0.1", values=(0, 2, 1))}},
    "another prior": {"profiles": {**FULL.profiles, "p": Profile(prior="0.05", values=(0, 1, 2))}},
    "more columns leave": {"releases": ("name", "age", "location")},
    **{name: other_value(name) for name in ("reveals", "about", "baseline", "baseline_from_table_on", "shares")},
    **{name: other_value(name) for name in CHOICES},
}


@pytest.mark.parametrize("case", list(TIGHTER))
def test_promise_can_become_stricter(case: str) -> None:
    new = soldiers(but(FULL, **TIGHTER[case]))
    refuse_loosening(soldiers(FULL), new)
    assert bool(changes(soldiers(FULL), new)) == (case != "nothing")


@pytest.mark.parametrize("case", list(LOOSER))
def test_promise_cannot_become_looser(case: str) -> None:
    with pytest.raises(PolicyLoosened, match="the concealment promise hq would be weaker"):
        refuse_loosening(soldiers(FULL), soldiers(but(FULL, **LOOSER[case])))


def test_promise_can_be_added_but_not_removed() -> None:
    plain = Concealment(reveals="pay", about="unit")
    refuse_loosening(soldiers(FULL), soldiers(FULL, more=plain))
    assert changes(soldiers(FULL), soldiers(FULL, more=plain)) == [f"concealment more: not promised -> {plain}"]
    with pytest.raises(PolicyLoosened, match="hq would be removed"):
        refuse_loosening(soldiers(FULL), soldiers(more=plain))
    renamed = replace(soldiers(FULL), concealments={"headquarters": FULL})
    with pytest.raises(PolicyLoosened, match="hq would be removed"):
        refuse_loosening(soldiers(FULL), renamed)
