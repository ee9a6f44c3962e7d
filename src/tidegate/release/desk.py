"""The release desk that a session returns. Each method calls one function of run.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidegate.arrays import Ints
from tidegate.ledger import Ledger
from tidegate.policy import Policy
from tidegate.release import run
from tidegate.release.layout import Layout
from tidegate.release.mechanisms import Reading
from tidegate.release.plan import Plan
from tidegate.release.queue import WaitingRequest, read_queue
from tidegate.release.request import Progress, RecordRequest
from tidegate.release.result import Deferred, Outcome, Outcomes, Records, Refused
from tidegate.tables import Table


class Desk:
    """A release desk: it releases the records of one data set under one concealment promise.

    All promises of the policy hold together.

    Guarantee:
        A record is released at most once and never without its entry in the ledger. The tests of every promise hold for
        all records ever released, by any requester and through any desk.
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
        """Open the desk. `source` is the address of the table, if it has one: a second data set over it cannot open a desk."""
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
        """The form in which a record is released."""
        return self._state.layout

    @property
    def plans(self) -> dict[str, Plan]:
        """Baseline and critical values of every promise of the policy."""
        return self._state.plans

    def request(self, key: str | int, *, user: str = "") -> Outcome:
        """Request the record of a key. A release can free waiting requests too."""
        outcome = self.request_many([key], user=user)[str(key)]
        if not isinstance(outcome, Deferred):
            return outcome
        now = self.status(key)
        return outcome if isinstance(now, Refused) else now  # another user may have withdrawn it meanwhile

    def request_many(self, keys: Iterable[str | int], *, user: str = "", progress: Progress | None = None) -> Outcomes:
        """Request many records in order, up to a thousand under one ledger entry.

        Earlier decisions do not change, so an interrupted batch can be sent again.
        """
        request = RecordRequest.for_keys(keys, secret=self._state.secret, user=user)
        return run.request_records(self._state, request, progress)

    def status(self, key: str | int) -> Outcome:
        """Return the state of a request."""
        return run.read_status(self._state, key)

    def withdraw(self, key: str | int, *, user: str = "") -> None:
        """Withdraw a waiting request and delete its record. Released records cannot be withdrawn."""
        run.withdraw_request(self._state, key, user=user)

    def released(self, since: int = 0, *, limit: int | None = None) -> tuple[Records, int]:
        """Return the records released after a cursor, in order of release, and the next cursor."""
        return run.read_released(self._state, since, limit)

    def queue(self, after: int = 0, *, limit: int = 100, newest: bool = False) -> tuple[list[WaitingRequest], int]:
        """Return a page of waiting requests with the tests that hold them, and how many wait. For the data holder only."""
        return read_queue(self._state, after, limit, newest=newest)

    def counts(self) -> Ints:
        """Count the released records under this desk's promise: (values, targets)."""
        with run.current_gate(self._state) as gate:
            return gate.counts.copy()

    def readings(self) -> dict[str, list[Reading]]:
        """Return the measure of every test of this desk's promise with its critical value."""
        with run.current_gate(self._state) as gate:
            return gate.readings()

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        with run.current_gate(self._state):
            return self._state.controller.waiting

    def asked_for(self) -> Ints:
        """Count the released and waiting records under this desk's promise: (values, targets)."""
        return run.count_requests(self._state)

    def history(self) -> list[int]:
        """Return the cells of this desk's promise in the order in which their records were released."""
        return run.read_history(self._state)
