"""Access: the tokens of a service and a form for new ones."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import Request
from fastapi.responses import Response

from tidegate.accounting import budget_of
from tidegate.accounting.budget import SHORT
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.access import visible_tokens
from tidegate.service.routes.dependencies import CurrentCaller, unversioned_router
from tidegate.service.settings import service_url
from tidegate.web.snippets.ledger import token_code

routes = unversioned_router()


@routes.get("/console/access", **PAGE)
def access_page(request: Request, caller: CurrentCaller) -> Response:
    names = [name for name in request.app.state.datasets if caller.dataset in ("", name)]
    first = names[0] if names else "people"
    desks = [name for name in names if request.app.state.datasets[name].policy.release_promises]
    example = {"role": "analyst", "name": "ana", "dataset": first, "share": "0.5"}
    view = {
        "tokens": visible_tokens(request, caller),
        "names": names,
        "desks": desks,
        "units": {name: SHORT[budget_of(request.app.state.datasets[name].policy).unit] for name in names},
        "all_data": not caller.dataset,
        "me_id": caller.token,
        "now": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "codes": token_code(example, address=service_url(request), policy=first),
    }
    return show("access", request, view, here="access", json_urls=("/v1/tokens",))
