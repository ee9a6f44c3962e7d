"""The table of permissions: every address and its roles. The guard, the documentation and the tests read it."""

from __future__ import annotations

from dataclasses import dataclass, replace

API = "/v1"  # the version of the API, in front of every address that is neither a page nor a health check
UNVERSIONED = ("pages", "health")  # tags
OWNER, ANALYST, RESPONDENT, PUBLIC = "owner", "analyst", "respondent", "public"
ROLES = (OWNER, ANALYST, RESPONDENT, PUBLIC)

OWNERS = frozenset({OWNER})
ANALYSTS = frozenset({OWNER, ANALYST})
RECORD = frozenset({OWNER, RESPONDENT})
SIGNED_IN = frozenset({OWNER, ANALYST, RESPONDENT})
RESPONDENTS = frozenset({RESPONDENT})
EVERYBODY = frozenset(ROLES)


@dataclass(frozen=True)
class Rule:
    """One address: its roles, its part of the API, and a one-line summary."""

    method: str
    path: str
    roles: frozenset[str]
    tag: str
    says: str
    once: bool = False  # it changes something, and an idempotency key makes it run once

    @property
    def is_read(self) -> bool:
        """Whether it returns something of the API and changes nothing."""
        return self.method == "GET" and self.tag not in UNVERSIONED

    @property
    def key(self) -> tuple[str, str]:
        return self.method, self.path


_DRAFT, _POLICY = "/drafts/{draft}", "/data/{name}/policy"
_DESK, _SURVEY = "/data/{name}/desks/{promise}", "/data/{name}/collections/{collection}"
_SURVEYS = "/data/{name}/collections"
_POLLS, _POLL = "/data/{name}/polls", "/data/{name}/polls/{collection}"
_JOBS, _AUDITS = "/data/{name}/syntheses", "/data/{name}/audits"
_ANSWER = "/data/{name}/stored-answers/{answer}"
_QUESTIONS, _QUESTION = "/data/{name}/questions", "/data/{name}/questions/{item}"
_DASHBOARDS, _DASHBOARD = "/data/{name}/dashboards", "/data/{name}/dashboards/{item}"

