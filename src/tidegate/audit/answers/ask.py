"""How attacks query: through sessions and the ledger (the front door), or in bulk through the mechanism alone.

Both run the code that users run. The front door is slow (every answer is committed to disk twice), so most draws go
through `Mechanism.perturb` with the exact numbers of one table repeated; findings state how many went which way.
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
from tidegate.answer.spending import RequestedLoss
from tidegate.answer.workloads import Strategy
from tidegate.arrays import Floats
from tidegate.errors import BudgetExceeded
from tidegate.ledger import Ledger
from tidegate.noise import Bits
from tidegate.policy import Policy
from tidegate.session import Session

Run = Callable[[Mechanism, Query, Any, Any, Bits], Any]
Door = Callable[[Policy], Session]
AT_ONCE = 2_000_000  # numbers that are drawn in one call


def run_mechanism(mechanism: Mechanism, query: Query, table: Any, event: Any, bits: Bits) -> Any:
    """Run a mechanism as the product does. Tests pass a faulty version instead."""
    return mechanism.perturb(mechanism.exact(query, table), event, bits=bits)


class StackedTables:
    """The exact numbers of some tables along a first axis, in any order and with repetition.

    One run of a mechanism then draws one answer about each.
    """

    def __init__(self, tables: Sequence[Any], order: NDArray[np.int64]) -> None:
        self._tables, self._order = tables, order
        self.policy, self.axis = tables[0].policy, tables[0].axis

    def count(self, *args: Any, **kwargs: Any) -> Any:
        return np.stack([table.count(*args, **kwargs) for table in self._tables])[self._order]

    def moments(self, *args: Any, **kwargs: Any) -> Any:
        moments = [table.moments(*args, **kwargs) for table in self._tables]
        return tuple(np.stack(cells)[self._order] for cells in zip(*moments, strict=True))


class CachedTable:
    """A table that computes each exact result once: only the noise changes from draw to draw."""

    def __init__(self, table: Any) -> None:
        self._table, self._results = table, dict[str, Any]()

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._table, name)
        if not callable(attribute) or name in ("axis", "without_rows"):
            return attribute
        return partial(self._cached, name, attribute)

    def _cached(self, name: str, ask: Any, *args: Any, **kwargs: Any) -> Any:
        key = f"{name} {args!r} {sorted(kwargs.items())!r}"
        if key not in self._results:
            self._results[key] = ask(*args, **kwargs)
        return deepcopy(self._results[key])  # the caller may add noise in place


def event_of(query: Query, policy: Policy, *, loss: RequestedLoss) -> Event:
    """Return the event of a query for at most a loss."""
    return plan((query,), policy, loss=loss)[0]


def draw_answers(query: Query, table: Any, event: Event, *, times: int, bits: Bits, run: Run = run_mechanism) -> Floats:
    """Draw answers to one query about one table without the ledger, a row of numbers each."""
    if query.statistic == "regression":  # its sums share one noise vector, so one run is one answer
        mechanism = mechanism_for(query)
        return np.array([numbers(run(mechanism, query, table, event, bits), 1)[0] for _ in range(times)])
    return draw_answers_of(query, [table], event, order=np.zeros(times, np.int64), bits=bits, run=run)


def draw_answers_of(
    query: Query, tables: Sequence[Any], event: Event, *, order: NDArray[np.int64], bits: Bits, run: Run = run_mechanism
) -> Floats:
    """Draw an answer about the table at each index of `order`."""
    mechanism, at_once = mechanism_for(query), max(1, AT_ONCE // _width(query, tables[0]))
    parts = []
    for start in range(0, order.size, at_once):
        some = order[start : start + at_once]
        parts.append(numbers(run(mechanism, query, StackedTables(tables, some), event, bits), some.size))
    return np.concatenate(parts)


def _width(query: Query, table: Any) -> int:
    """Return the approximate number of integers in an exact answer."""
    names = [*query.groups, *([query.column] if query.statistic in ("histogram", "quantile", "min", "max") else [])]
    return int(np.prod([table.policy.attribute(name).size + 1 for name in names], dtype=object)) + 2


def draw_workload(strategy: Strategy, table: Any, *, times: int, bits: Bits) -> Floats:
    """Draw the measurements of counts that are answered together, a row of numbers each. All answers follow from them."""
    exact = [np.tile(np.asarray(part).reshape(-1), times) for part in strategy.exact(table)]
    parts = strategy.perturb(exact, bits=bits)
    return np.hstack([np.asarray(part, np.float64).reshape(times, -1) for part in parts])


def numbers(stored: Any, times: int = 1) -> Floats:
    """Return the numbers of a stored result in stored order: (times, numbers)."""
    parts = next(iter(stored.values()))
    arrays = [part for part in parts if part is not None] if "moments" in stored else [parts]
    return np.hstack([np.asarray(part, np.float64).reshape(times, -1) for part in arrays])


def is_whole(stored: Any) -> bool:
    """Return whether a result contains only integers: low bits of floating-point noise would reveal the truth."""
    if isinstance(stored, dict | list | tuple):
        return all(is_whole(part) for part in (stored.values() if isinstance(stored, dict) else stored))
    return stored is None or (isinstance(stored, int) and not isinstance(stored, bool))


def ask_session(session: Session, queries: Sequence[Query], *, loss: RequestedLoss) -> list[Answer]:
    """Send the queries to a session one after the other for the same loss each, until one is refused."""
    answers, options = list[Answer](), dict[str, Any]({loss.unit: loss.amount})
    for query in queries:
        try:
            answers.append(session.answer(query, anyway=True, **options))
        except BudgetExceeded:
            break
    return answers


class FrontDoor:
    """Sessions about simulated data sets, each with its own account in one temporary ledger."""

    def __init__(self, policy: Policy, folder: Path, *, door: Door = Session) -> None:
        self.policy, self._door, self._opened = policy, door, 0
        self._ledger = Ledger(str(folder / "audit.ledger"), is_witnessed=False)

    def open(self, table: Any, *, partners: Sequence[str] = ()) -> Session:
        """Open a session on a new data set, which declares that it shares persons with its partners.

        The ledger and the engine's table are shared, because opening them again would take longer than answering.
        """
        self._opened += 1
        named = replace(self.policy.dataset, name=f"audit-{self._opened}", shares_persons_with=tuple(partners))
        policy = replace(self.policy, dataset=named)
        session = self._door(policy)
        session.__dict__.update(ledger=self._ledger, _table=table)
        return session

    def ask(self, table: Any, queries: Sequence[Query], *, loss: RequestedLoss) -> list[Answer]:
        """Send the queries one after the other for the same loss each, until all are answered or one is refused."""
        return ask_session(self.open(table), queries, loss=loss)

    def snapshot(self) -> Any:
        """Return the contents of the ledger of these sessions."""
        return self._ledger.snapshot()

    def problems(self) -> list[str]:
        """Return the problems that `verify` finds in the ledger of these sessions."""
        return self._ledger.verify().problems

    def close(self) -> None:
        self._ledger.close()
