"""Release desks: state, queue, requests, status, withdrawals, released records; and a respondent's own record.

Keys identify people, so they are sent in bodies and never in URLs, which end up in the logs of proxies.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import ConfigDict, Field

from tidegate.charts import Chart
from tidegate.errors import NotThere
from tidegate.frames import safe_cell
from tidegate.ledger.release_book import StoredRequest
from tidegate.policy import Hiding
from tidegate.service.access.callers import Caller
from tidegate.service.datasets import ServedDataset
from tidegate.service.models.releases import (
    ConcealmentDesk,
    HidingDesk,
    OutcomeList,
    OwnRecord,
    QueuePage,
    ReleasedPage,
    RequestOutcome,
    Withdrawn,
)
from tidegate.service.openapi_examples import EXAMPLES
from tidegate.service.pagination import Cursor, Limit, first_page, link_next, position_number, read_cursor, write_cursor
from tidegate.service.routes.dependencies import (
    NAMED,
    Charts,
    CurrentCaller,
    Described,
    Form,
    Served,
    router,
    with_charts,
)
from tidegate.service.routes.release_audits import last_simulation
from tidegate.service.routes.selections import hiding_state

if TYPE_CHECKING:
    from tidegate.release.layout import Layout
    from tidegate.release.queue import WaitingRequest
    from tidegate.release.result import Outcome
    from tidegate.release.tracks import Track

routes = router()
Released = Annotated[
    int,
    Query(ge=0, le=2**53, description="Return the records released after this number: `cursor` of an earlier page."),
]
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


@routes.get("/record", response_model=OwnRecord)
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


@routes.get("/data/{name}/desks/{promise}", response_model=ConcealmentDesk | HidingDesk)
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


@routes.get("/data/{name}/desks/{promise}/queue", response_model=QueuePage)
def read_queue(
    request: Request,
    response: Response,
    served: Served,
    promise: Promise,
    cursor: Cursor = "",
    limit: Limit = 20,
    order: Annotated[Literal["oldest", "newest"], Query(description="Which requests come first.")] = "oldest",
) -> Described:
    desk, listed = served.desk(promise), f"queue-{order}"
    if promise in served.policy.hidings:
        raise NotThere("A hiding promise has no queue: each request is released or withheld at once.")
    after = read_cursor(listed, cursor, position_number, 0)
    rows, waiting = desk.queue(after, limit=limit + 1, newest=order == "newest")
    shown, following = first_page(rows, limit, lambda row: row.request.number, listed)
    names = {name: desk.layout.target_names(name) for name in desk.plans}
    return {
        "requests": [_queued(row, names, promise, _stored_key(row.request, served, desk.layout)) for row in shown],
        "waiting": waiting,
        "next": link_next(request, response, following),
    }


def _queued(row: WaitingRequest, names: dict[str, list[str]], promise: str, key: str | None) -> Described:
    obstacles = [
        {
            "promise": obstacle.promise,
            "test": obstacle.test,
            "group": _group(names[obstacle.promise], obstacle.target),
            "value": _finite(obstacle.value),
            "critical": _finite(obstacle.critical),
            "excess": obstacle.excess,
        }
        for obstacle in row.obstacles
    ]
    about = {"number": row.request.number, "key": key, "since": row.since}
    return {**about, "group": names[promise][row.target], "obstacles": obstacles}


def _stored_key(request: StoredRequest, served: ServedDataset, layout: Layout) -> str | None:
    """Return the key in a stored record; None if the desk does not release it: then only a keyed hash is stored."""
    key = key_column(served)
    value = request.shown([key])[key] if key and key in layout.columns else None
    return None if value is None else str(value)


@routes.post("/data/{name}/desks/{promise}/requests", response_model=OutcomeList)
def request_records(
    request: Request, served: Served, promise: Promise, caller: CurrentCaller, body: RecordRequest
) -> Described:
    _refuse_others(request, served, caller, body.keys)
    desk = served.desk(promise)
    if len(body.keys) == 1:
        return {"outcomes": [desk.request(body.keys[0], user=caller.name).to_dict()]}
    outcomes = desk.request_many(body.keys, user=caller.name)
    return {"outcomes": [outcomes[key].to_dict() for key in body.keys]}


@routes.post("/data/{name}/desks/{promise}/status", response_model=RequestOutcome)
def request_status(
    request: Request, served: Served, promise: Promise, caller: CurrentCaller, body: SingleKey
) -> Described:
    _refuse_others(request, served, caller, [body.key])
    outcome: Outcome = served.desk(promise).status(body.key)
    return outcome.to_dict()


@routes.post("/data/{name}/desks/{promise}/withdrawals", response_model=Withdrawn)
def withdraw_request(
    request: Request, served: Served, promise: Promise, caller: CurrentCaller, body: SingleKey
) -> Described:
    _refuse_others(request, served, caller, [body.key])
    served.desk(promise).withdraw(body.key, user=caller.name)
    return {"outcome": "withdrawn"}


@routes.get(
    "/data/{name}/desks/{promise}/released", responses=FILES, response_model=ReleasedPage | list[dict[str, Any]]
)
def released_records(
    request: Request,
    response: Response,
    served: Served,
    promise: Promise,
    after: Released = 0,
    cursor: Cursor = "",
    limit: Limit = 100,
    kind: Annotated[
        Literal["page", "csv", "json"],
        Query(description="A page of records, or all records after the cursor as a file."),
    ] = "page",
) -> Any:
    after = read_cursor("released", cursor, position_number, after)
    if kind == "page":
        records, number = served.desk(promise).released(after, limit=limit)
        is_last = len(records) < limit or not served.desk(promise).released(number, limit=1)[0]
        following = link_next(request, response, None if is_last else write_cursor("released", number))
        return {"records": records, "cursor": number, "next": following}
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
    caller.refuse_other_records(request.app.state.guard.callers.secret(), served.name, keys)


def _group(names: list[str], target: int | None) -> str:
    return "all" if target is None else names[target]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
