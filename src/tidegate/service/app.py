"""The FastAPI application: routes, error handlers, middleware, lifespan, OpenAPI description."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio.to_thread
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException

from tidegate import __version__
from tidegate.errors import LedgerError, TidegateError
from tidegate.ledger.rate_limits import SharedLimit
from tidegate.ledger.spending import Spending
from tidegate.ledger.tokens import Tokens
from tidegate.service.access.activity import Activity
from tidegate.service.access.callers import Callers
from tidegate.service.access.guard import Guard
from tidegate.service.access.oidc import Oidc
from tidegate.service.access.rate_limits import Buckets, NetworkBuckets, SharedBuckets
from tidegate.service.access.sessions import cookie_name
from tidegate.service.background import BackgroundTask, Schedule
from tidegate.service.datasets import ServedDatasets
from tidegate.service.errors import http_error, source_location, tidegate_error, validation_error
from tidegate.service.job_events import JobFeed
from tidegate.service.logs import log_event, to_stream
from tidegate.service.metrics import Metrics
from tidegate.service.middleware import RequestMiddleware
from tidegate.service.pages import access as access_page
from tidegate.service.pages import answers as answers_page
from tidegate.service.pages import audits as audits_page
from tidegate.service.pages import collections as collections_page
from tidegate.service.pages import drafts as drafts_page
from tidegate.service.pages import ledger as ledger_page
from tidegate.service.pages import library as library_page
from tidegate.service.pages import overview
from tidegate.service.pages import policies as policies_page
from tidegate.service.pages import polls as polls_page
from tidegate.service.pages import releases as releases_page
from tidegate.service.pages import risk as risk_page
from tidegate.service.pages import sign_in as sign_in_page
from tidegate.service.pages import syntheses as syntheses_page
from tidegate.service.routes import (
    access,
    answer_files,
    answers,
    audits,
    collection_drafts,
    collections,
    drafts,
    health,
    home,
    invitations,
    ledger,
    library,
    notebook,
    policies,
    poll_drafts,
    polls,
    release_audits,
    releases,
    risk,
    selections,
    syntheses,
)
from tidegate.service.routes import datasets as dataset_routes
from tidegate.service.runner import Runner
from tidegate.service.settings import Settings

PARTS = (
    health,
    access,
    dataset_routes,
    answers,
    answer_files,
    library,
    notebook,
    releases,
    release_audits,
    selections,
    collections,
    invitations,
    collection_drafts,
    polls,
    poll_drafts,
    syntheses,
    audits,
    ledger,
    risk,
    drafts,
    policies,
    home,
)
PAGES = (
    sign_in_page,
    overview,
    syntheses_page,
    audits_page,
    risk_page,
    releases_page,
    collections_page,
    polls_page,
    answers_page,
    library_page,
    ledger_page,
    access_page,
    drafts_page,
    policies_page,
)
ENVIRONMENT, ORIGINS = "TIDEGATE_SERVICE", "TIDEGATE_ORIGINS"
ACTIVITY_PAUSE = 15.0  # seconds between two writes of what callers do
LEASES = 16  # of a full bucket: a process takes that part of a shared limit at once
ABOUT = """Publish data without revealing people.

