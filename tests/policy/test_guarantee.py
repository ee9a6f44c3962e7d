"""The guarantee of an identification promise and its windows: files, defaults, refusals, and changes of a policy in use."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.accounting import Amount, budget_of
from tidegate.errors import Infeasible, PolicyLoosened, PolicyUnreadable
from tidegate.policy import (
    Attribute,
    Category,
    Dataset,
    Grid,
    Identification,
    Integer,
    Key,
    Loss,
    Policy,
    parse_policy,
    write_policy,
)
from tidegate.policy.changes import changes, refuse_loosening
from tidegate.policy.toml import policy_from_dict

F = Fraction
INCOME = Grid(0, 1_000_000, 1)


def policy(
    attribute: Attribute = INCOME, rho: Any = "0.05", *, version: int = 2, loss: Any = None, **promise: Any
) -> Policy:
    return Policy(
        Dataset("people", rows=1000),
        {"x": attribute, "sex": Category(("f", "m")), "k": Key()},
        Identification(rho, protect=promise.pop("protect", ("x",)), **promise),
        Loss(loss) if loss else None,
        version=version,
    )


# Files


@given(
    st.sampled_from(["worst-case", "average"]),
    st.integers(0, 400),
    st.sampled_from([F(1), F(1, 2), F(1, 3), F(7, 10)]),
    st.booleans(),
    st.sampled_from([1, 2]),
)
def test_guarantee_and_windows_survive_a_file_and_the_ledger(
    guarantee: Any, steps: int, step: Fraction, stated: bool, version: int
) -> None:
    attribute = Grid(0, 500 * step, step)
    within = {"x": steps * step} if stated else None
    written = policy(attribute, guarantee=guarantee, within=within, version=version)
    again = parse_policy(write_policy(written))
    assert again == written
    assert again.fingerprint == written.fingerprint
    assert policy_from_dict(written.public_dict()).fingerprint == written.fingerprint
    assert (
        again.window("x")
        == written.window("x")
        == (steps if stated else 2 if version == 2 else 0) + (0 if stated or version == 1 else 1)
    )


def test_file_states_only_what_is_not_the_default() -> None:
    plain = write_policy(policy())
    assert "guarantee" not in plain
    assert "within" not in plain
    stated = write_policy(policy(guarantee="average", within={"x": 5_000}))
    assert 'guarantee = "average"' in stated
    assert "within = { x = 5000 }" in stated
    assert stated.startswith("version = 2\n")


FINGERPRINT = (
    "643409533e834834c9fb0db76521b7c09116f7c42e8812ba98e75d45c1948226"  # computed before there was a version 2
)
OLD_FILE = """
version = 1
[dataset]
name = "people"
unit = "row"
[attributes]
x = { kind = "grid", from = 0, to = 1000000, step = 1 }
[promise.identification]
rho = 0.05
worlds = "values"
protect = ["x"]
"""


def test_version_1_has_no_windows_and_keeps_its_fingerprint() -> None:
    old = parse_policy(OLD_FILE)
    assert (old.version, old.window("x")) == (1, 0)
    assert float(budget_of(old).ceiling) == pytest.approx(10.871071578797833, rel=1e-12)
    assert old.public_dict()["version"] == 1
    assert set(old.public_dict()["promise"]["identification"]) == {"rho", "worlds", "protect"}
    assert old.fingerprint == FINGERPRINT
    assert parse_policy(OLD_FILE.replace("version = 1\n", "")) == old  # a file without a version is of version 1
    assert parse_policy(write_policy(old)).fingerprint == old.fingerprint


def test_version_2_is_another_policy_with_windows() -> None:
    old = parse_policy(OLD_FILE)
    new = parse_policy(OLD_FILE.replace("version = 1", "version = 2"))
    assert new.window("x") == 5_000
    assert new.fingerprint != old.fingerprint
    assert changes(old, new) == ["version: 1 -> 2"]
    assert float(budget_of(new).ceiling) == pytest.approx(1.6505808759678161585, rel=1e-12)


@pytest.mark.parametrize("version", [0, 3, -1])
def test_unknown_version_is_refused(version: int) -> None:
    with pytest.raises(PolicyUnreadable, match="versions 1 to 2"):
        parse_policy(OLD_FILE.replace("version = 1", f"version = {version}"))
    with pytest.raises(PolicyUnreadable, match="versions 1 to 2"):
        policy(version=version)


# Defaults


DEFAULTS = [
    (Integer(0, 99), 0, F(100)),
    (Integer(0, 100), 1, F(101, 3)),
    (Integer(1, 300), 1, F(100)),
    (Integer(1, 301), 2, F(301, 5)),
    (Integer(18, 90), 0, F(73)),
    (INCOME, 5_000, F(1_000_001, 10_001)),
    (Grid(0, 10, "0.01"), 5, F(1001, 11)),
    (Category(tuple(map(str, range(500)))), 0, F(500)),
]


@pytest.mark.parametrize(("attribute", "steps", "worlds"), DEFAULTS, ids=str)
def test_default_window_leaves_at_most_100_possibilities(attribute: Attribute, steps: int, worlds: Fraction) -> None:
    for guarantee in ("worst-case", "average"):
        new = policy(attribute, guarantee=guarantee)
        assert new.window("x") == steps
        assert budget_of(new).targets[0].worlds == worlds
        assert policy(attribute, guarantee=guarantee, version=1).window("x") == 0
    assert policy(attribute, within={"x": 0}).window("x") == 0 if not isinstance(attribute, Category) else True


@given(st.integers(2, 10**7))
def test_default_window_is_the_smallest_that_leaves_100_possibilities(size: int) -> None:
    steps = policy(Integer(1, size)).window("x")
    assert F(size, 2 * steps + 1) <= 100
    assert steps == 0 or F(size, 2 * steps - 1) > 100


def test_101_values_count_for_34() -> None:
    (target,) = budget_of(policy(Integer(0, 100))).targets
    assert round(target.worlds) == 34


def test_stated_window_is_in_the_unit_of_its_column() -> None:
    assert policy(Grid(0, 10, "0.5"), within={"x": "1.5"}).window("x") == 3
    assert policy(INCOME, within={"x": 9_000}).window("x") == 9_000
    assert policy(Integer(0, 9), within={"x": 0}).window("x") == 0


def test_columns_that_are_not_protected_or_promised_have_no_effect() -> None:
    assert policy().window("sex") == 0
    assert replace(policy(), identification=None, loss=Loss(1)).window("x") == 0


@given(st.lists(st.integers(1, 50), min_size=3, max_size=12), st.integers(0, 5))
def test_window_counts_for_its_largest_prior_mass(weights: list[int], steps: int) -> None:
    prior = tuple(F(weight, sum(weights)) for weight in weights)
    new = policy(Integer(1, len(prior)), "0.999", prior={"x": prior}, within={"x": steps})
    covered = [sum(prior[max(0, guess - steps) : guess + steps + 1]) for guess in range(len(prior))]
    assert budget_of(new).targets[0].worlds == 1 / max(covered)


@given(st.integers(3, 300), st.integers(0, 40), st.fractions(F(1, 100), 1))
def test_window_of_a_single_prior_counts_for_its_width(size: int, steps: int, largest: Fraction) -> None:
    (target,) = budget_of(policy(Integer(1, size), "0.5", prior={"x": largest}, within={"x": steps})).targets
    assert 1 / target.worlds == min(F(1), (2 * steps + 1) * max(largest, F(1, size)))


# Refusals


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "half a step": ({"within": {"x": "0.5"}}, "multiple of its step"),
    "a negative width": ({"within": {"x": -1}}, "multiple of its step"),
    "a category": ({"within": {"sex": 1}, "protect": ("x", "sex")}, "numeric column"),
    "a key": ({"within": {"k": 1}}, "numeric column"),
    "a column that is not protected": ({"within": {"x": 1}, "protect": ("sex",)}, "not a protected"),
    "an unknown guarantee": ({"guarantee": "sometimes"}, "`guarantee` must be"),
    "an empty guarantee": ({"guarantee": ""}, "`guarantee` must be"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_promise_without_meaning_is_refused(case: str) -> None:
    promise, says = REFUSED[case]
    with pytest.raises(PolicyUnreadable, match=says):
        policy(**promise)


def test_window_of_persons_is_refused() -> None:
    with pytest.raises(PolicyUnreadable, match='requires worlds = "values"'):
        Identification("0.05", worlds="persons", population=10**6, within={"x": 1}, guarantee="average")


def test_file_with_an_unknown_guarantee_is_refused() -> None:
    with pytest.raises(PolicyUnreadable, match="guarantee"):
        parse_policy(OLD_FILE + 'guarantee = "mostly"\n')


INFEASIBLE: dict[str, Policy] = {
    "few values": policy(Integer(0, 9), "0.1"),
    "few values on average": policy(Integer(0, 9), "0.05", guarantee="average"),
    "a wide window": policy(INCOME, "0.01", within={"x": 10_000}),
    "a wide window on average": policy(INCOME, "0.01", within={"x": 10_000}, guarantee="average"),
    "a window over everything": policy(Integer(0, 9), "0.9", within={"x": 9}, guarantee="average"),
    "a default window": policy(Integer(0, 100), "0.02", guarantee="average"),
    "a prior": policy(Integer(0, 9), "0.3", prior={"x": "0.4"}, guarantee="average"),
    "a category": policy(Category(("a", "b")), "0.5", guarantee="average"),
    "persons": replace(policy(), identification=Identification("0.001", worlds="persons", population=1100)),
    "persons on average": replace(
        policy(),
        identification=Identification("0.05", worlds="persons", population=5000, known=100, guarantee="average"),
    ),
    "more unknown persons than others": replace(
        policy(),
        identification=Identification("0.99", worlds="persons", population=1001, known=0, guarantee="average"),
    ),
}


@pytest.mark.parametrize("case", INFEASIBLE)
def test_refusal_never_advises_a_wider_universe(case: str) -> None:
    with pytest.raises(Infeasible) as refused:
        budget_of(INFEASIBLE[case]).refuse_infeasible()
    says = f"{refused.value.what} {refused.value.do}".lower()
    for advice in ("wider", "larger universe", "more values", "larger population", "widen", "wide range"):
        assert advice not in says
    assert refused.value.do


@pytest.mark.parametrize(
    "case", [case for case in INFEASIBLE if "everything" not in case and "than others" not in case]
)
def test_advised_rho_can_be_promised(case: str) -> None:
    refused = INFEASIBLE[case]
    with pytest.raises(Infeasible) as error:
        budget_of(refused).refuse_infeasible()
    advised = error.value.do.removeprefix("Promise at least ").split(",")[0].rstrip(".")
    promise = refused.identification
    assert promise is not None
    content = {**promise.to_dict(), "rho": advised}
    rho = content.pop("rho")
    again = replace(refused, identification=Identification(rho, **content))
    budget_of(again).refuse_infeasible()
    assert budget_of(again).ceiling > Amount(0)


def test_refusal_of_a_window_offers_a_smaller_one() -> None:
    for case in ("a wide window", "a wide window on average", "a window over everything"):
        with pytest.raises(Infeasible, match="within") as refused:
            budget_of(INFEASIBLE[case]).refuse_infeasible()
        assert "smaller `within`" in refused.value.do


# Changes


OLD = policy(guarantee="average", within={"x": 5_000})
ALLOWED: dict[str, tuple[Policy, Policy]] = {
    "a wider window": (OLD, policy(guarantee="average", within={"x": 6_000})),
    "a wider window in the worst case": (policy(within={"x": 1}), policy(within={"x": 2})),
    "the default of version 2": (policy(version=1), policy()),
    "a lower rho": (OLD, policy(rho="0.04", guarantee="average", within={"x": 5_000})),
    "the default, stated": (policy(guarantee="average"), OLD),
    "one more protected column": (
        policy(Integer(0, 9), "0.6", guarantee="average"),
        policy(Integer(0, 9), "0.6", guarantee="average", protect=("x", "sex")),
    ),
    "a loss promise in the worst case": (policy(), policy(loss=1)),
    "a stricter loss promise": (policy(guarantee="average", loss=2), policy(guarantee="average", loss=1)),
}
LOOSER: dict[str, tuple[Policy, Policy, str]] = {
    "a narrower window": (OLD, policy(guarantee="average", within={"x": 4_999}), "window"),
    "a narrower window in the worst case": (policy(within={"x": 2}), policy(within={"x": 1}), "window"),
    "no window": (policy(), policy(within={"x": 0}), "window"),
    "back to version 1": (policy(), policy(version=1), "window"),
    "average instead of worst case": (policy(), policy(guarantee="average"), "guarantee"),
    "worst case instead of average": (policy(guarantee="average"), policy(), "guarantee"),
    "a higher rho": (OLD, policy(rho="0.06", guarantee="average", within={"x": 5_000}), "rho"),
    "a category instead of numbers": (OLD, policy(Category(("a", "b")), "0.05", guarantee="average"), "window"),
    "a loss promise under the average guarantee": (
        policy(guarantee="average"),
        policy(guarantee="average", loss=1),
        "loss",
    ),
    "no loss promise": (policy(guarantee="average", loss=1), policy(guarantee="average"), "loss"),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_stricter_promise_is_allowed(case: str) -> None:
    old, new = ALLOWED[case]
    refuse_loosening(old, new)
    assert changes(old, new)


@pytest.mark.parametrize("case", LOOSER)
def test_looser_promise_is_refused(case: str) -> None:
    old, new, says = LOOSER[case]
    with pytest.raises(PolicyLoosened, match=says):
        refuse_loosening(old, new)


def test_change_of_the_guarantee_is_described() -> None:
    (described,) = changes(policy(within={"x": 1}), policy(guarantee="average", within={"x": 2}))
    assert "on average" in described
    assert "x to within 2" in described


def test_yes_no_limits_of_the_guide_are_as_stated() -> None:
    """99 values, rho = 0.05: 0.838 for every response, and 0.784 on average."""
    limits = [budget_of(policy(Integer(1, 99), guarantee=g)).yes_no_limit for g in ("worst-case", "average")]
    assert [round(limit, 3) for limit in limits] == [0.838, 0.784]  # 0.8376 and 0.7841
