"""syntheses: previews, jobs, tables, quality."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Path, Query, Request, Response
from pydantic import ConfigDict, Field

from tidegate.accounting import Amount
from tidegate.charts import Chart
from tidegate.errors import NotThere, StaleQuote
from tidegate.ledger.jobs import Job, Jobs
from tidegate.service.access.permissions import OWNER
from tidegate.service.datasets import Holding
from tidegate.service.jobs import charged_for, new_job, tables_of, told
from tidegate.service.routes.dependencies import (
    Asking,
    Charts,
    Column,
    Described,
    Form,
    Held,
    Key,
    Limit,
    Number,
    own_key,
    paged,
    router,
    with_charts,
)
from tidegate.service.settings import service_url
from tidegate.service.spreadsheets import safe_table
from tidegate.web.snippets.synthesize import spelled_synthesis

if TYPE_CHECKING:
    from tidegate.synthesize.quality import Quality

routes = router()
MOST_ROWS = 10_000_000
JobName = Annotated[str, Path(pattern=r"^[0-9a-f]{20}$", examples=["0198f3c2a1b45d6e7f80"])]
KINDS = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv"}
FILES: Any = {
    200: {"content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in KINDS.values()}},
}
REPORT: Any = {200: {"content": {"text/html": {"schema": {"type": "string"}}}}}


class Synthesis(Form):
    """Exactly one of epsilon (the loss of each table) and rho (identification by all of them)."""

    model_config = ConfigDict(json_schema_extra={"example": {"epsilon": 1, "tables": 2}})
    epsilon: Number | None = None
    rho: Number | None = None
    tables: int = Field(1, ge=1, le=100)
    rows: int | None = Field(None, ge=1, le=MOST_ROWS)
    model: str = Field("auto", pattern=r"^[a-z-]{1,40}$")
    target: str = Field("", max_length=200)
    split: dict[Annotated[str, Field(max_length=60)], Number] = Field({}, max_length=20)
    seed: int | None = Field(None, ge=0, le=2**53)
    columns: list[Column] = Field([], max_length=500)

    def wanted(self) -> dict[str, Any]:
        """As a session takes it, with numbers as text: what is kept of it must be exact."""
        content = self.model_dump()
        for name in ("epsilon", "rho"):
            content[name] = None if content[name] is None else str(content[name])
        content["split"] = {name: str(share) for name, share in content["split"].items()}
        return content


class Ordered(Synthesis):
    price: Number | None = Field(None, description="The cost that was shown: at any other one nothing is made.")

    def wanted(self) -> dict[str, Any]:
        content = super().wanted()
        del content["price"]
        return content

    def refuse_other_price(self, cost: Amount) -> None:
        """Raise StaleQuote where this costs something else than what was shown."""
        if self.price is not None and Amount.parse(str(self.price)) != cost:
            raise StaleQuote(
                "The price of this synthesis has changed, so nothing was charged.", "Preview it and check its price."
            )


class PaidFor(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"epsilon": 0.1}})
    epsilon: Number


@routes.post("/data/{name}/syntheses/previews")
def preview_synthesis(request: Request, held: Held, caller: Asking, asked: Synthesis) -> Described:
    wanted = asked.wanted()
    before = held.session.preview_synthesis(**wanted).to_dict()
    place = {"address": service_url(request), "dataset": held.name}
    return {**before, "code": spelled_synthesis(wanted, **place, preview=caller.role != OWNER)}


@routes.post("/data/{name}/syntheses", status_code=202)
def start_synthesis(request: Request, held: Held, caller: Asking, asked: Ordered, key: Key = "") -> Described:
    wanted = asked.wanted()
    asked.refuse_other_price(held.session.preview_synthesis(**wanted).cost)  # what cannot be made is refused as well
    job = new_job(held.name, wanted, user=caller.name, request=own_key(caller, key))
    return told(_jobs(held).add(job))


@routes.get("/data/{name}/syntheses")
def list_syntheses(
    held: Held, limit: Limit = 100, after: Annotated[str, Query(pattern=r"^([0-9a-f]{20})?$")] = ""
) -> Described:
    items = [told(job) for job in _jobs(held).of(held.name, after=after, limit=limit)]
    return paged("syntheses", items, limit, items[-1]["id"] if items else None)


@routes.get("/data/{name}/syntheses/{job}")
def synthesis_state(held: Held, job: JobName) -> Described:
    return told(_job(held, job))


@routes.get("/data/{name}/syntheses/{job}/tables")
def describe_tables(held: Held, job: JobName) -> Described:
    # `cost` is that of reading it: nothing; `charged` is what the job was charged
    done = _job(held, job)
    return {**tables_of(held, done).to_dict(), "charged": str(charged_for(held, done))}


@routes.get("/data/{name}/syntheses/{job}/tables/{number}", response_class=Response, responses=FILES)
def download_table(
    held: Held,
    job: JobName,
    number: Annotated[int, Path(ge=1, le=100)],
    kind: Annotated[Literal["parquet", "csv"], Query(description="The format.")] = "parquet",
) -> Response:
    from tidegate.synthesize.files import FORMATS

    found = tables_of(held, _job(held, job))
    if number > len(found):
        raise NotThere(f"there {'is one table' if len(found) == 1 else f'are {len(found):,} tables'}.")
    file: Any = io.BytesIO()
    table = found[number - 1].to_arrow()
    FORMATS[kind](safe_table(table) if kind == "csv" else table, file)
    named = {"content-disposition": f'attachment; filename="{held.name}-{number}.{kind}"'}
    return Response(file.getvalue(), media_type=KINDS[kind], headers=named)


@routes.get("/data/{name}/syntheses/{job}/quality", responses=REPORT)
def synthesis_quality(
    held: Held,
    job: JobName,
    kind: Annotated[Literal["json", "html"], Query(alias="format", description="html: a page to keep.")] = "json",
    charts: Charts = False,
    column: Annotated[
        str,
        Query(max_length=200, description="The column whose chart is returned (default: the one that differs most)."),
    ] = "",
) -> Any:
    made = tables_of(held, _job(held, job))
    found = held.drawn(f"quality of {job}", made.quality)
    if kind == "json":
        return with_charts(found.to_dict(), _quality_charts(found, column)) if charts else found.to_dict()
    named = {"content-disposition": f'attachment; filename="{held.name}-quality.html"'}
    return Response(found.to_html(), media_type="text/html", headers=named)


def _quality_charts(found: Quality, column: str) -> dict[str, Chart]:
    from tidegate.synthesize.quality.charts import coefficients, distances, margin, separations

    charts = {"separations": separations(found)} if found.separations else {}
    if found.margins:
        chosen = next((one for one in found.margins if one.column == column), found.worst_margins[0])
        charts |= {"distances": distances(found), "margin": margin(chosen)}
    return charts | ({"coefficients": coefficients(found.regression)} if found.regression else {})


@routes.post("/data/{name}/syntheses/{job}/paid-quality")
def paid_quality(held: Held, caller: Asking, job: JobName, asked: PaidFor, key: Key = "") -> Described:
    made = [table.to_arrow() for table in tables_of(held, _job(held, job))]
    identity: Any = {"key": own_key(caller, key), "user": caller.name, "share": caller.share}
    paid = held.session.paid_quality(made, epsilon=str(asked.epsilon), **identity)
    return {**paid.to_dict(), "says": paid.says()}


def _jobs(held: Holding) -> Jobs:
    return Jobs(held.session.ledger.store)


def _job(held: Holding, name: str) -> Job:
    found = _jobs(held).find(held.name, name)
    if found is None:
        raise NotThere("no synthesis of this data set has that id.")
    return found
