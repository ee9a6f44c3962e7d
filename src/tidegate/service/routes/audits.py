"""Audits of a data set as jobs: start, progress, cancellation, report."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from tidegate.errors import NotThere, Unsupported
from tidegate.extras import require
from tidegate.ledger.jobs import AUDIT, DONE, Job, Jobs
from tidegate.service.datasets import ServedDataset
from tidegate.service.job_events import EVENTS, follow
from tidegate.service.jobs import cancel_job, job_to_dict, new_job
from tidegate.service.models.syntheses import AuditJob, AuditPage, AuditReport
from tidegate.service.pagination import Cursor, Limit, first_page, link_next, position_id, read_cursor
from tidegate.service.routes.dependencies import (
    CurrentCaller,
    Described,
    Form,
    Key,
    Served,
    caller_key,
    router,
)
from tidegate.service.routes.syntheses import JobName

routes = router()
REPORT: Any = {200: {"content": {"text/html": {"schema": {"type": "string"}}}}}


class AuditOrder(Form):
    """An audit: about how long it takes, and which promises are attacked. It spends nothing and reads no row."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"seconds": 60}, {"seconds": 30, "verbs": ["ledger"]}]})
    seconds: float = Field(60.0, gt=0, le=3600, allow_inf_nan=False, description="The approximate time of all attacks.")
    verbs: list[Literal["answer", "release", "collect", "synthesize", "ledger"]] = Field(
        [], max_length=5, description="Attack only these promises (default: all)."
    )
    seed: int | None = Field(None, ge=0, le=2**53, description="The seed of the simulated data sets.")


@routes.post("/data/{name}/audits", status_code=202, response_model=AuditJob)
def start_audit(served: Served, caller: CurrentCaller, body: AuditOrder, key: Key = "") -> Described:
    require("audit", "The audit")
    if served.policy.tables:
        raise Unsupported(
            "A policy with several tables cannot be audited yet.", "Audit each table under a policy of its own."
        )
    options = body.model_dump()
    job = new_job(served.name, options, user=caller.name, request=caller_key(caller, key), kind=AUDIT)
    return audit_to_dict(_jobs(served).add(job))


@routes.get("/data/{name}/audits", response_model=AuditPage)
def list_audits(
    request: Request, response: Response, served: Served, limit: Limit = 100, cursor: Cursor = ""
) -> Described:
    after = read_cursor("audits", cursor, position_id, "")
    jobs = _jobs(served).of(served.name, kind=AUDIT, after=after, limit=limit + 1)
    shown, following = first_page(jobs, limit, lambda job: job.id, "audits")
    return {"audits": [audit_to_dict(job) for job in shown], "next": link_next(request, response, following)}


@routes.get("/data/{name}/audits/{job}", response_model=AuditJob)
def audit_state(served: Served, job: JobName) -> Described:
    return audit_to_dict(find_audit(served, job))


@routes.get("/data/{name}/audits/{job}/events", response_class=StreamingResponse, responses=EVENTS)
async def audit_events(request: Request, served: Served, caller: CurrentCaller, job: JobName) -> StreamingResponse:
    return await follow(request, caller, await run_in_threadpool(find_audit, served, job))


@routes.post("/data/{name}/audits/{job}/cancellation", response_model=AuditJob)
def cancel_audit(served: Served, caller: CurrentCaller, job: JobName) -> Described:
    return audit_to_dict(cancel_job(served, find_audit(served, job), user=caller.name))


@routes.get("/data/{name}/audits/{job}/report", response_model=AuditReport, responses=REPORT)
def audit_report(
    served: Served,
    job: JobName,
    kind: Annotated[
        Literal["json", "html"], Query(alias="format", description="`json`, or `html` for a page to download.")
    ] = "json",
) -> Any:
    stored = report_of(find_audit(served, job))
    if kind == "json":
        return stored["report"]
    headers = {"content-disposition": f'attachment; filename="{served.name}-audit.html"'}
    return Response(stored["html"], media_type="text/html", headers=headers)


def audit_to_dict(job: Job) -> Described:
    """Return the state of an audit, with its verdict once it is done."""
    report = json.loads(job.report)["report"] if job.report else {}
    return {**job_to_dict(job), "verdict": report.get("verdict"), "broken": report.get("broken")}


def find_audit(served: ServedDataset, name: str) -> Job:
    """Return an audit by its id."""
    job = _jobs(served).find(served.name, name, kind=AUDIT)
    if job is None:
        raise NotThere("This data set has no audit with that id.")
    return job


def report_of(job: Job) -> Described:
    """Return the report of a finished audit: as values, and as a page."""
    if job.state != DONE:
        raise NotThere(f"This audit is {job.state}, so it has no report.", "Try again when it is done.")
    report: Described = json.loads(job.report)
    return report


def _jobs(served: ServedDataset) -> Jobs:
    return Jobs(served.session.ledger.store)
