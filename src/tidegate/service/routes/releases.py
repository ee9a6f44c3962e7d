"""Release desks: state, queue, requests, status, withdrawals, released records; and a respondent's own record.

Keys identify people, so they are sent in bodies and never in URLs, which end up in the logs of proxies.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from tidegate.charts import Chart
from tidegate.errors import NotThere
from tidegate.frames import safe_cell
from tidegate.ledger.release_book import StoredRequest
from tidegate.policy import Hiding
from tidegate.service.access.callers import Caller
from tidegate.service.datasets import ServedDataset
from tidegate.service.openapi_examples import EXAMPLES
from tidegate.service.routes.dependencies import (
    NAMED,
    After,
    Charts,
    CurrentCaller,
    Described,
    Form,
    Limit,
    Served,
    router,
    with_charts,
)
from tidegate.service.routes.release_audits import last_simulation
from tidegate.service.routes.selections import hiding_state

if TYPE_CHECKING:
    from tidegate.release.result import Outcome
    from tidegate.release.tracks import Track

routes = router()
Promise = Annotated[str, Path(pattern=NAMED, examples=["headquarters"])]
RecordKey = Annotated[str, Field(min_length=1, max_length=1000)]
AT_ONCE = 1000  # records per read of a file
PAGE = {"example": EXAMPLES["GET", "/v1/data/{name}/desks/{promise}/released"]}
FILES: Any = {
    200: {
        "content": {"application/json": PAGE, "text/csv": {}},
        "description": "A page of records as JSON, or all records as a file",
    }
}


class RecordRequest(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"keys": ["1234"]}})
    keys: list[RecordKey] = Field(min_length=1, max_length=1000)


class SingleKey(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"key": "1234"}})
    key: RecordKey


class QueueObstacle(BaseModel):
    """A test that would fail if the record were released now."""

    promise: str
    test: str
    group: str = Field(description='The group that the test is about; "all" if it is about all groups together.')
    value: float | None = Field(description="The measure if the record were released.")
    critical: float | None = Field(description="The critical value then.")
    excess: float | None = Field(description="How far the measure would be above it, as a share of it: 0.25 is 25%.")


class QueuedRequest(BaseModel):
    """A waiting request."""

    number: int
    key: str | None = Field(description="The key of the record; null if the desk does not release it.")
    since: datetime = Field(description="The time since the request waits.")
    group: str
    obstacles: list[QueueObstacle] = Field(description="The tests that hold the record, the largest excess first.")


class QueuePage(BaseModel):
    """A page of the queue."""

    requests: list[QueuedRequest]
    waiting: int = Field(description="The number of all waiting requests.")
    next: int | None = Field(description="The cursor of the next page; null at the end.")


@routes.get("/record")
def own_record(request: Request, caller: CurrentCaller) -> Described:
    served: ServedDataset = request.app.state.datasets[caller.dataset]
    desks = [{"desk": name, **describe_promise(served, name)} for name in served.policy.release_promises]
    return {"dataset": served.name, "key": key_column(served), "desks": desks}


def describe_promise(served: ServedDataset, promise: str) -> Described:
    """Return the columns that a desk releases and the promise that it checks."""
    described = served.policy.release_promises[promise]
    columns = {name: list(getattr(described, name)) for name in ("releases", "reveals", "about")}
    if isinstance(described, Hiding):
        return {"promise": str(described), "kind": "hiding", **columns}
    return {
        "promise": str(described),
        "kind": "concealment",
        **columns,
        "significance": float(described.significance),
    }


@routes.get("/data/{name}/desks/{promise}")
def desk_state(
    served: Served,
    promise: Promise,
    charts: Charts = False,
    track: Annotated[
        str, Query(max_length=300, description="The test that the exposure chart shows; all by default.")
    ] = "",
) -> Described:
    if promise in served.policy.hidings:
        state = {**describe_promise(served, promise), **hiding_state(served, promise)}
        return {**state, "simulation": last_simulation(served, promise)}
    from tidegate.release.mechanisms import REGISTERED  # here: numba is slow to import

    desk = served.desk(promise)
    names = desk.layout.target_names(promise)
    tests = {
        test: [
            {"group": _group(names, reading.target), "value": reading.value, "critical": _finite(reading.critical)}
            for reading in readings
        ]
        for test, readings in desk.readings().items()
    }
    counts: dict[str, Any] = {
        "out_in_all": dict(zip(names, desk.counts().sum(axis=0).tolist(), strict=True)),
        "asked_for": dict(zip(names, desk.asked_for().sum(axis=0).tolist(), strict=True)),
        "waiting": desk.waiting,
    }
    plan = desk.plans[promise]
    watched = [REGISTERED[name] for name in plan.promise.tests]
    state = {
        "desk": promise,
        **describe_promise(served, promise),
        **counts,
        "shares": dict(zip(names, map(float, plan.shares), strict=True)),
        "values": desk.layout.value_names(promise),
        "watched": {test.name: {"measure": test.measure, "sees": test.sees, "blind": test.blind} for test in watched},
        "tests": tests,
        "tracks": [_track(names, history) for history in _tracks(served, promise)],
        "simulation": last_simulation(served, promise),
    }
    return with_charts(state, _charts(served, promise, names, counts, track)) if charts else state


def _charts(
    served: ServedDataset, promise: str, names: list[str], counts: Described, selected: str
) -> dict[str, Chart]:
    from tidegate.release.charts import overview, shares, single, track_name

    tracks = _tracks(served, promise)
    chosen = next((track for track in tracks if track_name(track, names) == selected), None)
    requested, released = list(counts["asked_for"].values()), list(counts["out_in_all"].values())
    known = [float(share) for share in served.desk(promise).plans[promise].shares]
    return {
        "exposure": single(chosen, targets=names) if chosen else overview(tracks, targets=names),
        "shares": shares(requested, released, targets=names, known=known),
    }


def _tracks(served: ServedDataset, promise: str) -> list[Track]:
    """Return the history of every measure, computed once per number of released records, which identifies them."""
    from tidegate.release.tracks import tracks

    desk = served.desk(promise)
    order = desk.history()
    return served.cached(("tracks", promise, len(order)), lambda: tracks(desk.plans[promise], order))


def _track(names: list[str], track: Track) -> Described:
    return {
        "test": track.test,
        "measure": track.measure,
        "group": _group(names, track.target),
        "records": track.records.tolist(),
        "values": track.values.tolist(),
        "critical": [_finite(value) for value in track.critical.tolist()],
    }


@routes.get("/data/{name}/desks/{promise}/queue")
def read_queue(
    served: Served,
    promise: Promise,
    after: After = 0,
    limit: Limit = 20,
    order: Annotated[Literal["oldest", "newest"], Query(description="Which requests come first.")] = "oldest",
) -> QueuePage:
    desk = served.desk(promise)
    if promise in served.policy.hidings:
        raise NotThere("A hiding promise has no queue: each request is released or withheld at once.")
    rows, waiting = desk.queue(after, limit=limit, newest=order == "newest")
    key, names = key_column(served), {name: desk.layout.target_names(name) for name in desk.plans}
    shown = [
        QueuedRequest(
            number=row.request.number,
            key=_stored_key(row.request, key, desk.layout.columns),
            since=row.since,
            group=names[promise][row.target],
            obstacles=[
                QueueObstacle(
                    promise=obstacle.promise,
                    test=obstacle.test,
                    group=_group(names[obstacle.promise], obstacle.target),
                    value=_finite(obstacle.value),
                    critical=_finite(obstacle.critical),
                    excess=obstacle.excess,
                )
                for obstacle in row.obstacles
            ],
        )
        for row in rows
    ]
    last = rows[-1].request.number if len(rows) == limit else None
    return QueuePage(requests=shown, waiting=waiting, next=last)


def _stored_key(request: StoredRequest, key: str, columns: list[str]) -> str | None:
    """Return the key in a stored record; None if the desk does not release it: then only a keyed hash is stored."""
    value = request.shown([key])[key] if key and key in columns else None
    return None if value is None else str(value)


@routes.post("/data/{name}/desks/{promise}/requests")
def request_records(
    request: Request, served: Served, promise: Promise, caller: CurrentCaller, body: RecordRequest
) -> Described:
    _refuse_others(request, served, caller, body.keys)
    desk = served.desk(promise)
    if len(body.keys) == 1:
        return {"outcomes": [desk.request(body.keys[0], user=caller.name).to_dict()]}
    outcomes = desk.request_many(body.keys, user=caller.name)
    return {"outcomes": [outcomes[key].to_dict() for key in body.keys]}


@routes.post("/data/{name}/desks/{promise}/status")
def request_status(
    request: Request, served: Served, promise: Promise, caller: CurrentCaller, body: SingleKey
) -> Described:
    _refuse_others(request, served, caller, [body.key])
    outcome: Outcome = served.desk(promise).status(body.key)
    return outcome.to_dict()


@routes.post("/data/{name}/desks/{promise}/withdrawals")
def withdraw_request(
    request: Request, served: Served, promise: Promise, caller: CurrentCaller, body: SingleKey
) -> Described:
    _refuse_others(request, served, caller, [body.key])
    served.desk(promise).withdraw(body.key, user=caller.name)
    return {"outcome": "withdrawn"}


@routes.get("/data/{name}/desks/{promise}/released", responses=FILES)
def released_records(
    served: Served,
    promise: Promise,
    after: After = 0,
    limit: Limit = 100,
    kind: Annotated[
        Literal["page", "csv", "json"],
        Query(description="A page of records, or all records after the cursor as a file."),
    ] = "page",
) -> Any:
    if kind == "page":
        records, cursor = served.desk(promise).released(after, limit=limit)
        return {"records": records, "cursor": cursor, "next": cursor if len(records) == limit else None}
    return _file(served, promise, after, kind)


def _file(served: ServedDataset, promise: str, after: int, kind: str) -> Response:
    """Return all records released after a cursor as a file, read and sent in parts."""
    parts = _read(served.desk(promise), after)
    columns = list(served.policy.release_promises[promise].releases)
    lines = _csv(columns, parts) if kind == "csv" else _json(parts)
    headers = {"content-disposition": f'attachment; filename="{served.name}-{promise}.{kind}"'}
    return StreamingResponse(
        lines, media_type="text/csv; charset=utf-8" if kind == "csv" else "application/json", headers=headers
    )


def _read(desk: Any, after: int) -> Iterator[list[dict[str, Any]]]:
    while True:
        records, cursor = desk.released(after, limit=AT_ONCE)
        yield records
        if len(records) < AT_ONCE:
            return
        after = cursor


def _csv(columns: list[str], parts: Iterator[list[dict[str, Any]]]) -> Iterator[str]:
    yield _rows([columns])
    for records in parts:
        yield _rows([[record[column] for column in columns] for record in records])


def _rows(rows: list[list[Any]]) -> str:
    file = io.StringIO()
    csv.writer(file).writerows([safe_cell(cell) for cell in row] for row in rows)
    return file.getvalue()


def _json(parts: Iterator[list[dict[str, Any]]]) -> Iterator[str]:
    before = "["
    for records in parts:
        for record in records:
            yield before + json.dumps(record, ensure_ascii=False)
            before = ",\n"
    yield "[]\n" if before == "[" else "]\n"


def key_column(served: ServedDataset) -> str:
    """Return the name of the key column; empty if there is more than one."""
    keys = [name for name, attribute in served.policy.attributes.items() if attribute.kind == "key"]
    return keys[0] if len(keys) == 1 else ""


def _refuse_others(request: Request, served: ServedDataset, caller: Caller, keys: list[str]) -> None:
    caller.refuse_other_records(request.app.state.record_secret, served.name, keys)


def _group(names: list[str], target: int | None) -> str:
    return "all" if target is None else names[target]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
