"""A bare FastAPI application: the least that a route can cost, and requests that take a stated time."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import FastAPI


def create_app() -> FastAPI:
    """Create an application with a small JSON route, and one that answers after two seconds."""
    app = FastAPI(openapi_url=None)

    @app.post("/bare")
    async def bare(body: dict[str, Any]) -> dict[str, Any]:
        return {"received": len(body)}

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/slow")
    async def slow() -> dict[str, str]:
        await asyncio.sleep(2)
        return {"status": "late"}

    return app
