"""Saved questions and dashboards. Reading them is free: only stored answers are shown, and no row is ever read."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Path, Query, Request
from pydantic import AfterValidator, ConfigDict, Field

from tidegate.answer.result import Answers, finish_sql
from tidegate.answer.run import plan_request
from tidegate.answer.spending import resolve_loss
from tidegate.answer.sql import SqlPlan
from tidegate.errors import NotAllowed, NotThere, PolicyError, RequestError, TidegateError, TooManyCells, Unsupported
from tidegate.ledger import Charge
from tidegate.ledger.entry import canonical, sha256
from tidegate.ledger.library import Item, Library
from tidegate.service.access.callers import Caller
from tidegate.service.access.permissions import OWNER
from tidegate.service.datasets import ServedDataset
from tidegate.service.models.library import (
    Dashboard,
    DashboardReply,
    Dashboards,
    QuestionReply,
    RemovedItem,
    SavedQuestion,
    SavedQuestions,
)
from tidegate.service.routes.answer_files import FILES, Kind, content_of, file_of
from tidegate.service.routes.answers import LOSSES, AnswerRequest, answer_url
from tidegate.service.routes.dependencies import CurrentCaller, Described, Form, Served, router

routes = router()
ItemId = Annotated[str, Path(pattern=r"^[0-9a-f]{20}$", examples=["0198f3c2a1b45d6e7f80"])]


def _check_title(title: str) -> str:
    """Refuse a name that starts or ends with a space, or has characters that cannot be seen."""
    if title != title.strip() or not title.isprintable():
        raise ValueError("A name has no spaces at its ends, no line breaks, and only characters that can be seen.")
    return title


Title = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_check_title)]
MOST_SHOWN = 20  # questions of a dashboard
LONGEST = 20_000  # characters of a stored request
UNSAVED = {"charts", "anyway"}  # parts of a request that do not belong to the question


class NewQuestion(Form):
    """A question to save: its name, and the request of a quote."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "Women by town",
                    "shared": True,
                    "request": {"sql": "SELECT town, COUNT(*) FROM people GROUP BY town", "epsilon": 0.1},
                }
            ]
        }
    )
    name: Title
    shared: bool = Field(False, description="Whether everybody who can query the data set sees it.")
    request: AnswerRequest


class QuestionChange(Form):
    """What changes of a saved question; what is left out stays."""

    name: Title | None = None
    shared: bool | None = None
    request: AnswerRequest | None = None


class NewDashboard(Form):
    """A dashboard: its name, and the ids of its questions in their order."""

    name: Title
    shared: bool = Field(False, description="Whether everybody who can query the data set sees it, with its questions.")
    questions: list[Annotated[str, Field(pattern=r"^[0-9a-f]{20}$")]] = Field([], max_length=MOST_SHOWN)


class DashboardChange(Form):
    """What changes of a dashboard; what is left out stays."""

    name: Title | None = None
    shared: bool | None = None
    questions: list[Annotated[str, Field(pattern=r"^[0-9a-f]{20}$")]] | None = Field(None, max_length=MOST_SHOWN)


@dataclass(frozen=True)
class Shelf:
    """The library as one user of a data set sees it."""

    library: Library
    served: ServedDataset
    caller: Caller

    @classmethod
    def of(cls, request: Request, served: ServedDataset, caller: Caller) -> Shelf:
        return cls(Library(request.app.state.datasets.ledger.store), served, caller)

    def find(self, kind: Any, item: str) -> Item:
        """Return an item that the user can see."""
        return self.library.find(self.served.name, kind, item, user=self.caller.name)

    def visible(self, kind: Any) -> list[Item]:
        return self.library.visible(self.served.name, kind, user=self.caller.name)

    def add(self, kind: Any, name: str, body: Any, *, shared: bool) -> Item:
        owner = self.caller.name
        return self.library.add(self.served.name, kind, owner=owner, name=name, body=canonical(body), shared=shared)

    def update(self, kind: Any, item: str, **changes: Any) -> Item:
        """Change an item of the user's own."""
        saved = self.find(kind, item)
        if saved.owner != self.caller.name:
            raise NotAllowed(f"Only {saved.owner} can change this {kind}.", "Save a copy under a name of your own.")
        return self.library.update(saved, **{name: value for name, value in changes.items() if value is not None})

    def remove(self, kind: Any, item: str) -> None:
        """Delete an item of the user's own; the role owner can delete every shared one."""
        saved = self.find(kind, item)
        if saved.owner != self.caller.name and self.caller.role != OWNER:
            raise NotAllowed(f"Only {saved.owner} or an owner of the data set can delete this {kind}.")
        self.library.remove(saved)

    def describe(self, item: Item) -> Described:
        """Return an item without its answers."""
        named = {"id": item.id, "name": item.name, "owner": item.owner, "shared": item.shared}
        mine = {"own": item.owner == self.caller.name, "made": item.made, "changed": item.changed}
        content = json.loads(item.body)
        return {**named, **mine, **({"request": content} if item.kind == "question" else {"questions": content})}


