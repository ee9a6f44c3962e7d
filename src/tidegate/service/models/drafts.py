"""Responses about policies and drafts of new data sets."""

from __future__ import annotations

from typing import Any, Literal

from tidegate.service.models.base import (
    Amount,
    Failure,
    Finding,
    Free,
    Guaranteed,
    Hash,
    Moment,
    Reply,
    Unit,
    field,
    optional,
)


class DiffLine(Reply):
    kind: Literal["added", "removed", "same", "gap"] = field("What happened to the line.")
    text: str = field("The line.")


class PolicyVersion(Reply):
    number: int = field("The number of the version.")
    entry: int = field("The number of its ledger entry.")
    at: Moment = field("When it was recorded.")
    fingerprint: Hash = field("Its fingerprint.")
    limit: str = field("The budget limit under it.")
    says: str = field("A description of the entry.")
    changes: list[str] = field("What it changed.")
    diff: list[DiffLine] = field("The lines that differ from the version before.")


class PolicyView(Reply):
    name: str = field("The data set.")
    fingerprint: Hash = field("The fingerprint of the policy.")
    toml: str = field("The policy, without the locations of tables, ledgers and reports.")
    may_change: bool = field("Whether it can be changed here.")
    versions: list[PolicyVersion] = field("All versions in the ledger, the latest first.")


class AccountAmounts(Reply):
    spent: Amount = field("The privacy loss of all charges.")
    left: Amount = field("What remains of the budget.")
    ceiling: Amount = field("The budget limit.")
    unit: Unit = field("The unit of these amounts.")


class AccountChange(Reply):
    now: AccountAmounts = field("Under the present policy.")
    after: AccountAmounts = field("Under the changed policy.")


class PolicyPreview(Reply):
    """What a changed policy means. Nothing was saved."""

    changes: list[str] = field("What it changes.")
    same: bool = field("Whether it is the present policy.")
    diff: list[DiffLine] = field("The lines that differ.")
    refused: Failure | None = field("Why it would be refused; null if it would not.")
    account: AccountChange | None = field("The account before and after; null if it has none.")
    notes: list[str] = field("What is worth knowing before it is saved.")
    findings: list[Finding] = field("What the changed policy says, part by part.")


class UnlistedValue(Reply):
    value: Any = field("A value that the policy does not list.")
    rows: int = field("The number of rows with it.")
    nearest: str | None = field("The most similar listed value; null if there is none.")


class InspectedColumn(Reply):
    column: str = field("The column.")
    type: str = field("Its type.")
    missing: int = field("The number of rows without a value.")
    distinct: int = field("The number of different values.")
    outside: dict[str, int] = field("The number of rows outside the declared values, by reason.")
    unlisted: list[UnlistedValue] = field("The most frequent values that the policy does not list.")
    absent: list[Any] = field("Listed values that no row has.")
    problems: list[str] = field("What would make answers wrong.")


class DataInspection(Reply):
    """The data compared with the policy: exact numbers, for the data holder only."""

    warning: str = field("That the numbers are exact, and whom they are for.")
    rows: int = field("The number of rows.")
    declared: int | None = field("The number of rows or persons in the policy; null if it has none.")
    persons: Free | None = field("The persons of the table; null if the unit is a row.")
    malformed: Free | None = field("Lines and values of a CSV file that cannot be read; null for other sources.")
    columns: list[InspectedColumn] = field("The declared columns.")
    problems: list[str] = field("What would make answers wrong.")
    skipped: list[str] = field("Columns that are not complete yet.")


class DraftSummary(Reply):
    id: str = field("The id of the draft.")
    name: str = field("The name of the data set.")
    owner: str = field("Who started the draft.")
    made: Moment = field("When it was started.")
    changed: Moment = field("When it was changed.")
    source: str | None = field("The name of its table; null if none was chosen.")
    step: str = field("The first step with a problem.")
    published: str | None = field("The data set that it became; null if it is not published.")


