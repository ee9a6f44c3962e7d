"""The data sets that are served: each opened once, and shared by all requests."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tidegate.errors import NotThere, Unsupported
from tidegate.ledger import Ledger
from tidegate.session import Session, open_session

if TYPE_CHECKING:
    from tidegate.collect.survey import Survey
    from tidegate.release.desk import Desk

T = TypeVar("T")
TABLES_KEPT = 4  # synthetic tables at hand; others are drawn again
PARSED_KEPT = 1000  # texts of SQL whose questions are at hand: frozen values


class Holding:
    """One data set, with the desks and surveys that were opened."""

    def __init__(self, session: Session) -> None:
        self.session, self.policy, self.name = session, session.policy, session.policy.dataset.name
        self._turn, self._drawing = threading.Lock(), threading.Lock()
        self._opened: dict[tuple[str, str], Any] = {}
        self._drawn: OrderedDict[str, Any] = OrderedDict()
        self.parsed = lru_cache(maxsize=PARSED_KEPT)(session.queries)

    def desk(self, promise: str) -> Desk:
        """The desk of a promise. Opening it for the first time compiles and simulates: it takes some seconds."""
        if promise not in self.policy.concealments:
            raise NotThere("no concealment promise of this data set has that name.", "See GET /data/{name}.")
        return self._once("desk", promise, lambda: self.session.release(promise))

    def survey(self, collection: str) -> Survey:
        """The survey of a collection."""
        if collection not in self.policy.collections:
            raise NotThere("no collection of this data set has that name.")
        return self._once("survey", collection, lambda: self.session.collect(collection))

    def drawn(self, name: str, draw: Callable[[], T]) -> T:
        """Synthetic tables of a job, drawn now or lately."""
        with self._drawing:
            if name not in self._drawn:
                self._drawn[name] = draw()
            self._drawn.move_to_end(name)
            while len(self._drawn) > TABLES_KEPT:
                self._drawn.popitem(last=False)
            found: T = self._drawn[name]
            return found

    def _once(self, kind: str, name: str, make: Callable[[], T]) -> T:
        found: T | None = self._opened.get((kind, name))
        if found is None:
            with self._turn:
                found = self._opened.get((kind, name)) or make()
                self._opened[kind, name] = found
        return found


class Holdings(Mapping[str, Holding]):
    """All data sets of a service, by name, over one ledger."""

    def __init__(self, sessions: Iterable[Session]) -> None:
        found = list(sessions)
        if not found:
            raise Unsupported("there is nothing to serve.", "Name a policy: tidegate serve people.toml")
        addresses = {session.ledger_address for session in found}
        if len(addresses) > 1:
            raise Unsupported(
                "these policies name different ledgers, and a service has one.",
                "Give the one to use: --ledger all.ledger, or --ledger postgresql://host/database.",
            )
        self.ledger: Ledger = found[0].ledger
        self._held: dict[str, Holding] = {}
        for session in found:
            vars(session)["ledger"] = self.ledger  # one pool of connections, and one queue of writers
            if session.policy.dataset.name in self._held:
                raise Unsupported(f'two policies are called "{session.policy.dataset.name}".', "Serve one of them.")
            self._held[session.policy.dataset.name] = Holding(session)

    @classmethod
    def from_files(cls, policies: Iterable[str], *, ledger: str = "") -> Holdings:
        """Open policies from files. A ledger's path starts from the first policy's folder, as with other commands."""
        names = list(policies)
        if ledger and "://" not in ledger and names:
            ledger = str((Path(names[0]).parent / Path(ledger).expanduser()).absolute())
        return cls(open_session(name, ledger=ledger) for name in names)

    def __getitem__(self, name: str) -> Holding:
        return self._held[name]

    def __iter__(self) -> Any:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def close(self) -> None:
        self.ledger.close()
