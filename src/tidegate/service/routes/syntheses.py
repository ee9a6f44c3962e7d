"""Syntheses: previews, jobs, tables, quality."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from tidegate.accounting import Amount
from tidegate.charts import Chart
from tidegate.errors import NotThere, StaleQuote
from tidegate.ledger.jobs import Job, Jobs
from tidegate.ledger.remarks import refuse_suspended
from tidegate.service.access.permissions import OWNER
from tidegate.service.datasets import ServedDataset
from tidegate.service.etags import is_known, tag_of, unchanged
from tidegate.service.job_events import EVENTS, follow
from tidegate.service.jobs import cancel_job, charged_for, job_to_dict, new_job, refuse_large, tables_of
from tidegate.service.models.syntheses import (
    PaidQualityReply,
    QualityReport,
    SynthesisJob,
    SynthesisPage,
    SynthesisPreviewReply,
    SyntheticTableSet,
)
from tidegate.service.pagination import Cursor, Limit, first_page, link_next, position_id, read_cursor
from tidegate.service.routes.dependencies import (
    Charts,
    Column,
    CurrentCaller,
    Described,
    Form,
    Key,
    Number,
    Served,
    caller_key,
    router,
    with_charts,
)
from tidegate.service.settings import service_url
from tidegate.service.spreadsheets import safe_table
from tidegate.web.snippets.synthesize import synthesis_code

if TYPE_CHECKING:
    from tidegate.synthesize.quality import Quality

routes = router()
MOST_ROWS = 10_000_000
LOSSES = ("epsilon", "rho", "z", "share", "delta")
JobName = Annotated[str, Path(pattern=r"^[0-9a-f]{20}$", examples=["0198f3c2a1b45d6e7f80"])]
KINDS = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv"}
FILES: Any = {
    200: {"content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in KINDS.values()}},
}
REPORT: Any = {200: {"content": {"text/html": {"schema": {"type": "string"}}}}}


class Synthesis(Form):
    """A synthesis with exactly one of epsilon (the loss per table), rho (identification by all tables), z, or share (of the budget)."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"epsilon": 1, "tables": 2}, {"share": 0.5}]})
    epsilon: Number | None = Field(None, description="The privacy loss of each table.")
    rho: Number | None = Field(None, description="The largest probability of identification by all tables.")
    z: Number | None = Field(None, description="The loss of each table under the average guarantee.")
    share: Number | None = Field(None, description="The part of the total budget for all tables, for example 0.5.")
    delta: Number | None = Field(
        None, description="With epsilon: spend the z that is shown as this epsilon and delta, for example 0.000001."
    )
    tables: int = Field(1, ge=1, le=100)
    rows: int | None = Field(None, ge=1, le=MOST_ROWS)
    model: Literal["forest/2", "forest/1"] = Field(
        "forest/2", description="forest/1: tables that an earlier version stored."
    )
    target: str = Field("", max_length=200)
    seed: int | None = Field(None, ge=0, le=2**53)
    columns: list[Column] = Field([], max_length=500)

    def options(self) -> dict[str, Any]:
        """Return the arguments for a session, with numbers as text: what is stored must be exact."""
        content = self.model_dump()
        for name in LOSSES:
            content[name] = None if content[name] is None else str(content[name])
        return content


class SynthesisOrder(Synthesis):
    price: Number | None = Field(
        None, description="The cost that was shown; the request is refused if the cost is different."
    )

    def options(self) -> dict[str, Any]:
        content = super().options()
        del content["price"]
        return content

    def refuse_other_price(self, cost: Amount) -> None:
        """Raise StaleQuote if the cost differs from the one that was shown."""
        if self.price is not None and Amount.parse(str(self.price)) != cost:
            raise StaleQuote(
                "The price of this synthesis has changed, so nothing was charged.",
                "Preview it again and check its price.",
            )


class QualityPurchase(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"epsilon": 0.1}})
    epsilon: Number


@routes.post("/data/{name}/syntheses/previews", response_model=SynthesisPreviewReply)
def preview_synthesis(request: Request, served: Served, caller: CurrentCaller, body: Synthesis) -> Described:
    options = body.options()
    refuse_large(served, options, request.app.state.settings)
    before = served.session.preview_synthesis(**options).to_dict()
    service = {"address": service_url(request), "dataset": served.name}
    return {**before, "code": synthesis_code(options, **service, preview=caller.role != OWNER)}


@routes.post("/data/{name}/syntheses", status_code=202, response_model=SynthesisJob)
def start_synthesis(
    request: Request, served: Served, caller: CurrentCaller, body: SynthesisOrder, key: Key = ""
) -> Described:
    if caller.role != OWNER:
        refuse_suspended(served.session.ledger.store, served.name)
    options = body.options()
    refuse_large(served, options, request.app.state.settings)
    body.refuse_other_price(served.session.preview_synthesis(**options).cost)  # this also refuses impossible requests
    job = new_job(served.name, options, user=caller.name, request=caller_key(caller, key))
    return job_to_dict(_jobs(served).add(job))


