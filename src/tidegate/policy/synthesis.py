"""The cells of columns for synthetic tables: public choices, never taken from the data.

[synthesis]
leave_out = ["note"]
columns.capital_gain  = { scale = "log", cells = 40, atoms = [0, 99_999], heaped = true }
columns.education     = { ordered = true }
follows.education_num = { column = "education", values = { Preschool = 1, Bachelors = 13 } }
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from tidegate.errors import PolicyUnreadable, UnknownColumn, did_you_mean
from tidegate.exact import Number, exact, plain, say
from tidegate.policy.attributes import Attribute, Category, Integer, Numeric

Scale = Literal["linear", "log"]
SCALES: tuple[Scale, ...] = ("linear", "log")
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
        elif isinstance(attribute, Numeric):
            self._check_number(name, attribute)
        else:
            raise _wrong(name, "a key or a set has no cells; it is always left out")

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
    """The section [synthesis]. `fresh_keys`: key columns are filled with row numbers instead of being left out."""

    columns: Mapping[str, Shape] = field(default_factory=dict)
    follows: Mapping[str, Follows] = field(default_factory=dict)
    leave_out: tuple[str, ...] = ()
    fresh_keys: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", dict(self.columns))
        object.__setattr__(self, "follows", dict(self.follows))
        object.__setattr__(self, "leave_out", tuple(self.leave_out))

    def check(self, attributes: Mapping[str, Attribute]) -> None:
        """Refuse unknown columns, and settings that do not fit their column."""
        for name in (
            *self.columns,
            *self.follows,
            *self.leave_out,
            *(dependency.column for dependency in self.follows.values()),
        ):
            if name not in attributes:
                raise UnknownColumn(
                    f'[synthesis] names an unknown column: "{name}".', did_you_mean(name, attributes), column=name
                )
        for name, shape in self.columns.items():
            shape.check(name, attributes[name])
        for name, dependency in self.follows.items():
            if name == dependency.column or dependency.column in self.follows or dependency.column in self.leave_out:
                raise _wrong(name, f'"{dependency.column}" must be a column that is learned itself')
            dependency.check(name, attributes[name], attributes[dependency.column])

    def __bool__(self) -> bool:
        return bool(self.columns or self.follows or self.leave_out or self.fresh_keys)

    def __str__(self) -> str:
        parts = [f"{name} ({_say(shape)})" for name, shape in self.columns.items()]
        parts += [f"{name} follows {dependency.column}" for name, dependency in self.follows.items()]
        parts += [f"without {', '.join(self.leave_out)}"] if self.leave_out else []
        return "; ".join([*parts, *(["keys as row numbers"] if self.fresh_keys else [])])

    def to_dict(self) -> dict[str, Any]:
        """Return the section of the policy file; empty without settings."""
        parts: dict[str, Any] = {"leave_out": list(self.leave_out)} if self.leave_out else {}
        if self.fresh_keys:
            parts["fresh_keys"] = True
        if self.columns:
            parts["columns"] = {name: shape.to_dict() for name, shape in self.columns.items()}
        if self.follows:
            parts["follows"] = {name: dependency.to_dict() for name, dependency in self.follows.items()}
        return parts


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
    if isinstance(attribute, Numeric):
        number = isinstance(value, int | Fraction) and not isinstance(value, bool)
        return number and on_grid(Fraction(value), attribute)
    known = attribute.values if isinstance(attribute, Category) else ()
    return any(type(value) is type(other) and value == other for other in known)


def _say(shape: Shape) -> str:
    return ", ".join(
        name if value is True else f"{len(value)} {name}" if isinstance(value, list) else f"{name} {value}"
        for name, value in shape.to_dict().items()
    )


def _wrong(name: str, problem: str) -> PolicyUnreadable:
    return PolicyUnreadable(f'[synthesis] "{name}": {problem}.')
