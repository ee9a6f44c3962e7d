"""The promise that released records do not reveal a property of a group."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from fractions import Fraction
from typing import Any, Literal

from tidegate.errors import PolicyUnreadable
from tidegate.exact import Number, exact, plain, say

TESTS = ("mutual-information", "kullback-leibler", "chi-square", "dixon", "posterior")
DEFAULT_TESTS = ("mutual-information", "kullback-leibler")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
Merging = Literal["forward", "smaller-neighbour", "smallest-first"]
CHOICES = {
    "merging": ("forward", "smaller-neighbour", "smallest-first"),
    "dixon_table": ("exact", "printed"),
    "small_samples": ("until-valid", "published"),
    "shows": ("bins", "values"),
}


@dataclass(frozen=True)
class Profile:
    """The appearance of a sensitive group to an observer.

    `values` is the distribution of its records over the values; `prior` is the probability that a group is sensitive before
    anything was released.
    """

    prior: Fraction
    values: tuple[Fraction, ...]

    def __init__(self, *, prior: Number, values: Sequence[Number]) -> None:
        object.__setattr__(self, "prior", exact(prior))
        object.__setattr__(self, "values", _weights("A profile", values, zero_allowed=True))
        if not 0 < self.prior < 1:
            raise PolicyUnreadable(f"The prior of a profile must be between 0 and 1, not {say(self.prior)}.")

    def to_dict(self) -> dict[str, Any]:
        return {"prior": plain(self.prior), "values": [plain(value) for value in self.values]}


@dataclass(frozen=True)
class Concealment:
    """Released records do not reveal, through the columns they show (`reveals`), a property of a group (`about`).

    Args:
        baseline: How often each value of `reveals` is expected: weights in the policy's order (of bins, if the attribute has
            them; the last of several attributes changes fastest).
        baseline_from_table_on: Instead of `baseline`: computed from the table, once, on or after this day ("2026-04-01").
            Setting it declares that distribution public.
        shares: How records divide over the groups, for simulated critical values. Default: equal, or computed together with
            the baseline.
        profiles: For the posterior test: the distribution of values in a sensitive group.
        rho: For the posterior test: the largest probability with which an observer may believe that a group is sensitive.
        merging: How the chi-square test joins values with fewer than five records.
        dixon_table: Critical values by quadrature ("exact") or the paper's ("printed", 3 to 10 groups).
        small_samples: Critical values are simulated "until-valid", or as far as the paper did ("published").
        shows: A number with bins is released as its bin ("bins"), which is what the tests see, or as its value ("values"),
            which reveals more inside a bin than any test examines.
    """

    reveals: tuple[str, ...]
    about: tuple[str, ...]
    releases: tuple[str, ...] = ()
    tests: tuple[str, ...] = DEFAULT_TESTS
    significance: Fraction = Fraction(1, 5)
    baseline: tuple[Fraction, ...] = ()
    baseline_from_table_on: str = ""
    shares: tuple[Fraction, ...] = ()
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    rho: Fraction | None = None
    merging: Merging = "forward"
    dixon_table: Literal["exact", "printed"] = "exact"
    small_samples: Literal["until-valid", "published"] = "until-valid"
    shows: Literal["bins", "values"] = "bins"

    def __init__(
        self,
        *,
        reveals: Sequence[str] | str,
        about: Sequence[str] | str,
        releases: Sequence[str] = (),
        tests: Sequence[str] | str = DEFAULT_TESTS,
        significance: Number = Fraction(1, 5),
        baseline: Sequence[Number] = (),
        baseline_from_table_on: str = "",
        shares: Sequence[Number] = (),
        profiles: Mapping[str, Profile] | None = None,
        rho: Number | None = None,
        merging: Merging = "forward",
        dixon_table: Literal["exact", "printed"] = "exact",
        small_samples: Literal["until-valid", "published"] = "until-valid",
        shows: Literal["bins", "values"] = "bins",
    ) -> None:
        values_by_name = {
            "reveals": column_names(reveals),
            "about": column_names(about),
            "releases": tuple(releases) or (*column_names(reveals), *column_names(about)),
            "tests": column_names(tests),
            "significance": exact(significance),
            "baseline": _weights("The baseline", baseline) if baseline else (),
            "baseline_from_table_on": baseline_from_table_on,
            "shares": _weights("`shares`", shares) if shares else (),
            "profiles": dict(profiles or {}),
            "rho": None if rho is None else exact(rho),
            "merging": merging,
            "dixon_table": dixon_table,
            "small_samples": small_samples,
            "shows": shows,
        }
        for name, value in values_by_name.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        if not self.reveals or not self.about or set(self.reveals) & set(self.about):
            raise PolicyUnreadable(
                "A concealment requires columns in `reveals` and other columns in `about`; no column can be in both."
            )
        if not 0 < self.significance < 1:
            raise PolicyUnreadable(f"`significance` must be between 0 and 1, not {say(self.significance)}.")
        unknown = [test for test in self.tests if test not in TESTS]
        if unknown or not self.tests or len(set(self.tests)) != len(self.tests):
            raise PolicyUnreadable(
                f'Unknown test: "{unknown[0]}".'
                if unknown
                else "A concealment requires at least one test, each named once.",
                f"Known: {', '.join(TESTS)}.",
            )
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise PolicyUnreadable(f"`{name}` must be one of {', '.join(allowed)}.")
        if self.baseline_from_table_on and not _is_day(self.baseline_from_table_on):
            raise PolicyUnreadable('`baseline_from_table_on` must be a date such as "2026-04-01".')
        if self.baseline and self.baseline_from_table_on:
            raise PolicyUnreadable(
                "A concealment has two baselines: weights, and the table on a date.", "Remove one of them."
            )
        self._check_posterior()

    def _check_posterior(self) -> None:
        if "posterior" not in self.tests:
            if self.profiles or self.rho is not None:
                raise PolicyUnreadable(
                    "`profiles` and `rho` require the posterior test.", 'Add "posterior" to `tests`, or remove them.'
                )
            return
        if not self.profiles or self.rho is None or not 0 < self.rho < 1:
            raise PolicyUnreadable(
                "The posterior test requires a `rho` between 0 and 1 and at least one profile of a sensitive group.",
                "Add rho = 0.5 and profiles.NAME = { prior = 0.2, values = [...] }.",
            )
        sensitive = sum((profile.prior for profile in self.profiles.values()), Fraction(0))
        if sensitive >= self.rho:
            raise PolicyUnreadable(
                f"Before anything is released, a group is sensitive with probability {say(sensitive)}, "
                f"so rho = {say(self.rho)} is already exceeded.",
                f"Promise a rho above {say(sensitive)}.",
            )

    def __str__(self) -> str:
        tests = " and ".join(self.tests)
        return f"{', '.join(self.reveals)} must not reveal {', '.join(self.about)}: {tests} at {say(100 * self.significance)}%"

    def to_dict(self) -> dict[str, Any]:
        """Return the promise as its section of the policy file, without most default values."""
        lists = {name: list(getattr(self, name)) for name in ("reveals", "about", "tests", "releases")}
        more = {
            f.name: getattr(self, f.name) for f in fields(self) if f.name not in (*lists, "profiles", "significance")
        }
        written = {name: _plain_value(value) for name, value in more.items() if value not in (_DEFAULTS[name], ())}
        profiles = {name: profile.to_dict() for name, profile in self.profiles.items()}
        return {
            **lists,
            "significance": plain(self.significance),
            **written,
            **({"profiles": profiles} if profiles else {}),
        }


_DEFAULTS = {f.name: f.default for f in fields(Concealment)}


def _is_day(text: str) -> bool:
    try:
        return bool(DAY.fullmatch(text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _plain_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return plain(value) if isinstance(value, Fraction) else value


def column_names(names: Sequence[str] | str) -> tuple[str, ...]:
    """Return one name or several as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)


def _weights(what: str, numbers: Sequence[Number], *, zero_allowed: bool = False) -> tuple[Fraction, ...]:
    weights = tuple(exact(weight) for weight in numbers)
    if len(weights) < 2 or min(weights) < 0 or sum(weights) == 0:
        raise PolicyUnreadable(f"{what} must have at least two weights, none below 0 and not all 0.")
    if not zero_allowed and min(weights) == 0:
        raise PolicyUnreadable(
            f"{what} has weight 0 for value {weights.index(Fraction(0)) + 1} of {len(weights)}, "
            "so that one record with it would exceed every limit.",
            "Set a weight above 0 for every declared value, or declare fewer values.",
        )
    return weights
