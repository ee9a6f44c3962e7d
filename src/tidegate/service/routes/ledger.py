"""Ledger: totals, entries with descriptions, verification, export."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from tidegate.errors import NotThere, Unsupported
from tidegate.ledger import Ledger, export_lines, queries
from tidegate.ledger.entry import ANSWERED, CHARGED, REPEATED, Entry, entry_from
from tidegate.ledger.explain import accounts, page
from tidegate.ledger.upkeep import note_work
from tidegate.ledger.witness import public_keys
from tidegate.service.access.callers import Caller
from tidegate.service.access.permissions import OWNER
from tidegate.service.models.access import EntryProof, LedgerEntry, LedgerPage, LedgerTotals, LedgerVerdict
from tidegate.service.pagination import Cursor, Limit, link_next, position_number, read_cursor, write_cursor
from tidegate.service.routes.dependencies import CurrentCaller, Described, EntryNumber, router

routes = router()
READ, READ_AT_ONCE = 20_000, 1000  # entries read for one page of a search
Kind = Literal[
    "",
    "policy",
    "charge",
    "again",
    "result",
    "failure",
    "inspection",
    "second-account",
    "desk",
    "release",
    "withdrawal",
    "collection",
    "reports",
    "closing",
    "adoption",
    "write-off",
    "access",
]
KINDS = {
    "policy": "policies",
    "charge": "charges",
    "result": "results",
    "again": "repeated requests",
    "failure": "failures after a charge",
    "inspection": "inspections by the owner",
    "second-account": "second accounts of a source",
    "desk": "release desks",
    "release": "released records",
    "withdrawal": "withdrawn requests",
    "collection": "collections",
    "reports": "received reports",
    "closing": "closed collections",
    "adoption": "migrations",
    "write-off": "write-offs",
    "access": "access to the service",
}
LISTS = ("entries", "entries-newest")  # that cursors are for
LINES: Any = {200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}}


@routes.get("/ledger", response_model=LedgerTotals)
def totals(request: Request, caller: CurrentCaller) -> Described:
    ledger = _ledger(request)
    summaries = []
    for name in accounts(ledger):
        account = ledger.account(name) if _can_see(caller, name) and "/" not in name else None
        if account is not None:
            amounts = {"spent": account.spent, "left": account.left, "ceiling": account.ceiling}
            summaries.append(
                {
                    "account": name,
                    **{k: str(v) for k, v in amounts.items()},
                    "policy": account.policy,
                    "unit": account.unit,
                }
            )
    return {"accounts": summaries, "head": ledger.head()}


@routes.get("/ledger/entries", response_model=LedgerPage)
def entries(
    request: Request,
    response: Response,
    caller: CurrentCaller,
    dataset: Annotated[str, Query(max_length=63)] = "",
    kind: Annotated[Kind, Query(description="Return only entries of this kind.")] = "",
    user: Annotated[str, Query(alias="who", max_length=63, description="Return only entries of this user.")] = "",
    text: Annotated[
        str, Query(max_length=100, description="Return only entries whose description contains this text.")
    ] = "",
    newest: Annotated[bool, Query(description="Return the latest entries first.")] = False,
    cursor: Cursor = "",
    limit: Limit = 100,
) -> Described:
    after = read_cursor(LISTS[newest], cursor, position_number, 0)
    content = entries_after(
        request, caller, after, limit, dataset=dataset, kind=kind, user=user, text=text, newest=newest
    )
    content["next"] = None if content["next"] is None else write_cursor(LISTS[newest], content["next"])
    link_next(request, response, content["next"])
    return content


def entries_after(
    request: Request,
    caller: Caller,
    after: int,
    limit: int,
    *,
    dataset: str = "",
    kind: str = "",
    user: str = "",
    text: str = "",
    newest: bool = False,
) -> Described:
    """Return a page of entries, and the number after which the next one starts."""
    if dataset:
        caller.refuse_other(dataset)
    chosen = {"dataset": dataset or caller.dataset, "kind": kind, "named": user, "newest": newest}
    matches, following = search(_ledger(request), text, after=after, limit=limit, **chosen)
    items = [{**entry.__dict__, "body": entry.content(), "says": says} for entry, says in matches]
    return {"entries": items, "next": following}


@routes.get("/ledger/entries/{number}", response_model=LedgerEntry)
def ledger_entry(request: Request, response: Response, caller: CurrentCaller, number: EntryNumber) -> Described:
    listed = entries_after(request, caller, number - 1, 1)["entries"]
    if not listed or listed[0]["number"] != number:
        raise NotThere("The ledger has no entry of this number that you can see.", "See GET /v1/ledger/entries.")
    entry: Described = listed[0]
    return entry


def search(
    ledger: Ledger, text: str, *, after: int, limit: int, **chosen: Any
) -> tuple[list[tuple[Entry, str]], int | None]:
    """Return a page of entries whose descriptions contain a text, and the cursor of the next page.

    Descriptions are generated, not stored. At most `READ` entries are read for one page; the next page continues there.
    """
    matches: list[tuple[Entry, str]] = []
    # one more than the page has, to know whether there is a next page
    for _ in range(READ // READ_AT_ONCE):
        size = READ_AT_ONCE if text else limit + 1
        read = page(ledger, after=after, limit=size, **chosen)
        for entry, says in read:
            if text.casefold() in says.casefold():
                if len(matches) == limit:
                    return matches, matches[-1][0].number
                matches.append((entry, says))
            after = entry.number
        if len(read) < size:
            return matches, None
    return matches, after


@routes.get("/ledger/entries/{entry}/proof", response_model=EntryProof)
def entry_proof(
    request: Request,
    response: Response,
    caller: CurrentCaller,
    entry: Annotated[str, Path(pattern=r"^([0-9]{1,7}|[0-9a-f]{8,64})$", description="Its number or its hash.")],
) -> Described:
    ledger, proof = _ledger(request), None
    if not can_prove(ledger):
        raise NotThere(
            "The ledger has no signing key yet, so there are no proofs.",
            "The data holder creates one: tidegate ledger witness POLICY --new-key",
        )
    with suppress(Unsupported):
        proof = ledger.prove(entry)
    if proof is None or not _is_own(ledger, caller, entry_from(proof["entry"])):
        raise NotThere("You have no entry with this number or hash.", "Use the entry that your answer shows.")
    response.headers["content-disposition"] = f'attachment; filename="entry-{proof["index"]}.proof.json"'
    return proof


def can_prove(ledger: Ledger) -> bool:
    """Return whether the ledger has a key that signs proofs."""
    with ledger.store.reading() as connection:
        return bool(public_keys(connection))


def _is_own(ledger: Ledger, caller: Caller, entry: Entry) -> bool:
    """Return whether a caller can see an entry: an owner those of their data sets, others their own charges and results."""
    if caller.role == OWNER:
        return _can_see(caller, entry.account)
    if entry.kind not in (CHARGED, ANSWERED, REPEATED) or not _can_see(caller, entry.account):
        return False
    content = entry.content()
    if "who" not in content:
        with ledger.store.reading() as connection:
            charge = queries.numbered(connection, content["charge"])
        content = charge.content() if charge else {}
    return bool(caller.name) and content.get("who") == caller.name


@routes.get("/ledger/verification", response_model=LedgerVerdict)
def verification(
    request: Request,
    caller: CurrentCaller,
    head: Annotated[
        str,
        Query(pattern="^([0-9a-f]{64})?$", description="A head noted earlier, to detect that entries were cut off."),
    ] = "",
) -> Described:
    verdict = _ledger(request).verify(head=head)
    note_work(_ledger(request), "verification", holds=verdict.holds, entries=verdict.entries)
    spent = {name: str(amount) for name, amount in verdict.spent.items() if _can_see(caller, name)}
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
def export(request: Request, caller: CurrentCaller) -> StreamingResponse:
    lines = export_lines(_ledger(request), dataset=caller.dataset)  # an owner of one data set sees its entries only

    def terminated_lines() -> Iterator[str]:
        for line in lines:
            yield f"{line}\n"

    name = f"{caller.dataset}.jsonl" if caller.dataset else "ledger.jsonl"  # only letters, digits and -
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(terminated_lines(), media_type="application/x-ndjson", headers=headers)


def _ledger(request: Request) -> Ledger:
    ledger: Ledger = request.app.state.datasets.ledger
    return ledger


def _can_see(caller: Caller, account: str) -> bool:
    """Return whether this owner can see an account: that of their data set, or of one of its collections."""
    return not caller.dataset or account.partition("/")[0] == caller.dataset
