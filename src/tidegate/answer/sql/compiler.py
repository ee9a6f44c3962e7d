"""From a syntax tree to cores, and to a tree that names only their tables of cells."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from tidegate.answer.sql.cores import AggregatedSelect, Core
from tidegate.answer.sql.text import ROWS_FORM, ROWS_REFUSED
from tidegate.answer.sql.trees import (
    RANKING,
    has_clauses,
    in_subquery,
    is_aggregated,
    is_star,
    move_join_conditions,
    nearest_queries,
    replaced,
    with_tables,
)
from tidegate.answer.sql.views import (
    Joins,
    Released,
    Source,
    View,
    private_view,
    unknown_column,
    unknown_table,
)
from tidegate.errors import Unsupported
from tidegate.policy import Policy
from tidegate.tables.expressions import check_nodes


class Compiler:
    """The way from a tree to cores and a tree on their tables."""

    def __init__(self, policy: Policy, *, most_cells: int) -> None:
        self.policy, self.most_cells = policy, most_cells
        self.cores: list[Core] = []
        self.notes: set[str] = set()

    def compile(self, tree: Any) -> Any:
        """Return a statement as a tree on tables of cells."""
        compiled = self._numbers(tree.copy(), {})
        if not self.cores:
            raise Unsupported("The query does not use a table of the policy.", ROWS_FORM)
        return compiled

    # ---- queries

    def query(self, node: Any, known: dict[str, Source]) -> Source:
        """Return a query as a view of private rows, or as a query on released numbers."""
        if isinstance(node, exp.Subquery):
            inner = self.query(node.this, known)
            return (
                inner if isinstance(inner, View) or not has_clauses(node) else Released(replaced(node, this=inner.tree))
            )
        if not isinstance(node, exp.Select | exp.SetOperation):
            raise Unsupported("Only SELECT is possible here.", ROWS_FORM)
        known, released = self._tables_of_with(node, known)
        if isinstance(node, exp.SetOperation):
            sides = [self.query(side, known) for side in (node.this, node.expression)]
            if any(isinstance(side, View) for side in sides):
                raise Unsupported(
                    "UNION, EXCEPT and INTERSECT of rows are not possible.", "Combine SELECTs that contain statistics."
                )
            arguments = {**node.args, "this": sides[0].tree, "expression": sides[1].tree}  # type: ignore[union-attr]
            combined = type(node)(**{name: value for name, value in arguments.items() if name not in ("with", "with_")})
            return Released(with_tables(combined, released))
        return self._select(node, known, released)

    def _tables_of_with(self, node: Any, known: dict[str, Source]) -> tuple[dict[str, Source], list[Any]]:
        """Return the tables that WITH names, and those of them that are released numbers as trees."""
        clause = node.args.get("with_") or node.args.get("with")
        if clause is None:
            return known, []
        if clause.args.get("recursive"):
            raise Unsupported("WITH RECURSIVE is not possible.", "Use WITH name AS (SELECT ...).")
        known, released = dict(known), []
        for table in clause.expressions:
            if table.args["alias"].args.get("columns"):
                raise Unsupported(
                    "Column names after a WITH name are not possible.", "Name columns with AS in its SELECT."
                )
            source = self.query(table.this, known)
            known[table.alias.lower()] = source
            if isinstance(source, Released):
                released.append(exp.CTE(this=source.tree, alias=table.args["alias"].copy()))
        return known, released

    def _select(self, select: exp.Select, known: dict[str, Source], released: list[Any]) -> Source:
        start = select.args.get("from_") or select.args.get("from")
        for name in (
            "laterals",
            "pivots",
            "match",
            "connect",
            "sample",
            "into",
            "locks",
            "hint",
            "cluster",
            "distribute",
            "sort",
            "settings",
            "prewhere",
            "windows",
        ):
            if select.args.get(name):
                raise Unsupported(f"{name.upper().rstrip('S')} is not possible here.", ROWS_FORM)
        joins = select.args.get("joins") or []
        nodes = [start.this, *(join.this for join in joins)] if start is not None else []
        sources = [self._source(node, known) for node in nodes]
        if all(isinstance(source, Released) for source in sources):
            return Released(with_tables(self._released(select, known, nodes, sources), released))
        move_join_conditions(select, joins)
        view = self._joined(sources, joins)
        if not is_aggregated(select):
            return self._view_of(select, view)
        return Released(with_tables(AggregatedSelect(self, select, view, known).tree(), released))

    def _source(self, node: Any, known: dict[str, Source]) -> Source:
        if isinstance(node, exp.Subquery):
            source = self.query(node.this, known)
            if isinstance(source, View):
                return source.under(node.alias)
            return source
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise Unsupported("FROM takes tables of the policy and subqueries, not functions.", ROWS_FORM)
        if any(value for name, value in node.args.items() if name not in ("this", "alias")):
            raise Unsupported(
                "A sample, a schema or other options after a table are not possible.", "Write only its name."
            )
        if (node.args.get("alias") is not None) and node.args["alias"].args.get("columns"):
            raise Unsupported("Column names after a table are not possible.", "Name columns with AS.")
        cte = known.get(node.name.lower())
        if isinstance(cte, View):
            return cte.under(node.alias or node.name)
        if cte is not None:
            return cte
        view = private_view(self.policy, node)
        if view is None:
            raise unknown_table(self.policy, node.name)
        return view

    def _joined(self, sources: list[Source], joins: list[Any]) -> View:
        first = sources[0]
        for source, join in zip(sources[1:], joins, strict=True):
            if not isinstance(first, View) or not isinstance(source, View):
                raise Unsupported(
                    "Private rows cannot be joined with released numbers.", "Aggregate first, then join the results."
                )
            first = Joins(self.policy).join(first, source, join)
        if not isinstance(first, View):
            raise Unsupported("Private rows cannot be joined with released numbers.", "Aggregate first.")
        if first.rows is not None and self.policy.tables[first.rows.table].reference:
            raise Unsupported(
                "A query is not about the rows of a public reference table.", "Start from a private table."
            )
        return first

    def _view_of(self, select: exp.Select, view: View) -> View:
        """Return a SELECT without aggregates as a view of private rows."""
        for name in ("limit", "offset", "distinct", "order", "qualify", "having"):
            if select.args.get(name):
                raise Unsupported(
                    f"{ROWS_REFUSED} {name.upper()} on rows would make the result depend on single rows.", ROWS_FORM
                )
        columns: dict[str, Any] = {}
        for item in select.expressions:
            inner = item.this if isinstance(item, exp.Alias) else item
            if is_star(inner):
                if any(value for name, value in inner.args.items() if name not in ("this", "table") and value):
                    raise Unsupported("EXCLUDE and REPLACE after * are not possible.", "Name the columns.")
                columns |= view.columns
                continue
            if inner.find(exp.Window):
                raise Unsupported(f"{ROWS_REFUSED} A window over rows would show them.", ROWS_FORM)
            node = self.resolve(inner, view)
            if not isinstance(node, exp.Column):
                check_nodes(node)
            columns[item.alias_or_name or f"column{len(columns)}"] = node
        conditions = list(view.conditions)
        if select.args.get("where"):
            conditions.append(self.resolve(select.args["where"].this, view))
        return View(view.rows, {"": columns}, conditions)

    # ---- names

    def resolve(self, node: Any, view: View, aliases: dict[str, Any] | None = None) -> Any:
        """Return a tree with every name replaced by the policy's own columns; a name that is an alias by its expression."""

        def replace(part: Any) -> Any:
            if not isinstance(part, exp.Column) or isinstance(part.this, exp.Star):
                return part
            of = view.find(part)
            if of is None and not part.table and aliases and part.name.lower() in aliases:
                of = aliases[part.name.lower()]
            if of is None:
                raise unknown_column(self.policy, view, part)
            return of.copy() if isinstance(of, exp.Column) else exp.Paren(this=of.copy())

        if isinstance(node, exp.Column):
            return replace(node)
        tree = node.copy()
        for column in list(tree.find_all(exp.Column)):
            if not in_subquery(column, tree):
                column.replace(replace(column))
        return tree

    # ---- released numbers

    def _released(self, select: Any, known: dict[str, Source], nodes: list[Any], sources: list[Any]) -> Any:
        """Return a query on released numbers with its subqueries compiled; those of FROM, once, are `sources`."""
        for name in ("with", "with_"):
            select.args.pop(name, None)
        compiled = set()
        for node, source in zip(nodes, sources, strict=True):
            if isinstance(node, exp.Subquery):
                node.set("this", source.tree)
                compiled.add(id(source.tree))
        for part in nearest_queries(select, without=compiled):
            part.replace(self._numbers(part, known))
        chosen = ("limit", "where", "qualify", "having")
        if any(select.args.get(name) for name in chosen) or select.find(exp.Max, exp.Min, *RANKING) is not None:
            self.notes.add("chosen")
        return select

    def _numbers(self, node: Any, known: dict[str, Source]) -> Any:
        """Return a query on released numbers as a tree."""
        source = self.query(node, known)
        if isinstance(source, View):
            raise Unsupported(ROWS_REFUSED, ROWS_FORM)
        return source.tree

    def scalar(self, node: Any, known: dict[str, Source]) -> Any:
        """Return a subquery within a SELECT list as a query on released numbers."""
        tree = self._numbers(node, known)
        return tree if isinstance(tree, exp.Subquery) else exp.Subquery(this=tree)
