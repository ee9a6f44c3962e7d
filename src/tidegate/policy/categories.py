"""Public descriptions of columns with a list of values, and of text without one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from tidegate.errors import PolicyUnreadable
from tidegate.policy.attributes import Attribute, Missing, Outside, Scalar, changed

OTHER = "(other)"  # the label of values that a category does not list


@dataclass(frozen=True)
class Category(Attribute):
    """One of a public list of values: all text, all whole numbers, or all true/false.

    `outside = "other"` adds a last value, "(other)", for everything that is not listed. `values_from`, `column` and
    `sha256` describe the public file that the list was read from.
    """

    values: tuple[Scalar, ...]
    missing: Missing = "dropped"
    outside: Outside = "missing"
    values_from: str = ""
    column: str = ""
    sha256: str = ""
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        listed = tuple(self.values)
        self._check_outside("missing", "other")
        if self.outside == "other" and listed[-1:] == (OTHER,):
            listed = listed[:-1]
        object.__setattr__(self, "values", (*listed, OTHER) if self.outside == "other" else listed)
        kinds = {type(value) for value in listed}
        if self.missing == "lowest":
            raise PolicyUnreadable("A category has no lowest value.", 'Write missing = "dropped" or missing = "value".')
        if not listed or len(kinds) != 1 or not kinds <= {str, int, bool}:
            raise PolicyUnreadable(
                "A category requires a list of values that are all text, all whole numbers, or all true/false."
            )
        if len(set(self.values)) != len(self.values):
            raise PolicyUnreadable("A category lists one of its values twice.", "List each value once.")

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def listed(self) -> tuple[Scalar, ...]:
        """The values of the list, without "(other)"."""
        return self.values[:-1] if self.outside == "other" else self.values

    @property
    def value_type(self) -> type:
        return type(self.values[0])

    @cached_property
    def codes(self) -> dict[Scalar, int]:
        """The position of each value in the list."""
        return {value: code for code, value in enumerate(self.values)}

    def label(self, code: int) -> Scalar:
        return self.values[code]

    def labels(self) -> list[Any]:
        return list(self.values)

    def describe(self) -> str:
        count = len(self.listed)
        listed = f"{count:,} listed values" if count != 1 else "1 listed value"
        return f"{listed} and {OTHER}" if self.outside == "other" else listed

    def to_dict(self) -> dict[str, Any]:
        file = {name: getattr(self, name) for name in ("values_from", "column", "sha256") if self.values_from}
        outside = changed(outside=(self.outside, "missing"))
        return {"kind": self.kind, "values": list(self.listed), "missing": self.missing, **outside, **file}


@dataclass(frozen=True)
class Boolean(Category):
    """True or false."""

    values: tuple[Scalar, ...] = field(default=(False, True), init=False)
    missing: Missing = "dropped"
    outside: Outside = field(default="missing", init=False)
    values_from: str = field(default="", init=False)
    column: str = field(default="", init=False)
    sha256: str = field(default="", init=False)
    kind: ClassVar[str] = "boolean"

    def describe(self) -> str:
        return "true or false"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "missing": self.missing}


@dataclass(frozen=True)
class Text(Attribute):
    """Text without a list. With `buckets` it is counted by bucket, the hash of the text; without, only its presence is."""

    buckets: int | None = None
    missing: Missing = "dropped"
    kind: ClassVar[str] = "text"
    comparable: ClassVar[str] = "a text, or with the number of a bucket"

    def __post_init__(self) -> None:
        number = self.buckets
        if number is not None and (not isinstance(number, int) or isinstance(number, bool) or not 0 < number <= 2**20):
            raise PolicyUnreadable(f"`buckets` must be a whole number from 1 to {2**20:,}.", "Write buckets = 64.")
        if self.missing == "lowest":
            raise PolicyUnreadable("Text has no lowest value.", 'Write missing = "dropped" or missing = "value".')

    @property
    def size(self) -> int:
        return self.buckets or 0

    @property
    def countable(self) -> bool:
        return self.buckets is not None

    def bucket(self, text: str) -> int:
        """Return the bucket of a text: the first 32 bits of the MD5 of its UTF-8 bytes, modulo the number of buckets."""
        digest = hashlib.md5(text.encode("utf-8", "surrogatepass")).hexdigest()  # noqa: S324 - spreads texts, hides none
        return int(digest[:8], 16) % self.size

    def position(self, value: object) -> Fraction | None:
        """Return the bucket of a text, or of its number; None for anything else."""
        if isinstance(value, str):
            return Fraction(self.bucket(value))
        return value if isinstance(value, Fraction) and value.denominator == 1 and 0 <= value < self.size else None

    def label(self, code: int) -> int:
        return code

    def labels(self) -> list[Any]:
        return list(range(self.size))

    def describe(self) -> str:
        return f"text in {self.size:,} buckets" if self.buckets else "text without a list of values"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **changed(buckets=(self.buckets, None)), "missing": self.missing}
