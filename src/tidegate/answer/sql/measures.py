"""Aggregates of SQL as statistics: which query measures an aggregate, and which number of its answer it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from tidegate.answer.request import MOST_TERMS, Query, quantile
from tidegate.answer.sql.conditions import value_of
from tidegate.answer.sql.text import bare
from tidegate.errors import Unsupported
from tidegate.policy import EachPerson, EachRow, Key, Numeric, Policy
from tidegate.tables.expressions import check_nodes, column_name, columns_of, function_name, write

SIMPLE: dict[type, tuple[str, str]] = {  # the statistic, and the part of its answer
    exp.Sum: ("sum", "value"),
    exp.Avg: ("mean", "value"),
    exp.Min: ("min", "value"),
    exp.Max: ("max", "value"),
    exp.Variance: ("variance", "value"),
    exp.VariancePop: ("variance", "population"),
    exp.Stddev: ("std", "value"),
    exp.StddevSamp: ("std", "value"),
    exp.StddevPop: ("std", "population"),
}
PAIRS: dict[type, str] = {
    exp.RegrSlope: "slope",
    exp.RegrIntercept: "intercept",
    exp.CovarSamp: "covariance",
    exp.CovarPop: "covariance_pop",
    exp.Corr: "correlation",
    exp.RegrR2: "determination",
}
NAMED_QUANTILES = ("approx_percentile", "quantile_cont", "quantile_disc", "percentile_approx")
AGGREGATES = (
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "MEDIAN",
    "QUANTILE_CONT",
    "STDDEV",
    "VARIANCE",
    "CORR",
    "REGR_SLOPE",
)
CONDITIONAL = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median)
SUPPORTED = f"COUNT, COUNT(DISTINCT ...), {', '.join(AGGREGATES[1:-1])} and {AGGREGATES[-1]} are supported"


@dataclass(frozen=True)
class Measure:
    """A statistic of one core without its groups and the core's condition. `conditions` are its own (FILTER, CASE).

    `factor` multiplies it (SUM(2) is twice the number of rows).
    """

    query: Query
    part: str = "value"
    conditions: tuple[Any, ...] = ()
    others: tuple[Query, ...] = ()
    factor: Fraction = Fraction(1)


def is_aggregate(node: Any) -> bool:
    """Return whether a node adds up rows."""
    if isinstance(node, exp.Filter | exp.WithinGroup | exp.AggFunc):
        return True
    return isinstance(node, exp.Anonymous) and node.name.lower() in ("std", "histogram", *NAMED_QUANTILES)


def read_measure(node: Any, policy: Policy) -> Measure:
    """Return the measure of an aggregate whose names are those of the policy."""
    if isinstance(node, exp.Filter):
        inner = read_measure(node.this, policy)
        return replace(inner, conditions=(*inner.conditions, node.expression.this))
    measure = _Reader(policy).read(node)
    if measure is None:
        name = function_name(node) if isinstance(node, exp.Func) else "This aggregate"
        raise Unsupported(f"{name} has no private form: it could show single values.", f"{SUPPORTED}.")
    return measure


class _Reader:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def read(self, node: Any) -> Measure | None:
        build = READERS.get(type(node))
        return build(self, node) if build else None

    def count(self, node: Any) -> Measure | None:
        counted = node.this
        if node.expressions or not set(node.args) <= {"this", "expressions", "big_int"}:
            return None
        if counted is None or isinstance(counted, exp.Star) or value_of(counted) is not None:
            return Measure(Query("count"))
        if isinstance(counted, exp.Distinct):
            return self.distinct(counted)
        if isinstance(counted, exp.Column) and self._is_key(counted):
            return Measure(Query("count"))  # every row has a key
        return Measure(Query("count"), conditions=(_is_there(counted),))

    def _is_key(self, node: exp.Column) -> bool:
        return isinstance(self.policy.attribute(column_name(node)), Key)

    def distinct(self, node: exp.Distinct) -> Measure | None:
        if len(node.expressions) != 1 or node.args.get("on"):
            raise Unsupported("COUNT(DISTINCT ...) takes one expression.", "Write COUNT(DISTINCT x).")
        (inner,) = node.expressions
        condition, value, rest = _split_case(inner)
        conditions = (condition,) if condition is not None and rest is None else ()
        named = value if conditions else inner
        if isinstance(named, exp.Column) and self._is_key(named):
            unit, name = self.policy.dataset.unit, column_name(named)
            person = isinstance(unit, EachPerson) and name.rpartition(".")[2] == unit.key.rpartition(".")[2]
            return Measure(Query("persons") if person else Query("distinct", name), conditions=conditions)
        check_nodes(inner)
        return Measure(Query("distinct", write(bare(inner))))

    def count_if(self, node: Any) -> Measure:
        return Measure(Query("count"), conditions=(node.this,))

    def simple(self, node: Any) -> Measure | None:
        statistic, part = SIMPLE[type(node)]
        if not {name for name, value in node.args.items() if value} <= {"this"}:
            return None
        inner = bare(node.this)
        if isinstance(inner, exp.Distinct):
            raise Unsupported(
                f"{type(node).sql_name()}(DISTINCT ...) is not possible: it depends on which values occur.",
                f"Use {type(node).sql_name()}(x), or COUNT(DISTINCT x).",
            )
        conditions: tuple[Any, ...] = ()
        if isinstance(node, CONDITIONAL):
            inner, conditions = self._without_case(node, inner)
        constant = value_of(inner)
        if constant is not None and statistic == "sum" and isinstance(constant, Fraction):
            return Measure(Query("count"), conditions=conditions, factor=constant)
        return Measure(Query(statistic, self._number(inner)), part, conditions)

    def _without_case(self, node: Any, inner: Any) -> tuple[Any, tuple[Any, ...]]:
        """Return CASE WHEN c THEN x END as x under the condition c; for sums, ELSE 0 is the same."""
        condition, value, rest = _split_case(inner)
        zero = isinstance(node, exp.Sum) and rest is not None and value_of(rest) == 0
        if condition is None or not (rest is None or isinstance(rest, exp.Null) or zero):
            return inner, ()
        return bare(value), (condition,)

    def _number(self, node: Any) -> str:
        """Return the name of a number: a column, or the text of an expression."""
        if isinstance(node, exp.Column):
            name = column_name(node)
            attribute = self.policy.countable(name)
            if not isinstance(attribute, Numeric):
                raise Unsupported(
                    f'"{name}" is a category: it can be counted, not averaged.', "Use COUNT(*) with GROUP BY instead."
                )
            return name
        if node is None:
            raise Unsupported("An aggregate has no argument.", f"Write, for example, AVG(x). {SUPPORTED}.")
        if not columns_of(node):
            raise Unsupported(
                "An aggregate of a constant says nothing about the rows.", "Use COUNT(*), or name a column."
            )
        check_nodes(node)
        return write(node)

    def median(self, node: Any) -> Measure:
        inner, conditions = self._without_case(node, bare(node.this))
        return Measure(quantile(self._number(inner), Fraction(1, 2)), conditions=conditions)

    def quantile(self, node: Any) -> Measure | None:
        return self._quantile(node.this, node.args.get("quantile") or node.args.get("expression"))

    def within_group(self, node: Any) -> Measure | None:
        ordered = node.expression.expressions if isinstance(node.expression, exp.Order) else []
        if not isinstance(node.this, exp.PercentileCont | exp.PercentileDisc) or len(ordered) != 1:
            return None
        share = value_of(node.this.this)
        if ordered[0].args.get("desc") and isinstance(share, Fraction):
            share = 1 - share
        return self._quantile(ordered[0].this, share)

    def _quantile(self, node: Any, share: Any) -> Measure:
        value = share if isinstance(share, Fraction) else value_of(share) if share is not None else None
        if not isinstance(value, Fraction):
            raise Unsupported("A quantile needs a number between 0 and 1.", "Write QUANTILE_CONT(x, 0.9).")
        return Measure(quantile(self._number(bare(node)), value))

    def anonymous(self, node: exp.Anonymous) -> Measure | None:
        name, arguments = node.name.lower(), node.expressions
        if name == "histogram" and len(arguments) == 1 and isinstance(arguments[0], exp.Column):
            return Measure(Query("histogram", column_name(arguments[0])))
        if name == "std" and len(arguments) == 1:
            return Measure(Query("std", self._number(bare(arguments[0]))))
        if name in NAMED_QUANTILES and len(arguments) >= 2:
            return self._quantile(arguments[0], arguments[1])
        return None

    def pair(self, node: Any) -> Measure | None:
        names = [self._number(bare(side)) for side in (node.this, node.expression)]
        for name in names:
            if name not in self.policy.attributes:
                raise Unsupported(
                    f"{type(node).sql_name()} takes two columns, not expressions.",
                    f"At most {MOST_TERMS + 1} plain columns are possible.",
                )
        outcome, predictor = names
        if outcome == predictor:
            raise Unsupported("The two columns must be different.", "Write CORR(x, y).")
        part = PAIRS[type(node)]
        query = Query("regression", outcome, terms=(predictor,), method="k-norm")
        if part not in ("correlation", "determination"):
            return Measure(query, part)
        spread = (
            Query("variance", outcome).where(f'"{predictor}" IS NOT NULL')
            if self._can_miss(predictor)
            else Query("variance", outcome)
        )
        return Measure(query, part, others=(spread,))

    def _can_miss(self, name: str) -> bool:
        return getattr(self.policy.attribute(name), "missing", "") != "lowest"


def _is_there(node: Any) -> Any:
    return exp.Not(
        this=exp.Is(
            this=exp.Paren(this=node.copy()) if not isinstance(node, exp.Column) else node.copy(), expression=exp.Null()
        )
    )


def _split_case(node: Any) -> tuple[Any, Any, Any]:
    """Return condition, value and else of a CASE or IF with one branch; no condition for anything else."""
    node = bare(node)
    if isinstance(node, exp.Case) and node.this is None and len(node.args["ifs"]) == 1:
        branch = node.args["ifs"][0]
        return branch.this, branch.args.get("true"), node.args.get("default")
    if isinstance(node, exp.If):
        return node.this, node.args.get("true"), node.args.get("false")
    return None, None, None


def public_rows(measure: Measure, policy: Policy) -> Fraction | None:
    """Return the number of all rows if the policy states it and every row is one person: it is exact and free."""
    whole = measure.query == Query("count") and isinstance(policy.dataset.unit, EachRow)
    return measure.factor * policy.dataset.rows if whole and policy.dataset.rows is not None else None


READERS: dict[type, Callable[[_Reader, Any], Measure | None]] = {
    exp.Count: _Reader.count,
    exp.CountIf: _Reader.count_if,
    **dict.fromkeys(SIMPLE, _Reader.simple),
    exp.Median: _Reader.median,
    **dict.fromkeys((exp.Quantile, exp.ApproxQuantile, exp.PercentileCont, exp.PercentileDisc), _Reader.quantile),
    exp.WithinGroup: _Reader.within_group,
    exp.Anonymous: _Reader.anonymous,
    **dict.fromkeys(PAIRS, _Reader.pair),
}
