"""A reader for one section of a policy file: every key is read once, and unknown keys are errors with a suggestion."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from tidegate.errors import PolicyUnreadable, TidegateError, did_you_mean
from tidegate.exact import exact

OPEN = "?"  # written by `tidegate init` for every decision that a person must make
_MISSING = object()
T = TypeVar("T")


class Section:
    """A table of the file with its path, for error messages."""

    def __init__(self, content: Any, path: str, undecided: list[str], folder: Path = Path()) -> None:
        if not isinstance(content, dict):
            raise PolicyUnreadable(f"{path or 'The policy'} must be a table of keys.")
        self.content, self.path, self.undecided, self.folder = dict(content), path, undecided, folder
        self.known: list[str] = []

    def where(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def take(self, key: str, read: Callable[[Any], T], default: Any = _MISSING) -> T:
        """Return the value of a key through `read`; an open decision is recorded and read as None."""
        self.known.append(key)
        value = self.content.pop(key, default)
        if value is _MISSING:
            raise PolicyUnreadable(f"{self.where(key)} is missing.")
        if value == OPEN:
            self.undecided.append(self.where(key))
            return None  # type: ignore[return-value]
        if value is default:
            return value  # type: ignore[no-any-return]
        problem = ""
        try:
            return read(value)
        except (TypeError, ValueError) as error:
            problem = str(error)
            if isinstance(error, TidegateError):
                problem = f"{error.what[:1].lower()}{error.what[1:].rstrip('.')}"
        raise PolicyUnreadable(f"{self.where(key)}: {problem}.")

    def section(self, key: str, default: Any = _MISSING) -> Section:
        """Return a table inside this one."""
        self.known.append(key)
        value = self.content.pop(key, default)
        if value is _MISSING:
            raise PolicyUnreadable(f"The section [{self.where(key)}] is missing.", "Add it to the policy.")
        return Section(value, self.where(key), self.undecided, self.folder)

    def names(self) -> list[str]:
        """Return the keys not read yet, in the order of the file."""
        return list(self.content)

    def done(self) -> None:
        """Refuse unknown keys: a misspelled promise must not be ignored."""
        for key in self.content:
            raise PolicyUnreadable(f"Unknown key: {self.where(key)}.", did_you_mean(key, self.known))


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("text is required")
    return value


def whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("a whole number is required")
    return value


def yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("true or false is required")
    return value


def number(value: Any) -> Fraction:
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError("a finite number is required")
    return exact(value)


def one_of(*choices: str) -> Callable[[Any], Any]:
    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"one of {', '.join(choices)} is required")
        return str(value)

    return read


def list_of(read: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    def read_all(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise TypeError("a list is required")
        return tuple(read(item) for item in value)

    return read_all
