"""What a contract check finds: each clause by name, whether it holds, and what was seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tidegate.errors import TidegateError


class ContractBroken(TidegateError, AssertionError):
    """Something of yours does not keep the contract that its users rely on."""

    code = "contract-broken"


@dataclass(frozen=True)
class Check:
    """One clause: what must be true, whether it is, and what was seen where it is not."""

    clause: str
    holds: bool
    seen: str = ""

    def __str__(self) -> str:
        return f"{'holds ' if self.holds else 'BROKEN'}  {self.clause}{f': {self.seen}' if self.seen else ''}"


@dataclass
class Contract:
    """All clauses of one thing. `alpha` is the chance that a true one is accused, over all sampled clauses together."""

    about: str
    alpha: float = 0.0
    checks: list[Check] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return bool(self.checks) and all(check.holds for check in self.checks)

    @property
    def broken(self) -> list[Check]:
        return [check for check in self.checks if not check.holds]

    def clause(self, clause: str, test: Callable[..., Any], *given: Any) -> bool:
        """Look at one clause. `test(*given)` gives nothing (it holds), or what was seen; an exception of it is seen as well."""
        try:
            seen = test(*given)
        except Exception as error:  # whatever a stranger's code does, the other clauses are looked at too
            seen = f"{type(error).__name__}: {error}"
        self.checks.append(Check(clause, not seen, str(seen or "")))
        return not seen

    def refuse(self) -> None:
        """ContractBroken where a clause does not hold."""
        if not self.holds:
            listed = "; ".join(f"{check.clause} ({check.seen})" for check in self.broken) or "nothing was checked"
            raise ContractBroken(f"{self.about} does not keep its contract: {listed}.", "See tidegate.testing.")

    def __str__(self) -> str:
        rate = f" (a true one is accused with a chance of {self.alpha:g})" if self.alpha else ""
        return "\n".join([f"{self.about}{rate}", *(f"  {check}" for check in self.checks)])


def documented(thing: Any, *, reference: bool = True) -> str:
    """What is missing in the words of a class: nothing, or what."""
    told = (type(thing) if not isinstance(thing, type) else thing).__doc__ or ""
    if len(told.split()) < 4:
        return "it has no docstring that says what it does"
    if reference and "Reference" not in told and "Guarantee" not in told:
        return "its docstring names neither a Reference nor a Guarantee"
    return ""
