"""The release desk that a session hands out. Each method calls one function of run.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tidegate.arrays import Ints
from tidegate.ledger import Ledger
from tidegate.policy import Policy
from tidegate.release import run
from tidegate.release.layout import Layout
from tidegate.release.mechanisms import Reading
from tidegate.release.plan import Plan, Progress
from tidegate.release.request import RecordRequest
from tidegate.release.result import Deferred, Outcome, Refused
from tidegate.tables import Table


class Desk:
    """A release desk: it hands out the records of one data set under one concealment promise.

    All promises of the policy hold together.

    Guarantee:
        A record leaves at most once and never without its entry in the ledger. Every promise's tests hold for all records
        that were ever released, whoever requested them and through whichever desk.
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
        self._state = run.open_release(name, policy, table, ledger, source=source, progress=progress)

    @property
    def name(self) -> str:
        """The concealment promise."""
        return self._state.promise

    @property
    def policy(self) -> Policy:
        return self._state.policy

    @property
    def layout(self) -> Layout:
        """How a record looks when it leaves."""
        return self._state.layout

    @property
    def plans(self) -> dict[str, Plan]:
        """Baseline and critical values of every promise of the policy."""
        return self._state.plans

    def request(self, key: str | int, *, user: str = "") -> Outcome:
        """Ask for the record of a key: Released (with whom that frees), or Deferred, or Refused."""
        outcome = self.request_many([key], user=user)[str(key)]
        if not isinstance(outcome, Deferred):
            return outcome
        now = self.status(key)
        return outcome if isinstance(now, Refused) else now  # somebody else may have withdrawn it meanwhile

    def request_many(
        self, keys: Iterable[str | int], *, user: str = "", progress: Progress | None = None
    ) -> dict[str, Outcome]:
        """Ask for many records in order, some hundreds under one entry. What was decided before stays as it is, so a batch
        that was cut short can simply be given again."""
        request = RecordRequest.for_keys(keys, secret=self._state.secret, user=user)
        return run.request_records(self._state, request, progress)

    def status(self, key: str | int) -> Outcome:
        """Where a request stands."""
        return run.read_status(self._state, key)

    def withdraw(self, key: str | int, *, user: str = "") -> None:
        """Take a waiting request back; its record is forgotten. Who has left cannot be called back."""
        run.withdraw_request(self._state, key, user=user)

    def released(self, since: int = 0, *, limit: int | None = None) -> tuple[list[dict[str, Any]], int]:
        """The records that left after a cursor, in the order in which they left, and the next cursor."""
        return run.read_released(self._state, since, limit)

    def counts(self) -> Ints:
        """Released records under this desk's promise: (values, targets)."""
        with run.current_gate(self._state) as gate:
            return gate.counts.copy()

    def readings(self) -> dict[str, list[Reading]]:
        """Every test of this desk's promise against its critical value."""
        with run.current_gate(self._state) as gate:
            return gate.readings()

    @property
    def waiting(self) -> int:
        """How many wait."""
        with run.current_gate(self._state):
            return self._state.controller.waiting

    def asked_for(self) -> Ints:
        """Records that left or wait under this desk's promise: (values, targets)."""
        return run.count_requests(self._state)

    def history(self) -> list[int]:
        """The cells of this desk's promise in the order in which their records left."""
        return run.read_history(self._state)
