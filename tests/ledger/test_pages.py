"""Pages of entries: each entry once, in order, forward and backward; filters compare names exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
from support.people import people_policy

from tidegate.accounting import DiscreteLaplace
from tidegate.ledger import Ledger
from tidegate.ledger.entry import CHARGED
from tidegate.ledger.explain import page

NAMES = ("ana", "ANA", "%", "an_", 'größe "x"', '","who":"ana', "back\\slash")
PEOPLE = people_policy()
OTHERS = replace(PEOPLE, dataset=replace(PEOPLE.dataset, name="PEOPLE"))


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """A ledger with one charge of each user, and one of a data set with the same name in capitals."""
    ledger = Ledger(ledger_url)
    ledger.open_account(PEOPLE)
    ledger.open_account(OTHERS)
    for number, user in enumerate(NAMES, start=1):
        ledger.charge(PEOPLE, DiscreteLaplace(Fraction(1), Fraction(100 * number)), question={"n": number}, who=user)
    ledger.charge(OTHERS, DiscreteLaplace(Fraction(1), Fraction(1000)), question={"n": 0}, who="olga")
    yield ledger
    ledger.close()


def test_filter_by_user_matches_the_exact_name(ledger: Ledger) -> None:
    for number, user in enumerate(NAMES, start=1):
        for filters in ({"user": user}, {"named": user}):
            numbers = [entry.content()["question"]["n"] for entry, _ in page(ledger, **filters)]  # type: ignore[arg-type]
            assert numbers == [number], user


def test_filter_by_data_set_matches_the_exact_name(ledger: Ledger) -> None:
    assert {entry.account for entry, _ in page(ledger, dataset="people")} == {"people"}
    assert {entry.account for entry, _ in page(ledger, dataset="PEOPLE")} == {"PEOPLE"}


@pytest.mark.parametrize("newest", [False, True])
def test_pages_contain_every_entry_once_in_order(ledger: Ledger, newest: bool) -> None:
    whole = page(ledger, kind=CHARGED, newest=newest)
    numbers = [entry.number for entry, _ in whole]
    assert len(numbers) == len(NAMES) + 1, "every charge is listed"
    assert numbers == sorted(numbers, reverse=newest)
    paged, after = [], 0
    while part := page(ledger, kind=CHARGED, newest=newest, after=after, limit=3):
        paged, after = paged + part, part[-1][0].number
    assert paged == whole, "an explanation does not depend on the page"
