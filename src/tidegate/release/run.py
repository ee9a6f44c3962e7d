"""The procedure of a release desk. Nothing is handed out before it is committed with its ledger entry.

gather    requests that arrive while the last ones are written are decided together, in order of arrival
check     was the record requested before, does it exist, which cells is it in under each promise
catch up  in a transaction that excludes other decisions, load what other processes committed
decide    every promise must hold: release the record, with those that it frees, or let it wait
commit    counts, queue, records and one entry for each request together
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tidegate.arrays import Ints
from tidegate.errors import NotWaiting, Unsupported, did_you_mean
from tidegate.ledger import Ledger
from tidegate.ledger.group_commit import GroupCommit
from tidegate.ledger.release_book import RELEASED, WAITING, ReleaseBook, StoredRequest, Turn, View, key_hash
from tidegate.policy import Policy
from tidegate.release.gate import Cells, Controller, Gate
from tidegate.release.layout import Layout
from tidegate.release.open import open_plans
from tidegate.release.plan import Plan
from tidegate.release.request import Progress, RecordRequest, is_storable
from tidegate.release.result import NOBODY, OUTSIDE, SEVERAL, Deferred, Outcome, Outcomes, Records, Refused, Released
from tidegate.tables import Table

GROUP = 32  # requests under one commit, of up to 1,000 keys each


@dataclass
class DeskState:
    """One process's view of the requests of a data set, through the desk of one promise.

    `seen` is the last ledger entry that the controller includes; None if it must load everything. `lock` lets threads
    that share a desk, and so its controller, take turns; `groups` lets their requests share a commit.
    """

    promise: str
    policy: Policy
    layout: Layout
    open_table: Callable[[], Table]
    book: ReleaseBook
    plans: dict[str, Plan]
    secret: bytes
    controller: Controller
    seen: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.groups = GroupCommit[RecordRequest, dict[str, Outcome]](partial(_decide_group, self), most=GROUP)

    @property
    def index(self) -> int:
        """The position of the desk's promise among all promises of the policy."""
        return list(self.plans).index(self.promise)

    def hash(self, key: str | int) -> str:
        return key_hash(self.secret, str(key))


def open_release(
    promise: str,
    policy: Policy,
    open_table: Callable[[], Table],
    ledger: Ledger,
    *,
    source: str = "",
    progress: Progress | None = None,
) -> DeskState:
    """Open the desk of a promise. The first opening fixes baselines and critical values in the ledger."""
    if promise not in policy.concealments:
        raise Unsupported(
            f'"{policy.dataset.name}" has no concealment promise called "{promise}".',
            did_you_mean(promise, policy.concealments)
            if policy.concealments
            else "Add [promise.concealment.NAME] to the policy: nothing is released without one.",
        )
    book = ReleaseBook(ledger, policy)
    plans = open_plans(promise, policy, open_table, ledger, book, progress, source)
    controller = Controller(list(plans.values()))
    return DeskState(promise, policy, Layout(policy), open_table, book, plans, book.secret(), controller)


def request_records(desk: DeskState, request: RecordRequest, progress: Progress | None = None) -> Outcomes:
    """Decide a request batch by batch and return the outcome of each key, in order."""
    outcomes = Outcomes()
    for batch in request.batches():
        outcomes.update(desk.groups.submit(batch))
        if progress:
            progress(len(outcomes), len(request))
    return outcomes


def _decide_group(desk: DeskState, group: Sequence[RecordRequest]) -> list[dict[str, Outcome]]:
    """Check, catch up, decide, commit: the outcome of each key of each request."""
    hashes = {key: hashed for request in group for key, hashed in request.hashes.items()}
    with desk.book.look() as view:
        known = view.find(list(hashes.values()))
    outcomes = {key: _outcome(desk, known[hashed]) for key, hashed in hashes.items() if hashed in known}
    requests, refusals = _look_up(desk, {key: hashed for key, hashed in hashes.items() if hashed not in known})
    outcomes |= refusals
    decided = _decide(desk, group, requests) if requests else [{} for _ in group]
    return [
        {key: own[key] if key in own else outcomes[key] for key in request.hashes}
        for request, own in zip(group, decided, strict=True)
    ]


def _look_up(desk: DeskState, hashes: Mapping[str, str]) -> tuple[dict[str, StoredRequest], dict[str, Outcome]]:
    """Read the records of some keys: requests without a number yet, and refusals where there is nothing to release."""
    if not hashes:
        return {}, {}
    layout = desk.layout
    records = desk.open_table().records([key for key in hashes if is_storable(key)], layout.raw, layout.axes)
    requests: dict[str, StoredRequest] = {}
    refusals: dict[str, Outcome] = {}
    for key, hashed in hashes.items():
        cells = layout.cells(records.cells[key]) if key in records.cells else None
        if cells is None:
            refusals[key] = SEVERAL if key in records.twice else OUTSIDE if key in records.cells else NOBODY
        else:
            record = layout.shown_text(records.columns[key], records.cells[key])
            requests[key] = StoredRequest(0, hashed, ",".join(map(str, cells)), record)
    return requests, refusals


