"""Previews, quotes, answers, derivations, history."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import Query as Parameter
from fastapi import Request, Response
from pydantic import ConfigDict, Field

from tidegate.accounting import FREE, Amount
from tidegate.answer.charts import Order, error_chart, page_chart
from tidegate.answer.limits import check_public, check_usefulness
from tidegate.answer.pages import PAGE, refuse_large, to_page
from tidegate.answer.query_json import query_from_dict
from tidegate.answer.repeat import asked_again, stored_answers
from tidegate.answer.request import Query, Statistic
from tidegate.answer.result import Answer, Answers
from tidegate.answer.run import plan_request
from tidegate.answer.spending import RequestedLoss, resolve_loss
from tidegate.answer.sql import SqlPlan
from tidegate.charts import Chart
from tidegate.errors import NotThere, StalePolicy, Unsupported
from tidegate.ledger.entry import CHARGED, canonical, sha256
from tidegate.ledger.explain import page
from tidegate.ledger.remarks import refuse_suspended
from tidegate.service.access.callers import Caller
from tidegate.service.access.permissions import API, OWNER
from tidegate.service.datasets import ServedDataset
from tidegate.service.models.answers import (
    AnswerReply,
    AnswersReply,
    DerivationsReply,
    HistoryPage,
    PreviewReply,
    QuoteReply,
)
from tidegate.service.pagination import Cursor, Limit, first_page, link_next, position_number, read_cursor
from tidegate.service.quotes import LONGEST, Quote, quote_secret, read_quote
from tidegate.service.response_cache import as_bytes, json_response, response_cache
from tidegate.service.routes.dependencies import (
    Column,
    CurrentCaller,
    Described,
    EntryNumber,
    Form,
    Key,
    Number,
    Served,
    caller_key,
    router,
    with_charts,
)
from tidegate.service.settings import service_url
from tidegate.web.snippets.answer import query_code

routes = router()
MOST_QUESTIONS = 50
HISTORY = ("history", "history-newest")  # the lists that cursors are for
LOSSES = ("rho", "epsilon", "error", "share", "z")  # a request states one of them
CellLimit = Annotated[int, Parameter(ge=1, le=PAGE, description="The most cells to return.")]
CellCursor = Annotated[
    str,
    Parameter(
        max_length=80, pattern=r"^([0-9a-f]{64}\.\d{1,8})?$", description="`next` of the previous page; free of charge."
    ),
]
LONG_NUMBER = re.compile(r"\d[eE][+-]?\d{3,}|\d{60,}")  # the time to parse a number grows with its digits


class Question(Form):
    """One query as JSON: ``{"ask": "mean", "column": "age", "by": ["sex"]}``."""

    ask: Statistic
    column: Column | None = None
    by: list[Column] = Field([], max_length=8)
    table: Column | None = Field(None, description="Of linked tables: the rows, for example visits.")
    where: dict[str, Any] | None = Field(None, description="A condition, for example {'compare': ['age', '>=', 30]}.")
    share: Number | None = Field(None, description="The quantile, for example 0.9.")
    on: list[Column] = Field([], max_length=5, description="The predictors of a regression.")
    method: Literal["k-norm", "functional"] | None = None


class QueryList(Form):
    """Queries as JSON or SQL."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"sql": "SELECT COUNT(*) FROM people WHERE sex = 'female'"}]}
    )
    sql: str | None = Field(None, min_length=1, max_length=4000)
    questions: list[Question] = Field([], max_length=MOST_QUESTIONS)
    charts: bool = Field(False, description="Also return the charts of the result, as SVG.")

    def limited_queries(self, request: Request, served: ServedDataset, most: int | None = None) -> tuple[Query, ...]:
        """Return the queries, if their answers have at most `most` cells, or as many as the service allows."""
        queries = self.queries(served)
        refuse_large(queries, served.policy, most or request.app.state.settings.most_cells)
        return queries

    def queries(self, served: ServedDataset) -> tuple[Query, ...]:
        """Return the queries."""
        question = self.question(served)
        return question.queries if isinstance(question, SqlPlan) else question

    def question(self, served: ServedDataset) -> SqlPlan | tuple[Query, ...]:
        """Return the queries, or the plan of SQL, which is checked before it is parsed."""
        self._refuse_surrogates()
        if (self.sql is None) == (not self.questions):
            raise Unsupported(
                "The request must contain either `sql` or `questions`.",
                'Send, for example, {"sql": "SELECT COUNT(*) FROM people"}.',
            )
        if self.sql is None:
            queries = [query_from_dict(question.model_dump()) for question in self.questions]
            return tuple(query.resolve(served.policy) for query in queries)
        if LONG_NUMBER.search(self.sql):
            raise Unsupported("The SQL contains a number with too many digits.", "Write it with fewer digits.")
        plan = served.planned(self.sql)
        if len(plan.queries) > MOST_QUESTIONS:
            raise Unsupported(
                f"The request contains {len(plan.queries)} queries; at most {MOST_QUESTIONS} are allowed.",
                "Split it into several requests.",
            )
        return plan

    def _refuse_surrogates(self) -> None:
        """Refuse lone surrogates: JSON can carry them, but they cannot be stored or sent back."""
        try:
            json.dumps(self.model_dump(), ensure_ascii=False).encode()
            return
        except UnicodeEncodeError:
            pass
        raise Unsupported("The request contains incomplete characters (lone surrogates).", "Send text in UTF-8.")

    def __str__(self) -> str:
        """Return the whole content as ASCII JSON."""
        return json.dumps(self.model_dump())


