"""Notebook: the queries of a data set with their answers, to run again elsewhere."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from tidegate.accounting import Together, event_from_dict
from tidegate.answer.repeat import Again, asked_again
from tidegate.answer.result import Answer
from tidegate.ledger import Charge, Receipt
from tidegate.ledger.entry import CHARGED, Entry
from tidegate.ledger.explain import page
from tidegate.service.access.permissions import OWNER
from tidegate.service.datasets import ServedDataset
from tidegate.service.routes.dependencies import Asking, Held, router
from tidegate.service.settings import service_url
from tidegate.web.notebook import Asked, notebook

routes = router()
MOST = 300  # the latest queries in one notebook
KIND = "application/x-ipynb+json"
SENT: Any = {200: {"content": {KIND: {"schema": {"type": "object"}}}}}


@routes.get("/data/{name}/notebook", response_class=Response, responses=SENT)
def as_notebook(request: Request, held: Held, caller: Asking) -> Response:
    mine = None if caller.role == OWNER else caller.name
    latest = page(held.session.ledger, dataset=held.name, kind=CHARGED, who=mine, limit=MOST, newest=True)
    stored = {entry.number: parts for entry, parts in held.session.ledger.answered(held.name)}
    work = [_asked(held, entry, says, stored.get(entry.number)) for entry, says in reversed(latest)]
    about = {"dataset": held.name, "promise": str(held.policy.identification or held.policy.loss or "")}
    more = f"These are the latest {MOST:,} queries." if len(latest) == MOST else ""
    content = notebook(work, address=service_url(request), more=more, **about)
    headers = {"content-disposition": f'attachment; filename="{held.name}.ipynb"'}
    return Response(json.dumps(content, ensure_ascii=False, indent=1), media_type=KIND, headers=headers)


def _asked(held: ServedDataset, entry: Entry, says: str, stored: Any) -> Asked:
    again = asked_again(entry.content(), held.policy)
    rows = _rows(held, entry, again, stored) if again and stored else None
    return Asked(entry.number, says, again, rows)


def _rows(held: ServedDataset, entry: Entry, again: Again, stored: Any) -> list[list[dict[str, Any]]]:
    """Return the rows of a stored answer."""
    charge = Charge.of(Receipt(held.session.ledger, entry, held.session.account, stored, fresh=False), held.policy)
    event = event_from_dict(entry.content()["event"])
    events = event.parts if isinstance(event, Together) and len(again.queries) > 1 else (event,)
    parts = zip(again.queries, events, stored["parts"], strict=True)
    return [Answer(query, held.policy, event, part, charge).rows() for query, event, part in parts]
