"""What is asked: frozen values that can be written down, compared, and priced before any row is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tidegate.accounting import DiscreteLaplace
from tidegate.noise import scale_for
from tidegate.policy import Policy


@dataclass(frozen=True)
class Count:
    """How many rows there are, in all or in every cell of the named columns."""

    groups: tuple[str, ...] = ()

    def by(self, *columns: str) -> Count:
        """The same question for every value of the columns, as the policy lists them."""
        return replace(self, groups=(*self.groups, *columns))

    def says(self) -> str:
        """The question in words."""
        return f"the number of rows by {', '.join(self.groups)}" if self.groups else "the number of rows"

    def check(self, policy: Policy) -> None:
        """Refuse unknown columns and columns that cannot be grouped by."""
        for name in self.groups:
            policy.countable(name)

    def sensitivity(self, policy: Policy) -> Fraction:
        """How far one protected unit can move the counts, in total.

        Replacing a person's k rows moves a total by k at most; over cells, k counts go and k others come.
        """
        rows = policy.dataset.unit.rows_per_person
        return Fraction(2 * rows if self.groups else rows)

    def event(self, policy: Policy, *, epsilon: Fraction) -> DiscreteLaplace:
        """The noise that costs at most `epsilon`."""
        sensitivity = self.sensitivity(policy)
        return DiscreteLaplace(sensitivity, scale_for(sensitivity, epsilon))

    def question(self, policy: Policy) -> dict[str, Any]:
        """What is asked, of which universe and unit: the identity of the question in the ledger."""
        public = policy.public_dict()
        columns = {name: public["attributes"][name] for name in self.groups}
        return {
            "verb": "answer",
            "ask": "count",
            "by": list(self.groups),
            "columns": columns,
            "unit": public["dataset"]["unit"],
        }


def count(*, by: str | tuple[str, ...] = ()) -> Count:
    """Ask how many rows there are: ``count().by("sex")``."""
    return Count((by,) if isinstance(by, str) else tuple(by))
