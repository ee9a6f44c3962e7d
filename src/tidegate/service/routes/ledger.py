"""ledger: totals, entries in words, verification, export."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from fastapi.responses import StreamingResponse

from tidegate.ledger import Ledger, export_lines
from tidegate.ledger.entry import Entry
from tidegate.ledger.pages import accounts, page
from tidegate.service.access.callers import Caller
from tidegate.service.routes.dependencies import After, Asking, Described, Limit, router

routes = router()
READ, READ_AT_ONCE = 20_000, 1000  # entries read for one page of a search
Kind = Literal[
    "",
    "policy",
    "charge",
    "again",
    "result",
    "desk",
    "release",
    "withdrawal",
    "collection",
    "reports",
    "closing",
    "adoption",
    "write-off",
]
KINDS = {
    "policy": "policies",
    "charge": "charges",
    "result": "results",
    "again": "asked again",
    "desk": "release desks",
    "release": "records released",
    "withdrawal": "requests withdrawn",
    "collection": "collections",
    "reports": "reports taken",
    "closing": "collections closed",
    "adoption": "migrations",
    "write-off": "write-offs",
}
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
    kind: Annotated[Kind, Query(description="Only entries of this kind.")] = "",
    who: Annotated[str, Query(max_length=63, description="Only entries that name this person.")] = "",
    text: Annotated[str, Query(max_length=100, description="Only entries whose sentence holds this.")] = "",
    newest: Annotated[bool, Query(description="The latest ones first.")] = False,
    after: After = 0,
    limit: Limit = 100,
) -> Described:
    if dataset:
        caller.refuse_other(dataset)
    chosen = {"dataset": dataset or caller.dataset, "kind": kind, "named": who, "newest": newest}
    found, cursor = holding(_ledger(request), text, after=after, limit=limit, **chosen)
    items = [{**entry.__dict__, "body": entry.content(), "says": says} for entry, says in found]
    return {"entries": items, "next": cursor}


def holding(
    ledger: Ledger, text: str, *, after: int, limit: int, **chosen: Any
) -> tuple[list[tuple[Entry, str]], int | None]:
    """A page of entries whose sentences hold a text, and where the next page begins. Sentences are made, not stored: so many
    entries are read for one page, and what lies beyond is for the next."""
    found: list[tuple[Entry, str]] = []
    for _ in range(READ // READ_AT_ONCE):
        many = READ_AT_ONCE if text else limit
        read = page(ledger, after=after, limit=many, **chosen)
        for entry, says in read:
            after = entry.number
            if text.casefold() in says.casefold():
                found.append((entry, says))
            if len(found) == limit:
                return found, after
        if len(read) < many:
            return found, None
    return found, after


@routes.get("/ledger/verification")
def verification(
    request: Request,
    caller: Asking,
    head: Annotated[str, Query(pattern="^([0-9a-f]{64})?$", description="Noted earlier: finds a tail cut off.")] = "",
) -> Described:
    verdict = _ledger(request).verify(head=head)
    spent = {name: str(amount) for name, amount in verdict.spent.items() if _of(caller, name)}
    problems = verdict.problems[:20]
    return {
        "holds": verdict.holds,
        "entries": verdict.entries,
        "head": verdict.head,
        "spent": spent,
        "problems": problems,
        "notes": verdict.notes[:20],
    }


@routes.get("/ledger/export", response_class=StreamingResponse, responses=LINES)
def export(request: Request, caller: Asking) -> StreamingResponse:
    lines = export_lines(_ledger(request), dataset=caller.dataset)  # an owner of one data set sees its entries only

    def ended() -> Iterator[str]:
        for line in lines:
            yield f"{line}\n"

    name = f"{caller.dataset}.jsonl" if caller.dataset else "ledger.jsonl"  # of letters, digits and - only
    named = {"content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(ended(), media_type="application/x-ndjson", headers=named)


def _ledger(request: Request) -> Ledger:
    ledger: Ledger = request.app.state.holdings.ledger
    return ledger


def _of(caller: Caller, account: str) -> bool:
    """Whether an account is this owner's to see: the data set's, or one of its collections'."""
    return not caller.dataset or account.partition("/")[0] == caller.dataset