def _body_of(request: AnswerRequest, served: ServedDataset) -> Described:
    """Return the request to store. It must be valid under the current policy, and state one loss."""
    if sum(getattr(request, name) is not None for name in LOSSES) != 1:
        raise Unsupported("Specify exactly one of `rho`, `epsilon`, `error`, `share`, or `z`.")
    body = request.model_dump(exclude_defaults=True, exclude=UNSAVED, mode="json")
    if len(canonical(body)) > LONGEST:
        raise Unsupported(f"The question is longer than {LONGEST:,} characters.", "Save several shorter questions.")
    StoredQuestion.of(request, served)
    return body


@dataclass(frozen=True)
class StoredQuestion:
    """A question with its price, and its stored answers if there are any."""

    question: str  # as text
    answers: Answers | None
    price: str | None
    unit: str
    link: str | None

    @classmethod
    def of(cls, request: AnswerRequest, served: ServedDataset) -> StoredQuestion:
        """Look a question up in the ledger. No row is read, and nothing is charged."""
        session, policy = served.session, served.policy
        requested = request.question(served)
        queries = requested.queries if isinstance(requested, SqlPlan) else requested
        if isinstance(requested, SqlPlan) and not queries:
            answers = Answers((), Charge.nothing(session.account, policy), finish_sql(requested, ()))
            return cls("public numbers", answers, "0", session.account.unit, None)
        options = request.options()
        loss = resolve_loss(queries, policy, **{name: value for name, value in options.items() if name != "plan"})
        planned = plan_request(queries, policy, loss=loss, planning=request.plan)
        says, unit = "; ".join(query.says() for query in queries), session.account.unit
        link = answer_url(served.name, sha256(canonical(planned.identity())))
        receipt = session.ledger.asked_before(policy, question=planned.identity())
        if receipt is None:
            stated: dict[str, Any] = {loss.unit: loss.amount}
            preview = session.preview(queries, **stated, plan=request.plan)
            return cls(says, None, str(preview.cost), unit, link)
        answers = planned.read(receipt, receipt.stored)
        if isinstance(requested, SqlPlan) and not requested.plain:
            answers = replace(answers, tables=finish_sql(requested, answers))
        return cls(says, answers, "0", unit, link)

    def to_dict(self) -> Described:
        answer = content_of(self.answers) if self.answers else None
        return {"question": self.question, "price": self.price, "unit": self.unit, "link": self.link, "answer": answer}


def look_up(shelf: Shelf, item: Item) -> tuple[StoredQuestion | None, TidegateError | None]:
    """Return what the ledger has for a saved question, or why it cannot be requested under the current policy."""
    try:
        return StoredQuestion.of(AnswerRequest.model_validate(json.loads(item.body)), shelf.served), None
    except (RequestError, PolicyError, TooManyCells) as error:  # they follow from the policy, and no row was read
        return None, error


def describe_question(shelf: Shelf, item: Item) -> Described:
    """Return a saved question with its price and stored answer; `problem` if the current policy does not allow it."""
    stored, problem = look_up(shelf, item)
    empty = dict.fromkeys(("question", "price", "unit", "link", "answer"))
    about = stored.to_dict() if stored else empty
    return {**shelf.describe(item), **about, "problem": {"what": problem.what, "do": problem.do} if problem else None}


def dashboard_items(shelf: Shelf, dashboard: Item) -> list[Item | None]:
    """Return the questions of a dashboard; None for one that was deleted, or is no longer shared with the reader.

    A dashboard that is shared shows the questions of its owner, whether they are shared alone or not.
    """
    names: list[str] = json.loads(dashboard.body)
    items = shelf.library.find_all(shelf.served.name, names)
    readers = {shelf.caller.name, dashboard.owner}

    def is_shown(item: Item | None) -> bool:
        return item is not None and item.kind == "question" and (item.shared or item.owner in readers)

    return [items[name] if is_shown(items.get(name)) else None for name in names]


