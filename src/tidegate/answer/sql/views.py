"""The sources of a SELECT: private rows, or tables of released numbers; and the names of their columns.

A view is private rows whose columns are expressions of the policy's columns. A subquery without aggregates is a view of a
view: its columns become expressions, and its conditions are joined by AND.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from tidegate.errors import UnknownColumn, Unsupported, did_you_mean
from tidegate.policy import Key, Policy
from tidegate.policy.row_source import RowSource, row_source
from tidegate.policy.tables import table_of
from tidegate.tables.expressions import column_node


@dataclass
class View:
    """Private rows: expressions by name, for every alias of a source, and conditions."""

    rows: RowSource | None
    sources: dict[str, dict[str, Any]]
    conditions: list[Any] = field(default_factory=list)
    merged: dict[str, Any] = field(default_factory=dict)  # columns of JOIN ... USING, by name in lower case

    def find(self, node: exp.Column) -> Any | None:
        """Return the expression of a column; None if there is none of that name."""
        alias = node.table.lower()
        if alias and alias not in self.sources:
            return None
        if not alias and node.name.lower() in self.merged:
            return self.merged[node.name.lower()]
        columns = [self.sources[alias]] if alias else list(self.sources.values())
        matches = [of for named in columns for name, of in named.items() if name.lower() == node.name.lower()]
        exact_matches = [of for named in columns for name, of in named.items() if name == node.name]
        distinct = {of.sql(): of for of in exact_matches or matches}
        if len(distinct) > 1:
            among = [(source, name) for source, named in self.sources.items() for name in named]
            names = [(source, name) for source, name in among if name.lower() == node.name.lower()]
            is_case = len({source for source, _ in names}) < len(names)
            written = [f'"{name}"' if is_case else f"{source}.{name}" for source, name in names]
            raise Unsupported(f'The column "{node.name}" is ambiguous.', f"Write {' or '.join(written)}.")
        return next(iter(distinct.values()), None)

    @property
    def columns(self) -> dict[str, Any]:
        """The expressions of all sources by name."""
        return {name: of for named in self.sources.values() for name, of in named.items()}

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def under(self, alias: str) -> View:
        """Return the view as a source with a name of its own."""
        return View(self.rows, {alias.lower(): self.columns}, list(self.conditions))


@dataclass
class Released:
    """A query on released numbers alone: its tree names tables of cells."""

    tree: Any


Source = View | Released


def private_view(policy: Policy, node: exp.Table) -> View | None:
    """Return the view of one of the policy's tables; None if there is none of that name."""
    alias = (node.alias or node.name).lower()
    if not policy.tables:
        if node.name.lower() != policy.dataset.name.lower():
            return None
        return View(None, {alias: {name: column_node(name) for name in policy.attributes}})
    names = {name.lower(): name for name in policy.tables}
    if node.name.lower() not in names:
        return None
    table = policy.tables[names[node.name.lower()]]
    columns = {name: column_node(f"{table.name}.{name}") for name in table.attributes}
    return View(RowSource(table.name), {alias: columns})


def unknown_table(policy: Policy, name: str) -> Exception:
    known = list(policy.tables) or [policy.dataset.name]
    nearest = did_you_mean(name, known)
    tables = f" Tables: {', '.join(known)}." if nearest.startswith("Did") else ""
    return Unsupported(f'There is no table "{name[:60]}".', f"{nearest}{tables}")


def unknown_column(policy: Policy, view: View, node: exp.Column) -> Exception:
    """Return the refusal of a name that no source has."""
    name = node.name
    others = [
        table for table, of in policy.tables.items() if name.lower() in {column.lower() for column in of.attributes}
    ]
    if others and not node.table:
        relation = [f"{left} = {right}" for left, right in policy.relations.items() if table_of(right) in others]
        return UnknownColumn(
            f'There is no column "{name[:60]}" here: it belongs to the table "{others[0]}".',
            f"Write JOIN {others[0]} ON {relation[0]}." if relation else f"Query {others[0]}.",
            column=name,
        )
    if node.this.args.get("quoted"):
        return UnknownColumn(
            f'There is no column "{name[:60]}".',
            f"Text is written in single quotes: '{name[:60]}'. Columns: {', '.join(view.names)}.",
            column=name,
        )
    nearest = did_you_mean(name, view.names)
    if any(f'"{other}"' in nearest and not other.isidentifier() for other in view.names):
        nearest = nearest.replace("?", ", in double quotes?")
    columns = f" Columns: {', '.join(view.names)}." if nearest.startswith("Did") else ""
    return UnknownColumn(f'There is no column "{name[:60]}".', f"{nearest}{columns}", column=name)


