"""Saved questions and dashboards: what users of the service want to see again. Nothing here is charged or decides a charge."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import Connection, func, select

from tidegate.errors import NameTaken, NotThere, TooLarge
from tidegate.ledger.schema import library
from tidegate.ledger.store import Store
from tidegate.ledger.tokens import stamp

Kind = Literal["question", "dashboard"]
MOST = 500  # of one kind, user and data set


@dataclass(frozen=True)
class Item:
    """A saved question or a dashboard. `body` is canonical JSON: the request, or the ids of the dashboard's questions."""

    id: str
    dataset: str
    kind: Kind
    owner: str
    name: str
    shared: bool
    body: str
    made: str
    changed: str

    def is_visible(self, user: str) -> bool:
        """Return whether a user of the data set can see it."""
        return self.shared or self.owner == user


class Library:
    """The saved questions and dashboards in a ledger's database. Several processes share them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, dataset: str, kind: Kind, *, owner: str, name: str, body: str, shared: bool = False) -> Item:
        """Save a new item under a name that its owner does not use yet. Ids sort by creation time."""
        now = stamp(datetime.now(UTC))
        new = f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(4)}"
        item = Item(new, dataset, kind, owner, name, shared, body, now, now)
        same = (library.c.dataset == dataset) & (library.c.kind == kind) & (library.c.owner == owner)
        with self._store.writing() as connection:
            if (connection.execute(select(func.count()).select_from(library).where(same)).scalar() or 0) >= MOST:
                raise TooLarge(f"You have already saved {MOST:,} {kind}s.", f"Delete a {kind} that you do not need.")
            _refuse_name(connection, item)
            connection.execute(library.insert(), _row(item))
        return item

    def find(self, dataset: str, kind: Kind, name: str, *, user: str) -> Item:
        """Return an item by its id, or raise NotThere: whether it does not exist or is not visible to the user."""
        item = self.find_all(dataset, [name]).get(name)
        if item is None or item.kind != kind or not item.is_visible(user):
            raise NotThere(f"There is no {kind} with this id.", f"See the list of saved {kind}s.")
        return item

    def find_all(self, dataset: str, names: list[str]) -> dict[str, Item]:
        """Return items of a data set by their ids, whoever saved them; ids that do not exist are left out."""
        query = select(library).where(library.c.dataset == dataset, library.c.id.in_(names))
        with self._store.reading() as connection:
            return {row["id"]: _item(row) for row in connection.execute(query).mappings()}

    def visible(self, dataset: str, kind: Kind, *, user: str) -> list[Item]:
        """Return the user's own items and shared ones, by name."""
        is_visible = (library.c.owner == user) | (library.c.shared == 1)
        query = select(library).where(library.c.dataset == dataset, library.c.kind == kind, is_visible)
        with self._store.reading() as connection:
            items = [_item(row) for row in connection.execute(query).mappings()]
        return sorted(items, key=lambda item: (item.name.casefold(), item.id))

    def update(self, item: Item, **changes: Any) -> Item:
        """Change the name, the sharing or the body of an item, and return it."""
        new = replace(item, **changes, changed=stamp(datetime.now(UTC)))
        with self._store.writing() as connection:
            _refuse_name(connection, new)
            update = connection.execute(library.update().where(library.c.id == item.id).values(**_row(new)))
        if not update.rowcount:
            raise NotThere(f"This {item.kind} was deleted in the meantime.", f"Save the {item.kind} again.")
        return new

    def remove(self, item: Item) -> None:
        with self._store.writing() as connection:
            connection.execute(library.delete().where(library.c.id == item.id))


def _refuse_name(connection: Connection, item: Item) -> None:
    """Refuse a name that the same user has for another item of this kind."""
    same = [library.c[name] == getattr(item, name) for name in ("dataset", "kind", "owner", "name")]
    if connection.execute(select(library.c.id).where(*same, library.c.id != item.id)).first():
        raise NameTaken(
            f"You already have a {item.kind} of this name.", "Choose another name, or delete the other one."
        )


def _row(item: Item) -> dict[str, Any]:
    return {**asdict(item), "shared": int(item.shared)}


def _item(row: Mapping[Any, Any]) -> Item:
    return Item(**{**{name: row[name] for name in Item.__dataclass_fields__}, "shared": bool(row["shared"])})