class AnswerRequest(QueryList):
    """Queries as JSON or SQL, and exactly one of rho, epsilon, error, share, or z."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"sql": "SELECT sex, COUNT(*) FROM people GROUP BY sex", "epsilon": 0.1}]}
    )
    rho: Number | None = Field(None, description="The largest probability of identification by this answer alone.")
    epsilon: Number | None = Field(None, description="The privacy loss to spend.")
    error: Number | None = Field(None, description="The largest error of the answer, at the given confidence.")
    share: Number | None = Field(None, description="The part of the total budget to spend, for example 0.1.")
    z: Number | None = Field(None, description="The loss to spend under the average guarantee.")
    confidence: float = Field(0.95, gt=0, lt=1)
    calibration: Literal["equation-15", "tight"] = "equation-15"
    window: int = Field(1, ge=1, le=1000)
    plan: Literal["one-by-one", "auto"] = Field(
        "one-by-one", description="auto: answer several counts from one measurement, if that has less error."
    )

    anyway: bool = Field(
        False, description="Answer even if the error is at least half of the range, so that nothing can be learned."
    )

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments for a session."""
        names = (*LOSSES, "confidence", "calibration", "window", "plan")
        return {name: getattr(self, name) for name in names}


class Purchase(AnswerRequest):
    """Queries with exactly one of rho, epsilon, error, share, or z; or a quote, which contains all of that."""

    quote: str | None = Field(
        None, max_length=LONGEST, description="From POST /v1/data/{name}/quotes; send no queries with it."
    )
    key: str = Field(
        "", max_length=100, pattern=r"^[\x21-\x7e]*$", description="The same as the Idempotency-Key header."
    )

    def refuse_both(self) -> None:
        """Raise Unsupported if the request contains both a quote and queries: it would be unclear which one to run."""
        if self.sql is not None or self.questions or set(LOSSES) & self.model_fields_set:
            raise Unsupported(
                "Send either a quote or queries.", "Send the quote alone: it contains its queries and its price."
            )


class PreviewRequest(AnswerRequest):
    fit: bool = Field(
        False, description="Preview the accuracy that the whole remaining budget allows, instead of a given one."
    )


@routes.post("/data/{name}/previews", response_model=PreviewReply)
def preview(request: Request, served: Served, caller: CurrentCaller, body: PreviewRequest) -> Response:
    address = service_url(request)
    share = "" if caller.share is None else f"{caller.name} {caller.share} "

    def make() -> Described:
        queries, options = body.limited_queries(request, served), body.options()
        question = body.question(served)
        about: dict[str, Any] = {"dataset": served.name, "sql": body.sql or "", "fit": body.fit}
        code = query_code(queries, options, address=address, **about)
        if body.fit:
            offer = served.session.fit(question, confidence=body.confidence).to_dict()
        else:
            offer = served.session.preview(question, **options).to_dict()
        return {**_within_share(offer, served, caller), "code": code}

    return response_cache(served).response(f"preview {share}{address} {body}", make)


def _within_share(offer: Described, served: ServedDataset, caller: Caller) -> Described:
    """Return an offer with what remains for the caller, who may have a budget share."""
    if caller.share is None:
        return offer
    spent, cost = served.session.ledger.spent_by(served.name, caller.name), Amount.parse(offer["cost"])
    left = min(Amount.parse(offer["left"]), caller.share.minus(spent))
    rest = {"left": str(left), "left_after": str(left.minus(cost)), "fits": offer["fits"] and cost <= left}
    return {**offer, **rest}


