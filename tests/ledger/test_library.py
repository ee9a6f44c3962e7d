"""Saved questions and dashboards in the ledger's database, on both stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from uuid import uuid4

import pytest
from ledger.charges import at_once
from sqlalchemy import text

from tidegate.errors import NameTaken, NotThere, TooLarge
from tidegate.ledger import Ledger, library
from tidegate.ledger.library import Item, Library
from tidegate.ledger.schema import REVISION
from tidegate.ledger.store import schema_revision

BEFORE = import_module("tidegate.ledger.migrations.versions.0021_library").down_revision


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    with closing(Ledger(ledger_url)) as opened:
        yield opened


def save(ledger: Ledger, name: str = "women", owner: str = "ana", *, shared: bool = False) -> Item:
    return Library(ledger.store).add("people", "question", owner=owner, name=name, body='{"sql":"x"}', shared=shared)


def test_item_is_visible_to_its_owner_and_to_everybody_once_shared(ledger: Ledger) -> None:
    items, saved = Library(ledger.store), save(ledger)
    assert items.find("people", "question", saved.id, user="ana") == saved
    for dataset, kind, user in (
        ("people", "question", "ben"),
        ("others", "question", "ana"),
        ("people", "dashboard", "ana"),
    ):
        with pytest.raises(NotThere):
            items.find(dataset, kind, saved.id, user=user)  # type: ignore[arg-type]
    assert items.visible("people", "question", user="ben") == []
    items.update(saved, shared=True)
    assert items.find("people", "question", saved.id, user="ben").shared
    assert [item.id for item in items.visible("people", "question", user="ben")] == [saved.id]


def test_items_are_renamed_sorted_and_removed(ledger: Ledger) -> None:
    items = Library(ledger.store)
    first, second = save(ledger, "b"), save(ledger, "A")
    assert first.id < second.id or first.made == second.made
    renamed = items.update(first, name="C")
    assert [item.name for item in items.visible("people", "question", user="ana")] == ["A", "C"]
    items.remove(renamed)
    assert items.find_all("people", [first.id, second.id]) == {second.id: second}
    with pytest.raises(NotThere, match="deleted in the meantime"):
        items.update(first, name="d")


def test_name_belongs_to_one_item_of_a_user(ledger: Ledger) -> None:
    items = Library(ledger.store)
    first = save(ledger)
    with pytest.raises(NameTaken):
        save(ledger)
    save(ledger, owner="ben")
    other = save(ledger, "men")
    with pytest.raises(NameTaken):
        items.update(other, name="women")
    assert items.update(first, name="women", shared=True).shared, "its own name is free"


def test_name_is_taken_once_by_concurrent_users(ledger_url: str) -> None:
    ledgers, outcomes = [Ledger(ledger_url) for _ in range(3)], []

    def work(number: int) -> None:
        try:
            save(ledgers[number])
            outcomes.append("saved")
        except NameTaken:
            outcomes.append("taken")

    at_once(work, threads=3)
    for opened in ledgers:
        opened.close()
    assert sorted(outcomes) == ["saved", "taken", "taken"]


def test_user_cannot_save_without_limit(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "MOST", 2)
    for _ in range(2):
        save(ledger, uuid4().hex)
    with pytest.raises(TooLarge, match="already saved 2 questions"):
        save(ledger, "third")
    save(ledger, "third", owner="ben")


def test_older_ledger_receives_the_table(ledger_url: str) -> None:
    with closing(Ledger(ledger_url)) as opened, opened.store.engine.begin() as connection:
        connection.execute(text("DROP TABLE tidegate_library"))
        connection.execute(text(f"UPDATE tidegate_version SET version_num = '{BEFORE}'"))
    with closing(Ledger(ledger_url)) as opened:
        save(opened)
        assert opened.verify().holds
        with opened.store.reading() as connection:
            assert schema_revision(connection) == REVISION
