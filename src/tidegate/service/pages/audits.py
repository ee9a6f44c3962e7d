"""Audits: start one, follow its progress, read its report."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from tidegate.ledger.jobs import AUDIT, Jobs
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.audits import audit_to_dict, find_audit, report_of
from tidegate.service.routes.dependencies import Served, unversioned_router
from tidegate.service.routes.syntheses import JobName

routes = unversioned_router()
SHOWN = 50  # audits on the page


@routes.get("/console/data/{name}/audits", **PAGE)
def audits_page(request: Request, served: Served) -> Response:
    jobs = Jobs(served.session.ledger.store).latest(served.name, kind=AUDIT, limit=SHOWN)
    view = {
        "name": served.name,
        "audits": [audit_to_dict(job) for job in jobs],
        "is_possible": not served.policy.tables,
        "codes": {"Command line": f"tidegate audit {served.name}.toml --seconds 60"},
    }
    json_url = f"/v1/data/{served.name}/audits"
    return show("audits", request, {**view, "view": view}, here="audits", json_urls=(json_url,), dataset=served.name)


@routes.get("/console/data/{name}/audits/{job}", **PAGE)
def audit_page(request: Request, served: Served, job: JobName) -> Response:
    stored = find_audit(served, job)
    json_url = f"/v1/data/{served.name}/audits/{job}/report"
    view = {"name": served.name, "job": audit_to_dict(stored), "report": report_of(stored)["report"], "at": json_url}
    return show("audit", request, view, here="audits", json_urls=(json_url,), dataset=served.name)