def _decide(
    desk: DeskState, group: Sequence[RecordRequest], requests: Mapping[str, StoredRequest]
) -> list[dict[str, Outcome]]:
    """Decide the new records of a group in one transaction, in order; return the outcomes of these records."""
    outcomes = []
    with desk.lock:
        with desk.book.turn() as turn:
            catch_up(desk, turn)
            known = turn.find([request.key for request in requests.values()])  # others may have requested meanwhile
            last, seen = turn.last()
            desk.seen = None  # the controller is valid again after the commit
            for request in group:
                own = {key: requests[key] for key in request.hashes if key in requests}
                new = [stored for stored in own.values() if stored.key not in known]
                new = [replace(stored, number=last + index) for index, stored in enumerate(new, start=1)]
                if new:
                    changed, seen = _commit(desk, turn, new, request.user)
                    known, last = {**known, **changed}, last + len(new)
                outcomes.append({key: _outcome(desk, known[stored.key]) for key, stored in own.items()})
        desk.seen = seen
    return outcomes


def _commit(desk: DeskState, turn: Turn, new: list[StoredRequest], user: str) -> tuple[dict[str, StoredRequest], int]:
    """Write new requests, and the waiting ones that they free; return all of them by key hash, and the entry's number."""
    before = desk.controller.released
    cells = np.array([parse_cells(request.cells) for request in new], np.int64)
    numbers = np.array([request.number for request in new], np.int64)
    released = desk.controller.decide(cells, numbers).released
    positions = {int(number): before + index for index, number in enumerate(released, start=1)}
    decided = [_mark_released(request, positions.pop(request.number, None)) for request in new]
    waiting = turn.numbered(positions) if positions else {}
    freed = [_mark_released(waiting[number], position) for number, position in positions.items()]
    entry = turn.decide(decided, freed, user=user)
    return {request.key: request for request in (*decided, *freed)}, entry.number


def catch_up(desk: DeskState, view: View) -> None:
    """Bring the controller to what is committed, by any process."""
    seen, desk.seen = desk.seen, None  # if this fails half-way, everything is loaded again
    if seen is None:
        totals = [np.zeros(plan.values * plan.targets, np.int64) for plan in desk.plans.values()]
        for cells, count in view.counts():
            for total, cell in zip(totals, parse_cells(cells), strict=True):
                total[cell] += count
        desk.controller.load(totals, [(number, parse_cells(cells)) for number, cells in view.waiting()])
    else:
        for number, cells, state in sorted(view.since(seen)):
            desk.controller.follow(number, parse_cells(cells), waiting=state == WAITING, released=state == RELEASED)
    desk.seen = view.last()[1]


def withdraw_request(desk: DeskState, key: str | int, *, user: str = "") -> None:
    """Withdraw a waiting request and delete its record.

    Raises:
        NotWaiting: The record was released, or there is no request for it.
    """
    with desk.lock:
        with desk.book.turn() as turn:
            request = turn.find([desk.hash(key)]).get(desk.hash(key))
            if request is None or request.state != WAITING:
                raise NotWaiting(
                    "This request is not waiting: "
                    + ("its record was already released." if request else "it does not exist or was withdrawn."),
                    "Only a waiting request can be withdrawn.",
                )
            catch_up(desk, turn)
            desk.seen = None  # the controller is valid again after the commit
            entry = turn.withdraw(request, user=user)
        desk.controller.withdraw(request.number, parse_cells(request.cells))
        desk.seen = entry.number


def read_status(desk: DeskState, key: str | int) -> Outcome:
    """Return the present outcome of a key, with its position in the queue."""
    with desk.book.look() as view:
        request = view.find([desk.hash(key)]).get(desk.hash(key))
        if request is None:
            return Refused("the record of this key was not requested, or the request was withdrawn")
        return _outcome(desk, request, view)


def read_released(desk: DeskState, since: int, limit: int | None) -> tuple[Records, int]:
    """Return the records released after a cursor, in order of release, and the next cursor."""
    with desk.book.look() as view:
        requests = view.released(since, limit)
    records = Records(_shown(desk, request) for request in requests)
    return records, requests[-1].place or since if requests else since


@contextmanager
def current_gate(desk: DeskState) -> Iterator[Gate]:
    """Yield the current gate of the desk's promise, for exclusive use."""
    with desk.lock:
        with desk.book.look() as view:
            catch_up(desk, view)
        yield desk.controller.gates[desk.index]


def count_requests(desk: DeskState) -> Ints:
    """Count the records that were released or wait under the desk's promise: (values, targets)."""
    plan = desk.plans[desk.promise]
    with current_gate(desk) as gate:
        counts = gate.counts.T.flatten()
    with desk.book.look() as view:
        for _, cells in view.waiting():
            counts[parse_cells(cells)[desk.index]] += 1
    return np.asarray(counts.reshape(plan.targets, plan.values).T)


def read_history(desk: DeskState) -> list[int]:
    """Return the cells of the desk's promise in the order in which their records were released."""
    with desk.book.look() as view:
        return [parse_cells(request.cells)[desk.index] for request in view.released(0, None)]


def parse_cells(text: str) -> Cells:
    """Read the cells of a record, one for each promise, as the ledger stores them."""
    return tuple(int(cell) for cell in text.split(","))


def _outcome(desk: DeskState, request: StoredRequest, view: View | None = None) -> Outcome:
    if request.state == RELEASED:
        return Released(request.number, _shown(desk, request))
    return Deferred(request.number, view.ahead(request.number) if view else None)


def _shown(desk: DeskState, request: StoredRequest) -> dict[str, Any]:
    """Return the columns of a record that this desk releases."""
    return request.shown(desk.policy.concealments[desk.promise].releases)


def _mark_released(request: StoredRequest, position: int | None) -> StoredRequest:
    """Return the request as released at a position; unchanged if that is None."""
    return request if position is None else replace(request, state=RELEASED, place=position)
