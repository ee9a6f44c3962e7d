"""How attackers ask: through the front door, ledger included, or many times over through the mechanism alone.

Both run what users run. The front door is slow (every answer is committed to disk twice), so most draws go through
`Mechanism.perturb` with the exact numbers of one table repeated; findings say how many went which way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.accounting import Event
from tidegate.answer import Answer, Query
from tidegate.answer.mechanisms import Mechanism, mechanism_for
from tidegate.answer.run import plan
from tidegate.arrays import Floats
from tidegate.errors import BudgetExceeded
from tidegate.ledger import Ledger
from tidegate.noise import Bits
from tidegate.policy import Policy
from tidegate.session import Session

Run = Callable[[Mechanism, Query, Any, Any, Bits], Any]
Door = Callable[[Policy], Session]
AT_ONCE = 2_000_000  # numbers that are drawn in one go


def honest(mechanism: Mechanism, query: Query, table: Any, event: Any, bits: Bits) -> Any:
    """What is attacked. Tests pass one with a fault instead."""
    return mechanism.perturb(mechanism.exact(query, table), event, bits=bits)


class Several:
    """The exact numbers of some tables along a first axis, in any order and as often as wanted: one run of a mechanism then
    draws an answer about each."""

    def __init__(self, tables: Sequence[Any], places: NDArray[np.int64]) -> None:
        self._tables, self._places = tables, places
        self.policy, self.axis = tables[0].policy, tables[0].axis

    def count(self, *given: Any, **more: Any) -> Any:
        return np.stack([table.count(*given, **more) for table in self._tables])[self._places]

    def moments(self, *given: Any, **more: Any) -> Any:
        found = [table.moments(*given, **more) for table in self._tables]
        return tuple(np.stack(cells)[self._places] for cells in zip(*found, strict=True))


class Remembered:
    """A table that is asked the same thing once: its exact numbers do not change from draw to draw, only noise does."""

    def __init__(self, table: Any) -> None:
        self._table, self._told = table, dict[str, Any]()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._table, name)
        if not callable(found) or name in ("axis", "without_rows"):
            return found
        return partial(self._asked, name, found)

    def _asked(self, name: str, ask: Any, *given: Any, **more: Any) -> Any:
        key = f"{name} {given!r} {sorted(more.items())!r}"
        if key not in self._told:
            self._told[key] = ask(*given, **more)
        return deepcopy(self._told[key])  # who is asked may add noise in place


def event_of(query: Query, policy: Policy, *, epsilon: Any) -> Event:
    """What a question does for at most epsilon."""
    return plan((query,), policy, epsilon=epsilon)[0]


def draws(query: Query, table: Any, event: Event, *, times: int, bits: Bits, run: Run = honest) -> Floats:
    """So many answers to one question about one table, a row of numbers each, without the ledger."""
    if query.statistic == "regression":  # all its sums share one noise: one run is one answer
        mechanism = mechanism_for(query)
        return np.array([numbers(run(mechanism, query, table, event, bits), 1)[0] for _ in range(times)])
    return draws_of(query, [table], event, places=np.zeros(times, np.int64), bits=bits, run=run)


def draws_of(
    query: Query, tables: Sequence[Any], event: Event, *, places: NDArray[np.int64], bits: Bits, run: Run = honest
) -> Floats:
    """An answer about each of the tables at some places."""
    mechanism, at_once = mechanism_for(query), max(1, AT_ONCE // _width(query, tables[0]))
    parts = []
    for start in range(0, places.size, at_once):
        some = places[start : start + at_once]
        parts.append(numbers(run(mechanism, query, Several(tables, some), event, bits), some.size))
    return np.concatenate(parts)


def _width(query: Query, table: Any) -> int:
    """How many numbers an exact answer takes, about."""
    names = [*query.groups, *([query.column] if query.statistic in ("histogram", "quantile", "min", "max") else [])]
    return int(np.prod([table.policy.attribute(name).size + 1 for name in names], dtype=object)) + 2


def numbers(stored: Any, times: int = 1) -> Floats:
    """The numbers of a stored result, in the order in which they are kept: (times, numbers)."""
    parts = next(iter(stored.values()))
    kept = [part for part in parts if part is not None] if "moments" in stored else [parts]
    return np.hstack([np.asarray(part, np.float64).reshape(times, -1) for part in kept])


def whole(stored: Any) -> bool:
    """Whether nothing but whole numbers would leave: low bits of floating-point noise tell the truth apart."""
    if isinstance(stored, dict | list | tuple):
        return all(whole(part) for part in (stored.values() if isinstance(stored, dict) else stored))
    return stored is None or (isinstance(stored, int) and not isinstance(stored, bool))


class FrontDoor:
    """Sessions about made-up data sets, each with an account of its own in one temporary ledger."""

    def __init__(self, policy: Policy, folder: Path, *, door: Door = Session) -> None:
        self.policy, self._door, self._opened = policy, door, 0
        self._ledger = Ledger(str(folder / "audit.ledger"))

    def open(self, table: Any) -> Session:
        """A session on a data set that nobody has asked about. The ledger and the engine's table are shared: opening
        them anew would take longer than answering."""
        self._opened += 1
        policy = replace(self.policy, dataset=replace(self.policy.dataset, name=f"audit-{self._opened}"))
        session = self._door(policy)
        session.__dict__.update(ledger=self._ledger, table=table)
        return session

    def ask(self, table: Any, queries: Sequence[Query], *, epsilon: Any) -> list[Answer]:
        """Ask one question after the other for epsilon each, until they are through or one is refused."""
        session, answers = self.open(table), []
        for query in queries:
            try:
                answers.append(session.answer(query, epsilon=epsilon))
            except BudgetExceeded:
                break
        return answers

    def snapshot(self) -> Any:
        """All that the ledger of these sessions holds."""
        return self._ledger.snapshot()

    def problems(self) -> list[str]:
        """What `verify` finds wrong with the ledger of all these sessions."""
        return self._ledger.verify().problems

    def close(self) -> None:
        self._ledger.close()
