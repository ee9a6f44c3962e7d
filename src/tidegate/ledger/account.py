"""The account of a data set: what it has spent, its limits, and the refusal of a charge that does not fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tidegate.accounting import FREE, ZERO, Amount, Budget, Ceilings, Price, Unit
from tidegate.accounting.average import shown_epsilon
from tidegate.accounting.budget import PREFIX, SHORT, UNLIMITED
from tidegate.errors import BudgetExceeded, Unsupported
from tidegate.frames import Row, Rows
from tidegate.ledger import partners
from tidegate.ledger.entry import Entry
from tidegate.ledger.totals import Totals, amount_of

NEGLIGIBLE = 10**6  # less than this part of a limit cannot be used: the rest of rounded prices


@dataclass(frozen=True)
class Account(Rows):
    """The spent, allowed and remaining budget of a data set at one moment.

    `spent` and `ceiling` are in the account's unit; `totals` is spent in all units, and `ceilings` are all limits. `group`
    contains the totals of other accounts with the same persons; what they spent counts here too.
    """

    name: str
    spent: Amount
    ceiling: Amount
    policy: str
    totals: Price = FREE
    ceilings: Ceilings = UNLIMITED
    group: tuple[tuple[str, Totals], ...] = ()
    remaining: Amount | None = None  # as a service reports it

    @property
    def unit(self) -> Unit:
        """ "epsilon", or "z" if only the average loss is limited."""
        return self.ceilings.unit

    @property
    def left(self) -> Amount:
        """The remaining budget, also in the limits of accounts with the same persons that have the same unit."""
        if self.remaining is not None:
            return self.remaining
        if not self.group:
            return self.ceiling.minus(self.spent)
        total = self.exposure.z if self.unit == "z" else self.exposure.pure
        limits = [
            of.ceilings.main for _, of in self.group if of.ceilings != UNLIMITED and of.ceilings.unit == self.unit
        ]
        return min(limit.minus(total) for limit in (self.ceiling, *limits)) if total is not None else ZERO

    @property
    def exposure(self) -> Price:
        """What this account and those with the same persons have spent together: the loss of one person."""
        return self.totals + partners.spent(dict(self.group))

    def cost_of(self, price: Price) -> Amount:
        """Return a price in the account's unit."""
        return amount_of(price, self.ceilings)

    def fits(self, price: Price) -> bool:
        """Return whether a price fits into every limit."""
        own = Totals(self.totals, self.ceilings)
        is_left = self.remaining is None or self.cost_of(price) <= self.remaining
        return is_left and partners.refusal(own, dict(self.group), price) == ("", "")

    def yes_no_limit(self, budget: Budget) -> float:
        """Return the yes/no certainty at the account's limit."""
        pure, average = self.ceilings.pure, self.ceilings.z
        return budget.yes_no(Price(pure or ZERO, ZERO, average or ZERO))

    def in_all_units(self, price: Price, *, after: Price) -> dict[str, Any]:
        """Return the unit, a price and the totals in all units, and epsilon at delta = 1e-6 after it, as JSON values."""
        shown = {"unit": self.unit, "cost_by_unit": price.to_dict(), "spent_by_unit": self.totals.to_dict()}
        joint = {"spent_on_persons": self.exposure.to_dict()} if self.group else {}
        return {**shown, "epsilon_at_delta": shown_epsilon(after), **joint}

    def rows(self) -> list[Row]:
        """Return one dictionary per limit: its unit, the spent and the remaining budget."""
        limits = {self.unit: (self.spent, self.ceiling)}
        if self.unit == "epsilon" and self.ceilings.z is not None:
            limits["z"] = (self.totals.z, self.ceilings.z)
        return [
            {
                "data_set": self.name,
                "unit": unit,
                "spent": float(spent),
                "limit": float(limit),
                "left": float(limit.minus(spent)),
            }
            for unit, (spent, limit) in limits.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the account as JSON values."""
        amounts = {"spent": self.spent, "left": self.left, "ceiling": self.ceiling}
        shown = {name: str(amount) for name, amount in amounts.items()}
        return {"name": self.name, "unit": self.unit, **shown, "spent_by_unit": self.totals.to_dict()}

    def _says(self) -> str:
        return f"{SHORT[self.unit]} {self.spent.say()} spent, {self.left.say()} left of {self.ceiling.say()}"

    def __str__(self) -> str:
        return f"{self.name}: {self._says()}"

    def _repr_html_(self) -> str:
        from tidegate.html.notebook import budget_bar, show

        bar = budget_bar(self._says(), spent=float(self.spent), limit=float(self.ceiling))
        caption = "The privacy budget of all answers and synthetic tables together."
        return show({"title": f"Budget of {self.name}", "caption": caption, "bars": [bar]})


def account_at(entry: Entry, state: Totals, group: partners.Group) -> Account:
    """Return the account after an entry."""
    amounts = Amount.parse(entry.spent), Amount.parse(entry.ceiling)
    return Account(entry.account, *amounts, entry.policy, state.spent, state.ceilings, tuple(group.items()))


def refuse_beyond(account: Account, price: Price) -> None:
    """Raise an error if a price does not fit into every limit of an account, and of those with the same persons."""
    before, group = Totals(account.totals, account.ceilings), dict(account.group)
    exceeded = before.refusal(price)
    if not exceeded:
        _refuse_in_group(account, group, price, *partners.refusal(before, group, price))
        return
    if exceeded == "pure":
        raise Unsupported(
            f'"{account.name}" limits the pure loss (epsilon), and Gaussian noise has none.',
            "Use another mechanism, or promise identification on average without a limit on epsilon.",
        )
    unit: Unit = "z" if exceeded == "z" else "epsilon"
    parts = (price.z, before.spent.z, before.ceilings.z)
    if unit == "epsilon":
        parts = (price.pure or ZERO, account.spent, account.ceiling)
    cost, spent, limit = parts[0], parts[1], parts[2] or ZERO
    left = limit.minus(spent)
    shown = replace(account, spent=spent, ceiling=limit)
    raise BudgetExceeded(
        f'The request costs {SHORT[unit]} {cost.say()}, but "{account.name}" has {left.say()} remaining of {limit.say()} '
        f"({spent.say()} spent).",
        _what_fits(shown),
        asked=str(cost),
        spent=str(spent),
        left=str(left),
        ceiling=str(limit),
        **({"unit": unit} if unit == "z" else {}),
    )


def _refuse_in_group(account: Account, group: partners.Group, price: Price, name: str, exceeded: str) -> None:
    """Raise an error if a price exceeds a limit of a group of accounts with the same persons."""
    if not exceeded:
        return
    limited, others = name or account.name, ", ".join(f'"{other}"' for other in group)
    if exceeded == "pure":
        raise Unsupported(
            f'"{account.name}" shares persons with {others}, "{limited}" limits the pure loss (epsilon), and a part of the '
            "sum has none.",
            "Use another mechanism. If Gaussian noise was charged before, only stored answers are available.",
        )
    unit: Unit = "z" if exceeded == "z" else "epsilon"
    limits = group[name].ceilings if name else account.ceilings
    limit = (limits.z if unit == "z" else limits.pure) or ZERO
    spent = (account.exposure.z if unit == "z" else account.exposure.pure) or ZERO
    left = limit.minus(spent)
    raise BudgetExceeded(
        f'"{account.name}" shares persons with {others}: together they have spent {SHORT[unit]} {spent.say()} of {limit.say()}, '
        f'the limit of "{limited}", so {left.say()} remains.',
        f"Request at most {PREFIX[unit]}{left.say_below()}." if left else "Only stored answers are available.",
        asked=str((price.z if unit == "z" else price.pure) or ZERO),
        spent=str(spent),
        left=str(left),
        ceiling=str(limit),
        **({"unit": unit} if unit == "z" else {}),
    )


def _what_fits(account: Account) -> str:
    if account.left.grains * NEGLIGIBLE > account.ceiling.grains:
        return f"Request at most {PREFIX[account.unit]}{account.left.say_below()}."
    if account.ceiling:
        return "The budget of this data set is spent: only stored answers are available."
    return "Its policy has no promise for answers: add [promise.identification] or [promise.loss]."
