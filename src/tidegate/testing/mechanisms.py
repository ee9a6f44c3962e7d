"""The contract of a mechanism: it states its price before it reads a row, and keeps it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np

from tidegate.accounting import Amount, Event
from tidegate.accounting.events import event_from_dict
from tidegate.answer.mechanisms.mechanism import Mechanism, cells_of
from tidegate.answer.request import Query
from tidegate.arrays import Floats
from tidegate.audit.answers.ask import CachedTable
from tidegate.audit.bounds import best_event
from tidegate.noise import SeededBits
from tidegate.policy import Policy
from tidegate.tables import Table
from tidegate.testing.contract import Contract, documented

ALPHA, DRAWS = 1e-6, 4_000
EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(7, 3))
RESULTS = 40


def check_mechanism(
    mechanism: Mechanism,
    query: Query,
    policy: Policy,
    neighbors: tuple[Table, Table],
    *,
    draws: int = DRAWS,
    alpha: float = ALPHA,
    seed: str = "contract",
) -> Contract:
    """Check the contract of a mechanism for one query, on two tables that differ in one protected unit.

    Use the two tables that are hardest to distinguish privately.

    Guarantee:
        A correct mechanism is accused with probability at most `alpha`.
    """
    contract = Contract(f"mechanism {type(mechanism).__name__} for {query.statistic}", alpha=alpha)
    here, there = (cast(Table, CachedTable(table)) for table in neighbors)
    contract.clause("it is documented, with a reference or a guarantee", documented, mechanism)
    contract.clause(
        "it states an event without data, at no more than the requested loss", _price, mechanism, query, policy
    )
    contract.clause("the event can be read again and costs the same", _read_again, mechanism, query, policy)
    contract.clause("more loss never means a larger error", _error, mechanism, query, policy)
    contract.clause("the same bits give the same result, as JSON", _repeats, mechanism, query, policy, here, seed)
    contract.clause("a stored result has one value for each cell", _reads, mechanism, query, policy, here, seed)
    contract.clause(
        "draws on two neighbors prove no more loss than was charged",
        _loss,
        mechanism,
        query,
        policy,
        (here, there),
        draws,
        alpha,
        seed,
    )
    return contract


def _price(mechanism: Mechanism, query: Query, policy: Policy) -> str:
    for epsilon in EPSILONS:
        price = _pure_loss(mechanism.event(query, policy, epsilon=epsilon))
        if price > Amount.up(epsilon).value:  # amounts are rounded up
            return f"{float(price):.6g} for a requested loss of {float(epsilon):.6g}"
        if price < epsilon * Fraction(9, 10):
            return f"only {float(price):.6g} of {float(epsilon):.6g} is used"
    return ""


def _pure_loss(event: Event) -> Fraction:
    if event.price.pure is None:
        raise ValueError("The event for an epsilon must have a pure loss.")
    return event.price.pure.value


def _read_again(mechanism: Mechanism, query: Query, policy: Policy) -> str:
    event = mechanism.event(query, policy, epsilon=EPSILONS[0])
    again = event_from_dict(json.loads(json.dumps(event.to_dict())))
    return "" if again == event and again.price == event.price else "a different event was returned"


def _error(mechanism: Mechanism, query: Query, policy: Policy) -> str:
    errors = [
        mechanism.error(query, policy, mechanism.event(query, policy, epsilon=epsilon), confidence=0.95)
        for epsilon in EPSILONS
    ]
    known = [error for error in errors if error is not None]
    return "" if known == sorted(known, reverse=True) else f"{known} as the loss grows"


def _stored(
    mechanism: Mechanism,
    query: Query,
    policy: Policy,
    table: Table,
    seed: str,
    epsilon: Fraction,
    *,
    size: int | None = None,
) -> Any:
    event = mechanism.event(query, policy, epsilon=epsilon)
    return mechanism.perturb(mechanism.exact(query, table), event, bits=SeededBits(seed), size=size)


def _repeats(mechanism: Mechanism, query: Query, policy: Policy, table: Table, seed: str) -> str:
    # two single results with other randomness are often equal by chance; several are not
    first, again = (_stored(mechanism, query, policy, table, seed, EPSILONS[1], size=RESULTS) for _ in range(2))
    if json.dumps(first) != json.dumps(again):
        return "it uses other randomness"
    return "" if json.loads(json.dumps(first)) == first else "what it stores does not survive JSON"


def _values(mechanism: Mechanism, query: Query, policy: Policy, stored: Any) -> Any:
    event = mechanism.event(query, policy, epsilon=EPSILONS[1])
    return mechanism.read(query, policy, event, stored, confidence=0.95)


def _reads(mechanism: Mechanism, query: Query, policy: Policy, table: Table, seed: str) -> str:
    reading = _values(mechanism, query, policy, _stored(mechanism, query, policy, table, seed, EPSILONS[1]))
    size, expected = np.asarray(reading.values).size, cells_of(query, policy)
    if size != expected:
        return f"{size} values for {expected} cells"
    if reading.low is not None and not (np.asarray(reading.low) <= np.asarray(reading.high)).all():
        return "an interval ends before it begins"
    inside = reading.low is None or ((reading.low <= reading.values) & (reading.values <= reading.high)).all()
    if not inside:
        return "a value is outside its interval"
    return ""


def _loss(
    mechanism: Mechanism, query: Query, policy: Policy, tables: Sequence[Table], draws: int, alpha: float, seed: str
) -> str:
    event = mechanism.event(query, policy, epsilon=EPSILONS[1])
    samples = []
    for side, table in enumerate(tables):
        exact, bits = mechanism.exact(query, table), SeededBits(f"{seed}/{side}")
        stored = mechanism.perturb(exact, event, bits=bits, size=draws)
        samples.append(_numbers(mechanism.read(query, policy, event, stored, confidence=0.95), draws))
    bound, event_text = best_event(samples[0], samples[1], alpha=alpha)
    charged = float(_pure_loss(event))
    return "" if bound <= charged else f"{bound:.3f} is proven by {event_text}, {charged:.3f} was charged"


def _numbers(reading: Any, draws: int) -> Floats:
    numbers = np.asarray(reading.noisy, np.float64).reshape(draws, -1)[:, :8]
    return np.where(np.isfinite(numbers), numbers, 1e18)
