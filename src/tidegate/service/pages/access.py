"""Access: users and tokens, one-time links, sessions, and the methods of sign-in."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from tidegate.accounting import budget_of
from tidegate.accounting.budget import SHORT
from tidegate.service.access.groups import provider_name, read_groups
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.access import visible_sessions, visible_settings, visible_tokens
from tidegate.service.routes.dependencies import CurrentCaller, unversioned_router
from tidegate.service.settings import Settings, service_url
from tidegate.web.snippets.ledger import token_code

routes = unversioned_router()
METHODS = {"token": "token", "link": "one-time links", "oidc": "account"}


@routes.get("/console/access", **PAGE)
def access_page(request: Request, caller: CurrentCaller) -> Response:
    names = [name for name in request.app.state.datasets if caller.dataset in ("", name)]
    first = names[0] if names else "people"
    desks = [name for name in names if request.app.state.datasets[name].policy.release_promises]
    budgets = {name: budget_of(request.app.state.datasets[name].policy) for name in names}
    example = {"role": "analyst", "name": "ana", "dataset": first, "share": "0.5"}
    view = {
        "tokens": visible_tokens(request, caller),
        "sessions": visible_sessions(request, caller),
        "methods": METHODS,
        "provider": _provider(request.app.state.settings),
        "idle_minutes": request.app.state.settings.idle_minutes,
        "hours": request.app.state.settings.sign_in_hours,
        "names": names,
        "desks": desks,
        "units": {name: SHORT[budget.unit] for name, budget in budgets.items()},
        "limits": {name: budget.ceiling for name, budget in budgets.items()},
        "all_data": not caller.dataset,
        "me_id": caller.token,
        "now": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "codes": token_code(example, address=service_url(request), policy=first),
    }
    return show("access", request, view, here="access", json_urls=("/v1/tokens", "/v1/sessions"))


@routes.get("/console/settings", **PAGE)
def settings_page(request: Request, caller: CurrentCaller) -> Response:
    caller.refuse_part()
    view = {"settings": visible_settings(request)}
    return show("settings", request, view, here="access", json_urls=("/v1/settings",))


def _provider(settings: Settings) -> dict[str, Any] | None:
    """Return the provider and what its groups stand for; None if there is none."""
    if not settings.oidc_issuer:
        return None
    groups = [{"group": group, **asdict(grant)} for group, grant in read_groups(settings.oidc_groups)]
    return {"name": provider_name(settings), "issuer": settings.oidc_issuer, "groups": groups}
