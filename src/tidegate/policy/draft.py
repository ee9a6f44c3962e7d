"""A first policy from a header and its types. Nothing is taken from the data.

In a draft, every decision that a person must make stays open, marked with "?". The guided dialog offers round numbers
instead (`propose`): they follow from a column's name and type alone, and a person confirms or replaces them.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping
from typing import Literal

from tidegate.policy.attributes import Attribute, Decimal, Grid, Integer, Key, Numeric
from tidegate.policy.calendar import Date, Moment, Time, Timestamp
from tidegate.policy.categories import Boolean, Category, Text
from tidegate.policy.policy import Policy
from tidegate.policy.tables import public_columns
from tidegate.policy.toml import key_text

ColumnType = Literal[
    "whole", "decimal", "exact", "text", "yes-no", "date", "timestamp", "instant", "time", "uuid", "other"
]
Kind = Literal["key", "integer", "grid", "decimal", "date", "timestamp", "time", "boolean", "category", "text", ""]
KINDS: dict[ColumnType, Kind] = {
    "whole": "integer",
    "decimal": "grid",
    "exact": "decimal",
    "text": "category",
    "yes-no": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "instant": "timestamp",
    "time": "time",
    "uuid": "key",
    "other": "",
}
KEYLIKE = re.compile(
    r"(^|[_\W])(id|key|uuid|guid|ssn|email|name|nr)$|^(id|key|uuid|name)([_\W]|$)|_?id$|(nummer|kennung)$",
    re.IGNORECASE,
)
NOT_KEYS = re.compile(
    r"(^|[_\W])(\w*paid|\w*aid|\w*valid|\w*void|covid|bid|grid|acid|fluid|solid|hybrid|\w*oid)$", re.IGNORECASE
)
FREE_TEXT = re.compile(
    r"(note|comment|description|remark|message|text|address|street|phone|url|link|title"
    r"|notiz(en)?|bemerkung(en)?|kommentare?|adresse|stra(ss|ß)e|telefon)s?$",
    re.IGNORECASE,
)
MONEY = re.compile(
    r"(price|amount|cost|fee|fare|tip|toll|total|paid|payment|charge|balance|revenue|betrag|preis)s?($|_)",
    re.IGNORECASE,
)
YES_NO = re.compile(r"^(is|has|was|did|can)_|_(flag|yn)$", re.IGNORECASE)
BUCKETS = 64  # of a text column that is counted by bucket
MOST_GROUPS = 20  # groups of a first query
# Round public numbers by name: from, to, step.
RANGES: list[tuple[str, tuple[int, int, str]]] = [
    (r"(^|[_\W])(age|alter)($|[_\W])", (0, 120, "1")),
    (r"year(?!s)", (1900, 2050, "1")),
    (r"percent|pct|score|rate$", (0, 100, "0.1")),
    (r"income|salary|wage|earning|revenue", (0, 200_000, "100")),
    (r"height", (0, 250, "1")),
    (r"weight", (0, 300, "0.1")),
    (r"hours?(_|$)", (0, 168, "0.1")),
    (r"month", (1, 12, "1")),
    (MONEY.pattern, (0, 1_000, "0.01")),
]
LISTS = [(r"(^|_)(sex|gender)$", ("female", "male"))]


ORDERED = [  # parts of names of columns of which the second is never below the first
    (r"start(ed)?|beg[ai]n", r"end(ed)?|stop(ped)?|finish(ed)?"),
    (r"admi(t|ssion|tted)", r"discharged?"),
    (r"open(ed)?", r"closed?"),
    (r"birth|born", r"death|died"),
    (r"pickup", r"drop_?off"),
    (r"order(ed)?", r"deliver(y|ed)"),
    (r"created?", r"updated?"),
    (r"min|low(est)?", r"max|high(est)?"),
]
ENCODED = re.compile(r"^(?P<label>.+)_(num|number|code|label)$", re.IGNORECASE)


def guess_kind(column: str, kind: ColumnType) -> Kind:
    """Return the kind of a column from its name and its type in the source; empty if no kind fits."""
    if kind in ("whole", "text", "uuid") and KEYLIKE.search(column) and not NOT_KEYS.search(column):
        return "key"
    if kind == "text" and FREE_TEXT.search(column):
        return "text"
    if kind == "whole" and YES_NO.search(column):
        return "category"
    return "decimal" if kind == "decimal" and MONEY.search(column) else KINDS[kind]


def draft_policy(
    name: str, source: str, columns: Mapping[str, ColumnType], *, hints: Mapping[str, str] | None = None
) -> str:
    """Return the text of a policy file. Bounds, lists, unit, worlds and promises are never taken from the data.

    `hints` state what has to be changed in a column of the data; each becomes a comment above its line.
    """
    hints = hints or {}
    keys = [column for column, kind in columns.items() if guess_kind(column, kind) == "key"]
    lines = [
        f'# A policy for {name}. Replace every "?": these are your decisions, and nothing was taken from the data.',
        "# Then: tidegate check FILE",
        "version = 2",
        "",
        "[dataset]",
        f"name   = {json.dumps(name)}",
        f"source = {json.dumps(source)}",
        'unit   = "?"          # DECIDE who is protected: "row" (one row per person), or',
        f'                      # {{ person = "{keys[0] if keys else "KEY COLUMN"}", at_most = 5 }} if a person can have several rows',
        "# rows = 10_000       # the public number of rows (or persons), if it can be public",
        "# records = 30_000    # if a person can have several rows: about how many rows there are, if that can be public",
        "",
        "[attributes]          # the public description of each column; remove the columns that no one needs",
        *(
            line
            for column, kind in columns.items()
            for line in ([f"# CHANGE THE DATA: {hints[column]}"] if column in hints else [])
            + [_attribute(column, kind)]
        ),
        "",
        "[promise.identification]",
        'rho     = "?"         # DECIDE: no person is identified with a probability above this, e.g. 0.05',
        'worlds  = "?"         # DECIDE: "values" (an adversary guesses a value) or "persons" (then add population = 180_000)',
        'guarantee = "worst-case"   # holds for every response; "average" allows many more answers: docs/guides/which-guarantee.md',
        'protect = "?"         # DECIDE: the columns to protect, e.g. ["age"]; remove this line for worlds = "persons"',
        "",
        "# [promise.loss]      # instead or in addition: the total epsilon of all answers and synthetic tables",
        "# epsilon = 1.0",
        *propose_synthesis(columns),
    ]
    return "\n".join(lines) + "\n"


def propose_synthesis(columns: Mapping[str, ColumnType]) -> list[str]:
    """Return the section [synthesis] as comments: orders, sums and dependencies that the names of columns suggest."""
    kinds = {column: guess_kind(column, kind) for column, kind in columns.items()}
    numbers = [column for column, kind in kinds.items() if kind in ("integer", "grid", "decimal")]
    lines = [
        f'# orders.{key_text(end)} = {{ after = {json.dumps(start)}, missing = "refuse" }}'
        for end in columns
        if (start := _start_of(end, kinds))
    ]
    for column in numbers:
        others = [other for other in numbers if other != column and MONEY.search(other)]
        if re.search(r"(^|_)total(_|$)", column, re.IGNORECASE) and len(others) > 1:
            lines.append(f"# sums.{key_text(column)} = {json.dumps(others, ensure_ascii=False)}")
    for column in columns:
        encoded = ENCODED.search(column)
        if encoded and kinds.get(encoded["label"]) == "category":
            label = json.dumps(encoded["label"], ensure_ascii=False)
            lines.append(f'# follows.{key_text(column)} = {{ column = {label}, values = {{ "LABEL" = 1 }} }}')
    return (
        ["", "# [synthesis]         # for synthetic tables: use a line if it is true of every row", *lines]
        if lines
        else []
    )


def _start_of(end: str, kinds: Mapping[str, Kind]) -> str:
    """Return the first column of the same kind that `end` is probably never below, by their names; else nothing."""
    for first, last in ORDERED:
        stem, count = re.subn(rf"(?<![a-z])({last})(?![a-z])", "*", end, flags=re.IGNORECASE)
        for start, kind in (
            kinds.items() if count == 1 and kinds[end] not in ("", "key", "category", "text", "boolean") else ()
        ):
            if kind == kinds[end] and re.sub(rf"(?<![a-z])({first})(?![a-z])", "*", start, flags=re.IGNORECASE) == stem:
                return start
    return ""


def _attribute(column: str, kind: ColumnType) -> str:
    name, guess = key_text(column), guess_kind(column, kind)
    zone = ', zone = "?"' if kind == "instant" else ""
    values = "[0, 1]" if kind == "whole" else '"?"'
    choice = (
        "guessed from its name"
        if kind == "whole"
        else 'DECIDE: the public list of values, or values_from = "FILE.csv", column = "NAME" instead, or kind = "date", "timestamp", "key" or "text"'
    )
    known: dict[Kind, str] = {
        "key": '{ kind = "key" }   # guessed from its name: it names the person or the record',
        "integer": '{ kind = "integer", from = "?", to = "?", missing = "dropped" }   # DECIDE: public bounds',
        "grid": '{ kind = "grid", from = "?", to = "?", step = "?", missing = "dropped" }   # DECIDE: public bounds and grid',
        "decimal": '{ kind = "decimal", from = "?", to = "?", step = "0.01", missing = "dropped" }   # DECIDE: public bounds',
        "date": '{ kind = "date", from = "?", to = "?", grid = "day", missing = "dropped" }   # DECIDE: public bounds; grid: day, week, month, quarter or year',
        "timestamp": f'{{ kind = "timestamp", from = "?", to = "?", grid = "hour"{zone}, missing = "dropped" }}   # DECIDE: public bounds; grid: minute, 15-minutes, 30-minutes or hour',
        "time": '{ kind = "time", from = 00:00:00, to = 23:59:59, grid = "15-minutes", missing = "dropped" }   # the whole day',
        "boolean": '{ kind = "boolean", missing = "dropped" }',
        "category": f'{{ kind = "category", values = {values}, missing = "dropped" }}   # {choice}',
        "text": '{ kind = "text" }   # guessed from its name: only its presence is counted; add buckets = 64 to count by bucket',
    }
    if not guess:
        return f"# {name}: Tidegate does not support its type; leave it out"
    return f"{name} = {known[guess]}"


def propose(column: str, kind: ColumnType) -> Attribute | None:
    """Return a description with round public numbers for a column, from its name and type alone; None if no kind fits."""
    guess = guess_kind(column, kind)
    if guess in ("integer", "grid", "decimal"):
        low, high, step = next((numbers for name, numbers in RANGES if re.search(name, column, re.I)), (0, 100, "0.1"))
        if guess == "integer":
            return Integer(low, high)
        return Decimal(low, high, "0.01") if guess == "decimal" else Grid(low, high, step)
    if guess == "date":
        is_birth = re.search(r"birth|born|dob", column, re.IGNORECASE)
        return Date(dt.date(1900 if is_birth else 2010, 1, 1), dt.date(2029, 12, 31), "month" if is_birth else "day")
    if guess == "timestamp":
        zone = "UTC" if kind == "instant" else ""
        return Timestamp(dt.datetime(2020, 1, 1), dt.datetime(2029, 12, 31, 23), "hour", zone)
    if guess == "category":
        listed: tuple[str | int, ...] = next((words for name, words in LISTS if re.search(name, column, re.I)), ())
        listed = (0, 1) if kind == "whole" else listed
        return Category(listed, outside="other" if kind == "text" else "missing") if listed else Text(BUCKETS)
    others: dict[Kind, Attribute] = {
        "time": Time(dt.time(0), dt.time(23, 59), "15-minutes"),
        "boolean": Boolean(),
        "text": Text(),
        "key": Key(),
    }
    return others.get(guess)


def range_by_name(column: str) -> tuple[int, int, str] | None:
    """Return a round public range for a column whose name suggests one: from, to, step."""
    return next((numbers for name, numbers in RANGES if re.search(name, column, re.IGNORECASE)), None)


def values_by_name(column: str) -> tuple[str, ...]:
    """Return a public list of values for a column whose name suggests one; empty if it does not."""
    return next((words for name, words in LISTS if re.search(name, column, re.IGNORECASE)), ())


def first_query(policy: Policy) -> str:
    """Return a query to try first: a count by group or with a condition, never the number of rows."""
    public = public_columns(policy)
    columns = {name: attribute for name, attribute in policy.attributes.items() if name not in public}
    for name, attribute in columns.items():
        if isinstance(attribute, Category) and attribute.cells <= MOST_GROUPS:
            column, table = _sql_names(policy, name)
            return f"SELECT {column}, COUNT(*) FROM {table} GROUP BY {column}"  # noqa: S608
    for name, attribute in columns.items():
        if isinstance(attribute, Numeric) and attribute.size > 1:
            column, table = _sql_names(policy, name)
            middle = attribute.label(attribute.size // 2)
            value = f"{attribute.kind.upper()} '{middle}'" if isinstance(attribute, Moment) else middle
            return f"SELECT COUNT(*) FROM {table} WHERE {column} >= {value}"  # noqa: S608
    text = next((name for name, attribute in columns.items() if isinstance(attribute, Category | Text)), "")
    column, table = _sql_names(policy, text)
    return f"SELECT COUNT({column if text else '*'}) FROM {table}"  # noqa: S608


def _sql_names(policy: Policy, name: str) -> tuple[str, str]:
    """Return a column and its table as SQL writes them."""
    table, _, column = name.partition(".") if policy.tables else (policy.dataset.name, "", name)
    return _sql_name(column), _sql_name(table or next(iter(policy.tables)))


def _sql_name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'
