"""A policy survives TOML and back, and what is wrong in a file is said where it is."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from policy.strategies import policies

from tidegate.errors import PolicyIncomplete, PolicyUnreadable, UnknownColumn
from tidegate.policy import Policy, parse_policy, write_policy
from tidegate.policy.draft import ColumnType, draft_policy, propose_synthesis
from tidegate.policy.toml import load_toml, policy_from_dict, read_policy

SOLDIERS = """
[dataset]
name   = "soldiers"
source = "soldiers.parquet"
unit   = "row"

[attributes]
name     = { kind = "key" }
age      = { kind = "integer", from = 16, to = 60, bins = [18, 20, 25, 30, 35, 40, 45, 50, 55] }
location = { kind = "category", values = ["L1", "L2", "L3", "L4", "L5"] }

[promise.identification]
rho     = 0.05
worlds  = "values"
protect = ["age"]

[promise.concealment.headquarters]
reveals      = ["age"]
about        = ["location"]
tests        = ["mutual-information", "kullback-leibler"]
significance = 0.20
releases     = ["name", "age", "location"]
"""


@given(policies())
def test_policy_survives_toml(policy: Policy) -> None:
    assert parse_policy(write_policy(policy)) == policy


@given(policies())
def test_policy_survives_the_ledger_and_keeps_its_fingerprint(policy: Policy) -> None:
    again = policy_from_dict(policy.public_dict())
    assert again.fingerprint == policy.fingerprint
    assert (again.attributes, again.identification, again.concealments) == (
        policy.attributes,
        policy.identification,
        policy.concealments,
    )


def test_example_of_the_design_has_exact_decimals() -> None:
    policy = parse_policy(SOLDIERS)
    assert policy.identification is not None
    assert policy.identification.rho == Fraction(1, 20)
    assert policy.concealments["headquarters"].significance == Fraction(1, 5)
    assert policy.attributes["age"].size == 45


@given(policies())
def test_locations_and_passwords_are_not_in_the_fingerprint(policy: Policy) -> None:
    from dataclasses import replace

    password = "longer-than-any-drawn-word"
    location = f"postgresql://me:{password}@host/db?table=t"
    moved = replace(policy, dataset=replace(policy.dataset, source=location, ledger="x"))
    assert moved.fingerprint == policy.fingerprint
    assert moved.public_dict() == policy.public_dict()
    assert password not in str(moved.public_dict())


WRONG = {
    "a misspelt promise": ("rho     = 0.05", "rhoo = 0.05", "promise.identification.rho is missing"),
    "a key nobody knows": ('worlds  = "values"', 'worlds = "values"\npopulatoin = 5', 'Did you mean "population"?'),
    "rho above one": ("rho     = 0.05", "rho = 1.5", "between 0 and 1"),
    "rho as a word": ("rho     = 0.05", 'rho = "small"', "promise.identification.rho: a finite number is required"),
    "an unknown kind": (
        'kind = "integer"',
        'kind = "int"',
        "one of integer, grid, decimal, date, timestamp, time, boolean, category, text, items, key",
    ),
    "bounds the wrong way": ("from = 16, to = 60", "from = 60, to = 16", "from <= to"),
    "bins outside": ("bins = [18,", "bins = [10,", "must rise strictly inside"),
    "a value twice": ('["L1", "L2"', '["L1", "L1"', "twice"),
    "an unknown test": ('"kullback-leibler"]', '"kullback"]', 'Unknown test: "kullback"'),
    "a released column that no test covers": ("[promise.identification]", "[promise.identification]", ""),
    "records of rows": ('unit   = "row"', 'unit = "row"\nrecords = 9', "only for data sets in which a person can"),
    "no records": (
        'unit   = "row"',
        'unit = { person = "name", at_most = 3 }\nrecords = 0',
        "`records`, about how many rows there are, must be at least 1, not 0",
    ),
    "no unit": ('unit   = "row"', "", "dataset.unit is missing"),
    "broken syntax": ("[attributes]", "[attributes", "not valid TOML"),
    "a new section": ("[promise.concealment", "[promisse.concealment", 'Did you mean "promise"?'),
}


@pytest.mark.parametrize("case", [name for name, (_, _, says) in WRONG.items() if says])
def test_mistakes_in_a_file_are_reported(case: str) -> None:
    old, new, says = WRONG[case]
    with pytest.raises(PolicyUnreadable) as raised:
        parse_policy(SOLDIERS.replace(old, new, 1))
    assert says in str(raised.value)


def test_untested_column_cannot_be_released() -> None:
    text = SOLDIERS.replace(
        "[promise.identification]", 'rank = { kind = "integer", from = 1, to = 9 }\n\n[promise.identification]'
    )
    with pytest.raises(PolicyUnreadable, match="no test covers it"):
        parse_policy(text.replace('"age", "location"]\n', '"age", "location", "rank"]\n'))


def test_unknown_column_in_a_promise_suggests_the_nearest() -> None:
    with pytest.raises(UnknownColumn, match='Did you mean "age"'):
        parse_policy(SOLDIERS.replace('protect = ["age"]', 'protect = ["ages"]'))


def test_missing_file_is_reported(tmp_path) -> None:
    with pytest.raises(PolicyUnreadable, match="there is no such file"):
        read_policy(tmp_path / "none.toml")


def test_draft_leaves_every_decision_open() -> None:
    text = draft_policy(
        "people",
        "people.csv",
        {"id": "whole", "age": "whole", "pay": "decimal", "town": "text", "ok": "yes-no", "at": "other"},
    )
    with pytest.raises(PolicyIncomplete) as raised:
        parse_policy(text)
    expected = {"dataset.unit", "attributes.age.from", "attributes.age.to", "attributes.pay.from", "attributes.pay.to"}
    expected |= {"attributes.pay.step", "attributes.town.values"}
    expected |= {f"promise.identification.{key}" for key in ("rho", "worlds", "protect")}
    assert set(raised.value.facts["open"]) == expected


def test_draft_proposes_orders_sums_and_dependencies_by_name() -> None:
    columns: dict[str, ColumnType] = {
        "admission_date": "date",
        "discharge_date": "date",
        "start": "timestamp",
        "end": "date",
        "education": "text",
        "education_num": "whole",
        "drug_cost": "decimal",
        "visit_cost": "decimal",
        "total": "decimal",
        "weekend": "whole",
    }
    assert propose_synthesis(columns)[2:] == [
        '# orders.discharge_date = { after = "admission_date", missing = "refuse" }',
        '# sums.total = ["drug_cost", "visit_cost"]',
        '# follows.education_num = { column = "education", values = { "LABEL" = 1 } }',
    ]
    assert draft_policy("d", "d.csv", columns).endswith("\n".join([*propose_synthesis(columns), ""]))
    assert propose_synthesis({"age": "whole", "end": "date"}) == []


@pytest.mark.parametrize(
    "before",
    ["", "[", 'a = {b = """\n\' x""""", ', "a = {b = '''\n\" ''''', ", "a = {'x \" y'.\"'\" . ", '"\\"" = "\\\\"\n'],
)
@pytest.mark.parametrize("part", ["e", "'x'", '"\\""', "a b . c"])
def test_key_of_many_parts_is_refused_wherever_it_is(before: str, part: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="more than 100 parts"):
        load_toml(before + ".".join([part] * 120))


def test_dots_of_values_are_no_parts_of_a_key() -> None:
    text = "numbers = [" + "1.5, " * 200 + ']\nnames = ["' + '", "St. A.", "'.join("abc") * 60 + '"]\n# ' + "." * 500
    text += '\n"a.b".c = """\n' + "x." * 200 + '"""\n' + ".".join("d" * 100) + " = 1\n"
    content = load_toml(text)
    assert (content["numbers"][-1], content["a.b"]["c"]) == (Decimal("1.5"), "x." * 200)
