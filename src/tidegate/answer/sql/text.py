"""SQL text to checked syntax trees, in several dialects, with limits on length, depth and the steps of the parser."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp

from tidegate.errors import Unsupported
from tidegate.tables.expressions import ParserStopped, parse_text

DIALECTS = ("duckdb", "postgres", "spark", "tsql")  # the first that can read the text
FOREIGN = {"top": "tsql", "datepart": "tsql", "date_format": "spark", "to_char": "postgres"}  # functions of one dialect
LONGEST, MOST_NODES, DEEPEST = 50_000, 10_000, 400
FORM = (
    "SELECT columns or expressions, COUNT(*) | COUNT(DISTINCT x) | SUM(x) | AVG(x) | STDDEV(x) | MEDIAN(x) | QUANTILE(x, 0.9) | MIN(x) | MAX(x) "
    "FROM {name} [WHERE ...] [GROUP BY ...] [HAVING ...] [ORDER BY ...] [LIMIT n]"
)


ROWS_REFUSED = "Single rows are never returned."
ROWS_FORM = "Ask for statistics: SELECT column, COUNT(*), AVG(number) FROM table GROUP BY column. The values of a category are public: the policy lists them."


def bare(node: Any) -> Any:
    """Return an expression without the parentheses around it."""
    return bare(node.this) if isinstance(node, exp.Paren) else node


def read_statements(text: str, name: str) -> list[Any]:
    """Return the queries of a text, which are separated by semicolons. `name` is a table for the supported form."""
    form = f"Supported: {FORM.format(name=name)}"
    if len(text) > LONGEST:
        raise Unsupported(
            f"The SQL has more than {LONGEST:,} characters.", "Use ranges instead of long lists, or ask in parts."
        )
    trees = _parse(text)
    if trees is None:
        raise Unsupported(_problem(text), form)
    statements = [tree for tree in trees if tree is not None]  # None: after a last semicolon
    if not statements:
        raise Unsupported("The text contains no query.", form)
    for statement in statements:
        if not isinstance(statement, exp.Select | exp.SetOperation | exp.Subquery):
            raise Unsupported("Only SELECT is possible. The policy lists the tables, their columns and values.", form)
        _check_size(statement)
    return statements


def _parse(text: str) -> list[Any] | None:
    """Return the trees of a text in the first dialect that can read it, or in the one whose functions it uses."""
    trees = _parse_in(text, DIALECTS)
    for name, dialect in FOREIGN.items():
        if trees and any(_calls(tree, name) for tree in trees):
            trees = _parse_in(text, (dialect,)) or trees
    for tree in filter(None, trees or []):
        for node in list(tree.find_all(exp.TimeStrToTime)):
            node.replace(node.this)  # dates and times of a table are not texts
        for node in list(tree.find_all(exp.Anonymous)):
            if node.name.lower() == "date_part" and len(node.expressions) == 2 and node.expressions[0].is_string:
                unit, value = node.expressions
                node.replace(exp.Extract(this=exp.var(unit.name), expression=value))
        for node in tree.find_all(exp.Extract):
            node.set("this", exp.var(node.name.upper()))  # as the first dialect writes it
    return trees


def _calls(tree: Any, name: str) -> bool:
    functions = tree.find_all(exp.Anonymous, exp.ToChar) if tree is not None else ()
    return any((node.name if isinstance(node, exp.Anonymous) else "to_char").lower() == name for node in functions)


def _parse_in(text: str, dialects: tuple[str, ...]) -> list[Any] | None:
    for dialect in dialects:
        try:
            return parse_text(text, dialect)
        except (
            ParserStopped,
            sqlglot.errors.SqlglotError,
            RecursionError,
            ValueError,
            TypeError,
            AttributeError,
            IndexError,
            KeyError,
        ):
            continue  # the parser fails on malformed text in many ways, all of them public
    return None


def _problem(text: str) -> str:
    """Return where a text stops being SQL, in the first dialect."""
    try:
        parse_text(text, DIALECTS[0])
    except sqlglot.errors.ParseError as error:
        position = next(iter(error.errors), {})
        word, before = (
            f"{position.get('highlight', '')}"[:40],
            " ".join(f"{position.get('start_context', '')}".split())[-40:],
        )
        if word and str(position.get("description", "")).startswith("Required"):
            return f'The text is not valid SQL: something is missing after "{word}" in line {position["line"]}.'
        if word and before:
            return f'The text is not valid SQL: "{word}" cannot follow "{before}" in line {position["line"]}.'
    except sqlglot.errors.TokenError:
        return "The text is not valid SQL: a quote or a comment is not closed."
    except (ParserStopped, RecursionError, ValueError, TypeError, AttributeError, IndexError, KeyError):
        pass
    return "The text is not valid SQL, or is nested too deeply."


def _check_size(tree: Any) -> None:
    """Refuse trees that are too long or too deep, without recursion."""
    waiting, count = [(tree, 0)], 0
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if count > MOST_NODES or depth > DEEPEST:
            raise Unsupported(
                f"The SQL is longer than {MOST_NODES:,} words or nested deeper than {DEEPEST} levels.",
                "Use ranges instead of long lists, or ask in parts.",
            )
        if isinstance(node, exp.Func) and any(
            is_required and node.args.get(name) is None for name, is_required in node.arg_types.items()
        ):
            raise Unsupported(
                "A function of the SQL lacks an argument.", "Write, for example, YEAR(day) or AVG(price)."
            )
        same = isinstance(node, exp.And | exp.Or)  # long chains are read without recursion
        waiting += [
            (child, depth if same and type(child) is type(node) else depth + 1) for child in node.iter_expressions()
        ]