Send your token as `Authorization: Bearer tg_...`. All errors are problem documents (RFC 9457): what happened, what to do,
and the numbers. Amounts of privacy loss are exact decimals, sent as text. A request with an `Idempotency-Key` runs only once."""
SILENT: Any = dict.fromkeys(
    ("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False
)  # turn off all telemetry
PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "instance", "code", "do", "facts"],
    "properties": {
        "type": {"type": "string", "description": "The kind of problem, as a URN that ends with the code."},
        "title": {"type": "string", "description": "The kind of problem in words."},
        "status": {"type": "integer", "description": "The status of the response."},
        "detail": {"type": "string", "description": "What happened, and why."},
        "instance": {"type": "string", "description": "This request, as a URN that ends with its X-Request-Id."},
        "code": {"type": "string", "description": "The kind of problem, for programs. It never changes."},
        "do": {"type": "string", "description": "What to do about it."},
        "facts": {"type": "object", "description": "The numbers of the detail; amounts are exact decimals as text."},
    },
    "example": {
        "type": "urn:tidegate:problem:budget-exceeded",
        "title": "Budget exceeded",
        "status": 409,
        "detail": 'The request costs epsilon 0.51, but "people" has 0.2 remaining of 2.39 (2.19 spent).',
        "instance": "urn:tidegate:request:0123456789abcdef",
        "code": "budget-exceeded",
        "do": "Request at most 0.2.",
        "facts": {"asked": "0.51", "spent": "2.19", "left": "0.2", "ceiling": "2.39"},
    },
}


def create_app(settings: Settings, datasets: ServedDatasets | None = None) -> FastAPI:
    """Create the application. The data sets are opened from the settings unless they are passed in."""
    if datasets is None:
        datasets = ServedDatasets.from_files(settings.policies, ledger=settings.ledger, folder=settings.folder)
    served = datasets
    app = FastAPI(
        title="Tidegate",
        version=__version__,
        description=ABOUT,
        docs_url=None,  # these pages load scripts from other hosts
        redoc_url=None,
        redirect_slashes=False,
        telemetry=SILENT,
        lifespan=_lifespan,
    )
    app.state.settings, app.state.datasets, app.state.metrics = settings, served, Metrics()
    app.state.origins = {}
    app.state.guard, app.state.spending = _guard(settings, served), Spending(served.ledger)
    app.state.oidc = Oidc(settings, app.state.guard.callers) if settings.oidc_issuer else None
    app.state.sign_in_limits = Buckets(settings.sign_in_rate, settings.sign_in_burst)
    app.state.job_feed = JobFeed(served.ledger.store, settings)
    app.state.poll_limits = NetworkBuckets(settings.poll_rate, settings.poll_burst)
    for part in (*PARTS, *PAGES):
        app.include_router(part.routes)
    app.exception_handler(TidegateError)(tidegate_error)
    app.exception_handler(RequestValidationError)(validation_error)
    app.exception_handler(HTTPException)(http_error)
    app.add_middleware(RequestMiddleware, settings=settings, metrics=app.state.metrics)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def from_environment() -> FastAPI:
    """Create the application of a worker process, which finds its settings in the environment."""
    to_stream()
    app = create_app(Settings.from_json(os.environ[ENVIRONMENT]))
    app.state.origins = json.loads(os.environ.get(ORIGINS, "{}"))
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Start the background threads with the process; on shutdown stop them and close the connections."""
    settings: Settings = app.state.settings
    anyio.to_thread.current_default_thread_limiter().total_tokens = settings.threads
    runner = Runner(app.state.datasets, settings, app.state.metrics) if settings.run_jobs else None
    schedule = Schedule(app.state.datasets, app.state.metrics)
    if runner:
        runner.start()
    schedule.start()
    activity = app.state.guard.callers.activity
    pause = min(ACTIVITY_PAUSE, 15 * settings.idle_minutes)  # a quarter of the idle time at most
    writer = BackgroundTask("activity", activity.write, pause=pause, failure="activity-failed")
    writer.start()
    log_event("started", datasets=len(app.state.datasets))
    yield
    await anyio.to_thread.run_sync(schedule.stop)
    if runner:
        await anyio.to_thread.run_sync(runner.stop)
    await anyio.to_thread.run_sync(writer.stop)
    await anyio.to_thread.run_sync(partial(_write_last, activity))
    app.state.datasets.close()
    log_event("stopped")


def _write_last(activity: Activity) -> None:
    """Write what callers did since the last time. A ledger that does not respond must not prevent the shutdown."""
    try:
        activity.write(closing=True)
    except LedgerError as error:
        log_event("activity-failed", place=source_location(error))


def _guard(settings: Settings, datasets: ServedDatasets) -> Guard:
    tokens, store = Tokens(datasets.ledger.store), datasets.ledger.store

    def buckets(kind: str, rate: float, burst: float, *, lease: int = 1) -> Buckets:
        """Return the limits of all processes; of this process alone if they share a file, which has one writer at a time."""
        if store.sqlite:
            return Buckets(rate, burst)
        return SharedBuckets(
            SharedLimit(store, tokens.secret(), kind, rate=rate, burst=burst), rate, burst, lease=lease
        )

    leased = max(1, int(settings.caller_burst / LEASES))
    wrong = buckets("wrong", settings.wrong_rate, settings.wrong_burst)
    return Guard(
        Callers(tokens, wrong, idle=settings.idle_minutes),
        by_caller=buckets("token", settings.caller_rate, settings.caller_burst, lease=leased),
        by_address=Buckets(settings.address_rate, settings.address_burst),
        settings=settings,
    )


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description, with the shape of errors and both ways to authenticate."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        components = schema.setdefault("components", {})
        components.setdefault("schemas", {})["Problem"] = PROBLEM
        for name in ("HTTPValidationError", "ValidationError"):
            components["schemas"].pop(name, None)
        settings: Settings = app.state.settings
        if settings.public_url:
            schema["servers"] = [{"url": settings.public_url}]
        components["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "tg_<id>_<secret>"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": cookie_name(settings)},
        }
        app.openapi_schema = schema
    return app.openapi_schema
