"""The whole service, put together from its settings."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException

from tidegate import __version__
from tidegate.errors import TidegateError
from tidegate.ledger.tokens import Tokens
from tidegate.service.access.callers import Callers
from tidegate.service.access.guard import Gate
from tidegate.service.access.rate_limits import Buckets
from tidegate.service.access.sessions import cookie_name
from tidegate.service.background import Schedule
from tidegate.service.datasets import Holdings
from tidegate.service.errors import http_error, not_in_form, tidegate_error
from tidegate.service.jobs import Runner
from tidegate.service.logs import tell, to_stream
from tidegate.service.metrics import Metrics
from tidegate.service.middleware import Doorway
from tidegate.service.pages import access as access_page
from tidegate.service.pages import answers as asking_page
from tidegate.service.pages import collections as collecting_page
from tidegate.service.pages import ledger as ledger_page
from tidegate.service.pages import overview
from tidegate.service.pages import releases as releasing_page
from tidegate.service.pages import risk as risk_page
from tidegate.service.pages import syntheses as synthesizing_page
from tidegate.service.routes import (
    access,
    answers,
    collection_drafts,
    collections,
    datasets,
    health,
    ledger,
    notebook,
    releases,
    risk,
    syntheses,
)
from tidegate.service.settings import Settings

PARTS = (
    health,
    access,
    datasets,
    answers,
    notebook,
    releases,
    collections,
    collection_drafts,
    syntheses,
    ledger,
    risk,
)
PAGES = (overview, synthesizing_page, risk_page, releasing_page, collecting_page, asking_page, ledger_page, access_page)
ENVIRONMENT = "TIDEGATE_SERVICE"
ABOUT = """Give data out without giving people away.

Send a token as `Authorization: Bearer tg_...`. Every error has one shape: what happened, what to do, the numbers.
Amounts of loss are exact decimals, as text. A request with an `Idempotency-Key` is done once."""
SILENT: Any = dict.fromkeys(("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False)  # all of it
ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "what", "do", "facts"],
            "properties": {
                "code": {"type": "string"},
                "what": {"type": "string"},
                "do": {"type": "string"},
                "facts": {"type": "object"},
            },
        }
    },
    "example": {
        "error": {
            "code": "budget-exceeded",
            "what": 'this needs epsilon 0.51; "people" has 0.2 left of 2.39 (2.19 spent).',
            "do": "Ask for at most 0.2.",
            "facts": {"asked": "0.51", "spent": "2.19", "left": "0.2", "ceiling": "2.39"},
        }
    },
}


def create_app(settings: Settings, holdings: Holdings | None = None) -> FastAPI:
    """The application. `holdings` are opened from the settings' policies where none are given."""
    held = holdings or Holdings.from_files(settings.policies, ledger=settings.ledger)
    app = FastAPI(
        title="Tidegate",
        version=__version__,
        description=ABOUT,
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        telemetry=SILENT,
        lifespan=_life,
    )
    app.state.settings, app.state.holdings, app.state.metrics = settings, held, Metrics()
    app.state.gate = _gate(settings, held)
    app.state.record_secret = app.state.gate.callers.tokens.secret()
    for part in (*PARTS, *PAGES):
        app.include_router(part.routes)
    app.exception_handler(TidegateError)(tidegate_error)
    app.exception_handler(RequestValidationError)(not_in_form)
    app.exception_handler(HTTPException)(http_error)
    app.add_middleware(Doorway, settings=settings, metrics=app.state.metrics)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def from_environment() -> FastAPI:
    """The application of a worker process: its settings are in the environment."""
    to_stream()
    return create_app(Settings.from_json(os.environ[ENVIRONMENT]))


@asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    """Start and stop with the process: requests under way are finished, then connections are let go."""
    settings: Settings = app.state.settings
    anyio.to_thread.current_default_thread_limiter().total_tokens = settings.threads
    runner = Runner(app.state.holdings, settings, app.state.metrics) if settings.run_jobs else None
    schedule = Schedule(app.state.holdings, app.state.metrics)
    if runner:
        runner.start()
    schedule.start()
    tell("started", datasets=len(app.state.holdings))
    yield
    await anyio.to_thread.run_sync(schedule.stop)
    if runner:
        await anyio.to_thread.run_sync(runner.stop)
    app.state.holdings.close()
    tell("stopped")


def _gate(settings: Settings, held: Holdings) -> Gate:
    callers = Callers(Tokens(held.ledger.store), Buckets(settings.wrong_rate, settings.wrong_burst))
    return Gate(
        callers,
        by_caller=Buckets(settings.caller_rate, settings.caller_burst),
        by_address=Buckets(settings.address_rate, settings.address_burst),
        secure=settings.secure,
    )


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The description of the API, with our one shape of errors and both ways to come in."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        parts = made.setdefault("components", {})
        parts.setdefault("schemas", {})["Error"] = ERROR
        for name in ("HTTPValidationError", "ValidationError"):
            parts["schemas"].pop(name, None)
        secure = app.state.settings.secure
        parts["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "tg_<id>_<secret>"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": cookie_name(secure=secure)},
        }
        app.openapi_schema = made
    return app.openapi_schema