class DraftList(Reply):
    drafts: list[DraftSummary] = field("The drafts.")
    may_add: bool = field("Whether the service has a folder for new data sets.")
    next: str | None = field("The cursor of the next page; null at the end.")


class DraftStep(Reply):
    step: str = field("The step.")
    problems: dict[str, str] = field("Its problems, by field.")


class PromiseReading(Reply):
    unit: Unit = field("The unit of the budget.")
    budget: Amount = field("The budget.")
    yes_no: float = field("How often a yes/no question about one person can be answered correctly.")
    is_weak: bool = field("Whether that is a weak protection.")


class PromiseTarget(Reply):
    column: str = field("The protected column.")
    values: int | None = field("The number of its values.")
    within: str = field("How near a guess counts as right.")
    grid: str = field("The steps of its values.")
    random_guess: float = field("The probability that a random guess is right.")
    one_in: str = field("The size of the crowd.")


class DraftPromise(Reply):
    says: str = field("The promise.")
    readings: dict[Guaranteed, PromiseReading] = field("The promise under both guarantees.")
    targets: list[PromiseTarget] = field("The protected columns.")
    warnings: list[Any] = field("What needs attention.")


class DraftView(Reply):
    id: str = field("The id of the draft.")
    name: str = field("The name of the data set.")
    owner: str = field("Who started the draft.")
    made: Moment = field("When it was started.")
    changed: Moment = field("When it was changed.")
    source: Free | None = field("Its table; null if none was chosen.")
    step: str = field("The first step with a problem.")
    published: str | None = field("The data set that it became; null if it is not published.")
    types: dict[str, str] = field("The type of each column.")
    steps: list[DraftStep] = field("The steps with their problems.")
    toml: str = field("The policy so far.")
    complete: bool = field("Whether it can be published.")
    promise: DraftPromise | None = field("What its promise means; null if it is not complete.")


class RemovedDraft(Reply):
    removed: str = field("The id of the deleted draft.")


class SimulatedQuery(Reply):
    query: str = field("A typical query.")
    error: float | None = field("Its expected error; null if it depends on the data.")
    unit: str = field("The unit of the error.")
    range: float | None = optional("The range of the answer.")
    part: float | None = optional("The error as a part of the range.")
    good: int | None = optional("How many such queries would have a small error; null if none.")


class DraftSimulation(Reply):
    queries: int = field("The number of queries that share the budget.")
    unit: str = field("The unit of the budget.")
    budget: Amount = field("The budget.")
    each: Amount = field("The part of each query.")
    rows: int | None = field("The number of rows, or of persons.")
    counted: str = field("What `rows` counts: rows, or persons if they are protected.")
    assumed: int | None = field("The assumed number of rows; null if it is the one of the policy.")
    lines: list[SimulatedQuery] = field("The accuracy of typical queries.")


class DraftSynthesis(Reply):
    rows: int = field("The number of generated rows, and of synthetic ones.")
    unit: str = field("The unit of the budget.")
    cost: Amount = field("What such a table costs: half of the budget.")
    columns: list[str] = field("The columns of the table.")
    sample: list[list[str]] = field("The first rows of the synthetic table.")
    single: float | None = field("The part of rows to change for equal columns, on average over columns.")
    single_by_chance: float | None = field("The same between two samples of these sizes, by chance alone.")
    pairs: float | None = field("The part of rows to change for equal pairs of columns; null if there is one column.")
    pairs_by_chance: float | None = field("The same between two samples of these sizes, by chance alone.")


class Publication(Reply):
    dataset: str = field("The name of the data set.")
    token: str | None = field("The analyst's token, which is shown only once; null if none was requested.")
    link: str | None = field("The sign-in link; null if no token was requested.")
    name: str | None = field("The analyst's name; null if no token was requested.")
    expires: Moment | None = field("When the token expires; null if none was requested.")
    share: Amount | None = field("The analyst's budget share; null if there is none.")
