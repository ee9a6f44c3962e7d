"""The release desk of a hiding promise. There is no queue, and no outcome depends on other requests.

A chosen record is released at once, any other is withheld permanently. Requests that arrive together share one commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tidegate.arrays import Ints
from tidegate.errors import Infeasible, NotWaiting, PolicyLoosened, Unsupported, did_you_mean
from tidegate.ledger import Ledger
from tidegate.ledger.group_commit import GroupCommit
from tidegate.ledger.release_book import RELEASED, WITHHELD, ReleaseBook, StoredRequest, key_hash
from tidegate.ledger.selection_book import Selected, SelectionBook
from tidegate.policy import Policy
from tidegate.policy.hiding import Hiding, JointHiding
from tidegate.release.hiding import (
    Selection,
    describe_columns,
    describe_quotas,
    joint_hiding,
    population_of,
    quotas_in,
    read_selections,
)
from tidegate.release.layout import Layout
from tidegate.release.request import Progress, RecordRequest, is_storable
from tidegate.release.result import (
    LATER,
    NOBODY,
    OUTSIDE,
    SEVERAL,
    Outcome,
    Outcomes,
    Records,
    Refused,
    Released,
    Withheld,
)
from tidegate.release.selection import Mix, SelectionKey, choose, quotas_of
from tidegate.release.snapshot import record_digest
from tidegate.tables import Table


class HidingDesk:
    """A release desk under a hiding promise.

    Guarantee:
        A record is released only if it was chosen when the selection opened, at most once, and never without its entry in
        the ledger. A withheld record is never drawn again. No outcome depends on the order of requests.
    """

    def __init__(self, name: str, policy: Policy, table: Callable[[], Table], ledger: Ledger) -> None:
        """Open the desk of a promise. The owner must have opened the selection (`open_selection`)."""
        joint = joint_hiding(policy)
        if name not in policy.hidings:
            raise Unsupported(
                f'"{policy.dataset.name}" has no hiding promise called "{name}".', did_you_mean(name, policy.hidings)
            )
        self.name, self.policy, self.layout = name, policy, Layout(policy)
        self._ledger, self._open_table, self._selections = ledger, table, SelectionBook(ledger, policy)
        openings = self._selections.openings()
        secret = self._selections.secret()
        if not openings or secret is None:
            raise Infeasible(
                f'No record of "{policy.dataset.name}" was chosen for release yet.',
                "The data holder opens the selection once: tidegate release open POLICY",
            )
        ledger.open_account(policy)
        self._key, self._book = secret.key, ReleaseBook(ledger, policy)
        _refuse_changes(policy, joint, openings[-1].content())
        if not isinstance(joint.promise.mix, str):
            self._lower_quotas(joint.promise, joint.promise.mix)
        self._days: dict[int, str] = {}  # on which each selection was opened
        self._secret = self._book.secret()
        self._commits = GroupCommit(self._decide)

    @property
    def selections(self) -> list[Selection]:
        """The open selections: the first, and one for each time that later records were selected."""
        return read_selections(self._ledger, self.policy)

    def _lower_quotas(self, promise: Hiding, mix: Mix) -> None:
        """Apply a lower mix of a changed policy to what was not released yet, by the same ranks."""
        latest = {opened["epoch"]: opened for opened in (entry.content() for entry in self._selections.openings())}
        for epoch, opened in latest.items():
            before = quotas_in(opened)
            if mix == before.mix:
                continue
            quotas = quotas_of(mix, before.sizes, before.hidden, promise.smallest)
            rows = [row for row in self._selections.rows() if row.epoch == epoch]
            key = SelectionKey(self._key, self._selections.account)
            chosen = choose(key, epoch, population_of(rows, self.layout), quotas)
            remaining = chosen | self._selections.released()
            unchosen = [row.key for row in rows if row.digest and row.key not in remaining]
            body = {**opened, **describe_quotas(promise, quotas, epoch), "cut": True}
            body["chosen"] = key.digest(epoch, "chosen", sorted(chosen))
            self._selections.cut(body, unchosen)

    def _day(self, epoch: int) -> str:
        """Return the day on which a selection was opened. Another process can have opened it in the meantime."""
        if epoch not in self._days:
            for entry in reversed(self._selections.openings()):  # the first entry of a selection is its opening
                self._days[entry.content()["epoch"]] = entry.at[:10]
        return self._days[epoch]

    def request(self, key: str | int, *, user: str = "") -> Outcome:
        """Request the record of a key."""
        return self.request_many([key], user=user)[str(key)]

    def request_many(self, keys: Iterable[str | int], *, user: str = "", progress: Progress | None = None) -> Outcomes:
        """Request many records, up to a thousand under one ledger entry. No decision depends on the order."""
        request = RecordRequest.for_keys(keys, secret=self._secret, user=user)
        outcomes = Outcomes()
        for batch in request.batches():
            outcomes.update(self._commits.submit(batch))
            if progress:
                progress(len(outcomes), len(request))
        return outcomes

    def _decide(self, requests: list[RecordRequest]) -> list[dict[str, Outcome]]:
        """Check, look up, commit; return the outcomes of each request by key."""
        keys = {hashed: key for request in requests for key, hashed in request.hashes.items()}
        with self._book.look() as view:
            known = view.find(list(keys))
            selected = self._selections.find(view.connection, list(keys))
        new = {hashed: key for hashed, key in keys.items() if hashed not in known}
        to_read = [key for hashed, key in new.items() if hashed not in selected or selected[hashed].digest]
        records, refusals = self._read(to_read)
        decided: dict[str, StoredRequest] = {}
        for hashed, key in new.items():
            row = selected.get(hashed)
            if row is None:
                refusals.setdefault(key, LATER)
            elif not row.digest:
                decided[hashed] = StoredRequest(0, hashed, "", "", WITHHELD, nonce="")
            elif key in records:
                decided[hashed] = self._compare(row, records[key])
        if decided:
            known |= self._commit(requests, decided)
        return [
            {
                key: self._outcome(known[hashed], selected.get(hashed)) if hashed in known else refusals[key]
                for key, hashed in request.hashes.items()
            }
            for request in requests
        ]

    def _read(self, keys: list[str]) -> tuple[dict[str, tuple[int, str]], dict[str, Outcome]]:
        """Read the records of some keys: cell and content as it would be released; refusals where there is none."""
        if not keys:
            return {}, {}
        layout = self.layout
        looked_up = self._open_table().records([key for key in keys if is_storable(key)], layout.raw, layout.axes)
        records: dict[str, tuple[int, str]] = {}
        refusals: dict[str, Outcome] = {
            key: SEVERAL if key in looked_up.twice else NOBODY for key in keys if key not in looked_up.cells
        }
        positions = np.array(list(looked_up.cells.values()), np.int64).reshape(-1, len(layout.axes))
        for key, cell in zip(looked_up.cells, layout.joint_cells(positions).tolist(), strict=True):
            if cell < 0:
                refusals[key] = OUTSIDE
            else:
                records[key] = cell, layout.shown_text(looked_up.columns[key], looked_up.cells[key])
        return records, refusals

    def _compare(self, row: Selected, record: tuple[int, str]) -> StoredRequest:
        """Release a chosen record. One that has changed since the selection is withheld like any other."""
        cell, content = record
        if record_digest(self._key, cell, content) != row.digest:
            return StoredRequest(0, row.key, "", "", WITHHELD, nonce="")
        return StoredRequest(0, row.key, f"{cell},{row.epoch}", content, RELEASED, nonce="")

    def _commit(self, requests: list[RecordRequest], decided: Mapping[str, StoredRequest]) -> dict[str, StoredRequest]:
        """Write one entry per request, all in one transaction; return the decided requests."""
        with self._book.turn() as turn:
            known = turn.find(list(decided))  # others may have requested meanwhile
            number, position = turn.last()[0], turn.last_place()
            for request in requests:
                new: list[StoredRequest] = []
                for hashed in request.hashes.values():
                    if hashed in known or hashed not in decided:
                        continue
                    number += 1
                    stored = replace(decided[hashed], number=number)
                    if stored.state == RELEASED:
                        position += 1
                        stored = replace(stored, place=position)
                    known[hashed] = stored
                    new.append(stored)
                if new:
                    turn.decide(new, [], user=request.user)
        return known

    def status(self, key: str | int) -> Outcome:
        """Return the state of a request."""
        hashed = key_hash(self._secret, str(key))
        with self._book.look() as view:
            request = view.find([hashed]).get(hashed)
            row = self._selections.find(view.connection, [hashed]).get(hashed)
        if request is None:
            return Refused("the record of this key was not requested")
        return self._outcome(request, row)

    def withdraw(self, key: str | int, *, user: str = "") -> None:
        """Refuse: under a hiding promise no request waits.

        Raises:
            NotWaiting: Always.
        """
        raise NotWaiting(
            "Under a hiding promise no request waits: a record is released at once or never.",
            "Nothing needs to be done.",
        )

    def released(self, since: int = 0, *, limit: int | None = None) -> tuple[Records, int]:
        """Return the records released after a cursor, in order of release, and the next cursor."""
        with self._book.look() as view:
            requests = view.released(since, limit)
        records = Records(self._shown(request) for request in requests)
        return records, requests[-1].place or since if requests else since

    def counts(self) -> Ints:
        """Count the released records under this desk's promise: (values, groups)."""
        values, groups = self.layout.value_names(self.name), self.layout.target_names(self.name)
        table = np.zeros((len(values), len(groups)), np.int64)
        with self._book.look() as view:
            for cells, count in view.counts():
                value, group = self.layout.margin(self.name, int(cells.split(",")[0]))
                table[value, group] += count
        return table

    @property
    def withheld(self) -> int:
        """The number of withheld requests."""
        with self._book.look() as view:
            return view.count(WITHHELD)

    @property
    def waiting(self) -> int:
        """The number of waiting requests: none ever waits."""
        return 0

    def _outcome(self, request: StoredRequest, row: Selected | None) -> Outcome:
        if request.state == RELEASED:
            return Released(request.number, self._shown(request))
        return Withheld(request.number, self._day(row.epoch) if row else "")

    def _shown(self, request: StoredRequest) -> dict[str, Any]:
        return request.shown(self.policy.hidings[self.name].releases)


def _refuse_changes(policy: Policy, joint: JointHiding, opened: Mapping[str, Any]) -> None:
    """Refuse a policy that differs from the open selection in more than a lower mix."""
    promise = joint.promise
    settings = {"at_most": str(promise.at_most), "among": promise.among, "smallest": promise.smallest}
    changed = [name for name, value in settings.items() if opened[name] != value]
    if opened["columns"] != describe_columns(policy, joint):
        changed.append("the description of columns")
    if not isinstance(promise.mix, str):
        before = [Fraction(share) for share in opened["mix"]]
        if len(before) != len(promise.mix) or any(now > was for was, now in zip(before, promise.mix, strict=True)):
            changed.append("a higher `mix`")
    if changed:
        raise PolicyLoosened(
            f"The selection was opened under other settings: {', '.join(changed)}. They are fixed once it is open.",
            "Restore them. Only the shares of `mix` can be lowered.",
        )
