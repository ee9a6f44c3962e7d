"""Scalar SQL expressions over the columns of a policy: parsed, checked against a list of functions, and written in one form.

Nothing here looks at data. Every function on the list depends on its arguments alone: no clock, no randomness, no tables.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from tidegate.errors import Unsupported, did_you_mean
from tidegate.policy import Policy
from tidegate.policy.predicates import Chain, Compare, Holds, Missing, Opposite, Predicate
from tidegate.policy.tables import resolve_column

MOST_NODES = 10_000
STEPS_PER_TOKEN, LEAST_STEPS = 10, 1_000  # of the parser
BARE = re.compile(r"[a-z_][a-z0-9_]*")
LITERALS = (exp.Literal, exp.Boolean, exp.Null, exp.Interval, exp.Var, exp.DataType, exp.DataTypeParam)
OPERATORS = (
    *(exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Not, exp.Xor),
    *(exp.Between, exp.In, exp.Is, exp.Like, exp.ILike, exp.SimilarTo, exp.Escape, exp.NullSafeEQ, exp.NullSafeNEQ),
)
FUNCTIONS = (
    *(exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Cast, exp.TryCast, exp.Least, exp.Greatest),
    *(exp.Abs, exp.Floor, exp.Ceil, exp.Round, exp.Trunc, exp.Sign, exp.Ln, exp.Log, exp.Exp, exp.Sqrt, exp.Pow),
    *(exp.Upper, exp.Lower, exp.Substring, exp.Left, exp.Right, exp.Length, exp.Trim, exp.Concat, exp.StartsWith),
    *(exp.Extract, exp.TimestampTrunc, exp.DateTrunc, exp.TimeToStr, exp.DateDiff, exp.DateAdd, exp.DateSub, exp.Date),
    *(exp.Year, exp.Quarter, exp.Month, exp.Week, exp.WeekOfYear, exp.Day, exp.DayOfWeek, exp.DayOfWeekIso),
    *(exp.DayOfMonth, exp.DayOfYear, exp.Hour, exp.Minute, exp.Second, exp.Dayname, exp.Monthname, exp.LastDay),
    *(exp.WidthBucket, exp.TsOrDsToDate, exp.TimestampAdd, exp.TimestampSub, exp.StrPosition, exp.EndsWith),
)
ALLOWED = frozenset((*LITERALS, *OPERATORS, *FUNCTIONS, exp.Column, exp.Identifier))
# A warning of the parser would name it beside the refusal.
logging.getLogger("sqlglot").addFilter(lambda record: "Falling back to parsing as a" not in record.getMessage())

NAMED = frozenset({"log2", "log10", "cbrt", "ceiling", "len", "char_length", "weekday", "isodow", "mod", "div", "pi"})
FUNCTION_NAMES = sorted({*(node.sql_name() for node in FUNCTIONS), *(name.upper() for name in NAMED)})
TYPES = frozenset(
    [
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "utinyint",
        "usmallint",
        "uint",
        "ubigint",
        "hugeint",
        "int128",
        "float",
        "double",
        "decimal",
        "varchar",
        "text",
        "char",
        "nchar",
        "nvarchar",
        "date",
        "timestamp",
        "timestamp_s",
        "timestamp_ms",
        "timestampntz",
        "datetime",
        "time",
    ]
)


class ParserStopped(Exception):
    """The parser read the same words again and again."""


def parse_text(text: str, dialect: str, into: Any = None) -> list[Any]:
    """Return the syntax trees of a text.

    The parser tries some constructs in two ways each: n joins without ON took 2^n steps. Ordinary SQL takes at most 1.5 steps
    per token.

    Raises:
        ParserStopped: The parser takes more than 10 steps per token.
    """
    reader = sqlglot.Dialect.get_or_raise(dialect)
    reader.PRESERVE_ORIGINAL_NAMES = True  # refusals name functions as they were written
    tokens, parser = reader.tokenize(text), reader.parser()
    advance, steps, most = parser._advance, count(), LEAST_STEPS + STEPS_PER_TOKEN * len(tokens)

    def advance_limited(times: int = 1) -> None:
        if next(steps) > most:
            raise ParserStopped
        advance(times)

    parser._advance = advance_limited  # type: ignore[method-assign]
    return parser.parse(tokens, text) if into is None else parser.parse_into(into, tokens, text)


def column_node(name: str) -> exp.Column:
    """Return the node of a policy's column; a name with a dot is a column of a linked table."""
    table, _, bare = name.rpartition(".")
    parts = [exp.to_identifier(part, quoted=not _is_bare(part)) for part in (bare, table) if part]
    return exp.Column(this=parts[0], table=parts[1]) if len(parts) > 1 else exp.Column(this=parts[0])


def column_name(node: exp.Column) -> str:
    """Return the policy's name of a column node."""
    return f"{node.table}.{node.name}" if node.table else node.name


@lru_cache(10_000)
def _is_bare(name: str) -> bool:
    return bool(BARE.fullmatch(name)) and name.upper() not in DuckDB.Tokenizer.KEYWORDS


def write(node: Any) -> str:
    """Return an expression as text, always in the same form."""
    silent = sqlglot.ErrorLevel.IGNORE  # the list of functions decides what is supported, and no log names the parser
    return str(node.sql("duckdb", comments=False, normalize_functions="upper", unsupported_level=silent))


def columns_of(node: Any) -> list[str]:
    """Return the columns that an expression uses, in the order of their first use."""
    return list(dict.fromkeys(column_name(column) for column in node.find_all(exp.Column)))


