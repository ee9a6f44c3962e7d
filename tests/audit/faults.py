"""Policies to attack, and faults to plant."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
from claims.probabilities import SEED

from tidegate.accounting import (
    Choices,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    GaussianBox,
    GaussianMoments,
    KNorm,
    Moments,
    Together,
)
from tidegate.audit.finding import Clock
from tidegate.noise import exponential_choice
from tidegate.policy import (
    Category,
    Dataset,
    Date,
    EachPerson,
    EachRow,
    Grid,
    Identification,
    Integer,
    Key,
    Loss,
    Policy,
)

FRESH = int.from_bytes(SEED.encode(), "big") % 2**32
COLUMNS = {
    "person": Key(),
    "age": Integer(0, 9, missing="lowest"),
    "pay": Grid(0, 1, "0.25"),
    "sex": Category(("f", "m")),
}


def people(*, rho: str = "0.4", unit: Any = None, **more: Any) -> Policy:
    """Return a policy that protects age: ten values, a random guess is right with probability 0.1."""
    promise = Identification(rho, protect=("age",), **more)
    return Policy(Dataset("people", unit=unit or EachRow(), rows=1000), COLUMNS, promise)


def days(*, rho: str = "0.4", **more: Any) -> Policy:
    """Return a policy that protects a date: ten days, and no sum of them can be requested."""
    columns = {"day": Date(date(2024, 1, 1), date(2024, 1, 10), missing="lowest"), **COLUMNS}
    promise = Identification(rho, protect=("day",), **more)
    return Policy(Dataset("days", rows=1000), columns, promise)


def persons() -> Policy:
    """Return a policy that protects membership of persons with three rows each."""
    promise = Identification("0.3", worlds="persons", population=1030)
    return Policy(Dataset("persons", unit=EachPerson("person", 3), rows=1000), COLUMNS, promise)


def loss_policy(epsilon: str = "1", unit: Any = None) -> Policy:
    """Return a policy that promises only a loss."""
    return Policy(Dataset("people", unit=unit or EachRow(), rows=1000), COLUMNS, None, Loss(epsilon))


def long() -> Clock:
    """Return a clock that never ends a test: the number of draws is fixed on any machine."""
    return Clock(3600)


def random(*more: int) -> np.random.Generator:
    print(f"TIDEGATE_SEED={SEED}")
    return np.random.default_rng([FRESH, *more])


# Faulty replacements of `run_mechanism`


def less_noise(share: Fraction) -> Any:
    def run(mechanism: Any, query: Any, table: Any, event: Any, bits: Any) -> Any:
        return mechanism.perturb(mechanism.exact(query, table), scaled(event, share), bits=bits)

    return run


def _short(scale: Fraction) -> Fraction:
    """Round a scale as the samplers do."""
    return max(scale.limit_denominator(10**6), Fraction(1, 10**6))


def scaled(event: Any, share: Fraction) -> Any:
    """Return the event with a share of its noise."""
    if isinstance(event, DiscreteLaplace):
        return DiscreteLaplace(event.sensitivity, _short(event.scale * share))
    if isinstance(event, Exponential):
        return Exponential(event.sensitivity, _short(event.rate / share))
    if isinstance(event, KNorm):
        return KNorm(event.bounds, event.steps, _short(event.scale * share))
    if isinstance(event, DiscreteGaussian):
        return replace(event, sigma=_short(event.sigma * share))
    if isinstance(event, Choices):
        return replace(event, rate=_short(event.rate / share))
    if isinstance(event, GaussianBox | GaussianMoments):
        return replace(event, sigmas=tuple(None if s is None else _short(s * share) for s in event.sigmas))
    if isinstance(event, Together):
        return Together(tuple(scaled(part, share) for part in event.parts))
    scales = tuple(_short(scale * share) if scale is not None else None for scale in event.scales)
    return Moments(event.lowest, event.highest, event.rows, scales, event.grouped, event.always)


def surer(times: int) -> Any:
    """Return a choice by ranks that is `times` as sure as it is charged for; it aims where it should."""

    def run(mechanism: Any, query: Any, table: Any, event: Any, bits: Any) -> Any:
        groups = table.count([table.axis(query.column)])[..., : table.policy.attribute(query.column).size]
        scores = (mechanism.scores(query, table.policy, event, group) for group in groups)
        return {"codes": [exponential_choice(score, times * event.rate, bits=bits) for score in scores]}

    return run


def float_noise(mechanism: Any, query: Any, table: Any, event: Any, bits: Any) -> Any:
    """Return noise of the right size in floating point."""
    stored = mechanism.perturb(mechanism.exact(query, table), event, bits=bits)
    return (
        {name: np.add(np.asarray(part, float), 0.3).tolist() for name, part in stored.items()}
        if "cells" in stored
        else stored
    )
