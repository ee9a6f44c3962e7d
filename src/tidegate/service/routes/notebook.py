"""Notebook: the queries of a data set with their answers, to run again elsewhere."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from tidegate.answer.repeat import Again, asked_again, stored_answers
from tidegate.ledger import Receipt
from tidegate.ledger.entry import CHARGED, Entry
from tidegate.ledger.explain import page
from tidegate.service.access.permissions import OWNER
from tidegate.service.datasets import ServedDataset
from tidegate.service.routes.dependencies import CurrentCaller, Served, router
from tidegate.service.settings import service_url
from tidegate.web.notebook import StoredQuery, notebook

routes = router()
MOST = 300  # the latest queries in one notebook
KIND = "application/x-ipynb+json"
SENT: Any = {200: {"content": {KIND: {"schema": {"type": "object"}}}}}


@routes.get("/data/{name}/notebook", response_class=Response, responses=SENT)
def as_notebook(request: Request, served: Served, caller: CurrentCaller) -> Response:
    mine = None if caller.role == OWNER else caller.name
    latest = page(served.session.ledger, dataset=served.name, kind=CHARGED, user=mine, limit=MOST, newest=True)
    stored = {entry.number: parts for entry, parts in served.session.ledger.answered(served.name)}
    work = [_stored_query(served, entry, says, stored.get(entry.number)) for entry, says in reversed(latest)]
    about = {"dataset": served.name, "promise": str(served.policy.identification or served.policy.loss or "")}
    more = f"These are the latest {MOST:,} queries." if len(latest) == MOST else ""
    content = notebook(work, address=service_url(request), more=more, **about)
    headers = {"content-disposition": f'attachment; filename="{served.name}.ipynb"'}
    return Response(json.dumps(content, ensure_ascii=False, indent=1), media_type=KIND, headers=headers)


def _stored_query(served: ServedDataset, entry: Entry, says: str, stored: Any) -> StoredQuery:
    again = asked_again(entry.content(), served.policy)
    rows = _rows(served, entry, again, stored) if again and stored else None
    return StoredQuery(entry.number, says, again, rows)


def _rows(served: ServedDataset, entry: Entry, again: Again, stored: Any) -> list[list[dict[str, Any]]]:
    """Return the rows of a stored answer."""
    receipt = Receipt(served.session.ledger, entry, served.session.account, stored, fresh=False)
    return [answer.rows() for answer in stored_answers(receipt, again, served.policy)]
