"""Collections: the public description, incoming reports, and estimates from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Path, Query, Request, Response
from pydantic_core import from_json
from starlette.concurrency import run_in_threadpool

from tidegate.collect.charts import counted_chart
from tidegate.collect.state import state_of
from tidegate.collect.verdicts import SubmittedReports
from tidegate.errors import TooLarge, Unsupported
from tidegate.service.access.guard import address_of
from tidegate.service.access.permissions import PUBLIC
from tidegate.service.access.rate_limits import NetworkBuckets
from tidegate.service.datasets import ServedDataset
from tidegate.service.models.collections import (
    CollectionDescription,
    CollectionState,
    DecisionTree,
    DistributionEstimate,
    MeanEstimate,
    ResultList,
    RuleList,
    ShareEstimate,
)
from tidegate.service.openapi_examples import EXAMPLES
from tidegate.service.routes.dependencies import NAMED, Charts, Column, Described, Served, router, with_charts

if TYPE_CHECKING:
    from tidegate.collect.polls.results import PollResults

routes = router()
Survey = Annotated[str, Path(pattern=NAMED, examples=["shoppers"])]
Method = Literal["", "bank", "bayes", "em", "em-smoothed", "inversion"]
Strategy = Literal["best", "joint", "by-class", "local", "global", "randomized"]
MOST_OF_POLL = 32  # reports of a poll in one request
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
RESULTS: Any = {
    200: {
        "content": {
            "application/json": {"example": EXAMPLES["GET", "/v1/data/{name}/collections/{collection}/results"]},
            "text/csv": {},
        }
    }
}


@routes.get("/data/{name}/collections/{collection}", response_model=CollectionDescription)
def describe_collection(response: Response, served: Served, collection: Survey) -> Any:
    described = served.survey(collection).collection  # this records the promise in the ledger before it is shown
    response.headers.update({"etag": f'"{described.fingerprint}"', "cache-control": "public, max-age=60"})
    return described.public_dict()


@routes.post("/data/{name}/collections/{collection}/reports", openapi_extra=BATCH)
async def submit_reports(request: Request, served: Served, collection: Survey) -> SubmittedReports:
    body = await request.body()
    address = address_of(request) if request.state.caller.role == PUBLIC else ""
    response = await run_in_threadpool(_submit, served, collection, body, request.app.state.poll_limits, address)
    refused = sum(verdict.verdict == "refused" for verdict in response.verdicts)
    request.app.state.metrics.reports(refused=refused)  # accepted reports are counted with their batch
    return response


@routes.get("/data/{name}/collections/{collection}/state", response_model=CollectionState)
def collection_state(served: Served, collection: Survey, charts: Charts = False) -> Described:
    survey = served.survey(collection)
    state = state_of(survey, _cached(served, survey, ("later reader",), survey.weakest_reader))
    return with_charts(state, {"counted": counted_chart(_batches(served, survey))}) if charts else state


@routes.get("/data/{name}/collections/{collection}/distributions/{question}", response_model=DistributionEstimate)
def estimate_distribution(
    served: Served,
    collection: Survey,
    question: Annotated[str, Path(pattern=NAMED)],
    method: Method = "",
    confidence: Annotated[float, Query(gt=0, lt=1)] = 0.95,
    strict: bool = False,
    atoms: bool = False,
    charts: Charts = False,
) -> Described:
    band = "strict" if strict else "default"
    options: dict[str, Any] = {"method": method, "confidence": confidence, "band": band, "atoms": atoms}
    survey = served.survey(collection)
    estimate = _cached(
        served, survey, ("distribution", question, options), lambda: survey.distribution(question, **options)
    )
    content: Described = estimate.to_dict()
    return with_charts(content, {"distribution": estimate.plot()}) if charts else content


@routes.get("/data/{name}/collections/{collection}/means/{question}", response_model=MeanEstimate)
def estimate_mean(
    served: Served,
    collection: Survey,
    question: Annotated[str, Path(pattern=NAMED)],
    confidence: Annotated[float, Query(gt=0, lt=1)] = 0.95,
) -> Described:
    survey = served.survey(collection)
    request = ("mean", question, confidence)
    return _estimate(served, survey, request, lambda: survey.mean(question, confidence=confidence))


@routes.get("/data/{name}/collections/{collection}/shares", response_model=ShareEstimate)
def estimate_shares(
    served: Served,
    collection: Survey,
    question: Annotated[
        str, Query(max_length=63, description="The question; optional if only one is about a set.")
    ] = "",
    confidence: Annotated[float, Query(gt=0, lt=1)] = 0.95,
) -> Described:
    survey = served.survey(collection)
    request = ("shares", question, confidence)
    return _estimate(served, survey, request, lambda: survey.shares(question, confidence=confidence))


@routes.get("/data/{name}/collections/{collection}/results", responses=RESULTS, response_model=ResultList)
def poll_results(
    request: Request,
    served: Served,
    collection: Survey,
    confidence: Annotated[float, Query(gt=0, lt=1)] = 0.95,
    kind: Annotated[
        Literal["json", "csv"] | None,
        Query(alias="format", description="The file format; by default that of the Accept header, or JSON."),
    ] = None,
    language: Annotated[str, Query(max_length=12, description="The language of labels in a CSV file.")] = "",
    charts: Charts = False,
) -> Any:
    results = results_of(served, collection, confidence=confidence)
    if kind == "csv" or (kind is None and request.headers.get("accept", "").startswith("text/csv")):
        headers = {"content-disposition": f'attachment; filename="{served.name}-{collection}.csv"'}
        return Response(results.to_csv(language=language), media_type="text/csv; charset=utf-8", headers=headers)
    content = results.to_dict()
    return with_charts(content, {of.question: of.plot(language=language) for of in results}) if charts else content


def results_of(served: ServedDataset, collection: str, *, confidence: float = 0.95) -> PollResults:
    """Return the results of a collection: estimates are computed once for each batch, the state is that of now."""
    from tidegate.collect.polls.estimates import assemble, estimate_questions  # here: numba is slow to import

    survey = served.survey(collection)
    request = ("results", confidence)
    estimates = _cached(served, survey, request, lambda: estimate_questions(survey, confidence=confidence))
    return assemble(survey, estimates, _cached(served, survey, ("later reader",), survey.weakest_reader))


@routes.get("/data/{name}/collections/{collection}/tree", response_model=DecisionTree)
def grow_tree(
    served: Served,
    collection: Survey,
    label: Annotated[str, Query(pattern=NAMED, description="The question to predict from the others.")],
    by: Annotated[
        list[Column], Query(max_length=20, description="The predictors; all other questions by default.")
    ] = [],  # noqa: B006
    strategy: Strategy = "best",
) -> Described:
    survey = served.survey(collection)
    options: dict[str, Any] = {"by": by, "strategy": strategy}
    return _estimate(served, survey, ("tree", label, options), lambda: survey.tree(label, **options))


@routes.get("/data/{name}/collections/{collection}/rules", response_model=RuleList)
def find_rules(
    served: Served,
    collection: Survey,
    min_support: Annotated[float, Query(gt=0, le=1)],
    question: Annotated[str, Query(max_length=63)] = "",
    min_confidence: Annotated[float, Query(gt=0, le=1)] = 0.5,
    largest: Annotated[int | None, Query(ge=1, le=20)] = None,
) -> Described:
    options: dict[str, Any] = {"min_support": min_support, "min_confidence": min_confidence, "largest": largest}
    survey = served.survey(collection)
    return _estimate(served, survey, ("rules", question, options), lambda: survey.rules(question, **options))


def _batches(served: ServedDataset, survey: Any) -> list[tuple[str, int]]:
    """Return the time of each batch and the number of its counted reports."""
    return list(_cached(served, survey, ("batches",), survey.batch_sizes))


def _estimate(served: ServedDataset, survey: Any, request: tuple[Any, ...], compute: Callable[[], Any]) -> Described:
    return dict(_cached(served, survey, request, lambda: compute().to_dict()))


def _cached(served: ServedDataset, survey: Any, request: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
    """Return an estimate from reports, computed once. Counts only grow, so the number of reports identifies them."""
    name = (survey.collection.name, survey.collection.version, survey.reports, *map(repr, request))
    return served.cached(name, compute)


def _submit(
    served: ServedDataset, collection: str, body: bytes, limits: NetworkBuckets, address: str
) -> SubmittedReports:
    """Store reports until their batch. No idempotency key is recorded: it would link reports; an id counts only once."""
    survey, reports = served.survey(collection), _reports(body)
    if survey.collection.poll is not None:
        _refuse_many(reports)
        if address and not survey.collection.poll.invited:
            limits.take(address)
    return survey.receive(reports).response()


def _refuse_many(reports: list[Any]) -> None:
    """Refuse a long list: respondents of a poll send one report each, and invitations cost time to check."""
    if len(reports) > MOST_OF_POLL:
        raise TooLarge(
            f"A request can have at most {MOST_OF_POLL} reports of a poll; this one has {len(reports):,}.",
            "Send them in parts. No report was accepted.",
        )


def _reports(body: bytes) -> list[Any]:
    """Return the reports in a body; the parser limits its depth."""
    content: Any = None
    try:
        content = from_json(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or set(content) != {"reports"} or not isinstance(content["reports"], list):
        raise Unsupported('The body must be {"reports": [...]}, a list of randomized reports.', "See /openapi.json.")
    return list(content["reports"])
