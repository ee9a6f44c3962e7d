"""Pages of entries: each once and in order, forwards and backwards; a name's entries are its own, letter by letter."""

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
    """One charge of each name, and one of a data set that is called the same in large letters."""
    made = Ledger(ledger_url)
    made.open_account(PEOPLE)
    made.open_account(OTHERS)
    for number, who in enumerate(NAMES, start=1):
        made.charge(PEOPLE, DiscreteLaplace(Fraction(1), Fraction(100 * number)), question={"n": number}, who=who)
    made.charge(OTHERS, DiscreteLaplace(Fraction(1), Fraction(1000)), question={"n": 0}, who="olga")
    yield made
    made.close()


def test_a_name_s_entries_are_its_own(ledger: Ledger) -> None:
    for number, who in enumerate(NAMES, start=1):
        for chosen in ({"who": who}, {"named": who}):
            found = [entry.content()["question"]["n"] for entry, _ in page(ledger, **chosen)]  # type: ignore[arg-type]
            assert found == [number], who


def test_a_data_set_s_entries_are_its_own(ledger: Ledger) -> None:
    assert {entry.account for entry, _ in page(ledger, dataset="people")} == {"people"}
    assert {entry.account for entry, _ in page(ledger, dataset="PEOPLE")} == {"PEOPLE"}


@pytest.mark.parametrize("newest", [False, True])
def test_pages_are_all_of_it_once_in_order(ledger: Ledger, newest: bool) -> None:
    whole = page(ledger, kind=CHARGED, newest=newest)
    numbers = [entry.number for entry, _ in whole]
    assert len(numbers) == len(NAMES) + 1, "all charges are there"
    assert numbers == sorted(numbers, reverse=newest)
    found, after = [], 0
    while part := page(ledger, kind=CHARGED, newest=newest, after=after, limit=3):
        found, after = found + part, part[-1][0].number
    assert found == whole, "and each says the same, whatever page it is on"