@lru_cache(2_000)
def parse_expression(text: str) -> Any:
    """Return the checked expression of a text; names are those of the policy.

    Raises:
        Unsupported: The text is no expression of the listed functions.
    """
    node: Any = None
    try:
        node = next(iter(parse_text(text, "duckdb", into=exp.Condition)), None)
    except (ParserStopped, sqlglot.errors.SqlglotError, RecursionError, ValueError):
        node = None
    if node is None:
        raise Unsupported(
            f'"{text[:60]}" is neither a column nor an expression.', "Write, for example, FLOOR(age / 10) * 10."
        )
    check_nodes(node)
    return node


def check_nodes(node: Any) -> None:
    """Refuse everything that is not on the list of functions."""
    for number, part in enumerate(node.walk()):
        if number > MOST_NODES:
            raise Unsupported("The query is too long.", f"Use fewer than {MOST_NODES:,} names, values and operators.")
        if not _is_allowed(part):
            raise refuse_function(part)


def _is_allowed(node: Any) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in NAMED
    if isinstance(node, exp.DataType):
        return node.this.value.lower() in TYPES
    return type(node) in ALLOWED or (isinstance(node, exp.Tuple) and isinstance(node.parent, exp.In))


def refuse_function(node: Any, others: Iterable[str] = ()) -> Unsupported:
    """Return the refusal of a function that is not on the list; `others` are further names that it can be similar to."""
    if isinstance(node, exp.Subquery | exp.Select | exp.Exists):
        return Unsupported(
            "A subquery on private rows cannot be part of a condition or an expression.",
            "Ask for its value first, then write the number into the condition; to relate two tables, join them on their declared key and use COUNT(DISTINCT key).",
        )
    if isinstance(node, exp.DataType):
        return Unsupported(
            f"Values cannot be converted to {function_name(node)}.",
            "Use INTEGER, DOUBLE, DECIMAL, VARCHAR, DATE, TIMESTAMP or BOOLEAN.",
        )
    if isinstance(node, exp.Star):
        return Unsupported("* stands for rows, and it can only be counted.", "Write COUNT(*), or name a column.")
    names = [*FUNCTION_NAMES, *others]
    nearest = did_you_mean(node.name.upper(), names) if isinstance(node, exp.Anonymous) else ""
    return Unsupported(
        f"{function_name(node)} cannot be used on private values: it is not one of the supported functions of a value.",
        (f"{nearest} " if nearest.startswith("Did") else "")
        + "Supported: arithmetic, comparisons, CASE, COALESCE, CAST, FLOOR, ROUND, UPPER, SUBSTRING, LIKE, EXTRACT, DATE_TRUNC and similar; write dates and numbers as constants.",
    )


def function_name(node: Any) -> str:
    """Return the name of a function, a type or an operator, as users write it."""
    if isinstance(node, exp.Anonymous):
        return node.name.upper()[:40]
    if isinstance(node, exp.DataType):
        return str(node.this.value)
    if isinstance(node, exp.Func):
        written = str(node.meta.get("name", ""))[:40].upper()
        return written or ("RANDOM" if isinstance(node, exp.Rand) else type(node).sql_name())
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()


def holds(text: str) -> Holds:
    """Return the condition that an SQL expression is true."""
    node = parse_expression(text)
    return Holds(write(node), tuple(columns_of(node)))


def names_in(policy: Policy, text: str) -> list[str]:
    """Return the columns that a column or an expression names."""
    return [text] if text in policy.attributes else columns_of(parse_expression(text))


def full_name(policy: Policy, text: str) -> str:
    """Return a column, or the text of an expression, with the table of every column."""
    if text in policy.attributes:
        return text
    node = parse_expression(text)
    if isinstance(node, exp.Column):
        return resolve_column(policy, column_name(node))
    named = node.copy()
    for column in list(named.find_all(exp.Column)):
        column.replace(column_node(resolve_column(policy, column_name(column))))
    return write(named)


def rename_condition(condition: Predicate, rename: Callable[[str], str]) -> Predicate:
    """Return a condition with other names of columns."""
    if isinstance(condition, Holds):
        return holds(rename(condition.text))
    if isinstance(condition, Opposite):
        return Opposite(rename_condition(condition.inner, rename))
    if isinstance(condition, Chain):
        return type(condition)(*(rename_condition(part, rename) for part in condition.parts))
    if isinstance(condition, Compare | Missing):
        return replace(condition, column=rename(condition.column))
    raise TypeError("The condition is of an unknown type.")


def links(node: Any, operator: type[Any], *, through_parentheses: bool = False) -> list[Any]:
    """Return the conditions of a chain of one operator, from left to right, without recursion."""
    parts, waiting = [], [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, operator):
            waiting += [part.expression, part.this]
        elif through_parentheses and isinstance(part, exp.Paren):
            waiting.append(part.this)
        else:
            parts.append(part)
    return parts


def runnable(node: Any) -> Any:
    """Return an expression in the functions that the scratch database has."""
    return node.copy().transform(_rewrite)


def _rewrite(node: Any) -> Any:
    if isinstance(node, exp.WidthBucket):
        parts = {name: node.args.get(name) for name in ("this", "min_value", "max_value", "num_buckets")}
        if all(parts.values()):
            x, low, high, count = (f"({part.sql('duckdb')})" for part in parts.values() if part)
            return sqlglot.parse_one(
                f"CASE WHEN {x} < {low} THEN 0 WHEN {x} >= {high} THEN {count} + 1 "
                f"ELSE CAST(FLOOR(({x} - {low}) * {count} / ({high} - {low})) AS BIGINT) + 1 END",
                read="duckdb",
            )
    return node