def _refuse_unknown(shelf: Shelf, names: list[str] | None) -> None:
    """Refuse questions that the user cannot see; new dashboards name only questions that exist."""
    if len(set(names or [])) < len(names or []):
        raise Unsupported("A question is twice in this dashboard.", "Name every question once.")
    for name in names or []:
        shelf.find("question", name)


@routes.get("/data/{name}/questions", response_model=SavedQuestions)
def saved_questions(request: Request, served: Served, caller: CurrentCaller) -> Described:
    shelf = Shelf.of(request, served, caller)
    return {"questions": [shelf.describe(item) for item in shelf.visible("question")]}


@routes.post("/data/{name}/questions", response_model=SavedQuestion, status_code=201)
def save_question(request: Request, served: Served, caller: CurrentCaller, body: NewQuestion) -> Described:
    shelf = Shelf.of(request, served, caller)
    return shelf.describe(shelf.add("question", body.name, _body_of(body.request, served), shared=body.shared))


@routes.get("/data/{name}/questions/{item}", response_model=QuestionReply, responses=FILES)
def saved_question(
    request: Request,
    served: Served,
    caller: CurrentCaller,
    item: ItemId,
    kind: Annotated[Kind, Query(alias="format", description="`json`, or the stored answer as a file.")] = "json",
) -> Any:
    shelf = Shelf.of(request, served, caller)
    saved = shelf.find("question", item)
    if kind == "json":
        return describe_question(shelf, saved)
    stored, problem = look_up(shelf, saved)
    if problem is not None:
        raise problem
    if stored is None or stored.answers is None:
        raise NotThere("This question has no stored answer yet.", "Ask it first; the price is in its JSON version.")
    return file_of(stored.answers, kind, "policy", f"{served.name}-{item}")


@routes.patch("/data/{name}/questions/{item}", response_model=SavedQuestion)
def change_question(
    request: Request, served: Served, caller: CurrentCaller, item: ItemId, body: QuestionChange
) -> Described:
    shelf = Shelf.of(request, served, caller)
    content = canonical(_body_of(body.request, served)) if body.request else None
    return shelf.describe(shelf.update("question", item, name=body.name, shared=body.shared, body=content))


@routes.delete("/data/{name}/questions/{item}", response_model=RemovedItem)
def delete_question(request: Request, served: Served, caller: CurrentCaller, item: ItemId) -> Described:
    Shelf.of(request, served, caller).remove("question", item)
    return {"removed": item}


@routes.get("/data/{name}/dashboards", response_model=Dashboards)
def dashboards(request: Request, served: Served, caller: CurrentCaller) -> Described:
    shelf = Shelf.of(request, served, caller)
    return {"dashboards": [shelf.describe(item) for item in shelf.visible("dashboard")]}


@routes.post("/data/{name}/dashboards", response_model=Dashboard, status_code=201)
def create_dashboard(request: Request, served: Served, caller: CurrentCaller, body: NewDashboard) -> Described:
    shelf = Shelf.of(request, served, caller)
    _refuse_unknown(shelf, body.questions)
    return shelf.describe(shelf.add("dashboard", body.name, body.questions, shared=body.shared))


@routes.get("/data/{name}/dashboards/{item}", response_model=DashboardReply)
def dashboard(request: Request, served: Served, caller: CurrentCaller, item: ItemId) -> Described:
    shelf = Shelf.of(request, served, caller)
    saved = shelf.find("dashboard", item)
    shown = [describe_question(shelf, part) if part else None for part in dashboard_items(shelf, saved)]
    return {**shelf.describe(saved), "items": shown}


@routes.patch("/data/{name}/dashboards/{item}", response_model=Dashboard)
def change_dashboard(
    request: Request, served: Served, caller: CurrentCaller, item: ItemId, body: DashboardChange
) -> Described:
    shelf = Shelf.of(request, served, caller)
    if body.questions is not None:
        _refuse_unknown(shelf, body.questions)
    content = None if body.questions is None else canonical(body.questions)
    return shelf.describe(shelf.update("dashboard", item, name=body.name, shared=body.shared, body=content))


@routes.delete("/data/{name}/dashboards/{item}", response_model=RemovedItem)
def delete_dashboard(request: Request, served: Served, caller: CurrentCaller, item: ItemId) -> Described:
    Shelf.of(request, served, caller).remove("dashboard", item)
    return {"removed": item}
