"""Cores: the aggregated SELECTs over private rows. Everything above them is arithmetic on released numbers.

A core has grouping expressions and measures; in the tree that runs on its table of cells, these are the columns g0, g1, ...
and m0, m1, ...
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tidegate.answer.request import Query
from tidegate.answer.sql.conditions import read_condition, value_of
from tidegate.answer.sql.measures import AGGREGATES, Measure, is_aggregate, public_rows, read_measure
from tidegate.answer.sql.text import ROWS_FORM, ROWS_REFUSED, bare
from tidegate.answer.sql.trees import RANKING, contains_aggregate, cube, each, is_star, rollup, title
from tidegate.answer.sql.views import Source, View, is_key
from tidegate.errors import TooManyCells, Unsupported
from tidegate.policy import EachPerson, Policy
from tidegate.policy.predicates import Predicate
from tidegate.tables.expressions import (
    NAMED,
    check_nodes,
    column_name,
    columns_of,
    links,
    refuse_function,
    write,
)
from tidegate.tables.universe import grouping_of

if TYPE_CHECKING:
    from tidegate.answer.sql.compiler import Compiler

MOST_GROUPS, MOST_SETS = 8, 64


@dataclass
class Slot:
    """A column of a core's table: a number of the answers to some queries."""

    measure: Measure
    queries: list[tuple[Query, ...]] = field(default_factory=list)  # for each grouping set
    public: Any = None


@dataclass
class Core:
    """One table of cells. `sets` lists, for each grouping set, the grouping expressions that it keeps."""

    name: str
    policy: Policy
    groups: list[str]
    sets: list[tuple[int, ...]]
    condition: Predicate | None
    texts: list[str]  # the parts of the condition, to leave out cells that it excludes
    slots: list[Slot] = field(default_factory=list)
    rows: str = ""
    layouts: dict[int, Any] = field(default_factory=dict, repr=False)  # of the sets, once they are laid out

    def slot(self, measure: Measure) -> str:
        """Return the column of a measure; equal measures share one."""
        for number, slot in enumerate(self.slots):
            if _same(slot.measure, measure):
                return f"m{number}"
        self.slots.append(self._build(measure))
        return f"m{len(self.slots) - 1}"

    def _build(self, measure: Measure) -> Slot:
        slot = Slot(measure)
        conditions = [read_condition(node, self.policy) for node in measure.conditions]
        conditions = ([self.condition] if self.condition is not None else []) + conditions
        if not conditions and self.sets == [()]:
            slot.public = public_rows(measure, self.policy)
        for indexes in self.sets:
            groups = tuple(self.groups[index] for index in indexes)
            queries = []
            for query in (measure.query, *measure.others):
                for condition in conditions:
                    query = query.where(condition)
                queries.append(_with(query, groups, self.rows))
            for query in queries:
                query.check(self.policy)
            slot.queries.append(tuple(queries))
        return slot


def _same(left: Measure, right: Measure) -> bool:
    texts = [[write(node) for node in measure.conditions] for measure in (left, right)]
    return texts[0] == texts[1] and (left.query, left.part, left.others, left.factor) == (
        right.query,
        right.part,
        right.others,
        right.factor,
    )


def _with(query: Query, groups: tuple[str, ...], rows: str) -> Query:
    return replace(query, groups=(*query.groups, *groups), table=rows)


