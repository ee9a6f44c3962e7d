"""Responses about queries: previews, quotes, answers, derivations, history."""

from __future__ import annotations

from typing import Any, TypeAlias

from pydantic import Field

from tidegate.service.models.base import (
    Amount,
    AmountByUnit,
    Charts,
    Codes,
    Free,
    Guaranteed,
    Hash,
    Moment,
    Reply,
    Unit,
    field,
    optional,
)

Row: TypeAlias = dict[str, Any]


class QueryView(Reply):
    """A query as JSON. Send it back as one of `questions`."""

    ask: str = field("The statistic.")
    column: str = optional("The column of the statistic.")
    by: list[str] = optional("The columns of the groups.")
    table: str = optional("Of linked tables: the rows.")
    where: Free = optional("The condition.")
    share: str = optional("The quantile.")
    on: list[str] = optional("The predictors of a regression.")
    method: str = optional("The method of a regression.")


class Prospect(Reply):
    """A probability now, after the answer, and by the answer alone."""

    now: float = field("With all answers so far.")
    after: float = field("With this answer as well.")
    alone: float = optional("With this answer alone.")
    ceiling: float = field("The limit.")


class Shift(Reply):
    """A probability before and after the charge."""

    before: float = field("Before the charge.")
    after: float = field("After the charge.")
    ceiling: float = field("The limit.")


class ExpectedAnswer(Reply):
    question: str = field("A description of the query.")
    query: QueryView = field("The query.")
    error: float | None = field("The largest error at the confidence; null if it depends on the data.")
    caution: str = field("Why the answer can be of little use; empty if nothing is wrong.")
    free: str = field("What follows from earlier answers at no cost; empty if nothing does.")
    price: Amount = field("The loss of this query.")
    event: Free = field("The noise, as the ledger records and prices it.")


class Budgeted(Reply):
    """A cost and the account that would pay it."""

    cost: Amount = field("What it costs, in the unit of the account.")
    spent: Amount = field("What is spent so far.")
    ceiling: Amount = field("The budget limit.")
    policy: Hash = field("The fingerprint of the policy.")
    left: Amount = field("What remains of the budget.")
    left_after: Amount = field("What would remain afterwards.")
    fits: bool = field("Whether the budget is enough.")
    unit: Unit = field("The unit of these amounts.")
    cost_by_unit: AmountByUnit = field("The cost in every unit.")
    spent_by_unit: AmountByUnit = field("The spent budget in every unit.")
    epsilon_at_delta: float = field("The spent budget afterwards as epsilon at delta = 1e-6, at most.")
    guarantee: Guaranteed = field("What the promise holds for.")
    identification: dict[str, Prospect] = field("The probability of identification, by protected attribute.")
    yes_no: Prospect = field("How often a yes/no question about one person can be answered correctly.")


class PreviewReply(Budgeted):
    """The cost and the expected error of a query. Nothing was charged."""

    expected: list[ExpectedAnswer] = field("The expected error of each query.")
    confidence: float = field("The confidence of the errors.")
    code: Codes = field("Code that asks the same.")


class StoredAnswer(Reply):
    at: Moment = field("When it was answered.")
    number: int = field("The number of the ledger entry.")
    entry: Hash = field("The hash of the ledger entry.")
    source: str = field("Whether the source has changed since.")


class QuoteReply(PreviewReply):
    """A preview with a signed quote that buys it."""

    price: Amount = field("What the answer costs, or cost when it was bought.")
    answered_before: StoredAnswer | None = field("The stored answer, which is free; null if there is none.")
    quote: str | None = field("The signed quote; null if the budget is not enough.")
    expires: Moment = field("When the quote expires.")
    link: str = field("The permanent address of the answer, once it is bought.")
    charts: Charts = optional("The charts, if they were requested.")


class GroupDifference(Reply):
    higher: Row = field("The group with the larger number.")
    lower: Row = field("The group with the smaller number.")
    difference: float = field("The noisy difference.")
    low: float = field("The lower end of its interval.")
    high: float = field("The upper end of its interval.")


class GroupComparison(Reply):
    """Which groups differ, for all pairs together."""

    says: str = field("The finding.")
    method: str = field("The method of the comparison.")
    confidence: float = field("The confidence for all pairs together.")
    pairs: int = field("The number of pairs.")
    differing: int = field("The number of pairs that differ.")
    differences: list[GroupDifference] = field("The largest differences.")


