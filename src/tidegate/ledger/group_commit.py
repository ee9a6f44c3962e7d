"""Requests of several threads that share one commit: one of them decides for all that arrived while the last was written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tidegate.errors import TidegateError

Request = TypeVar("Request")
Outcome = TypeVar("Outcome")


@dataclass
class _Ticket(Generic[Request, Outcome]):
    """A request that waits for its part of a common commit."""

    request: Request
    outcome: list[Outcome] = field(default_factory=list)
    error: BaseException | None = None
    leads: bool = False
    turn: threading.Event = field(default_factory=threading.Event)


class GroupCommit(Generic[Request, Outcome]):
    """Decides requests in groups.

    `decide` gets the requests of a group and returns an outcome for each, in order, after everything is on disk. It
    writes all of them or raises with nothing written.

    Guarantee:
        `submit` returns after the commit of its own request. If the ledger or its data cannot be used (a TidegateError),
        every request of the group raises that error. After any other error each request is decided by itself, so that one
        that fails does not fail the others.
    """

    def __init__(self, decide: Callable[[list[Request]], Sequence[Outcome]], *, most: int = 1000) -> None:
        self._decide, self._most = decide, most
        self._lock, self._is_led = threading.Lock(), False
        self._pending: list[_Ticket[Request, Outcome]] = []

    def submit(self, request: Request) -> Outcome:
        """Decide a request together with those that arrive while the last commit is written."""
        ticket = _Ticket[Request, Outcome](request)
        with self._lock:
            self._pending.append(ticket)
            ticket.leads, self._is_led = not self._is_led, True
        if not ticket.leads:
            ticket.turn.wait()  # until it is decided, or until it leads
        if ticket.leads:
            self._lead()
        if ticket.error is not None:
            raise ticket.error
        return ticket.outcome[0]

    def _lead(self) -> None:
        """Decide all pending requests in one commit; then let the next one lead."""
        with self._lock:
            group, self._pending = self._pending[: self._most], self._pending[self._most :]
        self._settle(group)
        with self._lock:
            self._is_led = bool(self._pending)
            if self._pending:
                self._pending[0].leads = True
                self._pending[0].turn.set()
        for ticket in group:
            ticket.turn.set()

    def _settle(self, group: list[_Ticket[Request, Outcome]]) -> None:
        try:
            outcomes = self._decide([ticket.request for ticket in group])
        except Exception as error:
            if len(group) == 1 or isinstance(error, TidegateError):
                _fail(group, error)
            else:
                for ticket in group:
                    self._settle([ticket])
        except BaseException as error:  # an interrupt: every thread raises it
            _fail(group, error)
        else:
            for ticket, outcome in zip(group, outcomes, strict=True):
                ticket.outcome.append(outcome)


def _fail(group: Sequence[_Ticket[Request, Outcome]], error: BaseException) -> None:
    for ticket in group:
        ticket.error = error
