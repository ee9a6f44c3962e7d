"""Promises about answers and synthetic tables: identification and loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from tidegate.errors import PolicyUnreadable
from tidegate.exact import Number, exact, plain, say

Worlds = Literal["values", "persons"]
Guarantee = Literal["worst-case", "average"]
GUARANTEES: tuple[Guarantee, ...] = ("worst-case", "average")
FINEST_DEFAULT = 100  # by default, a column never counts for more possibilities than this


@dataclass(frozen=True)
class Identification:
    """No person is identified with a probability above `rho`.

    Guarantee:
        "worst-case": for every response, a guess is right with probability at most rho. "average": the probability, over the
        prior and the noise, that the best guess after all answers is right is at most rho. It is weaker: a single response
        can exceed rho, and the person must be chosen before the answers.

    Args:
        guarantee: "worst-case" or "average".
        within: For each numeric attribute the distance, in its own unit, at which a guess counts as right. None: 0 in a
            policy of version 1, otherwise as wide as needed for at most 100 distinguishable values.
        worlds: "values": among the values of each protected attribute (its number of values, or 1 / its largest prior).
            "persons": among the persons of a public population, some of whom are in the data set.
        known: The number of rows that the adversary knows. None: all but one (the informed adversary of the paper). A number
            needs `population` and the data set's public number of rows: (population - known) / (rows - known) worlds.
        prior: For each attribute the adversary's largest prior probability of a value, or the list of all of them.
    """

    rho: Fraction
    worlds: Worlds = "values"
    protect: tuple[str, ...] = ()
    population: int | None = None
    known: int | None = None
    prior: Mapping[str, tuple[Fraction, ...]] = field(default_factory=dict)
    guarantee: Guarantee = "worst-case"
    within: Mapping[str, Fraction] = field(default_factory=dict)

    def __init__(
        self,
        rho: Number,
        *,
        worlds: Worlds = "values",
        protect: tuple[str, ...] = (),
        population: int | None = None,
        known: int | None = None,
        prior: Mapping[str, Number | tuple[Number, ...]] | None = None,
        guarantee: Guarantee = "worst-case",
        within: Mapping[str, Number] | None = None,
    ) -> None:
        object.__setattr__(self, "rho", exact(rho))
        object.__setattr__(self, "worlds", worlds)
        object.__setattr__(self, "protect", tuple(protect))
        object.__setattr__(self, "population", population)
        object.__setattr__(self, "known", known)
        object.__setattr__(self, "prior", {name: _prior(name, values) for name, values in (prior or {}).items()})
        object.__setattr__(self, "guarantee", guarantee)
        object.__setattr__(self, "within", {name: exact(width) for name, width in (within or {}).items()})
        self._check()

    def _check(self) -> None:
        if not 0 < self.rho < 1:
            raise PolicyUnreadable(
                f"`rho` must be a probability between 0 and 1, not {say(self.rho)}.", "Write 0.05 for 5%."
            )
        if self.worlds not in ("values", "persons"):
            raise PolicyUnreadable(f'`worlds` must be "values" or "persons", not "{self.worlds}".')
        if self.guarantee not in GUARANTEES:
            raise PolicyUnreadable(f'`guarantee` must be "worst-case" or "average", not "{self.guarantee}".')
        if self.worlds == "persons" and self.within:
            raise PolicyUnreadable(
                '`within` is for the values of attributes and requires worlds = "values".',
                'Write worlds = "values", or remove it.',
            )
        if self.worlds == "values" and (self.population is not None or self.known is not None):
            raise PolicyUnreadable(
                '`population` and `known` are for persons and require worlds = "persons".',
                'Write worlds = "persons", or remove them.',
            )
        if self.worlds == "persons" and (self.population is None or self.population < 2):
            raise PolicyUnreadable(
                'worlds = "persons" requires the size of the population that the persons come from.',
                "Add population = 180_000 (the number of persons who could be in the data).",
            )
        if self.worlds == "persons" and self.prior:
            raise PolicyUnreadable(
                '`prior` is for the values of attributes and requires worlds = "values".',
                'Write worlds = "values", or remove it.',
            )
        if self.known is not None and self.known < 0:
            raise PolicyUnreadable(f"`known` must be a number of rows of at least 0, not {self.known}.")

    def __str__(self) -> str:
        average = " on average" if self.guarantee == "average" else ""
        widths = ", ".join(f"{name} to within {say(width)}" for name, width in self.within.items())
        return f"identification at most {say(self.rho)}{average}{f' ({widths})' if widths else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Return the promise as its section of the policy file."""
        optional = {"population": self.population, "known": self.known, "protect": list(self.protect) or None}
        prior = {name: [plain(p) for p in ps] if len(ps) > 1 else plain(ps[0]) for name, ps in self.prior.items()}
        stated = {name: value for name, value in optional.items() if value is not None}
        content = {"rho": plain(self.rho), "worlds": self.worlds, **stated, **({"prior": prior} if prior else {})}
        if self.guarantee != "worst-case":
            content["guarantee"] = self.guarantee
        within = {name: plain(width) for name, width in self.within.items()}
        return {**content, **({"within": within} if within else {})}


def _prior(name: str, prior: Number | tuple[Number, ...] | list[Number]) -> tuple[Fraction, ...]:
    values = tuple(exact(p) for p in prior) if isinstance(prior, tuple | list) else (exact(prior),)
    if not values or any(not 0 <= p <= 1 for p in values) or max(values) == 0 or sum(values) > 1:
        raise PolicyUnreadable(f'The prior of "{name}" must be probabilities that sum to at most 1.')
    if len(values) > 1 and sum(values) != 1:
        raise PolicyUnreadable(f'The prior of "{name}" sums to {say(sum(values, Fraction(0)), 6)}, not to 1.')
    return values


@dataclass(frozen=True)
class Loss:
    """All answers and synthetic tables together lose at most `epsilon` (pure, replace-one)."""

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", exact(epsilon))
        if self.epsilon <= 0:
            raise PolicyUnreadable(f"`epsilon` must be above 0, not {say(self.epsilon)}.")

    def __str__(self) -> str:
        return f"epsilon {say(self.epsilon)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the promise as its section of the policy file."""
        return {"epsilon": plain(self.epsilon)}
