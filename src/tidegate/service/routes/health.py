"""Health, readiness, metrics."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import Request, Response

from tidegate.ledger.witness import Standing
from tidegate.service.access.permissions import OWNER
from tidegate.service.models.base import HealthReply, ReadyReply
from tidegate.service.routes.dependencies import CurrentCaller, Described, unversioned_router

routes = unversioned_router()


@routes.get("/health", response_model=HealthReply)
async def health() -> Described:
    return {"status": "ok"}


@routes.get("/ready", response_model=ReadyReply)
def ready(request: Request, caller: CurrentCaller) -> Described:
    request.app.state.datasets.ledger.head()
    content = {"status": "ready", "datasets": len(request.app.state.datasets)}
    if caller.role != OWNER or caller.dataset:
        return content
    return {**content, "witnesses": [asdict(state) for state in witness_states(request)]}


@routes.get(
    "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
)
def metrics(request: Request) -> Response:
    problems = [state for state in witness_states(request) if state.problem]
    request.app.state.metrics.witness_problems(len(problems))
    return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4")


def witness_states(request: Request) -> list[Standing]:
    """Return the state of the ledger's witnesses as this process knows it."""
    witnesses = request.app.state.datasets.ledger.witnesses
    return witnesses.states() if witnesses is not None else []