@routes.get("/data/{name}/syntheses", response_model=SynthesisPage)
def list_syntheses(
    request: Request, response: Response, served: Served, limit: Limit = 100, cursor: Cursor = ""
) -> Described:
    after = read_cursor("syntheses", cursor, position_id, "")
    jobs = _jobs(served).of(served.name, after=after, limit=limit + 1)
    shown, following = first_page(jobs, limit, lambda job: job.id, "syntheses")
    return {"syntheses": [job_to_dict(job) for job in shown], "next": link_next(request, response, following)}


@routes.get("/data/{name}/syntheses/{job}", response_model=SynthesisJob)
def synthesis_state(served: Served, job: JobName) -> Described:
    return job_to_dict(_job(served, job))


@routes.get("/data/{name}/syntheses/{job}/events", response_class=StreamingResponse, responses=EVENTS)
async def synthesis_events(request: Request, served: Served, caller: CurrentCaller, job: JobName) -> StreamingResponse:
    return await follow(request, caller, await run_in_threadpool(_job, served, job))


@routes.post("/data/{name}/syntheses/{job}/cancellation", response_model=SynthesisJob)
def cancel_synthesis(served: Served, caller: CurrentCaller, job: JobName) -> Described:
    return job_to_dict(cancel_job(served, _job(served, job), user=caller.name))


@routes.get("/data/{name}/syntheses/{job}/tables", response_model=SyntheticTableSet)
def describe_tables(served: Served, job: JobName) -> Described:
    # `cost` is the cost of this request, which is zero; `charged` is the cost of the job
    done = _job(served, job)
    return {**tables_of(served, done).to_dict(), "charged": str(charged_for(served, done))}


@routes.get("/data/{name}/syntheses/{job}/tables/{number}", response_class=Response, responses=FILES)
def download_table(
    request: Request,
    served: Served,
    job: JobName,
    number: Annotated[int, Path(ge=1, le=100)],
    kind: Annotated[Literal["parquet", "csv"], Query(description="The file format.")] = "parquet",
) -> Response:
    from tidegate.synthesize.files import FORMATS

    stored = _job(served, job)
    tag = tag_of(served.name, stored.id, stored.entry, number, kind)  # the tables of an entry never change
    if stored.entry and is_known(request, tag):
        return unchanged(Response(), tag)
    tables = tables_of(served, stored)
    if number > len(tables):
        raise NotThere(f"This synthesis has {'one table' if len(tables) == 1 else f'{len(tables):,} tables'}.")
    file: Any = io.BytesIO()
    table = tables[number - 1].to_arrow()
    FORMATS[kind](safe_table(table) if kind == "csv" else table, file)
    headers = {"content-disposition": f'attachment; filename="{served.name}-{number}.{kind}"', "etag": tag}
    return Response(file.getvalue(), media_type=KINDS[kind], headers=headers)


@routes.get("/data/{name}/syntheses/{job}/quality", responses=REPORT, response_model=QualityReport)
def synthesis_quality(
    served: Served,
    job: JobName,
    kind: Annotated[
        Literal["json", "html"], Query(alias="format", description="`json`, or `html` for a page to download.")
    ] = "json",
    charts: Charts = False,
    column: Annotated[
        str,
        Query(max_length=200, description="The column whose chart is returned (default: the one that differs most)."),
    ] = "",
) -> Any:
    tables = tables_of(served, _job(served, job))
    report = served.cached_tables(f"quality of {job}", tables.quality)
    if kind == "json":
        return with_charts(report.to_dict(), _quality_charts(report, column)) if charts else report.to_dict()
    headers = {"content-disposition": f'attachment; filename="{served.name}-quality.html"'}
    return Response(report.to_html(), media_type="text/html", headers=headers)


def _quality_charts(report: Quality, column: str) -> dict[str, Chart]:
    from tidegate.synthesize.quality.charts import coefficients, distances, separations
    from tidegate.synthesize.quality.charts import margin as margin_chart

    charts = {"separations": separations(report)} if report.separations else {}
    if report.margins:
        chosen = next((margin for margin in report.margins if margin.column == column), report.worst_margins[0])
        charts |= {"distances": distances(report), "margin": margin_chart(chosen)}
    return charts | ({"coefficients": coefficients(report.regression)} if report.regression else {})


@routes.post("/data/{name}/syntheses/{job}/paid-quality", response_model=PaidQualityReply)
def paid_quality(
    served: Served, caller: CurrentCaller, job: JobName, body: QualityPurchase, key: Key = ""
) -> Described:
    tables = [table.to_arrow() for table in tables_of(served, _job(served, job))]
    charge_to: Any = {"key": caller_key(caller, key), "user": caller.name, "budget_share": caller.share}
    paid = served.session.paid_quality(tables, epsilon=str(body.epsilon), **charge_to)
    return {**paid.to_dict(), "says": paid.says()}


def _jobs(served: ServedDataset) -> Jobs:
    return Jobs(served.session.ledger.store)


def _job(served: ServedDataset, name: str) -> Job:
    job = _jobs(served).find(served.name, name)
    if job is None:
        raise NotThere("This data set has no synthesis with that id.")
    return job
