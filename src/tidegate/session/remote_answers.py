"""Answers, previews and derivations as they came, which read and print like the local ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.accounting import Amount
from tidegate.answer.comparison import number
from tidegate.answer.result import yes_no_in_words
from tidegate.errors import Unsupported
from tidegate.ledger.charge import source_in_words, stored_in_words

SENT = 0.95  # the confidence of the intervals that a service sends


@dataclass(frozen=True)
class Told:
    """What a service said: `told` holds all of it, and its parts are had by name."""

    told: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.told[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.told)

    def __contains__(self, name: object) -> bool:
        return name in self.told

    def keys(self) -> list[str]:
        """The names of its parts, so that dict(...) makes a dictionary of it."""
        return list(self.told)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return dict(self.told)

    @property
    def cost(self) -> str:
        """The loss, exactly."""
        return str(self.told["cost"])


@dataclass(frozen=True)
class RemoteAnswer(Told):
    """An answer."""

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per number: its labels, its value, its 95% interval."""
        return list(self.told["rows"])

    @property
    def labels(self) -> dict[str, list[Any]]:
        """What the cells along each axis are called."""
        numbers = (self.told["statistic"], "low", "high", "noisy")
        names = [name for name in (self.rows() or [{}])[0] if name not in numbers]
        return {name: list(dict.fromkeys(row[name] for row in self.rows())) for name in names}

    @property
    def values(self) -> NDArray[Any]:
        """The numbers, with one axis for each label."""
        return self._shaped(self.told["statistic"])

    @property
    def value(self) -> Any:
        """The one number, where there is one; else all in order."""
        found = [row[self.told["statistic"]] for row in self.rows()]
        return found[0] if len(found) == 1 else found

    @property
    def noisy(self) -> Any:
        """The numbers before they were brought into their public range (an older service sends none)."""
        found = self._shaped("noisy" if "noisy" in (self.rows() or [{}])[0] else self.told["statistic"])
        return found.item() if found.ndim == 0 else found

    def interval(self, confidence: float = SENT) -> tuple[Any, Any] | None:
        """Where the true value lies, 95 times in 100: of the noise alone. None where the error is one of rank."""
        if confidence != SENT:
            raise Unsupported("a service sends intervals of 95%.", "Ask for interval(0.95), or use a local session.")
        if "low" not in (self.rows() or [{}])[0]:
            return None
        low, high = self._shaped("low"), self._shaped("high")
        return (low.item(), high.item()) if not low.ndim else (low, high)

    @property
    def comparison(self) -> dict[str, Any] | None:
        """Which groups differ by more than the noise (an older service sends none)."""
        return self.told.get("comparison")

    @property
    def caution(self) -> str:
        """What else a reader must know."""
        return str(self.told["caution"])

    @property
    def entry(self) -> str:
        """The hash of its entry in the ledger."""
        return str(self.told["entry"])

    def line(self) -> str:
        """The value and its error as a person would say it."""
        more = f"   ({self.caution})" if self.caution else ""
        if self.labels:
            finding = f"   {self.comparison['says']}" if self.comparison else ""
            return f"{self.told['question']}: {len(self.rows()):,} numbers{finding}{more}"
        between = self.interval()
        within = f"   (noise: {number(between[0])} to {number(between[1])}, 95%)" if between else ""
        return f"{number(self.value)}{within}{more}"

    def __str__(self) -> str:
        return f"{self.line()}\n{charge_in_words(self.told)}"

    def _shaped(self, name: str) -> NDArray[Any]:
        shape = tuple(len(found) for found in self.labels.values())
        return np.array([row[name] for row in self.rows()]).reshape(shape)


