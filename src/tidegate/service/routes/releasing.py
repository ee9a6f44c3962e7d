"""desks: state, requests, status, withdrawals, what is out, audits.

Keys name persons, so they travel in bodies and never in addresses, which end up in logs of others.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from fastapi import Path, Request
from pydantic import ConfigDict, Field

from tidegate.errors import Unsupported
from tidegate.service.access.callers import Caller
from tidegate.service.holdings import Holding
from tidegate.service.routes.common import NAMED, After, Asking, Described, Form, Held, Limit, router

routes = router()
Promise = Annotated[str, Path(pattern=NAMED, examples=["headquarters"])]
RecordKey = Annotated[str, Field(min_length=1, max_length=1000)]


class Wanted(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"keys": ["1234"]}})
    keys: list[RecordKey] = Field(min_length=1, max_length=1000)


class OneKey(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"key": "1234"}})
    key: RecordKey


class Audit(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"worlds": 20, "records": 400, "profile": [1, 1, 2, 4]}})
    worlds: int = Field(20, ge=2, le=60, description="Simulated pairs of data sets.")
    records: int = Field(400, ge=10, le=5000, description="In each of them.")
    profile: list[Annotated[float, Field(ge=0, le=1e9)]] = Field(
        [], max_length=1000, description="How the values of a sensitive group spread; else the policy's first profile."
    )
    seed: int = Field(1, ge=0, le=2**31)


@routes.get("/data/{name}/desks/{promise}")
def desk_state(held: Held, promise: Promise) -> Described:
    from tidegate.release.tracking import tracks  # here: its compiler takes long to load

    desk = held.desk(promise)
    names = desk.layout.target_names(promise)
    tests = {
        test: [
            {"group": _group(names, one.target), "value": one.value, "critical": _finite(one.critical)} for one in found
        ]
        for test, found in desk.readings().items()
    }
    moved = [
        {
            "test": track.test,
            "measure": track.measure,
            "group": _group(names, track.target),
            "records": track.records.tolist(),
            "values": track.values.tolist(),
            "critical": [_finite(value) for value in track.critical.tolist()],
        }
        for track in tracks(desk.plans[promise], desk.history())
    ]
    counts: dict[str, Any] = {
        "out_in_all": dict(zip(names, desk.counts().sum(axis=0).tolist(), strict=True)),
        "asked_for": dict(zip(names, desk.asked_for().sum(axis=0).tolist(), strict=True)),
        "waiting": desk.waiting,
    }
    return {
        "desk": promise,
        "promise": str(held.policy.concealments[promise]),
        **counts,
        "tests": tests,
        "tracks": moved,
    }


@routes.post("/data/{name}/desks/{promise}/requests")
def request_records(request: Request, held: Held, promise: Promise, caller: Asking, wanted: Wanted) -> Described:
    _refuse_others(request, held, caller, wanted.keys)
    desk = held.desk(promise)
    if len(wanted.keys) == 1:
        return {"outcomes": [desk.request(wanted.keys[0], who=caller.name).to_dict()]}
    outcomes = desk.request_many(wanted.keys, who=caller.name)
    return {"outcomes": [outcomes[key].to_dict() for key in wanted.keys]}


@routes.post("/data/{name}/desks/{promise}/status")
def request_status(request: Request, held: Held, promise: Promise, caller: Asking, asked: OneKey) -> Described:
    _refuse_others(request, held, caller, [asked.key])
    return held.desk(promise).status(asked.key).to_dict()


@routes.post("/data/{name}/desks/{promise}/withdrawals")
def withdraw_request(request: Request, held: Held, promise: Promise, caller: Asking, asked: OneKey) -> Described:
    _refuse_others(request, held, caller, [asked.key])
    held.desk(promise).withdraw(asked.key, who=caller.name)
    return {"outcome": "withdrawn"}


@routes.get("/data/{name}/desks/{promise}/released")
def released_records(held: Held, promise: Promise, after: After = 0, limit: Limit = 100) -> Described:
    records, cursor = held.desk(promise).released(after, limit=limit)
    return {"records": records, "cursor": cursor, "next": cursor if len(records) == limit else None}


@routes.post("/data/{name}/desks/{promise}/audits")
def audit_release(held: Held, promise: Promise, wanted: Audit) -> Described:
    from tidegate.audit import observe  # here: its compiler takes long to load
    from tidegate.audit.watching import Everything

    plan = held.desk(promise).plans[promise]
    profile = wanted.profile or _profile(held, promise)
    if len(profile) != plan.values or not sum(profile):
        raise Unsupported(
            f"a profile has {plan.values:,} weights here, one for each value, and not all are 0.",
            "Say how the values of a sensitive group would spread.",
        )
    size: dict[str, Any] = {"worlds": wanted.worlds, "records": wanted.records, "seed": wanted.seed}
    found = [*observe(plan, profile, control=Everything, **size), *observe(plan, profile, **size)]
    return {"observations": [_without_nan(one.to_dict()) for one in found], **size}


def _profile(held: Holding, promise: str) -> list[float]:
    profiles = list(held.policy.concealments[promise].profiles.values())
    return [float(weight) for weight in profiles[0].values] if profiles else []


def _refuse_others(request: Request, held: Holding, caller: Caller, keys: list[str]) -> None:
    caller.refuse_other_records(request.app.state.record_secret, held.name, keys)


def _group(names: list[str], target: int | None) -> str:
    return "all" if target is None else names[target]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _without_nan(told: dict[str, Any]) -> dict[str, Any]:
    return {name: _finite(value) if isinstance(value, float) else value for name, value in told.items()}
