"""The result of a contract check: each clause by name, whether it holds, and what was observed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tidegate.errors import TidegateError


class ContractBroken(TidegateError, AssertionError):
    """An extension does not keep the contract that its users rely on."""

    code = "contract-broken"


@dataclass(frozen=True)
class Check:
    """One clause: what must be true, whether it is, and what was observed if it is not."""

    clause: str
    holds: bool
    seen: str = ""

    def __str__(self) -> str:
        return f"{'holds ' if self.holds else 'BROKEN'}  {self.clause}{f': {self.seen}' if self.seen else ''}"


@dataclass
class Contract:
    """All clauses of one extension. `alpha` is the probability that all sampled clauses together accuse a correct one."""

    about: str
    alpha: float = 0.0
    checks: list[Check] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return bool(self.checks) and all(check.holds for check in self.checks)

    @property
    def broken(self) -> list[Check]:
        return [check for check in self.checks if not check.holds]

    def clause(self, clause: str, test: Callable[..., Any], *arguments: Any) -> bool:
        """Check one clause.

        `test(*arguments)` returns nothing (the clause holds) or what was observed. An exception counts as observed.
        """
        try:
            seen = test(*arguments)
        except Exception as error:  # the other clauses are checked whatever the extension does
            seen = f"{type(error).__name__}: {error}"
        self.checks.append(Check(clause, not seen, str(seen or "")))
        return not seen

    def refuse(self) -> None:
        """Raise `ContractBroken` if a clause does not hold."""
        if not self.holds:
            listed = "; ".join(f"{check.clause} ({check.seen})" for check in self.broken) or "nothing was checked"
            raise ContractBroken(f"{self.about} does not keep its contract: {listed}.", "See tidegate.testing.")

    def __str__(self) -> str:
        rate = f" (a correct one is accused with probability {self.alpha:g})" if self.alpha else ""
        return "\n".join([f"{self.about}{rate}", *(f"  {check}" for check in self.checks)])


def documented(thing: Any, *, reference: bool = True) -> str:
    """Return what the docstring of a class lacks; empty if nothing."""
    text = (type(thing) if not isinstance(thing, type) else thing).__doc__ or ""
    if len(text.split()) < 4:
        return "it has no docstring that describes it"
    if reference and "Reference" not in text and "Guarantee" not in text:
        return "its docstring names neither a Reference nor a Guarantee"
    return ""
