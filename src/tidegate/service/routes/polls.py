"""Polls of a data set: their state, the invitations of one with QR codes for print, and its results as a chart file.

A poll is a collection: reports, results and closing have their addresses under /collections.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from fastapi import Query, Request
from fastapi.responses import Response
from pydantic import ConfigDict, Field

from tidegate.collect.state import state_of, time_of
from tidegate.errors import NotThere, TidegateError
from tidegate.extras import extra
from tidegate.policy.collection import Collection
from tidegate.policy.poll import Poll
from tidegate.service.datasets import ServedDataset
from tidegate.service.models.polls import PollList, PollState, PrintSheet
from tidegate.service.routes.collections import Survey, results_of
from tidegate.service.routes.dependencies import CurrentCaller, Described, Form, Served, router
from tidegate.service.settings import is_loopback, service_url

routes = router()
MOST_SLIPS = 1_000  # of one sheet; a QR code takes about 8 ms
CHART_TYPES = {"svg": "image/svg+xml", "png": "image/png"}
CHARTS: Any = {200: {"content": {kind: {} for kind in CHART_TYPES.values()}}}
Language = Annotated[
    str, Query(max_length=12, description="The language of the texts; the first of the poll by default.")
]


class SheetRequest(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"count": 250}})
    count: int = Field(ge=1, le=MOST_SLIPS, strict=True, description="The number of new invitations.")


@routes.get("/data/{name}/polls", response_model=PollList)
def list_polls(request: Request, served: Served) -> Described:
    return {
        "polls": [_summary(request, served, name) for name in served.policy.polls],
        "may_add": served.file is not None,
    }


@routes.get("/data/{name}/polls/{collection}", response_model=PollState)
def poll_state(request: Request, served: Served, collection: Survey) -> Described:
    definition, poll = poll_of(served, collection)
    survey = served.survey(collection)
    state = state_of(survey, None)
    codes, used = survey.invitations
    return {
        **_about(request, served, definition, poll),
        "state": "closed" if survey.closed else "over" if datetime.now(UTC) >= poll.closes else "open",
        "status": state["status"],
        "reports": state["reports"],
        "waiting": state["waiting"],
        "at_least": state["at_least"],
        "next_count": state["next_count"],
        "clients": definition.clients,
        "at_most": poll.at_most,
        "invitations": {"codes": codes, "used": used} if poll.invited else None,
        "says": state["says"],
        "fingerprint": definition.fingerprint,
    }


@routes.post("/data/{name}/polls/{collection}/sheets", response_model=PrintSheet)
def create_sheet(
    request: Request, served: Served, collection: Survey, caller: CurrentCaller, body: SheetRequest
) -> Described:
    poll_of(served, collection)
    link = form_url(request, served, collection)
    codes = served.survey(collection).invite(body.count, user=caller.name)
    links = [f"{link}#code={code}" for code in codes]
    return {
        "slips": [{"code": code, "link": url, "qr": qr_modules(url)} for code, url in zip(codes, links, strict=True)],
        "form": link,
    }


@routes.get("/data/{name}/polls/{collection}/chart", response_class=Response, responses=CHARTS)
def poll_chart(
    served: Served,
    collection: Survey,
    kind: Annotated[Literal["svg", "png"], Query(alias="format", description="The file format.")] = "svg",
    language: Language = "",
) -> Response:
    poll_of(served, collection)
    chart = results_of(served, collection).plot(language=language)
    content = chart.png() if kind == "png" else chart.svg(standalone=True).encode()
    headers = {"content-disposition": f'attachment; filename="{served.name}-{collection}.{kind}"'}
    return Response(content, media_type=CHART_TYPES[kind], headers=headers)


def poll_of(served: ServedDataset, name: str) -> tuple[Collection, Poll]:
    """Return the collection of a poll, and the poll."""
    collection = served.policy.polls.get(name)
    if collection is None or collection.poll is None:
        raise NotThere("This data set has no poll of that name.", "See GET /v1/data/{name}/polls.")
    return collection, collection.poll


def form_url(request: Request, served: ServedDataset, name: str) -> str:
    """Return the address of the form for respondents."""
    return f"{service_url(request)}/forms/{served.name}/{name}"


def qr_modules(text: str) -> Described:
    """Return the QR code of a text: the number of modules on a side, and the bits of all rows in base64."""
    with extra("collect", "QR codes"):
        import segno

    rows = segno.make(text, micro=False, error="m").matrix
    bits = "".join("1" if module else "0" for row in rows for module in row)
    padded = bits.ljust(-(-len(bits) // 8) * 8, "0")
    content = bytes(int(padded[start : start + 8], 2) for start in range(0, len(padded), 8))
    return {"size": len(rows), "bits": b64encode(content).decode()}


def _about(request: Request, served: ServedDataset, collection: Collection, poll: Poll) -> Described:
    return {
        "poll": collection.name,
        "version": collection.version,
        "holder": collection.holder,
        "title": dict(poll.title),
        "purpose": dict(poll.purpose),
        "languages": list(poll.languages),
        "access": poll.access,
        "closes": time_of(poll.closes),
        "questions": [{"question": name, "text": dict(of.text)} for name, of in poll.questions.items()],
        "form": form_url(request, served, collection.name),
        "only_here": is_loopback(urlsplit(service_url(request)).hostname or ""),
    }


def _summary(request: Request, served: ServedDataset, name: str) -> Described:
    """Return a poll in the list; one that cannot be opened is listed with the reason."""
    definition, poll = poll_of(served, name)
    about = _about(request, served, definition, poll)
    try:
        state = poll_state(request, served, name)
    except TidegateError as error:
        unknown = dict.fromkeys(("state", "status", "reports", "waiting", "at_least"))
        return {**about, **unknown, "clients": definition.clients, "problem": error.what}
    counted = {key: state[key] for key in ("state", "status", "reports", "waiting", "at_least", "clients")}
    return {**about, **counted, "problem": None}
