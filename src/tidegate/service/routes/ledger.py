"""ledger: totals, entries in words, verification, export."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import StreamingResponse

from tidegate.errors import NotAllowed
from tidegate.ledger import Ledger, export_lines, verify
from tidegate.ledger.paging import accounts, page
from tidegate.service.access.callers import Caller
from tidegate.service.routes.common import After, Asking, Described, Limit, paged, router

routes = router()
LINES: Any = {200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}}


@routes.get("/ledger")
def totals(request: Request, caller: Asking) -> Described:
    ledger = _ledger(request)
    found = []
    for name in accounts(ledger):
        account = ledger.account(name) if _of(caller, name) and "/" not in name else None
        if account is not None:
            amounts = {"spent": account.spent, "left": account.left, "ceiling": account.ceiling}
            found.append({"account": name, **{k: str(v) for k, v in amounts.items()}, "policy": account.policy})
    return {"accounts": found, "head": ledger.head()}


@routes.get("/ledger/entries")
def entries(
    request: Request,
    caller: Asking,
    dataset: Annotated[str, Query(max_length=63)] = "",
    newest: Annotated[bool, Query(description="The latest ones, the latest first.")] = False,
    after: After = 0,
    limit: Limit = 100,
) -> Described:
    if dataset:
        caller.refuse_other(dataset)
    chosen = dataset or caller.dataset
    found = page(_ledger(request), dataset=chosen, after=after, limit=limit, newest=newest)
    items = [{**entry.__dict__, "body": entry.content(), "says": says} for entry, says in found]
    return paged("entries", items, limit, items[-1]["number"] if items and not newest else None)


@routes.get("/ledger/verification")
def verification(
    request: Request,
    caller: Asking,
    head: Annotated[str, Query(pattern="^([0-9a-f]{64})?$", description="Noted earlier: finds a tail cut off.")] = "",
) -> Described:
    verdict = verify(*_ledger(request).snapshot(), head=head)
    spent = {name: str(amount) for name, amount in verdict.spent.items() if _of(caller, name)}
    problems = verdict.problems[:20]
    return {
        "holds": verdict.holds,
        "entries": verdict.entries,
        "head": verdict.head,
        "spent": spent,
        "problems": problems,
    }


@routes.get("/ledger/export", response_class=StreamingResponse, responses=LINES)
def export(request: Request, caller: Asking) -> StreamingResponse:
    if caller.dataset:
        raise NotAllowed("the whole ledger is for an owner of all data sets.", "See /ledger/entries for your own.")
    lines = export_lines(_ledger(request))

    def ended() -> Iterator[str]:
        for line in lines:
            yield f"{line}\n"

    named = {"content-disposition": 'attachment; filename="ledger.jsonl"'}
    return StreamingResponse(ended(), media_type="application/x-ndjson", headers=named)


def _ledger(request: Request) -> Ledger:
    ledger: Ledger = request.app.state.holdings.ledger
    return ledger


def _of(caller: Caller, account: str) -> bool:
    """Whether an account is this owner's to see: the data set's, or one of its collections'."""
    return not caller.dataset or account.partition("/")[0] == caller.dataset
