"""The section [synthesis]: read, written, part of the fingerprint, free to change, refused where it does not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.errors import PolicyError, PolicyUnreadable, UnknownColumn
from tidegate.policy import Order, Policy, Shape, Shapes, parse_policy, write_policy
from tidegate.policy.changes import changes, refuse_loosening
from tidegate.policy.toml import policy_from_dict

ADULT = """
[dataset]
name = "adult"
unit = "row"

[attributes]
id            = { kind = "key" }
age           = { kind = "integer", from = 17, to = 90 }
capital_gain  = { kind = "integer", from = 0, to = 99999 }
rate          = { kind = "grid", from = -1, to = 1, step = 0.001 }
education     = { kind = "category", values = ["Preschool", "Some-college", "Doctor's"], missing = "value" }
education_num = { kind = "integer", from = 1, to = 16 }

[promise.loss]
epsilon = 1

[synthesis]
leave_out = ["age"]
fresh_keys = true
columns.capital_gain  = { scale = "log", cells = 40, atoms = [0, 99999], heaped = true }
columns.rate          = { edges = [-0.5, 0, 0.25] }
columns.education     = { ordered = true }
follows.education_num = { column = "education", values = { Preschool = 1, Some-college = 10, "Doctor's" = 16 } }
"""
CLINIC = """
[dataset]
name = "clinic"
unit = "row"

[attributes]
admitted   = { kind = "date", from = 2020-01-01, to = 2020-12-31 }
operated   = { kind = "date", from = 2020-01-01, to = 2021-06-30 }
discharged = { kind = "date", from = 2019-01-01, to = 2021-12-31 }
month      = { kind = "date", from = 2020-01-01, to = 2021-12-31, grid = "month" }
drugs      = { kind = "grid", from = 0, to = 100, step = 0.5 }
visits     = { kind = "integer", from = 0, to = 50 }
total      = { kind = "decimal", from = 0, to = 200, step = 0.1 }
town       = { kind = "category", values = ["Aby", "Berg"] }
region     = { kind = "category", values = ["north", "south"] }
code       = { kind = "integer", from = 1, to = 9 }

[promise.loss]
epsilon = 1

