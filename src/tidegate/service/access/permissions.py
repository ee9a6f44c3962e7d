"""Every address, and the roles that it is for. The gate, the documentation and the tests read this table."""

from __future__ import annotations

from dataclasses import dataclass

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
    """One address: its roles, the part of the API that it belongs to, and what it does in a line."""

    method: str
    path: str
    roles: frozenset[str]
    tag: str
    says: str

    @property
    def key(self) -> tuple[str, str]:
        return self.method, self.path


_DESK, _SURVEY = "/data/{name}/desks/{promise}", "/data/{name}/collections/{collection}"
_SURVEYS = "/data/{name}/collections"
_JOBS = "/data/{name}/syntheses"

RULES = (
    Rule("GET", "/health", EVERYBODY, "health", "The process answers"),
    Rule("GET", "/ready", EVERYBODY, "health", "The ledger answers too"),
    Rule("GET", "/metrics", OWNERS, "health", "Counts and times of requests, for Prometheus"),
    Rule("POST", "/sign-in", EVERYBODY, "access", "Sign in with a token; sets the console's cookie"),
    Rule("POST", "/sign-out", SIGNED_IN, "access", "Sign out"),
    Rule("GET", "/me", SIGNED_IN, "access", "Who you are here"),
    Rule("GET", "/tokens", OWNERS, "access", "All tokens, without their secrets"),
    Rule("POST", "/tokens", OWNERS, "access", "Make a token; it is shown this once"),
    Rule("DELETE", "/tokens/{token}", OWNERS, "access", "Revoke a token"),
    Rule("GET", "/data", ANALYSTS, "data sets", "The data sets that you may use"),
    Rule("GET", "/data/{name}", ANALYSTS, "data sets", "What is promised, what was spent, what is left"),
    Rule("POST", "/data/{name}/previews", ANALYSTS, "answer", "What a question would cost and how wrong it may be"),
    Rule(
        "POST", "/data/{name}/quotes", ANALYSTS, "answer", "The same, signed: exactly this can be bought for 15 minutes"
    ),
    Rule("POST", "/data/{name}/answers", ANALYSTS, "answer", "Ask, or buy a quote: charged, answered, recorded"),
    Rule("POST", "/data/{name}/derivations", ANALYSTS, "answer", "What follows from answers already given, at no cost"),
    Rule("GET", "/data/{name}/history", ANALYSTS, "answer", "What was asked: your own questions, or all for an owner"),
    Rule("GET", "/data/{name}/notebook", ANALYSTS, "answer", "The questions asked and their answers, as a notebook"),
    Rule("GET", _DESK, OWNERS, "release", "Exposure against its critical values, shares, queue"),
    Rule("POST", f"{_DESK}/requests", RECORD, "release", "Ask for records; a respondent for the own one"),
    Rule("POST", f"{_DESK}/status", RECORD, "release", "Where a request stands"),
    Rule("POST", f"{_DESK}/withdrawals", RECORD, "release", "Take a waiting request back"),
    Rule("GET", f"{_DESK}/released", ANALYSTS, "release", "The records that left, after a cursor"),
    Rule("POST", f"{_DESK}/audits", OWNERS, "release", "What observers could tell from what leaves, simulated"),
    Rule("GET", "/record", RESPONDENTS, "release", "Where the own record can be asked for, and what leaves there"),
    Rule("GET", _SURVEYS, ANALYSTS, "collect", "All collections, and the attributes that could be asked about"),
    Rule("POST", _SURVEYS, OWNERS, "collect", "Make a collection: a new section of the policy's file, opened"),
    Rule("POST", f"{_SURVEYS}/drafts", OWNERS, "collect", "The same as a section to read: nothing is made"),
    Rule("GET", _SURVEY, EVERYBODY, "collect", "The public description: all that a client needs"),
    Rule("POST", f"{_SURVEY}/reports", EVERYBODY, "collect", "Send randomized reports"),
    Rule("GET", f"{_SURVEY}/state", ANALYSTS, "collect", "How many reports were counted, and what one person gives"),
    Rule("POST", f"{_SURVEY}/closing", OWNERS, "collect", "Take no more reports of this version, for good"),
    Rule("GET", f"{_SURVEY}/distributions/{{question}}", ANALYSTS, "collect", "The distribution of the true values"),
    Rule("GET", f"{_SURVEY}/tree", ANALYSTS, "collect", "A decision tree"),
    Rule("GET", f"{_SURVEY}/rules", ANALYSTS, "collect", "Frequent itemsets and association rules"),
    Rule("POST", f"{_JOBS}/previews", ANALYSTS, "synthesize", "What synthetic tables would cost"),
    Rule("POST", _JOBS, OWNERS, "synthesize", "Start making synthetic tables"),
    Rule("GET", _JOBS, ANALYSTS, "synthesize", "All that were asked for"),
    Rule("GET", f"{_JOBS}/{{job}}", ANALYSTS, "synthesize", "How far it is"),
    Rule(
        "GET", f"{_JOBS}/{{job}}/tables", ANALYSTS, "synthesize", "What was made: model, split of the loss, rows, cost"
    ),
    Rule("GET", f"{_JOBS}/{{job}}/tables/{{number}}", ANALYSTS, "synthesize", "A table, as Parquet or CSV"),
    Rule("GET", f"{_JOBS}/{{job}}/quality", OWNERS, "synthesize", "Beside the original: for the data holder's eyes"),
    Rule(
        "POST",
        f"{_JOBS}/{{job}}/paid-quality",
        ANALYSTS,
        "synthesize",
        "How far from the original: charged, with noise",
    ),
    Rule("GET", "/ledger", OWNERS, "ledger", "What every account has spent and has left"),
    Rule("GET", "/ledger/entries", OWNERS, "ledger", "Every entry, with what it says"),
    Rule("GET", "/ledger/verification", OWNERS, "ledger", "Hash, chain, price and add up every entry again"),
    Rule("GET", "/ledger/export", OWNERS, "ledger", "All of it, or all of your data set, as JSON lines for an auditor"),
    Rule("GET", "/risk/conversion", ANALYSTS, "risk", "rho to the epsilon that it allows, or back"),
    Rule("GET", "/risk/meaning", ANALYSTS, "risk", "What a probability of identification means, in sentences"),
    Rule("GET", "/risk/curve", ANALYSTS, "risk", "rho against epsilon among so many possibilities, as points to draw"),
    Rule("POST", "/risk/operators", ANALYSTS, "risk", "All measures of a randomized report, side by side"),
    Rule("POST", "/risk/comparisons", ANALYSTS, "risk", "Several operators side by side, with a chart"),
    Rule("POST", "/risk/baskets", ANALYSTS, "risk", "All measures of a randomized basket"),
    Rule("POST", "/risk/advice", ANALYSTS, "risk", "Which operator keeps a wanted privacy"),
    Rule("POST", "/risk/code", ANALYSTS, "risk", "A calculation as code, to copy"),
    Rule("GET", "/", EVERYBODY, "pages", "To the console"),
    Rule("GET", "/console/sign-in", EVERYBODY, "pages", "Sign in"),
    Rule("POST", "/console/sign-in", EVERYBODY, "pages", "Sign in by the form of that page, without scripts"),
    Rule("GET", "/console", ANALYSTS, "pages", "Overview: what was promised, what is left"),
    Rule("GET", "/console/data/{name}/syntheses", ANALYSTS, "pages", "Synthesize: budget, progress, tables"),
    Rule(
        "GET", "/console/data/{name}/syntheses/{job}/quality", OWNERS, "pages", "Synthetic tables beside the original"
    ),
    Rule("GET", "/console/risk", ANALYSTS, "pages", "Risk lab: what the numbers mean"),
    Rule("GET", f"/console{_DESK}", OWNERS, "pages", "Release desk: exposure, shares, queue, requests"),
    Rule("GET", "/console/record", RESPONDENTS, "pages", "The own record: ask for it, see where it stands"),
    Rule("GET", f"/console{_SURVEYS}", ANALYSTS, "pages", "Collections, and a new one with the adviser"),
    Rule("GET", f"/console{_SURVEY}", ANALYSTS, "pages", "A collection: reports, distributions, tree, rules"),
    Rule("GET", "/console/data/{name}/ask", ANALYSTS, "pages", "Ask: what it costs before, what it says after"),
    Rule("GET", "/console/ledger", OWNERS, "pages", "Ledger: every entry in words; filter, verify, export"),
    Rule("GET", "/console/access", OWNERS, "pages", "Access: tokens made, listed, revoked"),
    Rule("GET", "/forms/{name}/{collection}", EVERYBODY, "pages", "The form of a collection: randomized in the page"),
    Rule("GET", "/static/{file}", EVERYBODY, "pages", "Styles and scripts of the pages"),
    Rule("GET", "/client/{file}", EVERYBODY, "pages", "The randomizer of the form"),
    Rule("GET", "/client/operators/{file}", EVERYBODY, "pages", "Its operators"),
)

TABLE = {rule.key: rule for rule in RULES}


def as_text() -> str:
    """The table for the documentation, in Markdown."""
    lines = ["| address | owner | analyst | respondent | public | |", "|---|:-:|:-:|:-:|:-:|---|"]
    for rule in RULES:
        marks = " | ".join("yes" if role in rule.roles else "" for role in ROLES)
        lines.append(f"| `{rule.method} {rule.path}` | {marks} | {rule.says} |")
    return "\n".join(lines)
