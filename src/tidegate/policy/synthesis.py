"""The columns of synthetic tables: their cells, and how some follow from others. Public, never taken from the data.

[synthesis]
leave_out = ["note"]
maps = "search"
columns.capital_gain  = { scale = "log", cells = 40, atoms = [0, 99_999], heaped = true }
columns.education     = { ordered = true }
follows.education_num = { column = "education", values = { Preschool = 1, Bachelors = 13 } }
orders.discharged     = { after = "admitted", missing = "clip" }
sums.total            = ["drugs", "visits"]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from tidegate.errors import PolicyUnreadable, UnknownColumn, did_you_mean
from tidegate.exact import Number, exact, plain, say
from tidegate.policy.attributes import Attribute, Integer, Numeric
from tidegate.policy.calendar import Moment
from tidegate.policy.categories import Category
from tidegate.policy.orders import REVERSED, Gap, Linked, Order, check_sum, in_order
from tidegate.policy.section import Section, list_of, number, one_of, text, whole, yes_or_no

Scale = Literal["linear", "log"]
SCALES: tuple[Scale, ...] = ("linear", "log")
Maps = Literal["search", "declared"]
MAPS: tuple[Maps, ...] = ("search", "declared")
MOST_FOLLOWED = 512  # values of a column that another column follows


@dataclass(frozen=True)
class Shape:
    """The cells of one column. Omitted settings have a safe default: see `synthesize/columns.py`.

    scale    "log": cells grow with the value       cells    their number (for numbers; atoms are additional)
    edges    the first value of every cell but the lowest, instead of `cells`
    atoms    values with a cell of their own        heaped   single values inside a cell can be frequent
    ordered  the order of a category's list is meaningful
    """

    scale: Scale = "linear"
    cells: int | None = None
    edges: tuple[Fraction, ...] = ()
    atoms: tuple[Fraction, ...] | None = None
    heaped: bool = False
    ordered: bool = False

    def __init__(
        self,
        scale: Scale = "linear",
        cells: int | None = None,
        edges: Iterable[Number] = (),
        atoms: Iterable[Number] | None = None,
        heaped: bool = False,
        ordered: bool = False,
    ) -> None:
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "edges", tuple(exact(edge) for edge in edges))
        object.__setattr__(self, "atoms", None if atoms is None else tuple(sorted({exact(atom) for atom in atoms})))
        object.__setattr__(self, "heaped", heaped)
        object.__setattr__(self, "ordered", ordered)

    def check(self, name: str, attribute: Attribute) -> None:
        """Refuse settings that do not fit the column."""
        if isinstance(attribute, Category):
            settings = [word for word in ("cells", "edges", "atoms", "heaped") if getattr(self, word)]
            settings += ["scale"] if self.scale != "linear" else []
            if settings:
                raise _wrong(name, f"{', '.join(settings)} are for numbers; a category has one cell per value")
        elif isinstance(attribute, Moment) and (self.scale != "linear" or self.edges or self.atoms):
            raise _wrong(name, "`scale`, `edges` and `atoms` are for numbers; write `cells` for dates and times")
        elif isinstance(attribute, Numeric):
            self._check_number(name, attribute)
        else:
            raise _wrong(name, "a key, text or a set has no cells; it is always left out")

    def _check_number(self, name: str, attribute: Numeric) -> None:
        if self.ordered:
            raise _wrong(name, "`ordered` is for categories; numbers are always ordered")
        if self.scale not in SCALES:
            raise _wrong(name, f"`scale` must be one of {', '.join(SCALES)}")
        if self.scale == "log" and attribute.low < 0:
            raise _wrong(
                name, f'scale = "log" requires numbers of at least 0; this column starts at {say(attribute.low)}'
            )
        if self.cells is not None and (self.edges or self.cells < 1):
            raise _wrong(name, "`cells` must be a whole number of at least 1, and cannot be combined with `edges`")
        starts = [math.ceil((edge - attribute.low) / attribute.width) for edge in self.edges]
        if starts != sorted(set(starts)) or (starts and not 0 < starts[0] <= starts[-1] < attribute.size):
            raise _wrong(name, f"`edges` must rise strictly inside {say(attribute.low)} to {say(attribute.high)}")
        if any(not on_grid(atom, attribute) for atom in self.atoms or ()):
            raise _wrong(name, f"`atoms` must be values of the column: {attribute.describe()}")

    def to_dict(self) -> dict[str, Any]:
        """Return the shape as its line in the policy file."""
        settings: dict[str, Any] = {"scale": self.scale} if self.scale != "linear" else {}
        if self.cells is not None:
            settings["cells"] = self.cells
        if self.edges:
            settings["edges"] = [plain(edge) for edge in self.edges]
        if self.atoms is not None:
            settings["atoms"] = [plain(atom) for atom in self.atoms]
        return settings | {word: True for word in ("heaped", "ordered") if getattr(self, word)}


@dataclass(frozen=True)
class Follows:
    """A column that is a public function of another: it is attached, not learned.

    `values` maps the other column's values, as text, to this column's values.
    """

    column: str
    values: Mapping[str, Any]

    def __post_init__(self) -> None:
        values = {word: exact(v) if isinstance(v, float | Decimal) else v for word, v in self.values.items()}
        object.__setattr__(self, "values", values)

    def check(self, name: str, attribute: Attribute, of: Attribute) -> None:
        """Refuse a list that omits a value or names an unknown one."""
        small = isinstance(of, Integer) and of.size <= MOST_FOLLOWED
        if not isinstance(of, Category) and not small:
            raise _wrong(name, f'"{self.column}" must be a category, or whole numbers with few values')
        expected = set(followed_texts(of))
        if set(self.values) != expected:
            strange = sorted(set(self.values) ^ expected)[0]
            raise _wrong(name, f'`follows` requires each value of "{self.column}" once; see "{strange}"')
        if not all(_possible(value, attribute) for value in self.values.values()):
            raise _wrong(name, f"`follows` sets a value that the column cannot have ({attribute.describe()})")

    def to_dict(self) -> dict[str, Any]:
        """Return the dependency as its line in the policy file."""
        values = {text: plain(value) if isinstance(value, Fraction) else value for text, value in self.values.items()}
        return {"column": self.column, "values": values}


@dataclass(frozen=True)
class Shapes:
    """The section [synthesis].

    `fresh_keys`: key columns are filled with row numbers instead of being left out. `orders`: columns that are never below
    another one. `sums`: columns that are the sum of others. `maps`: whether a model also searches for columns that another
    one determines, or uses the declared ones (`follows`) alone. `linked`: tables of events, if the policy has several tables;
    the names of columns are dotted then ("visits.cost").
    """

    columns: Mapping[str, Shape] = field(default_factory=dict)
    follows: Mapping[str, Follows] = field(default_factory=dict)
    leave_out: tuple[str, ...] = ()
    fresh_keys: bool = False
    orders: Mapping[str, Order] = field(default_factory=dict)
    sums: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    maps: Maps = "search"
    linked: Mapping[str, Linked] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("columns", "follows", "orders", "linked"):
            object.__setattr__(self, name, dict(getattr(self, name)))
        object.__setattr__(self, "sums", {name: tuple(parts) for name, parts in self.sums.items()})
        object.__setattr__(self, "leave_out", tuple(self.leave_out))

    @property
    def sources(self) -> dict[str, tuple[str, ...]]:
        """The computed columns, each with the columns that it is computed from."""
        sources = {name: (rule.column,) for name, rule in self.follows.items()}
        sources |= {name: (order.after,) for name, order in self.orders.items()}
        return sources | dict(self.sums)

    def gap(self, name: str, attributes: Mapping[str, Attribute]) -> Gap:
        """Return what is learned instead of a column with an order."""
        order = self.orders[name]
        lower, upper = attributes[order.after], attributes[name]
        if not isinstance(lower, Numeric) or not isinstance(upper, Numeric):
            raise _wrong(name, "`orders` is for numbers, dates and times")
        return Gap(order.after, name, lower, upper, order.missing == "clip")

    def check(self, attributes: Mapping[str, Attribute]) -> None:
        """Refuse unknown columns, and settings that do not fit their column."""
        sources = self.sources
        for name in (*self.columns, *self.leave_out, *sources, *(part for parts in sources.values() for part in parts)):
            if name not in attributes:
                raise UnknownColumn(
                    f'[synthesis] names an unknown column: "{name}".', did_you_mean(name, attributes), column=name
                )
        if self.maps not in MAPS:
            raise _wrong("maps", f"it must be one of {', '.join(MAPS)}")
        for name, shape in self.columns.items():
            shape.check(name, attributes[name])
        for name, parts in sources.items():
            self._check_computed(name, parts)
        in_order(sources)
        for name, dependency in self.follows.items():
            dependency.check(name, attributes[name], attributes[dependency.column])
        for name, order in self.orders.items():
            if order.missing not in REVERSED:
                raise _wrong(name, f"`missing` of `orders` must be one of {', '.join(REVERSED)}")
            gap = self.gap(name, attributes)
            gap.check()
            if gap.name in attributes:
                raise _wrong(name, f'the column "{gap.name}" has the name of its gap; rename that column')
        for name, parts in self.sums.items():
            check_sum(name, parts, attributes)

    def restricted(self, names: Iterable[str]) -> Shapes:
        """Return the section of some columns: its lines that use no other column."""
        names = {*names}
        usable = {name for name in (*self.columns, *self.sources) if {name, *self.sources.get(name, ())} <= names}
        lines: dict[str, Any] = {
            word: {name: line for name, line in getattr(self, word).items() if name in usable}
            for word in ("columns", "follows", "orders", "sums")
        }
        return replace(self, **lines, leave_out=tuple(name for name in self.leave_out if name in names), linked={})

    def _check_computed(self, name: str, parts: Iterable[str]) -> None:
        rules = [word for word in ("follows", "orders", "sums") if name in getattr(self, word)]
        if len(rules) > 1:
            raise _wrong(name, f"it cannot be in {' and '.join(rules)}; write one of them")
        if name in self.columns and name not in self.follows:
            raise _wrong(name, f"it has no cells, because of `{rules[0]}`; remove it from `columns`")
        for part in parts:
            if part == name or part in self.leave_out:
                raise _wrong(name, f'"{part}" must be another column that is not left out')

    def __bool__(self) -> bool:
        return self != Shapes()

    def __str__(self) -> str:
        parts = [f"{name} ({_say(shape)})" for name, shape in self.columns.items()]
        parts += [f"{name} follows {dependency.column}" for name, dependency in self.follows.items()]
        parts += [f"{name} after {order.after} ({order.missing})" for name, order in self.orders.items()]
        parts += [f"{name} = {' + '.join(terms)}" for name, terms in self.sums.items()]
        parts += [f"{name} with copies of {', '.join(link.copies)}" for name, link in self.linked.items()]
        parts += [f"without {', '.join(self.leave_out)}"] if self.leave_out else []
        parts += ["keys as row numbers"] if self.fresh_keys else []
        return "; ".join([*parts, *([f"maps {self.maps}"] if self.maps != "search" else [])])

    def to_dict(self) -> dict[str, Any]:
        """Return the section of the policy file; empty without settings."""
        parts: dict[str, Any] = {"leave_out": list(self.leave_out)} if self.leave_out else {}
        if self.fresh_keys:
            parts["fresh_keys"] = True
        if self.maps != "search":
            parts["maps"] = self.maps
        for word in ("columns", "follows", "orders", "linked"):
            if lines := getattr(self, word):
                parts[word] = {name: line.to_dict() for name, line in lines.items()}
        if self.sums:
            parts["sums"] = {name: list(terms) for name, terms in self.sums.items()}
        return parts


def read_shapes(at: Section) -> Callable[[Mapping[str, Attribute]], Shapes]:
    """Read the section [synthesis] and return a function that builds it for some attributes."""
    cut, following, ordered = (at.section(word, {}) for word in ("columns", "follows", "orders"))
    shapes = {name: _read_shape(cut.section(name)) for name in cut.names()}
    follows = {name: _read_follows(following.section(name)) for name in following.names()}
    orders = {name: _read_order(ordered.section(name)) for name in ordered.names()}
    totals = at.section("sums", {})
    sums = {name: totals.take(name, list_of(text)) for name in totals.names()}
    out, fresh = at.take("leave_out", list_of(text), ()), at.take("fresh_keys", yes_or_no, False)
    maps, children = at.take("maps", one_of(*MAPS), "search"), at.section("linked", {})
    linked = {name: _read_linked(children.section(name)) for name in children.names()}
    at.done()

    def build(attributes: Mapping[str, Attribute]) -> Shapes:
        built = {name: make(attributes.get(name)) for name, make in follows.items()}
        lines = {name: make() for name, make in shapes.items()}, built, out, fresh
        links = {name: make() for name, make in linked.items()}
        return Shapes(*lines, {name: make() for name, make in orders.items()}, sums, maps, links)

    return build


def _read_shape(at: Section) -> Callable[[], Shape]:
    scale, cells = at.take("scale", one_of(*SCALES), "linear"), at.take("cells", whole, None)
    edges, atoms = at.take("edges", list_of(number), ()), at.take("atoms", list_of(number), None)
    heaped, ordered = at.take("heaped", yes_or_no, False), at.take("ordered", yes_or_no, False)
    at.done()
    return lambda: Shape(scale, cells, edges or (), atoms, heaped, ordered)


def _read_order(at: Section) -> Callable[[], Order]:
    after, missing = at.take("after", text), at.take("missing", one_of(*REVERSED), "refuse")
    at.done()
    return lambda: Order(after, missing)


def _read_linked(at: Section) -> Callable[[], Linked]:
    copies = at.take("copies", list_of(text), ())
    at.done()
    return lambda: Linked(copies)


def _read_follows(at: Section) -> Callable[[Attribute | None], Follows]:
    column, values = at.take("column", text), at.take("values", dict)
    at.done()

    def build(attribute: Attribute | None) -> Follows:
        numeric = isinstance(attribute, Numeric) and not isinstance(attribute, Moment)
        return Follows(column, {word: number(value) if numeric else value for word, value in values.items()})

    return build


def followed_texts(attribute: Attribute) -> list[str]:
    """Return the values of a column that another follows, in the order of their codes, as text."""
    if isinstance(attribute, Category):
        return [str(value).lower() if isinstance(value, bool) else str(value) for value in attribute.values]
    return (
        [str(plain(attribute.value(code))) for code in range(attribute.size)] if isinstance(attribute, Integer) else []
    )


def on_grid(value: Fraction, attribute: Numeric) -> bool:
    """Return whether a number is a value of a column."""
    inside = attribute.low <= value <= attribute.high
    return inside and (value - attribute.low) % attribute.width == 0


def _possible(value: Any, attribute: Attribute) -> bool:
    if isinstance(attribute, Moment):
        position = attribute.position(value)
        return position is not None and position.denominator == 1 and 0 <= position < attribute.size
    if isinstance(attribute, Numeric):
        is_number = isinstance(value, int | Fraction) and not isinstance(value, bool)
        return is_number and on_grid(Fraction(value), attribute)
    known = attribute.values if isinstance(attribute, Category) else ()
    return any(type(value) is type(other) and value == other for other in known)


def _say(shape: Shape) -> str:
    return ", ".join(
        name if value is True else f"{len(value)} {name}" if isinstance(value, list) else f"{name} {value}"
        for name, value in shape.to_dict().items()
    )


def _wrong(name: str, problem: str) -> PolicyUnreadable:
    return PolicyUnreadable(f'[synthesis] "{name}": {problem}.')