@routes.post("/data/{name}/quotes", response_model=QuoteReply)
def quote(request: Request, served: Served, caller: CurrentCaller, body: AnswerRequest) -> Response:
    address, policy = service_url(request), served.policy
    queries, options = body.limited_queries(request, served), body.options()
    if not queries or not body.anyway:
        check_public(queries, policy)
    loss = resolve_loss(queries, policy, **{name: value for name, value in options.items() if name != "plan"})
    planned = plan_request(queries, policy, loss=loss, planning=body.plan)
    quoted = Quote.of(planned, loss=loss, planning=body.plan, sql=body.sql or "")
    preview = served.session.preview(queries, **_stated(loss), confidence=body.confidence, plan=body.plan)
    offer = preview.to_dict()
    receipt = served.session.ledger.asked_before(policy, question=planned.identity())
    if receipt is None and not body.anyway and planned.strategy is None:
        check_usefulness(queries, policy, planned.events)
    offer |= {"price": str(preview.cost), "answered_before": None}  # in the account's unit
    if receipt is not None:
        offer |= {"cost": "0", "left_after": offer["left"], "fits": True}
        offer["answered_before"] = {"at": receipt.entry.at, "number": receipt.entry.number, "entry": receipt.entry.hash}
        offer["answered_before"]["source"] = receipt.source
        offer["identification"] = {
            name: {**risk, "after": risk["now"], "alone": 0.0} for name, risk in offer["identification"].items()
        }
        offer["yes_no"] |= {"after": offer["yes_no"]["now"], "alone": 0.5}
        offer |= preview.account.in_all_units(FREE, after=preview.account.totals)
    offer = _within_share(offer, served, caller)
    offer["quote"] = quoted.sign(quote_secret(request.app.state.guard.callers.secret())) if offer["fits"] else None
    offer["expires"] = quoted.expires_at
    offer["link"] = answer_url(served.name, sha256(canonical(planned.identity())))
    offer["code"] = query_code(queries, options, address=address, dataset=served.name, sql=body.sql or "", fit=False)
    if body.charts:
        chart = error_chart(preview)
        offer = with_charts(offer, {"error": chart} if chart else {})
    return json_response(as_bytes(offer))


@routes.post("/data/{name}/answers", response_model=AnswerReply | AnswersReply)
def answer(
    request: Request,
    served: Served,
    caller: CurrentCaller,
    body: Purchase,
    key: Key = "",
    limit: CellLimit = PAGE,
    cursor: CellCursor = "",
) -> Response:
    if key and body.key and key != body.key:
        raise Unsupported("The header Idempotency-Key and the field `key` differ.", "Send only one of them.")
    key = key or body.key

    def make() -> Described:
        question: Any
        question, options = (
            _read_purchase(request, served, body) if body.quote else (body.question(served), body.options())
        )
        queries = question.queries if isinstance(question, SqlPlan) else question
        refuse_large(queries, served.policy, request.app.state.settings.most_cells)
        first = _first_cell(served, queries, options, cursor) if cursor else 0
        options["anyway"] = body.anyway or bool(body.quote)  # a quote states that an answer would be useless
        if caller.role != OWNER:
            refuse_suspended(served.session.ledger.store, served.name)
        charge_to: dict[str, Any] = {"key": caller_key(caller, key), "user": caller.name, "budget_share": caller.share}
        if isinstance(question, tuple) and len(question) == 1:
            question = question[0]  # a single query has its own response format
        content = _page_of(served.session.answer(question, **options, **charge_to), first, limit)
        if "next" in content:  # one of several pages, without charts: they would show a part
            return {**content, "charts": {}} if body.charts else content
        return with_charts(content, answer_charts(content.get("answers", [content]))) if body.charts else content

    if key or body.quote:  # a key is recorded and a quote is checked, even if the query was answered before
        return json_response(as_bytes(make()))
    return response_cache(served).response(f"answer {limit} {cursor} {body}", make, charges=True)


def _first_cell(served: ServedDataset, queries: tuple[Query, ...], options: Mapping[str, Any], cursor: str) -> int:
    """Return the first cell of a page.

    Guarantee:
        The request has the stored answer whose page is requested, so that a later page is never charged.
    """
    loss = resolve_loss(queries, served.policy, **{name: value for name, value in options.items() if name != "plan"})
    planned = plan_request(queries, served.policy, loss=loss, planning=options["plan"])
    receipt = served.session.ledger.asked_before(served.policy, question=planned.identity())
    return _cell_after(cursor, receipt.entry.hash if receipt else "")


def _cell_after(cursor: str, entry: str) -> int:
    """Return the first cell of the page that a cursor names; refuse a cursor of another entry."""
    named, _, first = cursor.partition(".")
    if named != entry:
        raise StalePolicy(
            "These pages belong to another request, or the policy has changed since. Nothing was charged.",
            "Send the request without `cursor` and start with its first page.",
        )
    return int(first)


def _page_of(result: Answer | Answers, first: int, limit: int) -> Described:
    """Return a page of an answer with the cursor of the next one, or the whole answer if it fits."""
    content = to_page(result, first, limit)
    if content.get("next"):
        content["next"] = f"{content['entry']}.{content['next']}"
    return content