@dataclass(frozen=True)
class RemoteAnswers:
    """Several answers under one charge."""

    told: dict[str, Any]

    def __iter__(self) -> Iterator[RemoteAnswer]:
        about = {name: value for name, value in self.told.items() if name != "answers"}
        return (RemoteAnswer({**one, **about}) for one in self.told["answers"])

    def __len__(self) -> int:
        return len(self.told["answers"])

    def __getitem__(self, place: int | str) -> Any:
        """An answer by its place; or what is told of all of them, by its name."""
        return self.told[place] if isinstance(place, str) else list(self)[place]

    @property
    def cost(self) -> str:
        return str(self.told["cost"])

    @property
    def entry(self) -> str:
        return str(self.told["entry"])

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return dict(self.told)

    def __str__(self) -> str:
        lines = [f"{one['question']}: {one.line()}" for one in self]
        return "\n".join([*lines, charge_in_words(self.told)])


@dataclass(frozen=True)
class RemotePreview(Told):
    """What a question would cost and how wrong its answer may be. No row was read, nothing was spent."""

    @property
    def fits(self) -> bool:
        return bool(self.told["fits"])

    @property
    def error(self) -> float | None:
        """The error of a single question."""
        expected = self.told["expected"]
        return expected[0]["error"] if len(expected) == 1 else None

    def identification(self) -> dict[str, dict[str, float]]:
        """For each protected target: now, after this question, by this question alone, and the ceiling."""
        return dict(self.told["identification"])

    def __str__(self) -> str:
        share = f"{100 * self.told['confidence']:g} times in 100"
        lines = [f"would be     {_expected(one, share)}" for one in self.told["expected"]]
        return "\n".join([cost_in_words(self.told), *lines, "nothing was asked, nothing was spent."])


@dataclass(frozen=True)
class RemoteDerived(Told):
    """What follows from answers already given. It costs nothing."""

    @property
    def values(self) -> NDArray[Any]:
        return np.array(self.told["values"])

    @property
    def low(self) -> NDArray[Any]:
        return np.array(self.told["low"])

    @property
    def high(self) -> NDArray[Any]:
        return np.array(self.told["high"])

    @property
    def noisy(self) -> NDArray[Any]:
        """The numbers before they were brought into their public range."""
        return np.array(self.told.get("noisy", self.told["values"]))

    @property
    def error(self) -> float:
        """The widest half-interval of all its numbers, at 95%."""
        return float(self.told["error_95"])

    @property
    def entries(self) -> tuple[int, ...]:
        """The entries that it follows from."""
        return tuple(self.told["from"])

    def __str__(self) -> str:
        return str(self.told["says"])


def cost_in_words(told: Mapping[str, Any]) -> str:
    """What something would cost, and what that means: the first line of every preview."""
    risks = "".join(
        f"; identification of {name} at most {p['after']:.3g} afterwards (ceiling {p['ceiling']:.3g})"
        for name, p in told["identification"].items()
    )
    risks += yes_no_in_words(told["yes_no"]) if risks and "yes_no" in told else ""
    left = f"left {_amount(told['left'])}{'' if told['fits'] else ': too much'}"
    return f"would cost   epsilon {_amount(told['cost'])} ({left}){risks}"


def charge_in_words(told: Mapping[str, Any]) -> str:
    """What something cost, and where that leaves everybody: the last line of every answer."""
    risks = [f"identification of {name} at most {p['after']:.3g}" for name, p in told["identification"].items()]
    if risks and "yes_no" in told:
        risks.append(f"yes/no certainty at most {told['yes_no']['after']:.3g}")
    cost = f"cost {_amount(told['cost'])}, left {_amount(told['left'])}"
    stored = told.get("stored") or ""  # an older service sends none
    line = "     ".join([*stored_in_words(stored), cost, *risks, f"entry {told['entry'][:8]}"])
    return "\n".join([line, *source_in_words(stored, told.get("source", ""))])


def _expected(one: Mapping[str, Any], share: str) -> str:
    told = [f"within {number(one['error'])} of the truth, {share}"] if one["error"] is not None else []
    told += [one["caution"]] if one["caution"] else []
    told += [f"free: {one['free']}"] if one["free"] else []
    return f"{one['question']}: {'; '.join(told) or 'of an error that depends on the data'}"


def _amount(text: str) -> str:
    return Amount.parse(text).say()
