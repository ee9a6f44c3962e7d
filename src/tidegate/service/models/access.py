"""Responses about sign-in, tokens, data sets, the ledger, and the steward's home."""

from __future__ import annotations

from typing import Literal

from tidegate.service.models.base import (
    Amount,
    AmountByUnit,
    ChartDrawing,
    Codes,
    Day,
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
from tidegate.service.models.syntheses import UnfinishedJob

Role = Literal["owner", "analyst", "respondent"]
Method = Literal["token", "link", "oidc"]


class Me(Reply):
    """The caller of the request."""

    role: Role = field("What the caller can do.")
    name: str = field("The name, as it is in ledger entries.")
    dataset: str | None = field("The data set of the token; null if it is for all.")
    share: Amount | None = field("The most that the caller can spend in total; null if there is no limit of their own.")
    csrf: str = optional("The value of the X-CSRF-Token header, for a caller who signed in by cookie.")


class SignedOut(Reply):
    signed_in: Literal[False] = field("The sign-in has ended.")
    next: str | None = field("The URL that ends the session at the sign-in provider too; null if there is none.")


class ProviderIdentity(Reply):
    """A user of a sign-in provider."""

    issuer: str = field("The issuer of the provider.")
    subject: str = field("The user's id there.")


class TokenView(Reply):
    """A token without its secret."""

    id: str = field("The id, which is part of the token.")
    role: Role = field("What its holder can do.")
    name: str = field("The name of its holder, as it is in ledger entries.")
    dataset: str | None = field("Its data set; null if it is for all.")
    share: Amount | None = field("The most that its holder can spend in total; null if there is no limit of their own.")
    made: Moment = field("When it was created.")
    expires: Moment | None = field("When it expires; null for a user of a sign-in provider.")
    revoked: Moment | None = field("When it was revoked; null if it is valid.")
    maker: str | None = field("The user who created it; null if unknown.")
    used: Day | None = field("The day of its last use; null if it was never used.")
    method: Method = field("How its holder signs in: with the token, with one-time links, or at the provider.")
    identity: ProviderIdentity | None = field("The user at the provider; null for other methods.")


class CreatedToken(TokenView):
    token: str = field("The token. It is shown only once.")
    code: Codes = field("Code that creates and uses tokens.")


class CreatedLink(TokenView):
    link: str = field("The sign-in link. It is shown only once and works once.")
    link_expires: Moment = field("When the link expires.")


class SessionView(Reply):
    """A session of the console."""

    id: str = field("The id of the session.")
    name: str = field("The name of the user.")
    role: Role = field("What the user can do.")
    token: str = field("The id of the user's token.")
    method: Method = field("How the user signed in.")
    started: Moment = field("When the user signed in.")
    seen: Moment = field("When the last request was sent.")
    expires: Moment = field("When it ends at the latest.")
    own: bool = field("Whether it is the session of this request.")


class SessionPage(Reply):
    sessions: list[SessionView] = field("Sessions, the latest first.")
    next: str | None = field("The cursor of the next page; null at the end.")


class EndedSession(Reply):
    ended: str = field("The id of the session.")


class TokenPage(Reply):
    tokens: list[TokenView] = field("Tokens, in the order of creation.")
    next: str | None = field("The cursor of the next page; null at the end.")


class Level(Reply):
    """A probability now, and its limit."""

    now: float = field("With all answers so far.")
    ceiling: float = field("The limit.")


class OwnShare(Reply):
    share: Amount | None = field("The caller's budget share; null if there is none.")
    spent: Amount = field("What the caller has spent.")
    left: Amount | None = field("What remains of the share; null if there is none.")


class AccountView(Reply):
    """The account of a data set."""

    spent: Amount = field("The privacy loss of all charges.")
    left: Amount = field("What remains of the budget.")
    ceiling: Amount = field("The budget limit.")
    unit: Unit = field("The unit of these amounts.")
    guarantee: Guaranteed = field("What the promise holds for: every response, or the average over the noise.")
    spent_by_unit: AmountByUnit = field("The spent budget in every unit.")
    epsilon_at_delta: float = field("The spent budget as epsilon at delta = 1e-6, at most.")
    epsilon_at_delta_limit: float | None = field("The limit as epsilon at delta = 1e-6; null if it is a pure epsilon.")
    yes_no: Level = field("How often a yes/no question about one person can be answered correctly.")
    identification: dict[str, Level] = field("The probability of identification, by protected attribute.")
    own: OwnShare = field("The caller's own part of the budget.")


class DatasetSummary(Reply):
    """A data set that the caller can use."""

    name: str = field("The name of the data set.")
    fingerprint: Hash = field("The fingerprint of its policy.")
    edition: str = field("The edition of its data; empty if the policy names none.")
    rows: int | None = field("The public number of rows or persons.")
    promise: str = field("The promise of its answers; empty if it has none.")
    account: AccountView | None = field("The account of its answers; null if it answers no queries.")
    warnings: list[Finding] = field("What needs attention in the policy.")
    desks: list[str] = field("The names of its release promises.")
    collections: list[str] = field("The names of its collections, polls included.")
    polls: list[str] = field("The names of its polls.")
    only_polls: bool = field("Whether the policy has polls and no table.")


class DatasetView(DatasetSummary):
    policy: Free = field("The public part of the policy, with the keys of its file.")
    references: Free = optional("The public content of linked tables, by table.")
    findings: list[Finding] = field("What the policy says, part by part.")


class DatasetList(Reply):
    datasets: list[DatasetSummary] = field("The data sets, by name.")


class LedgerAccount(Reply):
    account: str = field("The name of the account, which is that of its data set.")
    spent: Amount = field("The privacy loss of all charges.")
    left: Amount = field("What remains of the budget.")
    ceiling: Amount = field("The budget limit.")
    policy: Hash = field("The fingerprint of the latest policy.")
    unit: Unit = field("The unit of these amounts.")


class LedgerTotals(Reply):
    accounts: list[LedgerAccount] = field("The accounts that the caller can see.")
    head: Hash = field("The hash of the latest entry. Note it to detect later that entries were cut off.")


class LedgerEntry(Reply):
    """An entry of the ledger. It never changes."""

    number: int = field("The number of the entry.")
    at: Moment = field("When it was written.")
    account: str = field("The account: a data set, or one of its collections.")
    kind: str = field("What happened.")
    policy: str = field("The fingerprint of the policy at that time; empty if it has none.")
    request: str = field("The idempotency key, with the caller's name in front; empty without one.")
    question: str = field("The hash of the query; empty if it is no charge.")
    amount: str = field("What it charged; empty if it is no charge.")
    spent: str = field("The account's total after it; empty if it has none.")
    ceiling: str = field("The account's limit after it; empty if it has none.")
    body: Free = field("The content, whose keys depend on the kind.")
    previous: str = field("The hash of the entry before.")
    hash: Hash = field("The hash of this entry, which covers all of it.")
    says: str = field("A description of the entry.")


class LedgerPage(Reply):
    entries: list[LedgerEntry] = field("The entries.")
    next: str | None = field("The cursor of the next page; null at the end.")


class EntryProof(Reply):
    """The proof that the ledger contains an entry. `tidegate ledger check-proof` checks it without the ledger."""

    proof: Literal["inclusion"] = field("The kind of proof.")
    entry: Free = field("The entry, with its body as text.")
    index: int = field("The index of the entry in the tree, which is its number.")
    size: int = field("The number of entries at the checkpoint.")
    hashes: list[str] = field("The hashes from the entry to the root, in base 64.")
    checkpoint: str = field("The signed checkpoint.")


class LedgerVerdict(Reply):
    holds: bool = field("Whether everything verifies.")
    entries: int = field("The number of entries.")
    head: str = field("The hash of the latest entry.")
    spent: dict[str, Amount] = field("The recomputed total of each account.")
    problems: list[str] = field("What does not verify; at most 20.")
    notes: list[str] = field("What is worth knowing; at most 20.")


class UserSpending(Reply):
    user: str = field("The name of the user.")
    week: Amount = field("What they spent in the last seven days.")
    week_queries: int = field("The number of charged queries in the last seven days.")
    total: Amount = field("What they spent in total.")
    queries: int = field("The number of charged queries in total.")
    share: Amount | None = field("Their budget share; null if there is none.")
    url: str = field("The page with their entries.")


class RecentQuery(Reply):
    number: int = field("The number of the ledger entry.")
    at: Moment = field("When it was charged.")
    says: str = field("A description of the query.")


class WaitingRecords(Reply):
    count: int = field("The number of waiting requests for records.")
    since: Moment | None = field("When the oldest one was made; null if none waits.")
    days: int | None = field("The days since then; null if none waits.")


class CollectionReports(Reply):
    collection: str = field("The name of the collection.")
    reports: int | None = field("The number of counted reports; null if it cannot be opened.")
    clients: int | None = field("The expected number of respondents; null if the policy names none.")
    closed: bool | None = field("Whether it accepts no more reports; null if it cannot be opened.")
    problem: str | None = field("Why it cannot be opened; null if it can.")


class Alert(Reply):
    what: str = field("What needs attention.")
    do: str = field("What to do about it.")
    url: str = field("The page that shows it.")


class DatasetHome(DatasetSummary):
    users: list[UserSpending] = field("Spending by user, the highest of the last week first.")
    recent: list[RecentQuery] = field("The latest charged queries.")
    waiting: WaitingRecords = field("Requests for records that wait.")
    reports: list[CollectionReports] = field("The reports of each collection.")
    jobs: list[UnfinishedJob] = field("Jobs that wait or run.")
    alerts: list[Alert] = field("What needs attention.")
    chart: ChartDrawing | None = field("Spending over time; null unless charts were requested and something was spent.")


class Home(Reply):
    datasets: list[DatasetHome] = field("The data sets of the owner.")
    warnings: list[Alert] = field("What needs attention in the ledger and the folder.")
