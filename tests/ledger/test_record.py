"""Charges: exactly the price, once, in any order, and never lost, however small."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger.charges import charge, charges, verify_clean
from support.people import people_policy

from tidegate.accounting import FREE, ZERO, Amount, DiscreteLaplace, Event, Exponential, Together, event_from_dict
from tidegate.errors import BudgetExceeded, KeyReused, Unsupported
from tidegate.ledger import Ledger
from tidegate.policy import Dataset, Loss, Policy

GRAIN = Amount(1)
POLICY = people_policy()
parts = st.fractions(min_value=Fraction(1, 10**6), max_value=10, max_denominator=10**9)
single = st.builds(DiscreteLaplace, parts, parts) | st.builds(Exponential, parts, parts, st.booleans())
events = st.recursive(single, lambda inner: st.builds(Together, st.lists(inner, max_size=4).map(tuple)), max_leaves=6)


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    opened = Ledger(ledger_url)
    opened.open_account(POLICY)
    yield opened
    opened.close()


# prices -------------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(listed=st.lists(events, min_size=1, max_size=5), random=st.randoms(use_true_random=False))
def test_price_does_not_depend_on_the_order_of_events(listed: list[Event], random: object) -> None:
    shuffled = list(listed)
    random.shuffle(shuffled)
    together = Together(tuple(listed)).price
    total = sum((event.price for event in shuffled), FREE)
    nested = Together((Together(tuple(shuffled[:2])), Together(tuple(shuffled[2:])))).price
    assert together == Together(tuple(shuffled)).price
    assert {(price.pure, price.zcdp) for price in (together, nested)} == {(total.pure, total.zcdp)}
    assert total.z <= together.z <= total.zcdp  # equal choices count as one in each of several groups


@settings(max_examples=40)
@given(event=events)
def test_event_keeps_its_price_when_it_is_read_again(event: Event) -> None:
    again = event_from_dict(event.to_dict())
    assert again == event
    assert again.price == event.price


@settings(max_examples=15)
@given(listed=st.lists(single, min_size=1, max_size=4), random=st.randoms(use_true_random=False))
def test_successive_charges_have_the_same_total_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, listed: list[Event], random: object
) -> None:
    ledger = Ledger(str(tmp_path_factory.getbasetemp() / "orders.ledger"))
    spent = []
    for turn in (listed, random.sample(listed, len(listed))):
        number = sum(1 for _ in ledger.entries())
        rich = Policy(Dataset(f"people{number}"), POLICY.attributes, loss=Loss(10**9))
        ledger.open_account(rich)
        receipts = [ledger.charge(rich, event, question={"n": n}) for n, event in enumerate(turn)]
        assert [receipt.cost for receipt in receipts] == [event.price.pure for event in turn]
        spent.append(receipts[-1].account.spent)
    assert spent == [Together(tuple(listed)).price.pure] * 2
    ledger.close()


@settings(max_examples=20)
@given(prices=st.lists(st.fractions(min_value=0, max_value="1/3").filter(bool), max_size=8))
def test_replay_of_the_ledger_gives_the_running_total(
    tmp_path_factory: pytest.TempPathFactory, prices: list[Fraction]
) -> None:
    path = tmp_path_factory.mktemp("replayed") / "people.ledger"
    ledger, total = Ledger(str(path)), ZERO
    ledger.open_account(POLICY)
    for number, price in enumerate(prices):
        try:
            receipt = charge(ledger, POLICY, number, price)
        except BudgetExceeded:
            continue
        total += receipt.cost
        assert receipt.account.spent == total
    assert ledger.account("people").spent == verify_clean(ledger).spent["people"] == total
    ledger.close()


# the smallest spend -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("price", [GRAIN.value, Fraction(1, 10**60), Fraction(1, 10**300)], ids=["grain", "60", "300"])
def test_smallest_charge_is_a_grain_and_never_lost(ledger: Ledger, price: Fraction) -> None:
    charge(ledger, POLICY, "before", "1/3")
    spent = ledger.account("people").spent
    for number in range(3):
        receipt = charge(ledger, POLICY, number, price)
        assert receipt.cost == GRAIN
        assert receipt.account.spent == Amount(spent.grains + number + 1)
    assert verify_clean(ledger).spent["people"] == Amount(spent.grains + 3)


def test_last_grain_can_be_spent_but_no_more(ledger: Ledger) -> None:
    ceiling = ledger.account("people").ceiling
    charge(ledger, POLICY, "nearly all", ceiling.minus(Amount(2)).value)
    with pytest.raises(BudgetExceeded) as refused:
        charge(ledger, POLICY, "three grains", Amount(3).value)
    assert refused.value.facts == {
        "asked": str(Amount(3)),
        "spent": str(ceiling.minus(Amount(2))),
        "left": str(Amount(2)),
        "ceiling": str(ceiling),
    }
    charge(ledger, POLICY, "one", Fraction(1, 10**60))
    assert charge(ledger, POLICY, "two", GRAIN.value).account.left == ZERO
    for price in (GRAIN.value, Fraction(1, 10**60), 1):
        with pytest.raises(BudgetExceeded, match="0 remaining"):
            charge(ledger, POLICY, "too much", price)
    assert verify_clean(ledger).spent["people"] == ceiling


def test_rest_of_rounded_prices_is_not_offered(ledger: Ledger) -> None:
    """A remainder that no query can use is called spent: `at most 0.0000000000000131` would help nobody."""
    ceiling = ledger.account("people").ceiling
    charge(ledger, POLICY, "nearly everything", ceiling.value * (1 - Fraction(1, 10**7)))
    with pytest.raises(BudgetExceeded, match="only stored answers are available"):
        charge(ledger, POLICY, "another", "0.1")
    account = ledger.account("people")
    assert account.to_dict()["left"] == str(account.left) != "0"


def test_refused_charge_leaves_no_entry(ledger: Ledger) -> None:
    before = list(ledger.entries())
    with pytest.raises(BudgetExceeded):
        charge(ledger, POLICY, "much", 100)
    assert list(ledger.entries()) == before


# again --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["", "one key"])
def test_repeated_query_is_free_and_returns_the_same_result(ledger: Ledger, key: str) -> None:
    first = charge(ledger, POLICY, "q", "0.1", request=key)
    assert first.stored is None
    assert first.record({"cells": [1, 2]}) == {"cells": [1, 2]}
    for again in (charge(ledger, POLICY, "q", "0.1", request=key), charge(ledger, POLICY, "q", "0.1", request="other")):
        assert (again.cost, again.stored, again.entry) == (ZERO, {"cells": [1, 2]}, first.entry)
        assert again.record({"cells": [9, 9]}) == {"cells": [1, 2]}
    assert verify_clean(ledger).entries == 4, "the policy, the charge, its result, and the other key"


def test_unanswered_charge_is_reused_and_the_first_result_wins(ledger: Ledger) -> None:
    first, again = charge(ledger, POLICY, "q", "0.1"), charge(ledger, POLICY, "q", "0.1")
    assert (again.stored, again.cost, again.entry) == (None, ZERO, first.entry)
    assert again.record("from the second") == first.record("from the first") == "from the second"
    assert len(charges(ledger)) == len(ledger.payloads()) == 1


def test_query_without_a_price_is_charged_once_at_the_first_price(
    ledger: Ledger,
) -> None:
    charge(ledger, POLICY, "q", "0.1")
    assert charge(ledger, POLICY, "q", "0.2").cost == ZERO
    assert ledger.account("people").spent == Amount.up("0.1")


def test_key_of_another_query_is_refused_at_no_cost(ledger: Ledger) -> None:
    charge(ledger, POLICY, "one", "0.1", request="key")
    for fresh in (False, True):
        with pytest.raises(KeyReused):
            charge(ledger, POLICY, "two", "0.1", request="key", fresh=fresh)
    assert len(charges(ledger)) == 1


def test_key_of_a_free_repeat_cannot_be_reused(ledger: Ledger) -> None:
    charge(ledger, POLICY, "one", "0.1", request="key")
    assert charge(ledger, POLICY, "one", "0.1", request="second key").cost == ZERO
    with pytest.raises(KeyReused):
        charge(ledger, POLICY, "two", "0.1", request="second key")


def test_fresh_answer_needs_a_key_and_is_charged_once(ledger: Ledger) -> None:
    charge(ledger, POLICY, "q", "0.1").record("first")
    with pytest.raises(Unsupported, match="key"):
        charge(ledger, POLICY, "q", "0.1", fresh=True)
    fresh = charge(ledger, POLICY, "q", "0.1", fresh=True, request="again")
    assert (fresh.cost, fresh.stored, fresh.record("second")) == (Amount.up("0.1"), None, "second")
    repeated = charge(ledger, POLICY, "q", "0.1", fresh=True, request="again")
    assert (repeated.cost, repeated.stored) == (ZERO, "second")
    assert charge(ledger, POLICY, "q", "0.1").stored == "first", "a request keeps its own answer"
    assert verify_clean(ledger).spent["people"] == Amount.up("0.2")


def test_accounts_have_separate_queries_and_keys(ledger: Ledger) -> None:
    others = Policy(Dataset("others"), POLICY.attributes, POLICY.identification)
    ledger.open_account(others)
    charge(ledger, POLICY, "q", "0.1", request="key").record("of people")
    assert charge(ledger, others, "q", "0.2", request="key").stored is None
    assert charge(ledger, others, "other", "0.3", request="key 2").cost == Amount.up("0.3")
    assert {n: str(a) for n, a in verify_clean(ledger).spent.items()} == {"people": "0.1", "others": "0.5"}
