"""Code snippets of a query in Python and on the command line. Both run exactly the query of the page."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tidegate.answer.request import Query
from tidegate.exact import exact, plain
from tidegate.policy.predicates import Chain, Compare, Missing, Opposite, Predicate, Value
from tidegate.web.snippets.sql import sql_of

PYTHON, COMMAND = "Python", "Command line"
PLACEHOLDER = '"tg_..."'  # a placeholder for the reader's token
LIMITS = ("rho", "epsilon", "error", "share", "z")
USUAL = {"confidence": 0.95, "calibration": "equation-15", "window": 1, "plan": "one-by-one"}
OPERATORS = {"=": "=="}
JOINED = {"and": "&", "or": "|"}
PLAIN_IN_SHELL = set('"$`\\!')


def query_code(
    queries: Sequence[Query],
    options: Mapping[str, Any],
    *,
    address: str,
    dataset: str,
    sql: str = "",
    fit: bool = False,
) -> dict[str, str]:
    """Return the snippets of a query. `sql` is the user's text, if the query is SQL."""
    question = text(sql) if sql else python_queries(queries)
    return {
        PYTHON: _python(question, options, address=address, dataset=dataset, several=len(queries) > 1, fit=fit),
        COMMAND: _command([sql] if sql else [sql_of(query, dataset) for query in queries], options, dataset, fit=fit),
    }


def connection_code(address: str, dataset: str, token: str = PLACEHOLDER) -> str:
    """Return the Python code that connects to a data set."""
    return f"import tidegate as tg\n\nremote = tg.connect({text(address)}, {token}, dataset={text(dataset)})"


def python_queries(queries: Sequence[Query]) -> str:
    """Return the Python code of one query or a list of queries."""
    if len(queries) == 1:
        return python_of(queries[0])
    return "[{}]".format(", ".join(python_of(query) for query in queries))


def python_of(query: Query) -> str:
    """Return the Python code of a query: ``tg.mean("age").where(tg.col("sex") == "female")``."""
    where = f".where({_condition(query.condition)})" if query.condition is not None else ""
    by = f".by({', '.join(map(text, query.groups))})" if query.groups else ""
    return f"tg.{_statistic(query)}{where}{by}"


def python_options(options: Mapping[str, Any]) -> str:
    """Return the keyword arguments that are not defaults: ``error=0.2``."""
    values = {name: options.get(name) for name in (*LIMITS, *USUAL)}
    return ", ".join(f"{name}={_literal(name, value)}" for name, value in values.items() if _is_set(name, value))


def text(value: str) -> str:
    """Return a text as a Python literal."""
    return json.dumps(value, ensure_ascii=False)


def shell(value: str) -> str:
    """Return a text as a shell word."""
    return shlex.quote(value) if PLAIN_IN_SHELL & set(value) else f'"{value}"'


def _python(
    question: str, options: Mapping[str, Any], *, address: str, dataset: str, several: bool, fit: bool = False
) -> str:
    fractions = "from fractions import Fraction\n\n" if "Fraction(" in question else ""
    setup = f"{fractions}{connection_code(address, dataset)}\nquestion = {question}"
    if fit:
        return f"{setup}\nremote.fit(question)  # free"
    shown = "[part.rows() for part in answer]" if several else "answer.rows()"
    arguments = python_options(options)
    return f"{setup}\nremote.preview(question, {arguments})  # free\nanswer = remote.answer(question, {arguments})\n{shown}"


def _command(questions: Sequence[str | None], options: Mapping[str, Any], dataset: str, *, fit: bool) -> str:
    if None in questions:
        return "# This query cannot be written in SQL. Run it in Python."
    queries = " ".join(shell(question) for question in questions if question is not None)
    flags = "".join(f" --{name} {options[name]}" for name in (*LIMITS, *USUAL) if _is_set(name, options.get(name)))
    line = f"tidegate answer {dataset}.toml {queries}"
    return f"{line} --fit" if fit else f"{line}{flags} --preview\n{line}{flags}"


def _is_set(name: str, value: Any) -> bool:
    return value is not None and USUAL.get(name) != value


def _literal(name: str, value: Any) -> str:
    if name in LIMITS:
        return number(exact(value)) if isinstance(value, str) else repr(value)
    return text(value) if isinstance(value, str) else repr(value)


def number(value: Fraction) -> str:
    """Return a number that stays exact: a float literal if it is exact, else a text."""
    written = str(plain(value))
    return written if _bare(written, value) else text(written)


def _bare(written: str, value: Fraction) -> bool:
    return "/" not in written and exact(float(written)) == value if "." in written else "/" not in written


def _statistic(query: Query) -> str:
    if query.statistic == "count":
        return "count()"
    column = text(query.column)
    if query.statistic == "quantile" and query.share is not None:
        return f"median({column})" if query.share == Fraction(1, 2) else f"quantile({column}, {number(query.share)})"
    if query.statistic == "regression":
        formula = text(f"{query.column} ~ {' + '.join(query.terms)}")
        return (
            f"regression({formula})"
            if query.method == "k-norm"
            else f"regression({formula}, method={text(query.method)})"
        )
    return f"{query.statistic}({column})"


def _condition(condition: Predicate) -> str:
    if isinstance(condition, Compare):
        operator = OPERATORS.get(condition.operator, condition.operator)
        return f"tg.col({text(condition.column)}) {operator} {_value(condition.value)}"
    if isinstance(condition, Missing):
        return f"tg.col({text(condition.column)}).missing()"
    if isinstance(condition, Opposite):
        return f"~({_condition(condition.inner)})"
    if isinstance(condition, Chain):
        return f" {JOINED[condition.word]} ".join(f"({_condition(part)})" for part in condition.parts)
    raise TypeError("Unknown condition.")


def _value(value: Value) -> str:
    """Return a value as Python code. A number that is not an exact float becomes a Fraction: a text would stay a text."""
    if not isinstance(value, Fraction):
        return text(value) if isinstance(value, str) else repr(value)
    written = str(plain(value))
    return written if _bare(written, value) else f"Fraction({text(str(value))})"
