"""Questions about a set of items: which parameters their operators take, and what they may be.

mask            keep, and if it is not symmetric insert; largest (the most items a basket may have)
cut-and-paste   cutoff, rho, largest; fixed (every basket is padded to so many items, and no size is sent)
select-a-size   plans, one for each size: { size = 2, keep = [0.1, 0.2, 0.7], insert = 0.05 }; fixed

`fixed` is the largest size. A smaller one cut larger baskets, whose supports cannot be estimated: new collections that do
so are refused (`refuse_cuts`); those that are in a ledger stay readable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tidegate.errors import PolicyUnreadable
from tidegate.exact import exact, plain, say

LARGEST_BASKET = 1_000


@dataclass(frozen=True)
class SetParameters:
    """What a set operator must be given, and what it may."""

    needed: tuple[str, ...]
    allowed: tuple[str, ...] = ()
    plans: bool = False


SET_OPERATORS = {
    "select-a-size": SetParameters((), ("fixed",), plans=True),
    "cut-and-paste": SetParameters(("cutoff", "rho", "largest"), ("fixed",)),
    "mask": SetParameters(("keep",), ("insert", "largest")),
}
CHANCES, WHOLES = ("keep", "insert", "rho"), ("cutoff", "largest", "fixed")
SET_PARAMETERS = (*CHANCES, *WHOLES)


@dataclass(frozen=True)
class BasketPlan:
    """What is done with baskets of `size` items: how likely 0, 1, .. of them stay, and another is put in."""

    size: int
    keep: tuple[Fraction, ...]
    insert: Fraction

    def to_dict(self) -> dict[str, Any]:
        return {"size": self.size, "keep": list(map(plain, self.keep)), "insert": plain(self.insert)}


def read_plans(plans: Iterable[Any]) -> tuple[BasketPlan, ...]:
    """Plans out of a file, or out of anything with size, keep and insert."""
    made = []
    for given in plans:
        parts = given if isinstance(given, Mapping) else vars(given)
        if set(parts) != {"size", "keep", "insert"}:
            raise PolicyUnreadable("a plan has size, keep and insert, and nothing else.")
        made.append(BasketPlan(int(parts["size"]), tuple(map(exact, parts["keep"])), exact(parts["insert"])))
    return tuple(sorted(made, key=lambda plan: plan.size))


def check_set_question(
    attribute: str, operator: str, items: int, parameters: Mapping[str, Fraction], plans: tuple[BasketPlan, ...]
) -> None:
    """Refuse parameters that the operator does not know, misses, or cannot have."""
    known = SET_OPERATORS[operator]
    strange = [name for name in parameters if name not in (*known.needed, *known.allowed)]
    missing = [name for name in known.needed if name not in parameters]
    if strange or missing or bool(plans) != known.plans:
        what = f"does not know {strange[0]}" if strange else f"needs {missing[0]}" if missing else _about_plans(known)
        wanted = ", ".join((*(("plans",) if known.plans else ()), *known.needed))
        may = f"; it may have {', '.join(known.allowed)}" if known.allowed else ""
        raise PolicyUnreadable(f'{operator} of "{attribute}" {what}.', f"Give {wanted}{may}.")
    for name, value in parameters.items():
        _check_number(operator, name, value, items)
    for plan in plans:
        if len(plan.keep) != plan.size + 1 or min(plan.keep) < 0 or sum(plan.keep) != 1 or not 0 <= plan.insert <= 1:
            raise PolicyUnreadable(
                f"the plan for {plan.size} items needs {plan.size + 1} probabilities that add up to 1, and insert from 0 to 1."
            )
    if len({plan.size for plan in plans}) != len(plans) or any(plan.size > items for plan in plans):
        raise PolicyUnreadable(f"plans are for different sizes, of {items:,} items at most.")
    sizes = {plan.size for plan in plans} or set(range(int(parameters.get("largest", items)) + 1))
    if "fixed" in parameters and parameters["fixed"] not in sizes:
        raise PolicyUnreadable(f"baskets are brought to {say(parameters['fixed'])} items; no plan is for that size.")


def largest_basket(parameters: Mapping[str, Fraction], plans: tuple[BasketPlan, ...]) -> int:
    """Return the most items that a basket can have: `largest`, or the largest planned size."""
    return max(plan.size for plan in plans) if plans else int(parameters["largest"])


def cuts(parameters: Mapping[str, Fraction], plans: tuple[BasketPlan, ...]) -> bool:
    """Return whether baskets larger than `fixed` are taken, and cut."""
    return "fixed" in parameters and parameters["fixed"] < largest_basket(parameters, plans)


def _about_plans(known: SetParameters) -> str:
    return "needs plans" if known.plans else "takes no plans"


def _check_number(operator: str, name: str, value: Fraction, items: int) -> None:
    if name in CHANCES and not 0 <= value <= 1:
        raise PolicyUnreadable(f"{name} of {operator} is a probability, from 0 to 1; it is {say(value)}.")
    most = min(items, LARGEST_BASKET)
    if name in WHOLES and (value.denominator != 1 or not 0 <= value <= most):
        raise PolicyUnreadable(f"{name} of {operator} is a whole number from 0 to {most:,}; it is {say(value)}.")