def _read_purchase(
    request: Request, served: ServedDataset, body: Purchase
) -> tuple[SqlPlan | tuple[Query, ...], dict[str, Any]]:
    """Return the queries (or the plan of SQL) and the loss of a quote, checked against the current policy."""
    body.refuse_both()
    quoted = read_quote(body.quote or "", quote_secret(request.app.state.guard.callers.secret()))
    quoted.refuse_stale(served.policy)
    question = served.planned(quoted.sql) if quoted.sql else quoted.queries
    return question, {**_stated(quoted.loss), "plan": quoted.planning}


def _stated(loss: RequestedLoss) -> dict[str, Any]:
    """Return a loss as the argument of a session."""
    return {loss.unit: loss.amount}


@routes.post("/data/{name}/derivations", response_model=DerivationsReply)
def derive(request: Request, served: Served, body: QueryList) -> Response:
    def make() -> Described:
        queries = body.limited_queries(request, served, PAGE)  # a derivation is not sent in pages
        derivations: list[Described] = [
            {"question": query.says(), "derived": _derive(served, query)} for query in queries
        ]
        parts = [{"statistic": "value", **(derivation["derived"] or {"rows": []})} for derivation in derivations]
        content: Described = {"derivations": derivations, "policy": served.policy.fingerprint}
        return with_charts(content, answer_charts(parts)) if body.charts else content

    return response_cache(served).response(f"derive {body}", make)


def answer_url(dataset: str, question: str) -> str:
    """Return the permanent address of a stored answer, which is named by the hash of its question."""
    return f"{API}/data/{dataset}/stored-answers/{question}"


def answer_charts(parts: Sequence[Mapping[str, Any]], order: Order = "policy") -> dict[str, Chart]:
    """Return the chart of the first answer that has several numbers."""
    grouped = next((part for part in parts if len(part["rows"]) > 1), None)
    return {"answer": page_chart(grouped, order=order)} if grouped else {}


def _derive(served: ServedDataset, query: Query) -> Described | None:
    derived = served.session.derive(query)
    return {**derived.to_dict(), "rows": derived.rows(), "says": str(derived)} if derived else None


@routes.get("/data/{name}/answers/{number}", response_model=AnswerReply | AnswersReply)
def stored_answer(
    served: Served, caller: CurrentCaller, number: EntryNumber, limit: CellLimit = PAGE, cursor: CellCursor = ""
) -> Described:
    mine = None if caller.role == OWNER else caller.name
    ledger = served.session.ledger
    listed = page(ledger, dataset=served.name, kind=CHARGED, user=mine, after=number - 1, limit=1)
    entry = next((entry for entry, _ in listed if entry.number == number), None)
    again = asked_again(entry.content(), served.policy) if entry else None
    receipt = ledger.asked_before(served.policy, question=entry.content()["question"]) if entry and again else None
    if again is None or receipt is None or receipt.stored is None:
        raise NotThere(
            "There is no stored answer of yours under this number and the current policy.",
            "See GET /v1/data/{name}/history.",
        )
    answers = stored_answers(receipt, again, served.policy)
    first = _cell_after(cursor, receipt.entry.hash) if cursor else 0
    return _page_of(answers[0] if len(again.queries) == 1 else answers, first, limit)


@routes.get("/data/{name}/history", response_model=HistoryPage)
def history(
    request: Request,
    response: Response,
    served: Served,
    caller: CurrentCaller,
    newest: Annotated[bool, Parameter(description="Return the latest queries first.")] = False,
    cursor: Cursor = "",
    limit: Limit = 100,
) -> Described:
    after = read_cursor(HISTORY[newest], cursor, position_number, 0)
    content = history_after(served, caller, after, limit, newest=newest)
    content["next"] = link_next(request, response, content["next"])
    return content


def history_after(served: ServedDataset, caller: Caller, after: int, limit: int, *, newest: bool) -> Described:
    """Return a page of the charged queries of a caller, or of all callers for an owner."""
    mine = None if caller.role == OWNER else caller.name
    chosen: dict[str, Any] = {"dataset": served.name, "kind": CHARGED, "user": mine, "newest": newest}
    items = []
    read = page(served.session.ledger, **chosen, after=after, limit=limit + 1)
    shown, cursor = first_page(read, limit, lambda item: item[0].number, HISTORY[newest])
    for entry, says in shown:
        body = entry.content()
        item = {
            "number": entry.number,
            "at": entry.at,
            "cost": entry.amount,
            "says": says,
            "unit": body.get("unit", "epsilon"),
        }
        item |= {"who": body["who"], "asked": body["says"], "question": body["question"], "event": body["event"]}
        again = asked_again(body, served.policy)  # the request that returns this answer at no cost
        link = answer_url(served.name, entry.question)
        items.append({**item, "again": again.to_dict() if again else None, "link": link})
    return {"questions": items, "next": cursor}