[synthesis]
maps = "declared"
follows.region    = { column = "town", values = { Aby = "north", Berg = "south" } }
follows.code      = { column = "region", values = { north = 1, south = 9 } }
orders.operated   = { after = "admitted", missing = "clip" }
orders.discharged = { after = "operated" }
sums.total        = ["drugs", "visits"]
"""


def adult() -> Policy:
    return parse_policy(ADULT)


def test_synthesis_section_survives_toml_and_ledger() -> None:
    policy = adult()
    assert policy.synthesis.columns["capital_gain"] == Shape("log", 40, atoms=(0, 99_999), heaped=True)
    assert policy.synthesis.columns["rate"].edges == Shape(edges=("-0.5", 0, 0.25)).edges
    assert policy.synthesis.follows["education_num"].values["Doctor's"] == 16
    assert parse_policy(write_policy(policy)) == policy
    again = policy_from_dict(policy.public_dict())
    assert (again.synthesis, again.fingerprint) == (policy.synthesis, policy.fingerprint)


def test_policy_without_the_section_keeps_its_fingerprint() -> None:
    bare = replace(adult(), synthesis=Shapes())
    assert "synthesis" not in bare.public_dict()
    assert bare.fingerprint != adult().fingerprint
    assert "synthesis" not in write_policy(bare)


def test_shapes_can_change_after_a_charge_and_are_described() -> None:
    old, new = adult(), replace(adult(), synthesis=Shapes(leave_out=("rate",)))
    refuse_loosening(old, new)
    descriptions = changes(old, new)
    assert descriptions == [
        "synthesis: capital_gain (scale log, cells 40, 2 atoms, heaped); rate (3 edges); education (ordered); "
        "education_num follows education; without age; keys as row numbers -> without rate"
    ]
    assert changes(old, replace(old, synthesis=Shapes()))[0].endswith("-> by default")


def test_orders_sums_and_maps_survive_toml_and_ledger() -> None:
    policy = parse_policy(CLINIC)
    shapes = policy.synthesis
    assert shapes.orders == {"operated": Order("admitted", "clip"), "discharged": Order("operated", "refuse")}
    assert (shapes.sums, shapes.maps) == ({"total": ("drugs", "visits")}, "declared")
    assert parse_policy(write_policy(policy)) == policy
    again = policy_from_dict(policy.public_dict())
    assert (again.synthesis, again.fingerprint) == (shapes, policy.fingerprint)
    bare = replace(policy, synthesis=Shapes(maps="search", orders={}, sums={}))
    assert "synthesis" not in bare.public_dict()
    for part in ({"maps": "search"}, {"orders": {}}, {"sums": {}}):
        assert replace(policy, synthesis=replace(shapes, **part)).fingerprint != policy.fingerprint
    assert changes(bare, policy) == [
        "synthesis: by default -> region follows town; code follows region; operated after admitted (clip); "
        "discharged after operated (refuse); total = drugs + visits; maps declared"
    ]


WRONG_RULES = {
    "a cycle of orders": ('after = "admitted"', 'after = "discharged"', "operated <- discharged <- operated"),
    "a cycle of follows": (
        'follows.region    = { column = "town", values = { Aby = "north", Berg = "south" } }',
        'follows.region = { column = "code", values = { "1" = "north" } }',
        "in a cycle",
    ),
    "itself": ('after = "admitted"', 'after = "operated"', "another column"),
    "two rules": ("sums.total", 'sums.code = ["drugs", "visits"]\nsums.total', "cannot be in follows and sums"),
    "cells of a computed column": ("maps =", "columns.operated = { cells = 4 }\nmaps =", "it has no cells"),
    "another grid": ('after = "admitted"', 'after = "month"', "the same step or grid"),
    "another kind": ('after = "admitted"', 'after = "visits"', "the same kind"),
    "a category": ('after = "admitted"', 'after = "town"', "for numbers, dates and times"),
    "a start above every end": ("to = 2021-12-31 }", "to = 2021-03-31 }", "can be above the highest value"),
    "an unknown choice": ('missing = "clip"', 'missing = "drop"', "one of refuse, clip"),
    "unknown maps": ('maps = "declared"', 'maps = "none"', "one of search, declared"),
    "a sum outside": ("to = 200", "to = 149", "can be 0 to 150, outside its bounds (0 to 149)"),
    "a sum off the grid": ("step = 0.1", "step = 0.2", "not always on its grid"),
    "a sum of one": ('["drugs", "visits"]', '["drugs"]', "at least two different columns"),
    "a sum of dates": ('["drugs", "visits"]', '["drugs", "month"]', "for numbers"),
    "a part that is left out": ("maps =", 'leave_out = ["visits"]\nmaps =', "not left out"),
    "an unknown part": ('["drugs", "visits"]', '["drug", "visits"]', 'Did you mean "drugs"?'),
    "the name of the gap": ("town ", '"operated - admitted" = { kind = "integer", from = 0, to = 1 }\ntown ', "rename"),
}


@pytest.mark.parametrize("case", WRONG_RULES)
def test_impossible_orders_and_sums_are_refused(case: str) -> None:
    old, new, says = WRONG_RULES[case]
    assert old in CLINIC
    with pytest.raises(PolicyError) as raised:
        parse_policy(CLINIC.replace(old, new, 1))
    assert says in str(raised.value)


WRONG = {
    "an unknown column": ("columns.rate ", "columns.rates ", UnknownColumn, 'Did you mean "rate"?'),
    "an unknown key": ("heaped = true", "heeped = true", PolicyUnreadable, 'Did you mean "heaped"?'),
    "an unknown scale": ('"log"', '"root"', PolicyUnreadable, "one of linear, log"),
    "a log scale below zero": (
        "{ edges = [-0.5, 0, 0.25] }",
        '{ scale = "log" }',
        PolicyUnreadable,
        "requires numbers of at least 0",
    ),
    "edges outside": ("[-0.5, 0, 0.25]", "[-0.5, 0, 2]", PolicyUnreadable, "rise strictly inside"),
    "edges that fall": ("[-0.5, 0, 0.25]", "[0, -0.5]", PolicyUnreadable, "rise strictly inside"),
    "an atom off the grid": ("atoms = [0, 99999]", "atoms = [0.5]", PolicyUnreadable, "must be values of the column"),
    "no cells": ("cells = 40", "cells = 0", PolicyUnreadable, "at least 1"),
    "cells and edges": ("cells = 40", "cells = 40, edges = [5]", PolicyUnreadable, "cannot be combined"),
    "atoms of a category": ("ordered = true", "atoms = [1]", PolicyUnreadable, "atoms are for numbers"),
    "an ordered number": ("heaped = true", "ordered = true", PolicyUnreadable, "is for categories"),
    "a key's cells": ("columns.rate ", "columns.id ", PolicyUnreadable, "always left out"),
    "a value that is not followed": ("Preschool = 1, ", "", PolicyUnreadable, "each value"),
    "a value too many": ("Preschool = 1", "Preschol = 0, Preschool = 1", PolicyUnreadable, "Preschol"),
    "a value that cannot be": ("Preschool = 1,", "Preschool = 17,", PolicyUnreadable, "cannot have"),
    "following what is left out": (
        'leave_out = ["age"]',
        'leave_out = ["education"]',
        PolicyUnreadable,
        "not left out",
    ),
    "following a wide number": ('column = "education"', 'column = "rate"', PolicyUnreadable, "must be a category"),
}


@pytest.mark.parametrize("case", WRONG)
def test_unsuitable_shapes_are_reported(case: str) -> None:
    old, new, kind, says = WRONG[case]
    assert old in ADULT
    with pytest.raises(PolicyError) as raised:
        parse_policy(ADULT.replace(old, new, 1))
    assert isinstance(raised.value, kind)
    assert says in str(raised.value)