class AggregatedSelect:
    """One aggregated SELECT over private rows."""

    def __init__(self, compiler: Compiler, select: exp.Select, view: View, known: dict[str, Source]) -> None:
        self.compiler, self.select, self.view, self.known = compiler, select, view, known
        self.policy = compiler.policy.flat(view.rows) if view.rows is not None else compiler.policy
        self.aliases: dict[str, Any] = {}
        self.items = [self._item(item) for item in select.expressions]
        groups, sets = self._groups()
        self.columns = {write(group): f"g{index}" for index, group in enumerate(groups)}
        self.core = self._core(groups, sets)

    def _item(self, item: Any) -> tuple[str, Any]:
        """Return the name of a column of the result, and its expression in the policy's names."""
        inner = item.this if isinstance(item, exp.Alias) else item
        if is_star(inner):
            raise Unsupported(f"{ROWS_REFUSED} * stands for columns of rows.", ROWS_FORM)
        node = self.compiler.resolve(inner, self.view, self.aliases)
        if isinstance(item, exp.Alias):
            self.aliases.setdefault(item.alias.lower(), node)
        name = item.alias if isinstance(item, exp.Alias) else inner.name if isinstance(inner, exp.Column) else ""
        return name or title(inner), node

    # ---- groups

    def _groups(self) -> tuple[list[Any], list[tuple[int, ...]]]:
        """Return the grouping expressions, and the grouping sets as positions among them."""
        clause = self.select.args.get("group")
        if clause is None:
            return [], [()]
        if clause.args.get("all"):
            listed = [bare(node) for _, node in self.items if not contains_aggregate(node)]
            return listed, [tuple(range(len(listed)))]
        groups: list[Any] = []
        sets = [self._positions(clause.expressions, groups)]
        for name, expand in (("rollup", rollup), ("cube", cube), ("grouping_sets", each)):
            for part in clause.args.get(name) or []:
                several = [self._several(node) for node in part.expressions]
                choices = [self._positions(chain.from_iterable(chosen), groups) for chosen in expand(several)]
                sets = [(*left, *right) for left in sets for right in choices]
        if any(
            value
            for name, value in clause.args.items()
            if name not in ("expressions", "rollup", "cube", "grouping_sets", "all")
        ):
            raise Unsupported(
                "This form of GROUP BY is not possible.",
                "Group by columns, expressions, ROLLUP, CUBE or GROUPING SETS.",
            )
        if len(groups) > MOST_GROUPS or len(sets) > MOST_SETS:
            raise Unsupported(
                f"At most {MOST_GROUPS} groups and {MOST_SETS} grouping sets are possible.", "Group by fewer columns."
            )
        return groups, [tuple(dict.fromkeys(chosen)) for chosen in sets]

    def _several(self, node: Any) -> list[Any]:
        if isinstance(node, exp.Tuple):
            return list(node.expressions)
        return [node.this] if isinstance(node, exp.Paren) else [node]

    def _positions(self, nodes: Iterable[Any], groups: list[Any]) -> tuple[int, ...]:
        positions = []
        for node in nodes:
            expression = self._group(node)
            texts = [write(other) for other in groups]
            if write(expression) not in texts:
                groups.append(expression)
                texts.append(write(expression))
            positions.append(texts.index(write(expression)))
        return tuple(positions)

    def _group(self, node: Any) -> Any:
        position = value_of(node)
        if position is not None:
            number = int(position) if not isinstance(position, str | bool) and position.denominator == 1 else 0
            if not 1 <= number <= len(self.items):
                raise Unsupported(
                    "GROUP BY has a position that the SELECT does not have.", "Name the column or the expression."
                )
            return bare(self.items[number - 1][1])
        return bare(self.compiler.resolve(node, self.view, self.aliases))

    # ---- the core

    def _core(self, groups: list[Any], sets: list[tuple[int, ...]]) -> Core:
        nodes = [*self.view.conditions]
        if self.select.args.get("where"):
            nodes.append(self.compiler.resolve(self.select.args["where"].this, self.view, self.aliases))
        for node in nodes:
            if contains_aggregate(node):
                raise Unsupported("WHERE cannot contain an aggregate.", "Use HAVING, which filters released numbers.")
            if node.find(exp.Subquery, exp.Select, exp.Exists):
                raise refuse_function(exp.Subquery())
            self._refuse_keys(node, "condition")
        parts = [
            part
            for node in nodes
            for part in links(node, exp.And, through_parentheses=True)
            if value_of(part) is not True
        ]
        condition = None
        for node in nodes:
            if value_of(node) is True:
                continue
            read = read_condition(node, self.policy)
            condition = read if condition is None else condition & read
        names = [self._name(group) for group in groups]
        core = Core(
            f"core{len(self.compiler.cores)}",
            self.policy,
            names,
            sets,
            condition,
            [write(part) for part in parts],
            rows=str(self.view.rows) if self.view.rows is not None else "",
        )
        self.compiler.cores.append(core)
        self._check_cells(core)
        return core

    def _name(self, group: Any) -> str:
        """Return the name of a grouping: a column of the policy, or the text of an expression."""
        if contains_aggregate(group):
            raise Unsupported("GROUP BY cannot contain an aggregate.", "Group by columns or expressions of them.")
        self._refuse_keys(group, "grouping")
        if isinstance(group, exp.Column):
            name = column_name(group)
            attribute = self.policy.attributes.get(name)
            if attribute is not None and attribute.kind == "text":
                raise Unsupported(
                    f'"{name}" is text without a public list of values, so it cannot be grouped by or compared.',
                    f'COUNT({name}) is possible; or list the values in the policy: kind = "category".',
                )
            if attribute is not None:
                return name
        check_nodes(group)
        return write(group)

    def _refuse_keys(self, node: Any, what: str) -> None:
        for name in columns_of(node):
            if is_key(self.policy, name):
                raise Unsupported(
                    f'"{name}" names the person or the record, so it cannot be part of a {what}.',
                    f"COUNT(DISTINCT {name}) is possible, and so are statistics by other columns.{self._per_person(name)}",
                )

    def _per_person(self, name: str) -> str:
        unit = self.policy.dataset.unit
        is_person = isinstance(unit, EachPerson) and name.rpartition(".")[2] == unit.key.rpartition(".")[2]
        return f" For a mean per person, divide: COUNT(*) * 1.0 / COUNT(DISTINCT {name})." if is_person else ""

    def _check_cells(self, core: Core) -> None:
        for chosen in core.sets:
            sizes = [grouping_of(self.policy, core.groups[index]).cells for index in chosen]
            cells = math.prod(sizes)
            if cells > self.compiler.most_cells:
                raise TooManyCells(
                    f"GROUP BY has {' x '.join(f'{size:,}' for size in sizes)} = {cells:,} cells; more than {self.compiler.most_cells:,} are rarely useful.",
                    f"Group by ranges, for example FLOOR(x / 10) * 10 or DATE_TRUNC('month', day), or allow more: --cells {cells}, in Python session.sql(text, cells={cells}).",
                )

    # ---- the tree on released numbers

    def tree(self) -> Any:
        """Return the SELECT on the core's table."""
        select, compiler = self.select, self.compiler
        columns = [exp.alias_(self.lift(node), name, quoted=True) for name, node in self.items]
        tree = exp.Select(expressions=columns, from_=exp.From(this=exp.to_table(self.core.name)))
        titles = {name.lower() for name, _ in self.items}
        having = select.args.get("having")
        if having is not None:
            tree.set("where", exp.Where(this=self.lift(compiler.resolve(having.this, self.view, self.aliases))))
        qualify = select.args.get("qualify")
        if qualify is not None:
            tree.set("qualify", exp.Qualify(this=self.lift(compiler.resolve(qualify.this, self.view, self.aliases))))
        order = select.args.get("order")
        if order is not None:
            tree.set("order", self._order(order, titles))
        for name in ("limit", "offset", "distinct"):
            if select.args.get(name):
                tree.set(name, select.args[name].copy())
        if having is not None or qualify is not None or (select.args.get("limit") and self._is_noisy(order)):
            compiler.notes.add("chosen")
        return tree

    def _is_noisy(self, order: exp.Order | None) -> bool:
        """Return whether an order depends on noisy numbers; without one, rows have the order of the cells."""
        items = {name.lower(): node for name, node in self.items}
        for item in order.expressions if order is not None else ():
            node = item.this
            number = int(node.name) if isinstance(node, exp.Literal) and node.is_int else 0
            if 0 < number <= len(self.items):
                node = self.items[number - 1][1]
            elif isinstance(node, exp.Column) and not node.table:
                node = items.get(node.name.lower(), node)
            if contains_aggregate(node) or (isinstance(node, exp.Column | exp.Var) and node.name.upper() == "ALL"):
                return True
        return False

    def _order(self, order: exp.Order, titles: set[str]) -> exp.Order:
        ordered = []
        for item in order.expressions:
            copied, node = item.copy(), item.this
            is_title = isinstance(node, exp.Column) and not node.table and node.name.lower() in titles
            is_all = isinstance(node, exp.Column) and node.name.upper() == "ALL"
            if not is_title and not is_all and value_of(node) is None and not isinstance(node, exp.Var):
                copied.set("this", self.lift(self.compiler.resolve(node, self.view, self.aliases)))
            ordered.append(copied)
        return exp.Order(expressions=ordered)

    def lift(self, node: Any) -> Any:
        """Return an expression with groups and aggregates replaced by columns of the core's table."""
        if isinstance(node, exp.Subquery | exp.Select | exp.SetOperation):
            return self.compiler.scalar(node, self.known)
        if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query")):
            raise Unsupported(
                "EXISTS and IN (SELECT ...) are not possible here.", "Join the tables, and use COUNT(DISTINCT key)."
            )
        group = self.columns.get(write(bare(node))) if self.columns and isinstance(node, exp.Condition) else None
        if group is not None:
            return exp.column(group, table=self.core.name)
        if isinstance(node, exp.Window):
            return self._window(node)
        if is_aggregate(node):
            return self._measured(node)
        if isinstance(node, exp.Anonymous) and node.name.lower() not in NAMED:
            raise refuse_function(node, AGGREGATES)
        if isinstance(node, exp.Column):
            raise Unsupported(
                f'"{column_name(node)}" is neither grouped nor aggregated.',
                f"Add it to GROUP BY, or use an aggregate such as AVG({column_name(node)}).",
            )
        return self._children(node)

    def _children(self, node: Any) -> Any:
        copied = node.copy()
        for name, value in node.args.items():
            if isinstance(value, list):
                copied.set(name, [self.lift(part) if isinstance(part, exp.Expression) else part for part in value])
            elif isinstance(value, exp.Expression) and not isinstance(value, exp.DataType | exp.Identifier | exp.Var):
                copied.set(name, self.lift(value))
        return copied

    def _window(self, node: exp.Window) -> Any:
        """Keep the window function itself, which runs over cells; lift what is inside."""
        copied = self._children(exp.Window(**{name: value for name, value in node.args.items() if name != "this"}))
        function = node.this
        inner = function.this if isinstance(function, exp.IgnoreNulls | exp.RespectNulls) else function
        lifted = self._children(inner)
        if function is not inner:
            lifted = type(function)(this=lifted)
        copied.set("this", lifted)
        if isinstance(inner, RANKING):
            self.compiler.notes.add("chosen")
        return copied

    def _measured(self, node: Any) -> Any:
        for part in node.walk():
            if part is not node and isinstance(part, exp.Subquery | exp.Select):
                raise Unsupported(
                    "A subquery on private rows cannot be part of an aggregate.",
                    "Ask for its value first, then write the number.",
                )
            if part is not node and isinstance(part, exp.Window):
                raise Unsupported(f"{ROWS_REFUSED} A window over rows would show them.", ROWS_FORM)
        measure = read_measure(node, self.policy)
        return exp.column(self.core.slot(measure), table=self.core.name)
