"""Health, readiness, metrics."""

from __future__ import annotations

from fastapi import Request, Response

from tidegate.service.models.base import HealthReply, ReadyReply
from tidegate.service.routes.dependencies import Described, unversioned_router

routes = unversioned_router()


@routes.get("/health", response_model=HealthReply)
async def health() -> Described:
    return {"status": "ok"}


@routes.get("/ready", response_model=ReadyReply)
def ready(request: Request) -> Described:
    request.app.state.datasets.ledger.head()
    return {"status": "ready", "datasets": len(request.app.state.datasets)}


@routes.get(
    "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
)
def metrics(request: Request) -> Response:
    return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4")