def _self_join() -> Exception:
    return Unsupported(
        "A table cannot be joined to itself: one more row could add many pairs.",
        "Query the table once, with conditions or GROUP BY.",
    )


class Joins:
    """Joins of private tables with each other and with reference tables, as the policy's relations allow."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def join(self, view: View, other: View, join: exp.Join) -> View:
        """Return two views joined by a declared relation. A column of USING is that of the private rows, or of the left ones."""
        joined = self._join(view, other, join)
        joined.merged = {**view.merged, **other.merged}
        is_reference = view.rows is not None and self.policy.tables[view.rows.table].reference
        for name in join.args.get("using") or ():
            column = (other if is_reference else view).find(exp.Column(this=exp.to_identifier(name.name)))
            joined.merged[name.name.lower()] = column
        return joined

    def _join(self, view: View, other: View, join: exp.Join) -> View:
        side, kind = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
        if side in ("RIGHT", "FULL") or kind in ("CROSS", "SEMI", "ANTI") or join.args.get("method"):
            raise Unsupported(
                f"{side or kind or 'This kind of'} JOIN is not possible: its rows per person are not bounded.",
                "Write a JOIN b ON a.key = b.key, or LEFT JOIN, for a relation that the policy declares.",
            )
        if not self.policy.tables or view.rows is None or other.rows is None:
            raise _self_join()
        left, right = self._keys(view, other, join)
        if self.policy.tables[other.rows.table].reference:
            return self._reference(view, other, {left, right}, outer=side == "LEFT")
        if self.policy.tables[view.rows.table].reference:
            if side == "LEFT":
                raise Unsupported(
                    "A query is not about the rows of a public reference table.", "Start from the private table."
                )
            return self._reference(other, view, {left, right}, outer=False)
        key: Any = self.policy.dataset.unit
        if other.conditions and side == "LEFT":
            raise Unsupported(
                "A subquery with a condition cannot be on the right of a LEFT JOIN.",
                "Join the tables themselves, and write the condition in WHERE.",
            )
        keys = {f"{view.rows.table}.{key.key}", f"{other.rows.table}.{key.key}"}
        if view.rows.joined or {left, right} != keys:
            if view.rows.table == other.rows.table:
                row_source(self.policy, view.rows.table, other.rows.table)
            raise self._not_a_relation()
        rows = row_source(self.policy, view.rows.table, other.rows.table, outer=side == "LEFT")
        return View(rows, {**view.sources, **other.sources}, view.conditions + other.conditions)

    def _keys(self, view: View, other: View, join: exp.Join) -> tuple[str, str]:
        """Return the two columns of a join's condition."""
        using, on = join.args.get("using"), join.args.get("on")
        if using and len(using) == 1:
            name = exp.Column(this=exp.to_identifier(using[0].name))
            sides: list[Any] = [view.find(name), other.find(name)]
        elif isinstance(on, exp.EQ) and isinstance(on.this, exp.Column) and isinstance(on.expression, exp.Column):
            both = View(None, {**view.sources, **other.sources})
            sides = [both.find(on.this), both.find(on.expression)]
        else:
            if view.rows is not None and other.rows is not None and view.rows.table == other.rows.table:
                raise _self_join()
            raise self._not_a_relation()
        if not all(isinstance(side, exp.Column) for side in sides):
            raise self._not_a_relation()
        return f"{sides[0].table}.{sides[0].name}", f"{sides[1].table}.{sides[1].name}"

    def _not_a_relation(self) -> Exception:
        pairs = " or ".join(
            f"{table_of(left)} JOIN {table_of(right)} ON {left} = {right}"
            for left, right in self.policy.relations.items()
        )
        return Unsupported(
            "Tables can only be joined by the relations that the policy declares.",
            f"Write, for example, {pairs}." if pairs else "This policy declares no relation: query each table alone.",
        )

    def _reference(self, view: View, other: View, keys: set[str], *, outer: bool) -> View:
        name = other.rows.table if other.rows else ""
        related = [(left, right) for left, right in self.policy.relations.items() if table_of(right) == name]
        if not any({left, right} == keys for left, right in related) or other.conditions:
            raise self._not_a_relation()
        conditions = list(view.conditions)
        if not outer:
            conditions.append(exp.Not(this=exp.Is(this=column_node(related[0][1]), expression=exp.Null())))
        return View(view.rows, {**view.sources, **other.sources}, conditions)


def is_key(policy: Policy, name: str) -> bool:
    return isinstance(policy.attributes.get(name), Key)
