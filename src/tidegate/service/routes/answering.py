"""previews, answers, history."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import ConfigDict, Field

from tidegate.answer.request import Query
from tidegate.answer.written import query_from_dict
from tidegate.errors import Unsupported
from tidegate.ledger.entry import CHARGED
from tidegate.ledger.paging import page
from tidegate.service.access.table import OWNER
from tidegate.service.holdings import Holding
from tidegate.service.routes.common import (
    After,
    Asking,
    Column,
    Described,
    Form,
    Held,
    Key,
    Limit,
    Number,
    own_key,
    paged,
    router,
)

routes = router()
MOST_QUESTIONS = 50
LONG_NUMBER = re.compile(r"\d[eE][+-]?\d{3,}|\d{60,}")  # how many digits it has is how long it takes to read


class Question(Form):
    """One question as a value: ``{"ask": "mean", "column": "age", "by": ["sex"]}``."""

    ask: Literal["count", "sum", "mean", "variance", "std", "quantile", "min", "max", "histogram", "regression"]
    column: Column | None = None
    by: list[Column] = Field([], max_length=8)
    where: dict[str, Any] | None = Field(None, description="For example {'compare': ['age', '>=', 30]}.")
    share: Number | None = Field(None, description="Of a quantile: 0.9.")
    on: list[Column] = Field([], max_length=5, description="Of a regression: the columns on the right.")
    method: Literal["k-norm", "functional"] | None = None


class Asked(Form):
    """Questions, as values or as SQL, and exactly one of rho, epsilon and error."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"sql": "SELECT sex, COUNT(*) FROM people GROUP BY sex", "epsilon": 0.1}]}
    )
    sql: str | None = Field(None, min_length=1, max_length=4000)
    questions: list[Question] = Field([], max_length=MOST_QUESTIONS)
    rho: Number | None = Field(None, description="How likely somebody may be identified by this answer alone.")
    epsilon: Number | None = Field(None, description="The loss to spend.")
    error: Number | None = Field(None, description="How far the answer may be off.")
    confidence: float = Field(0.95, gt=0, lt=1)
    calibration: Literal["equation-15", "tight"] = "equation-15"
    window: int = Field(1, ge=1, le=1000)

    def queries(self, held: Holding) -> tuple[Query, ...]:
        """What is asked; SQL is checked before it is parsed."""
        if (self.sql is None) == (not self.questions):
            raise Unsupported("ask either sql or questions.", 'For example {"sql": "SELECT COUNT(*) FROM people"}.')
        if self.sql is None:
            return tuple(query_from_dict(one.model_dump()) for one in self.questions)
        if LONG_NUMBER.search(self.sql):
            raise Unsupported("a number in this SQL is longer than is read.", "Write it with fewer digits.")
        found = held.parsed(self.sql)
        if len(found) > MOST_QUESTIONS:
            raise Unsupported(f"at most {MOST_QUESTIONS} questions are asked at once.", "Ask in parts.")
        return found

    def wanted(self) -> dict[str, Any]:
        names = ("rho", "epsilon", "error", "confidence", "calibration", "window")
        return {name: getattr(self, name) for name in names}


class Previewed(Asked):
    fit: bool = Field(False, description="How accurate it can be with all that is left, instead of a wish.")


@routes.post("/data/{name}/previews")
def preview(held: Held, asked: Previewed) -> Described:
    queries = asked.queries(held)
    if asked.fit:
        return held.session.fit(queries, confidence=asked.confidence).to_dict()
    return held.session.preview(queries, **asked.wanted()).to_dict()


@routes.post("/data/{name}/answers")
def answer(held: Held, caller: Asking, asked: Asked, key: Key = "") -> Described:
    who: dict[str, Any] = {"key": own_key(caller, key), "who": caller.name, "share": caller.share}
    found: Described = held.session.answer(asked.queries(held), **asked.wanted(), **who).to_dict()
    return found


@routes.get("/data/{name}/history")
def history(held: Held, caller: Asking, after: After = 0, limit: Limit = 100) -> Described:
    mine = None if caller.role == OWNER else caller.name
    found = page(held.session.ledger, dataset=held.name, kind=CHARGED, who=mine, after=after, limit=limit)
    items = []
    for entry, says in found:
        body = entry.content()
        told = {"who": body["who"], "asked": body["says"], "question": body["question"], "event": body["event"]}
        items.append({"number": entry.number, "at": entry.at, "cost": entry.amount, "says": says, **told})
    return paged("questions", items, limit, items[-1]["number"] if items else None)
