"""Shared parts of the routes: caller, data set, numbers, names, pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from tidegate.charts import Chart
from tidegate.service.access.callers import Caller
from tidegate.service.access.guard import GuardedRoute
from tidegate.service.access.permissions import API
from tidegate.service.datasets import ServedDataset

NAMED = r"^[A-Za-z][A-Za-z0-9_.-]{0,62}$"
Described: TypeAlias = dict[str, Any]
Text = Annotated[str, Field(pattern=r"^(\d{1,12}(\.\d{1,40})?|\d{1,12}/[1-9]\d{0,11})$", max_length=60)]
Number: TypeAlias = Annotated[float, Field(strict=True, gt=0, le=1e12, allow_inf_nan=False)] | Text
Column = Annotated[str, Field(min_length=1, max_length=200)]
Named = Annotated[str, Path(pattern=NAMED, examples=["people"])]
After = Annotated[int, Query(ge=0, le=2**53, description="Return what comes after this number.")]
EntryNumber = Annotated[int, Path(ge=1, le=2**53, description="The number of a ledger entry.")]
Charts = Annotated[bool, Query(description="Also return the charts of the result, as SVG.")]
Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=100,
        pattern=r"^[\x21-\x7e]*$",
        description="A request that is repeated with the same key runs only once.",
    ),
]


class Form(BaseModel):
    """Base class of request bodies. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


def router() -> APIRouter:
    """Return a router of the API: its addresses start with the version."""
    return APIRouter(route_class=GuardedRoute, prefix=API)


def unversioned_router() -> APIRouter:
    """Return a router of pages or health checks."""
    return APIRouter(route_class=GuardedRoute)


async def _served(request: Request, name: Named) -> ServedDataset:
    served: ServedDataset = request.app.state.datasets[name]
    return served


async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


CurrentCaller = Annotated[Caller, Depends(_caller)]
Served = Annotated[ServedDataset, Depends(_served)]


def with_charts(content: Described, charts: Mapping[str, Chart]) -> Described:
    """Return content with its charts: by name, each as title, svg and table."""
    return {**content, "charts": {name: chart.to_dict() for name, chart in charts.items()}}


def caller_key(caller: Caller, key: str) -> str:
    """Return the key as the ledger stores it: keys of different callers never collide."""
    return f"{caller.name}:{key}" if key else ""