class AnswerPart(Reply):
    """The answer of one query."""

    question: str = field("A description of the query.")
    query: QueryView = field("The query.")
    statistic: str = field("The name of the number in each row.")
    rows: list[Row] = field("A row for each group: its labels, the number, the ends of its interval, the noisy number.")
    comparison: GroupComparison | None = field("Which groups differ; null if there are none to compare.")
    caution: str = field("Why the answer can be of little use; empty if nothing is wrong.")
    event: Free = field("The noise, as the ledger records and prices it.")
    result: Free = field("The noisy integers that the ledger records.")
    cells_from: int = optional("Of a page: the number of this query's cells on earlier pages.")


class Charged(Reply):
    """A charge and the account after it."""

    cost: Amount = field("What was charged: 0 if the query was answered before.")
    spent: Amount = field("What is spent after it.")
    left: Amount = field("What remains of the budget.")
    ceiling: Amount = field("The budget limit.")
    policy: Hash = field("The fingerprint of the policy.")
    unit: Unit = field("The unit of these amounts.")
    cost_by_unit: AmountByUnit = field("The cost in every unit.")
    spent_by_unit: AmountByUnit = field("The spent budget in every unit.")
    epsilon_at_delta: float = field("The spent budget as epsilon at delta = 1e-6, at most.")
    guarantee: Guaranteed = field("What the promise holds for.")
    identification: dict[str, Shift] = field("The probability of identification, by protected attribute.")
    yes_no: Shift = field("How often a yes/no question about one person can be answered correctly.")
    entry: str = field("The hash of the ledger entry of the charge; empty if nothing is charged for public numbers.")
    stored: Moment | None = field("When the stored answer was given; null for a new answer.")
    source: str = field("Whether the source has changed since a stored answer.")


class PagedAnswer(Reply):
    """The fields of a page, if the answer has more cells than one response."""

    cells: int = optional("The number of all cells.")
    first: int = optional("The number of cells on earlier pages.")
    next: str | None = optional("The cursor of the next page; null on the last one.")


class AnswerReply(AnswerPart, Charged, PagedAnswer):
    """The answer of a single query."""

    charts: Charts = optional("The charts, if they were requested.")


class SqlColumn(Reply):
    name: str = field("The name of the column.")
    type: str = field("Its type in Arrow.")


class SqlTable(Reply):
    """The table that an SQL query returns."""

    columns: list[SqlColumn] = field("The columns.")
    rows: list[list[Any]] = field("The cells of each row.")
    intervals: dict[str, list[list[Any]]] = field("The lower and the upper ends of noisy columns, by column.")
    notes: list[str] = field("What is worth knowing about the table.")


class AnswersReply(Charged, PagedAnswer):
    """The answers of several queries under one charge."""

    answers: list[AnswerPart] = field("The answer of each query.")
    tables: list[SqlTable] = optional("The tables of SQL queries.")
    charts: Charts = optional("The charts, if they were requested.")


class DerivedAnswer(Reply):
    """What follows from earlier answers at no cost."""

    question: str = field("A description of the query.")
    query: QueryView = field("The query.")
    values: Any = field("The numbers, in the order of the groups.")
    low: Any = field("The lower ends of their intervals.")
    high: Any = field("The upper ends of their intervals.")
    noisy: Any = field("The unbiased numbers.")
    error_95: float | None = field("The largest error, with 95% confidence.")
    from_: list[int] = Field(alias="from", description="The ledger entries of the earlier answers.")
    cost: Amount = field("The cost, which is 0.")
    rows: list[Row] = field("A row for each group.")
    says: str = field("A description of the result.")


class Derivation(Reply):
    question: str = field("A description of the query.")
    derived: DerivedAnswer | None = field("The numbers; null if they do not follow from earlier answers.")


class DerivationsReply(Reply):
    derivations: list[Derivation] = field("The result for each query.")
    policy: Hash = field("The fingerprint of the policy.")
    charts: Charts = optional("The charts, if they were requested.")


class RepeatedRequest(Reply):
    """The request that returns a stored answer at no cost."""

    questions: list[QueryView] = field("The queries.")
    epsilon: Amount = optional("The loss, if the account is in epsilon.")
    z: Amount = optional("The loss, if the account is in Z.")
    plan: str = optional("How several counts were measured.")


class HistoryItem(Reply):
    number: int = field("The number of the ledger entry.")
    at: Moment = field("When it was charged.")
    cost: Amount = field("What it cost.")
    says: str = field("A description of the entry.")
    unit: Unit = field("The unit of the cost.")
    who: str = field("The name of the user.")
    asked: str = field("A description of the query.")
    question: Free = field("The query, as the ledger identifies it.")
    event: Free = field("The noise, as the ledger records and prices it.")
    again: RepeatedRequest | None = field(
        "The request that returns the answer at no cost; null if the policy has changed."
    )
    link: str = field("The permanent address of the answer.")


class HistoryPage(Reply):
    questions: list[HistoryItem] = field("The queries.")
    next: str | None = field("The cursor of the next page; null at the end.")