_RULES = (
    Rule("GET", "/health", EVERYBODY, "health", "Check that the process responds"),
    Rule("GET", "/ready", EVERYBODY, "health", "Check that the ledger responds as well"),
    Rule("GET", "/metrics", OWNERS, "health", "Get counts and times of requests for Prometheus"),
    Rule(
        "POST", "/sign-in", EVERYBODY, "access", "Sign in with a token or a one-time link and set the console's cookie"
    ),
    Rule("POST", "/sign-out", SIGNED_IN, "access", "Sign out"),
    Rule("GET", "/me", SIGNED_IN, "access", "Get your name, role, and budget share"),
    Rule("GET", "/tokens", OWNERS, "access", "List all tokens without their secrets"),
    Rule("POST", "/tokens", OWNERS, "access", "Create a token, which is shown only once", once=True),
    Rule("DELETE", "/tokens/{token}", OWNERS, "access", "Revoke a token"),
    Rule("POST", "/links", OWNERS, "access", "Create a sign-in link that works once, within 15 minutes", once=True),
    Rule("GET", "/settings", OWNERS, "access", "List the settings of the service and where each comes from"),
    Rule("GET", "/sessions", OWNERS, "access", "List the sessions of the console"),
    Rule("DELETE", "/sessions/{session}", OWNERS, "access", "End a session"),
    Rule("GET", "/data", ANALYSTS, "data sets", "List the data sets that you can use"),
    Rule("GET", "/data/{name}", ANALYSTS, "data sets", "Get the promises, the spent budget, and the remaining budget"),
    Rule("POST", "/data/{name}/previews", ANALYSTS, "answer", "Preview the cost and the expected error of a query"),
    Rule(
        "POST",
        "/data/{name}/quotes",
        ANALYSTS,
        "answer",
        "Get a signed quote: a query at a price, valid for 15 minutes",
    ),
    Rule("POST", "/data/{name}/answers", ANALYSTS, "answer", "Run a query or a quote: charge, answer, record"),
    Rule("GET", _ANSWER, ANALYSTS, "answer", "Get a stored answer at no cost, as JSON, CSV, Parquet, SVG, or PNG"),
    Rule("GET", _QUESTIONS, ANALYSTS, "library", "List your saved questions and those that others share"),
    Rule("POST", _QUESTIONS, ANALYSTS, "library", "Save a question under a name", once=True),
    Rule("GET", _QUESTION, ANALYSTS, "library", "Get a saved question: its request, its price, and its stored answer"),
    Rule("PATCH", _QUESTION, ANALYSTS, "library", "Rename, share, or replace a saved question of your own"),
    Rule("DELETE", _QUESTION, ANALYSTS, "library", "Delete a saved question of your own; an owner, any shared one"),
    Rule("GET", _DASHBOARDS, ANALYSTS, "library", "List your dashboards and those that others share"),
    Rule("POST", _DASHBOARDS, ANALYSTS, "library", "Create a dashboard of saved questions", once=True),
    Rule("GET", _DASHBOARD, ANALYSTS, "library", "Get a dashboard with stored answers alone, which is always free"),
    Rule("PATCH", _DASHBOARD, ANALYSTS, "library", "Rename, share, or rearrange a dashboard of your own"),
    Rule("DELETE", _DASHBOARD, ANALYSTS, "library", "Delete a dashboard of your own; an owner, any shared one"),
    Rule(
        "GET",
        "/data/{name}/answers/{number}",
        ANALYSTS,
        "answer",
        "Get a stored answer by its ledger entry, at no cost",
    ),
    Rule("POST", "/data/{name}/derivations", ANALYSTS, "answer", "Derive results from earlier answers at no cost"),
    Rule("GET", "/data/{name}/history", ANALYSTS, "answer", "List your own queries, or all queries for an owner"),
    Rule("GET", "/data/{name}/notebook", ANALYSTS, "answer", "Download queries and answers as a notebook"),
    Rule("GET", "/data/{name}/selections", ANALYSTS, "release", "List the open selections of hiding promises"),
    Rule(
        "POST",
        "/data/{name}/selections",
        OWNERS,
        "release",
        "Choose the records that hiding promises release; this is final",
        once=True,
    ),
    Rule("GET", _DESK, OWNERS, "release", "Get exposure, critical values, counts, and queue of a release desk"),
    Rule("GET", f"{_DESK}/queue", OWNERS, "release", "List waiting requests with the tests that hold them"),
    Rule(
        "POST", f"{_DESK}/requests", RECORD, "release", "Request records; a respondent can request their own", once=True
    ),
    Rule("POST", f"{_DESK}/status", RECORD, "release", "Get the status of a request"),
    Rule("POST", f"{_DESK}/withdrawals", RECORD, "release", "Withdraw a waiting request", once=True),
    Rule("GET", f"{_DESK}/released", ANALYSTS, "release", "List the released records after a cursor"),
    Rule("POST", f"{_DESK}/audits", OWNERS, "release", "Simulate what observers could infer from released records"),
    Rule(
        "GET",
        "/record",
        RESPONDENTS,
        "release",
        "List the desks where you can request your own record, and the columns they release",
    ),
    Rule("GET", _SURVEYS, ANALYSTS, "collect", "List all collections, and the attributes available for questions"),
    Rule(
        "POST",
        _SURVEYS,
        OWNERS,
        "collect",
        "Create a collection: add a section to the policy file and open it",
        once=True,
    ),
    Rule(
        "POST", f"{_SURVEYS}/drafts", OWNERS, "collect", "Preview the section of a new collection without creating it"
    ),
    Rule("GET", _SURVEY, EVERYBODY, "collect", "Get the public description, which is all that a client needs"),
    Rule("POST", f"{_SURVEY}/reports", EVERYBODY, "collect", "Send randomized reports"),
    Rule("POST", f"{_SURVEY}/tokens", EVERYBODY, "collect", "Exchange an invitation code for a blind signature"),
    Rule(
        "POST",
        f"{_SURVEY}/invitations",
        OWNERS,
        "collect",
        "Create invitation codes, which are shown only once",
        once=True,
    ),
    Rule(
        "GET",
        f"{_SURVEY}/state",
        ANALYSTS,
        "collect",
        "Get the number of counted reports and the privacy loss per person",
    ),
    Rule(
        "POST",
        f"{_SURVEY}/closing",
        OWNERS,
        "collect",
        "Close this version permanently: accept no more reports",
        once=True,
    ),
    Rule(
        "GET",
        f"{_SURVEY}/distributions/{{question}}",
        ANALYSTS,
        "collect",
        "Estimate the distribution of the true values",
    ),
    Rule("GET", f"{_SURVEY}/means/{{question}}", ANALYSTS, "collect", "Estimate the mean of a number"),
    Rule("GET", f"{_SURVEY}/shares", ANALYSTS, "collect", "Estimate the share of each option of a set"),
    Rule("GET", f"{_SURVEY}/results", ANALYSTS, "collect", "Get the results of all questions, as JSON or CSV"),
    Rule("GET", _POLLS, ANALYSTS, "collect", "List all polls with their state"),
    Rule("POST", _POLLS, OWNERS, "collect", "Create a poll: add a section to the policy file and open it", once=True),
    Rule(
        "POST",
        f"{_POLLS}/drafts",
        OWNERS,
        "collect",
        "Preview a poll: its section, its expected error, and what respondents read",
    ),
    Rule("GET", _POLL, ANALYSTS, "collect", "Get the state of a poll; numbers of waiting reports are rounded"),
    Rule(
        "POST",
        f"{_POLL}/sheets",
        OWNERS,
        "collect",
        "Create invitation codes with links and QR codes for print, which are shown only once",
        once=True,
    ),
    Rule("GET", f"{_POLL}/chart", ANALYSTS, "collect", "Download the results of a poll as an SVG or PNG chart"),
    Rule("GET", f"{_SURVEY}/tree", ANALYSTS, "collect", "Grow a decision tree"),
    Rule("GET", f"{_SURVEY}/rules", ANALYSTS, "collect", "Find frequent itemsets and association rules"),
    Rule("POST", f"{_JOBS}/previews", ANALYSTS, "synthesize", "Preview the cost of synthetic tables"),
    Rule("POST", _JOBS, OWNERS, "synthesize", "Start a synthesis"),
    Rule("GET", _JOBS, ANALYSTS, "synthesize", "List all syntheses"),
    Rule("GET", f"{_JOBS}/{{job}}", ANALYSTS, "synthesize", "Get the progress of a synthesis"),
    Rule("GET", f"{_JOBS}/{{job}}/events", ANALYSTS, "synthesize", "Follow the progress as server-sent events"),
    Rule(
        "POST",
        f"{_JOBS}/{{job}}/cancellation",
        OWNERS,
        "synthesize",
        "Cancel a synthesis; its charge stays, and so does what it learned",
        once=True,
    ),
    Rule(
        "GET",
        f"{_JOBS}/{{job}}/tables",
        ANALYSTS,
        "synthesize",
        "Get the model, the split of the loss, the rows, and the cost of a synthesis",
    ),
    Rule(
        "GET",
        f"{_JOBS}/{{job}}/tables/{{number}}",
        ANALYSTS,
        "synthesize",
        "Download a synthetic table as Parquet or CSV",
    ),
    Rule(
        "GET",
        f"{_JOBS}/{{job}}/quality",
        OWNERS,
        "synthesize",
        "Compare synthetic tables with the original, for the data holder only",
    ),
    Rule(
        "POST",
        f"{_JOBS}/{{job}}/paid-quality",
        ANALYSTS,
        "synthesize",
        "Measure the distance to the original with noise, for a charge",
    ),
    Rule("POST", _AUDITS, OWNERS, "audit", "Start an audit: attack every promise; nothing is spent"),
    Rule("GET", _AUDITS, OWNERS, "audit", "List all audits with their verdicts"),
    Rule("GET", f"{_AUDITS}/{{job}}", OWNERS, "audit", "Get the progress of an audit"),
    Rule("GET", f"{_AUDITS}/{{job}}/events", OWNERS, "audit", "Follow the progress as server-sent events"),
    Rule("POST", f"{_AUDITS}/{{job}}/cancellation", OWNERS, "audit", "Cancel an audit", once=True),
    Rule("GET", f"{_AUDITS}/{{job}}/report", OWNERS, "audit", "Get the report of an audit, as JSON or HTML"),
    Rule("GET", "/ledger", OWNERS, "ledger", "Get the spent and remaining budget of every account"),
    Rule("GET", "/ledger/entries", OWNERS, "ledger", "List entries with their descriptions"),
    Rule(
        "GET",
        "/ledger/entries/{entry}/proof",
        ANALYSTS,
        "ledger",
        "Get the proof that the ledger contains an entry; an analyst gets those of their own charges",
    ),
    Rule("GET", "/ledger/entries/{number}", OWNERS, "ledger", "Get an entry with its description"),
    Rule("GET", "/ledger/verification", OWNERS, "ledger", "Verify hashes, chain, prices, and totals of all entries"),
    Rule(
        "GET",
        "/ledger/export",
        OWNERS,
        "ledger",
        "Export the ledger, or your data set's entries, as JSON lines for an auditor",
    ),
    Rule("GET", "/risk/conversion", ANALYSTS, "risk", "Convert rho to the loss that it allows, or back"),
    Rule("GET", "/risk/meaning", ANALYSTS, "risk", "Explain a probability of identification"),
    Rule("GET", "/risk/curve", ANALYSTS, "risk", "Get points of rho against the loss for a number of possible values"),
    Rule("GET", "/risk/practice", ANALYSTS, "risk", "Describe what a promise such as 1 in 20 allows in practice"),
    Rule("POST", "/risk/operators", ANALYSTS, "risk", "Get all privacy measures of a randomized report"),
    Rule("POST", "/risk/comparisons", ANALYSTS, "risk", "Compare several operators, with a chart"),
    Rule("POST", "/risk/baskets", ANALYSTS, "risk", "Get all privacy measures of a randomized basket"),
    Rule("POST", "/risk/advice", ANALYSTS, "risk", "Recommend an operator for a privacy requirement"),
    Rule("POST", "/risk/code", ANALYSTS, "risk", "Get a calculation as a code snippet"),
    Rule("GET", _POLICY, OWNERS, "policies", "Get the policy as TOML, with all its versions and their differences"),
    Rule("POST", f"{_POLICY}/previews", OWNERS, "policies", "Preview what a changed policy means for the account"),
    Rule("PUT", _POLICY, OWNERS, "policies", "Change the policy; promises can only become stricter"),
    Rule("POST", f"{_POLICY}/check", OWNERS, "policies", "Compare the data with the policy, for the data holder only"),
    Rule("GET", "/home", OWNERS, "home", "Get spending by person, waiting requests, reports, jobs, and warnings"),
    Rule("GET", "/drafts", OWNERS, "drafts", "List the drafts of new data sets"),
    Rule("POST", "/drafts", OWNERS, "drafts", "Start a draft of a new data set", once=True),
    Rule("GET", _DRAFT, OWNERS, "drafts", "Get a draft: its steps, problems, and policy"),
    Rule("DELETE", _DRAFT, OWNERS, "drafts", "Delete a draft and the file that was uploaded for it"),
    Rule("PUT", f"{_DRAFT}/file", OWNERS, "drafts", "Upload the table of a draft as CSV or Parquet"),
    Rule("POST", f"{_DRAFT}/steps/{{step}}", OWNERS, "drafts", "Fill in a step of a draft, or preview it", once=True),
    Rule("GET", f"{_DRAFT}/policy", OWNERS, "drafts", "Download the policy of a draft as TOML"),
    Rule("POST", f"{_DRAFT}/check", OWNERS, "drafts", "Compare the table with the columns, for the data holder only"),
    Rule("GET", f"{_DRAFT}/simulation", OWNERS, "drafts", "Get the accuracy of typical queries under the policy"),
    Rule("GET", f"{_DRAFT}/synthesis", OWNERS, "drafts", "Get a synthetic table of generated rows under the policy"),
    Rule(
        "POST", f"{_DRAFT}/publication", OWNERS, "drafts", "Serve the data set and create an analyst's token", once=True
    ),
    Rule("GET", "/", EVERYBODY, "pages", "Redirect to the console"),
    Rule("GET", "/console/sign-in", EVERYBODY, "pages", "Sign in"),
    Rule("POST", "/console/sign-in", EVERYBODY, "pages", "Sign in with the page's form, without scripts"),
    Rule("GET", "/console/sign-in/oidc", EVERYBODY, "pages", "Sign in at the provider: redirect to it"),
    Rule("GET", "/console/sign-in/oidc/callback", EVERYBODY, "pages", "Come back from the provider"),
    Rule("GET", "/console", ANALYSTS, "pages", "Overview: promises and remaining budget"),
    Rule("GET", "/console/data/{name}/syntheses", ANALYSTS, "pages", "Synthesize: budget, progress, tables"),
    Rule(
        "GET",
        "/console/data/{name}/syntheses/{job}/quality",
        OWNERS,
        "pages",
        "Synthetic tables compared with the original",
    ),
    Rule("GET", f"/console{_AUDITS}", OWNERS, "pages", "Audits: start one, follow it, read its report"),
    Rule("GET", f"/console{_AUDITS}/{{job}}", OWNERS, "pages", "The report of an audit"),
    Rule("GET", "/console/risk", ANALYSTS, "pages", "Risk lab: the meaning of the numbers"),
    Rule("GET", f"/console{_DESK}", OWNERS, "pages", "Release desk: exposure, proportions, queue, requests"),
    Rule("GET", "/console/record", RESPONDENTS, "pages", "Your own record: request it, see its status"),
    Rule("GET", f"/console{_SURVEYS}", ANALYSTS, "pages", "Collections, and the form for a new one with the adviser"),
    Rule("GET", f"/console{_SURVEY}", ANALYSTS, "pages", "A collection: reports, distributions, tree, rules"),
    Rule("GET", f"/console{_POLLS}", ANALYSTS, "pages", "Polls of a data set"),
    Rule("GET", "/console/data/{name}/new-poll", OWNERS, "pages", "New poll: questions, error, wording, opening"),
    Rule("GET", f"/console{_POLL}", ANALYSTS, "pages", "A poll: its state, and how to close it"),
    Rule("GET", f"/console{_POLL}/share", OWNERS, "pages", "Share a poll: link, QR code, print sheet of invitations"),
    Rule("GET", f"/console{_POLL}/results", ANALYSTS, "pages", "Results of a poll: intervals, differences, downloads"),
    Rule("GET", "/console/data/{name}/ask", ANALYSTS, "pages", "Query: the cost before, the answer after"),
    Rule("GET", f"/console{_ANSWER}", ANALYSTS, "pages", "A stored answer: its numbers, chart, and downloads"),
    Rule("GET", "/console/data/{name}/library", ANALYSTS, "pages", "Saved queries and dashboards"),
    Rule("POST", "/console/data/{name}/library", ANALYSTS, "pages", "Change or delete a saved query or dashboard"),
    Rule("GET", f"/console{_DASHBOARD}", ANALYSTS, "pages", "A dashboard of stored answers, also for print"),
    Rule("GET", "/console/ledger", OWNERS, "pages", "Ledger: description of every entry; filter, verify, export"),
    Rule("GET", "/console/access", OWNERS, "pages", "Access: users, tokens, links, sessions"),
    Rule(
        "GET",
        "/console/settings",
        OWNERS,
        "pages",
        "Settings: the running configuration and where each value comes from",
    ),
    Rule("GET", f"/console{_POLICY}", OWNERS, "pages", "Policy: as a form and as TOML, its versions, its consequences"),
    Rule("POST", f"/console{_POLICY}", OWNERS, "pages", "Preview or change a policy, without scripts"),
    Rule("GET", "/console/drafts", OWNERS, "pages", "Data sets that are being added"),
    Rule("POST", "/console/drafts", OWNERS, "pages", "Start a draft, without scripts"),
    Rule("GET", f"/console{_DRAFT}/{{step}}", OWNERS, "pages", "A step of a draft, from the source to its publication"),
    Rule("POST", f"/console{_DRAFT}/{{step}}", OWNERS, "pages", "Fill in a step of a draft, without scripts"),
    Rule("POST", f"/console{_DRAFT}", OWNERS, "pages", "Delete a draft, without scripts"),
    Rule(
        "GET",
        "/forms/{name}/{collection}",
        EVERYBODY,
        "pages",
        "The form of a collection: answers are randomized in the browser",
    ),
    Rule("GET", "/static/{file}", EVERYBODY, "pages", "Styles and scripts of the pages"),
    Rule("GET", "/client/{file}", EVERYBODY, "pages", "The randomizer of the form"),
    Rule("GET", "/client/operators/{file}", EVERYBODY, "pages", "The operators of the randomizer"),
)

RULES = tuple(rule if rule.tag in UNVERSIONED else replace(rule, path=f"{API}{rule.path}") for rule in _RULES)
TABLE = {rule.key: rule for rule in RULES}
MOVED = frozenset(
    rule.path.split("/")[2] for rule in RULES if rule.path.startswith(f"{API}/")
)  # first parts of addresses


def as_text() -> str:
    """Return the table as Markdown for the documentation."""
    lines = ["| address | owner | analyst | respondent | public | |", "|---|:-:|:-:|:-:|:-:|---|"]
    for rule in RULES:
        marks = " | ".join("yes" if role in rule.roles else "" for role in ROLES)
        lines.append(f"| `{rule.method} {rule.path}` | {marks} | {rule.says} |")
    return "\n".join(lines)
