"""The release desk: requests in, records out, every decision committed with its entry before anything leaves.

check    the record, its cells under every promise, whether it was asked for before
decide   in a transaction in which nobody else decides: catch up with others, decide, commit counts, queue and entry
hand out only what is committed
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from tidegate.errors import NotWaiting, Unsupported, did_you_mean
from tidegate.ledger import Ledger
from tidegate.ledger.entry import canonical
from tidegate.ledger.release_book import RELEASED, WAITING, Asked, ReleaseBook, Turn, View, key_hash
from tidegate.policy import Policy
from tidegate.release.gate import Controller, Gate
from tidegate.release.layout import Layout
from tidegate.release.mechanisms import Reading
from tidegate.release.open import opened
from tidegate.release.result import NOBODY, OUTSIDE, SEVERAL, Deferred, Outcome, Refused, Released
from tidegate.tables import Table

BATCH = 1_000  # requests decided under one entry
Progress = Callable[[int, int], None]


class Desk:
    """Hands out the records of one data set under one concealment promise; all promises of the policy hold together.

    Guarantee  A record leaves at most once and never without its entry in the ledger; every promise's tests hold for
               all records that ever left, whoever asked and through whichever desk.
    """

    def __init__(
        self,
        name: str,
        policy: Policy,
        table: Callable[[], Table],
        ledger: Ledger,
        *,
        source: str = "",
        progress: Progress | None = None,
    ) -> None:
        """`source` is the address of the table, where it has one: a second data set over it opens no desk."""
        if name not in policy.concealments:
            raise Unsupported(
                f'"{policy.dataset.name}" makes no concealment promise called "{name}".',
                did_you_mean(name, policy.concealments)
                if policy.concealments
                else "Add [promise.concealment.NAME] to the policy: nothing is released without one.",
            )
        self.name, self.policy, self.layout = name, policy, Layout(policy)
        self._table, self._book = table, ReleaseBook(ledger, policy)
        self.plans = opened(name, policy, table, ledger, self._book, progress, source)
        self._secret = self._book.secret()
        self._controller = Controller(list(self.plans.values()))
        self._seen: int | None = None  # the last entry that the controller knows of; None: nothing yet
        self._alone = threading.Lock()  # threads that share a desk share its controller, and go one after the other

    # Requests

    def request(self, key: str | int, *, who: str = "") -> Outcome:
        """Ask for the record of a key: Released (with whom that frees), or Deferred, or Refused."""
        outcome = self.request_many([key], who=who)[str(key)]
        if not isinstance(outcome, Deferred):
            return outcome
        now = self.status(key)
        return outcome if isinstance(now, Refused) else now  # somebody else may have withdrawn it meanwhile

    def request_many(
        self, keys: Iterable[str | int], *, who: str = "", progress: Progress | None = None
    ) -> dict[str, Outcome]:
        """Ask for many records in order, some hundreds under one entry. What was decided before stays as it is, so a batch
        that was cut short can simply be given again."""
        wanted = list(dict.fromkeys(str(key) for key in keys))
        outcomes: dict[str, Outcome] = {}
        for start in range(0, len(wanted), BATCH):
            outcomes |= self._request_some(wanted[start : start + BATCH], who)
            if progress:
                progress(min(start + BATCH, len(wanted)), len(wanted))
        return outcomes

    def status(self, key: str | int) -> Outcome:
        """Where a request stands."""
        with self._book.look() as view:
            found = view.find([self._hash(key)]).get(self._hash(key))
            if found is None:
                return Refused("nobody has asked for the record of this key, or the request was withdrawn")
            return self._outcome(found, view)

    def withdraw(self, key: str | int, *, who: str = "") -> None:
        """Take a waiting request back; its record is forgotten. Who has left cannot be called back."""
        with self._alone:
            with self._book.turn() as turn:
                found = turn.find([self._hash(key)]).get(self._hash(key))
                if found is None or found.state != WAITING:
                    raise NotWaiting(
                        "this request does not wait: "
                        + ("its record has left already." if found else "there is none, or it was withdrawn before."),
                        "Only a request that waits can be withdrawn.",
                    )
                self._catch_up(turn)
                self._seen = None  # what follows counts once it is committed
                entry = turn.withdraw(found, who=who)
            self._controller.withdraw(found.number, _cells(found.cells))
            self._seen = entry.number

    # What is out

    def released(self, since: int = 0, *, limit: int | None = None) -> tuple[list[dict[str, Any]], int]:
        """The records that left after a cursor, in the order in which they left, and the next cursor."""
        with self._book.look() as view:
            found = view.released(since, limit)
        records = [self._shown(json.loads(request.record)) for request in found]
        return records, found[-1].place or since if found else since

    def counts(self) -> np.ndarray[Any, Any]:
        """Released records under this desk's promise: (values, targets)."""
        with self._gate() as gate:
            return gate.counts.copy()

    def readings(self) -> dict[str, list[Reading]]:
        """Every test of this desk's promise against its critical value."""
        with self._gate() as gate:
            return gate.readings()

    @property
    def waiting(self) -> int:
        """How many wait."""
        with self._gate():
            return self._controller.waiting

    def asked_for(self) -> np.ndarray[Any, Any]:
        """Records that left or wait under this desk's promise: (values, targets)."""
        plan, place = self.plans[self.name], list(self.plans).index(self.name)
        total = self.counts().T.ravel()
        with self._book.look() as view:
            for _, cells in view.waiting():
                total[_cells(cells)[place]] += 1
        return np.asarray(total.reshape(plan.targets, plan.values).T)

    def history(self) -> list[int]:
        """The cells of this desk's promise in the order in which their records left."""
        place = list(self.plans).index(self.name)
        with self._book.look() as view:
            return [_cells(request.cells)[place] for request in view.released(0, None)]

    # Inside

    @contextmanager
    def _gate(self) -> Iterator[Gate]:
        """The gate of this desk's promise as of now, while nobody else uses it."""
        with self._alone:
            with self._book.look() as view:
                self._catch_up(view)
            yield self._controller.gates[list(self.plans).index(self.name)]

    def _request_some(self, keys: Sequence[str], who: str) -> dict[str, Outcome]:
        hashed = {key: self._hash(key) for key in keys}
        with self._book.look() as view:
            known = view.find(list(hashed.values()))
        new = [key for key in keys if hashed[key] not in known]
        outcomes: dict[str, Outcome] = {key: self._outcome(known[hashed[key]]) for key in keys if hashed[key] in known}
        asked, refused = self._look_up(new, hashed)
        outcomes |= refused | (self._decide(asked, who) if asked else {})
        return {key: outcomes[key] for key in keys}

    def _look_up(self, keys: Sequence[str], hashed: dict[str, str]) -> tuple[dict[str, Asked], dict[str, Outcome]]:
        """The records of some keys as requests without a number yet, and what cannot be asked for."""
        if not keys:
            return {}, {}
        found = self._table().records([key for key in keys if _writable(key)], self.layout.raw, self.layout.axes)
        asked: dict[str, Asked] = {}
        refused: dict[str, Outcome] = {}
        for key in keys:
            cells = self.layout.cells(found.cells[key]) if key in found.cells else None
            if cells is None:
                refused[key] = SEVERAL if key in found.twice else OUTSIDE if key in found.cells else NOBODY
            else:
                record = canonical(self.layout.shown(found.columns[key], found.cells[key]))
                asked[key] = Asked(0, hashed[key], ",".join(map(str, cells)), record)
        return asked, refused

    def _decide(self, asked: dict[str, Asked], who: str) -> dict[str, Outcome]:
        """Decide new requests in one transaction and commit what came of it."""
        with self._alone:
            with self._book.turn() as turn:
                self._catch_up(turn)
                known = turn.find([request.key for request in asked.values()])  # somebody may have asked meanwhile
                first = turn.last()[0] + 1
                new = [request for request in asked.values() if request.key not in known]
                new = [replace(request, number=first + place) for place, request in enumerate(new)]
                self._seen = None  # what follows counts once it is committed
                now, seen = self._commit(turn, new, who)
            self._seen = seen
        now = {**known, **now}
        return {key: self._outcome(now[request.key]) for key, request in asked.items()}

    def _commit(self, turn: Turn, new: list[Asked], who: str) -> tuple[dict[str, Asked], int]:
        before = self._controller.released
        if not new:
            return {}, turn.last()[1]
        cells = np.array([_cells(request.cells) for request in new], np.int64)
        gone = self._controller.decide(cells, np.array([request.number for request in new], np.int64)).released
        places = {int(number): before + place for place, number in enumerate(gone, start=1)}
        decided = [_placed(request, places.pop(request.number, None)) for request in new]
        waited = turn.numbered(places) if places else {}
        left = [_placed(waited[number], place) for number, place in places.items()]
        entry = turn.decide(decided, left, who=who)
        return {request.key: request for request in decided}, entry.number

    def _catch_up(self, view: View) -> None:
        """Bring the controller to what is committed, by whomever."""
        seen, self._seen = self._seen, None  # where this fails half-way, everything is read anew
        if seen is None:
            totals = [np.zeros(plan.values * plan.targets, np.int64) for plan in self.plans.values()]
            for cells, count in view.counts():
                for total, cell in zip(totals, _cells(cells), strict=True):
                    total[cell] += count
            self._controller.load(totals, [(number, _cells(cells)) for number, cells in view.waiting()])
        else:
            for number, cells, state in sorted(view.since(seen)):
                self._controller.follow(number, _cells(cells), waiting=state == WAITING, released=state == RELEASED)
        self._seen = view.last()[1]

    def _outcome(self, request: Asked, view: View | None = None) -> Outcome:
        if request.state == RELEASED:
            return Released(request.number, self._shown(json.loads(request.record)))
        return Deferred(request.number, view.ahead(request.number) if view else None)

    def _shown(self, record: dict[str, Any]) -> dict[str, Any]:
        return {name: record[name] for name in self.policy.concealments[self.name].releases}

    def _hash(self, key: str | int) -> str:
        return key_hash(self._secret, str(key))


def _writable(key: str) -> bool:
    """Whether a database can hold it at all; else no record is called so."""
    return "\x00" not in key and not any("\ud800" <= letter <= "\udfff" for letter in key)


def _cells(text: str) -> tuple[int, ...]:
    return tuple(int(cell) for cell in text.split(","))


def _placed(request: Asked, place: int | None) -> Asked:
    return request if place is None else replace(request, state=RELEASED, place=place)
