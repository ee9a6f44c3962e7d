"""Query: a query by form or SQL, its cost, the history of answers; and stored answers by their permanent address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from tidegate.answer.charts import Order, labels_of, ordered_rows, page_chart
from tidegate.answer.repeat import asked_again
from tidegate.answer.result import Answer, Answers
from tidegate.errors import PolicyError, RequestError
from tidegate.policy import Category, Moment, Numeric, Policy, Text
from tidegate.service.access.callers import Caller
from tidegate.service.datasets import ServedDataset
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.answer_files import Name, find_answers
from tidegate.service.routes.answers import AnswerRequest, answer_url, history_after
from tidegate.service.routes.datasets import describe_data
from tidegate.service.routes.dependencies import CurrentCaller, Served, unversioned_router
from tidegate.service.routes.ledger import can_prove
from tidegate.service.routes.library import Shelf
from tidegate.service.settings import service_url
from tidegate.web.snippets.answer import COMMAND, PYTHON, connection_code
from tidegate.web.snippets.sql import sql_of

routes = unversioned_router()
LATEST = 20
ORDERS = {"policy": "the policy", "label": "the label", "largest": "largest first", "smallest": "smallest first"}
ROWS = 100  # of a page of a table
MANY = 200  # cells; above, the table is paged and the download comes first


@routes.get("/console/data/{name}/ask", **PAGE)
def ask_page(request: Request, served: Served, caller: CurrentCaller) -> Response:
    description = describe_data(served, caller)
    earlier = (
        history_after(served, caller, 0, LATEST, newest=True)
        if description["account"]
        else {"questions": [], "next": None}
    )
    json_urls = (f"/v1/data/{served.name}", f"/v1/data/{served.name}/history?newest=true&limit={LATEST}")
    code = {
        PYTHON: connection_code(service_url(request), served.name),
        COMMAND: f"tidegate check {served.name}.toml",
    }
    view = {**description, "columns": columns_of(served.policy), "history": earlier, "codes": code}
    view["can_prove"] = can_prove(served.session.ledger)
    view["saved"] = _request_of(request, served, caller)
    return show(
        "ask", request, {**view, "view": view, "orders": ORDERS}, here="ask", json_urls=json_urls, dataset=served.name
    )


def _request_of(request: Request, served: ServedDataset, caller: Caller) -> dict[str, Any] | None:
    """Return the saved question or the stored answer that the URL names, with its SQL for what the form cannot show."""
    saved, answer = (request.query_params.get(name, "") for name in ("saved", "answer"))
    if saved:
        shelf = Shelf.of(request, served, caller)
        named = shelf.describe(shelf.find("question", saved))
    elif answer:
        receipt = served.session.ledger.find_answer(served.name, answer)
        again = asked_again(receipt.entry.content(), served.policy) if receipt else None
        named = {"name": "", "request": again.to_dict()} if again else {}
    if not (saved or answer) or not named:
        return None
    body = AnswerRequest.model_validate(named["request"])
    if body.sql:
        return {**named, "sql": body.sql}
    try:
        texts = [sql_of(query, served.name) for query in body.queries(served)]
    except (RequestError, PolicyError):  # under another policy: the page shows why when it requests the price
        texts = [None]
    return {**named, "sql": "; ".join(text for text in texts if text) if all(texts) else None}


@routes.get("/console/data/{name}/stored-answers/{answer}", **PAGE)
def answer_page(
    request: Request,
    served: Served,
    answer: Name,
    order: Order = "policy",
    page: Annotated[int, Query(ge=1, le=10**6)] = 1,
) -> Response:
    answers = find_answers(served, answer)
    url = answer_url(served.name, answer)
    view = {**answers_view(answers, order=order, page=page), "link": url, "order": order, "orders": ORDERS}
    view |= {"charge": answers.charge, "says": "; ".join(part.query.says() for part in answers)}
    return show("answer", request, view, here="ask", json_urls=(url,), dataset=served.name)


def answers_view(
    answers: Answers, *, order: Order = "policy", page: int = 1, rows: int = ROWS, weight: int = 200_000
) -> dict[str, Any]:
    """Return answers for a template: each with its sentence or chart, and one page of its table.

    Args:
        weight: The most characters of all charts. Beyond it, a chart is left to its own page.
    """
    parts: list[dict[str, Any]] = []
    for answer in answers:
        part = _part(answer, order=order, page=page, rows=rows)
        weight -= len(part["chart"].__html__()) if part["chart"] else 0
        parts.append(part if weight >= 0 else {**part, "chart": None, "heavy": True})
    tables = [_cut(table.rows(), [*table.rows()[:1]], page, rows) for table in answers.tables]
    pages = max([part["table"]["pages"] for part in parts] + [table["pages"] for table in tables], default=1)
    return {"parts": parts, "tables": tables, "notes": answers.notes, "page": min(page, pages), "pages": pages}


def _part(answer: Answer, *, order: Order, page: int, rows: int) -> dict[str, Any]:
    content = answer.to_dict()
    cells, statistic = content["rows"], content["statistic"]
    shown = ordered_rows(cells, statistic, order) if cells else []
    return {
        "says": content["question"],
        "statistic": statistic,
        "caution": content["caution"],
        "only": cells[0] if len(cells) == 1 and not labels_of(cells, statistic) else None,
        "count": len(cells),
        "is_large": len(cells) > MANY,
        "chart": page_chart(content, order=order) if len(cells) > 1 else None,
        "heavy": False,
        "table": _cut(shown, cells[:1], page, rows if len(cells) > min(MANY, rows) else MANY),
    }


def _cut(rows: Sequence[Mapping[str, Any]], first: Sequence[Mapping[str, Any]], page: int, size: int) -> dict[str, Any]:
    """Return one page of a table."""
    pages = max(1, -(-len(rows) // size))
    start = (min(page, pages) - 1) * size
    columns = list(first[0]) if first else []
    cells = [[row[name] for name in columns] for row in rows[start : start + size]]
    return {"columns": columns, "rows": cells, "start": start + 1, "count": len(rows), "pages": pages}


def columns_of(policy: Policy) -> list[dict[str, Any]]:
    """Return the columns for the query form: ranges of numbers, dates and times, values of categories, buckets of text."""
    columns: list[dict[str, Any]] = []
    for name, attribute in policy.attributes.items():
        if isinstance(attribute, Moment):
            cells = {"low": 0, "middle": attribute.size // 2, "high": attribute.size - 1}
            ends = {end: attribute.label(code).isoformat() for end, code in cells.items()}
            columns.append({"name": name, "kind": attribute.kind, **ends, "says": attribute.describe()})
        elif isinstance(attribute, Numeric):
            ends = {"low": float(attribute.low), "high": float(attribute.high), "step": float(attribute.width)}
            columns.append({"name": name, "kind": "number", **ends})
        elif isinstance(attribute, Category):
            columns.append({"name": name, "kind": "category", "values": list(attribute.values)})
        elif isinstance(attribute, Text) and attribute.countable:
            columns.append({"name": name, "kind": "text", "says": attribute.describe()})
    return columns
