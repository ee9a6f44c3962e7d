"""collections: the public description, reports in, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request, Response
from pydantic_core import from_json
from starlette.concurrency import run_in_threadpool

from tidegate.collect.charts import counted_chart
from tidegate.collect.verdicts import SubmittedReports
from tidegate.errors import Unsupported
from tidegate.service.datasets import Holding
from tidegate.service.routes.dependencies import NAMED, Charts, Column, Described, Held, router, with_charts

routes = router()
Survey = Annotated[str, Path(pattern=NAMED, examples=["shoppers"])]
Method = Literal["", "bank", "bayes", "em", "em-smoothed", "inversion"]
Strategy = Literal["best", "joint", "by-class", "local", "global", "randomized"]
REPORT = {
    "collection": "shoppers",
    "fingerprint": "0123...",
    "version": 1,
    "answers": {"age": 41},
    "id": "00112233445566778899aabbccddeeff",
}
BATCH = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["reports"],
                    "additionalProperties": False,
                    "properties": {"reports": {"type": "array", "items": {"type": "object"}, "maxItems": 100_000}},
                    "example": {"reports": [REPORT]},
                }
            }
        },
    }
}
UNCHANGED: Any = {304: {"description": "It is what you have already"}}


@routes.get("/data/{name}/collections/{collection}", responses=UNCHANGED)
def describe_collection(request: Request, response: Response, held: Held, collection: Survey) -> Any:
    described = held.survey(collection).collection  # which puts the promise into the ledger before it is shown
    tag = f'"{described.fingerprint}"'
    named = {"etag": tag, "cache-control": "public, max-age=60"}
    given = [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]
    if tag in given or "*" in given:
        return Response(status_code=304, headers=named)
    response.headers.update(named)
    return described.public_dict()


@routes.post("/data/{name}/collections/{collection}/reports", openapi_extra=BATCH)
async def submit_reports(request: Request, held: Held, collection: Survey) -> SubmittedReports:
    body = await request.body()
    response = await run_in_threadpool(_submit, held, collection, body)
    refused = sum(verdict.verdict == "refused" for verdict in response.verdicts)
    request.app.state.metrics.reports(refused=refused)  # those that were accepted are counted with their batch
    return response


@routes.get("/data/{name}/collections/{collection}/state")
def collection_state(held: Held, collection: Survey, charts: Charts = False) -> Described:
    survey = held.survey(collection)
    asked = survey.collection
    questions = {name: str(question) for name, question in asked.questions.items()}
    told = {"collection": collection, "version": asked.version, "repeats": asked.repeats, "questions": questions}
    gives = {"gives": survey.respondent_loss.to_dict(), "says": str(survey.respondent_loss)}
    arrived: Described = {"reports": survey.reports, "clients": asked.clients, "closed": survey.closed}
    arrived |= {"waiting": survey.waiting, "at_least": asked.batches.at_least, "batch": str(asked.batches)}
    state = {**told, **arrived, "estimable": survey.estimable, "baskets": _baskets(survey), **gives}
    return with_charts(state, {"counted": counted_chart(_batches(held, survey))}) if charts else state


@routes.get("/data/{name}/collections/{collection}/distributions/{question}")
def estimate_distribution(
    held: Held,
    collection: Survey,
    question: Annotated[str, Path(pattern=NAMED)],
    method: Method = "",
    confidence: Annotated[float, Query(gt=0, lt=1)] = 0.95,
    strict: bool = False,
    atoms: bool = False,
    charts: Charts = False,
) -> Described:
    band = "strict" if strict else "default"
    wanted: dict[str, Any] = {"method": method, "confidence": confidence, "band": band, "atoms": atoms}
    survey = held.survey(collection)
    found = _found(held, survey, ("distribution", question, wanted), lambda: survey.distribution(question, **wanted))
    content: Described = found.to_dict()
    return with_charts(content, {"distribution": found.plot()}) if charts else content


@routes.get("/data/{name}/collections/{collection}/tree")
def grow_tree(
    held: Held,
    collection: Survey,
    label: Annotated[str, Query(pattern=NAMED, description="The question to be told from the others.")],
    by: Annotated[list[Column], Query(max_length=20, description="Default: all others.")] = [],  # noqa: B006
    strategy: Strategy = "best",
) -> Described:
    survey = held.survey(collection)
    wanted: dict[str, Any] = {"by": by, "strategy": strategy}
    return _told(held, survey, ("tree", label, wanted), lambda: survey.tree(label, **wanted))


@routes.get("/data/{name}/collections/{collection}/rules")
def find_rules(
    held: Held,
    collection: Survey,
    min_support: Annotated[float, Query(gt=0, le=1)],
    question: Annotated[str, Query(max_length=63)] = "",
    min_confidence: Annotated[float, Query(gt=0, le=1)] = 0.5,
    largest: Annotated[int | None, Query(ge=1, le=20)] = None,
) -> Described:
    wanted: dict[str, Any] = {"min_support": min_support, "min_confidence": min_confidence, "largest": largest}
    survey = held.survey(collection)
    return _told(held, survey, ("rules", question, wanted), lambda: survey.rules(question, **wanted))


def _batches(held: Holding, survey: Any) -> list[tuple[str, int]]:
    """The time of each batch and how many of its reports were counted."""
    found = _found(held, survey, ("batches",), survey.batch_sizes)
    return list(found)


def _told(held: Holding, survey: Any, asked: tuple[Any, ...], find: Callable[[], Any]) -> Described:
    return dict(_found(held, survey, asked, lambda: find().to_dict()))


def _found(held: Holding, survey: Any, asked: tuple[Any, ...], find: Callable[[], Any]) -> Any:
    """What reports say. Counts only grow, so that their number says which reports those were; the same is found once."""
    about = (survey.collection.name, survey.collection.version, survey.reports, *map(repr, asked))
    return held.found(about, find)


def _baskets(survey: Any) -> list[str]:
    """The questions about sets of items, which have rules and no distribution."""
    return [name for name in survey.collection.questions if name not in survey.estimable]


def _submit(held: Holding, collection: str, body: bytes) -> SubmittedReports:
    """Let reports wait for their batch. No idempotency key is recorded: it would link reports; each counts once by its id."""
    return held.survey(collection).receive(_reports(body)).response()


def _reports(body: bytes) -> list[Any]:
    """The reports in a body; its parser goes no deeper than is sensible."""
    content: Any = None
    try:
        content = from_json(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or set(content) != {"reports"} or not isinstance(content["reports"], list):
        raise Unsupported('the body is {"reports": [...]}, a list of randomized reports.', "See /openapi.json.")
    return list(content["reports"])
