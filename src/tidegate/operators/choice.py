"""Operators on the options that a person chooses, as a client draws them: the shares of single options are estimated.

They differ from those of basket.py: a report promises one epsilon for any two sets, whatever their sizes, and nothing is
estimated about options together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

from tidegate.errors import Unsupported
from tidegate.operators.basket import FEW, LARGEST_BASKET
from tidegate.operators.exact_draws import Bytes
from tidegate.operators.operator import EPSILON, Operator, Parameter, Report, is_set

CHOOSE = Parameter(
    "choose",
    "the largest number of options that one person can choose.",
    "count",
    least=Fraction(1),
    most=Fraction(LARGEST_BASKET),
    example="2",
)


class ChoiceOperator(Operator):
    """A randomized set of chosen options; a set is a list of option codes.

    Subclasses state `items`, `choose`, `p` and `q`, `probability_of` and `sample_basket`. An option is supported by a report
    with probability p if it was chosen, and with probability q otherwise.
    """

    of_sets: ClassVar[bool] = True
    takes_plans: ClassVar[bool] = False
    parameters: ClassVar[tuple[Parameter, ...]] = (EPSILON,)
    items: int
    choose: int
    p: Fraction
    q: Fraction

    def probability_of(self, report: Report, basket: Sequence[int]) -> Fraction:
        """Return P(report | chosen options), exactly as the client draws it."""
        raise NotImplementedError

    def sample_basket(self, basket: Sequence[int], source: Bytes) -> Report:
        """Draw a randomized report of the chosen options."""
        raise NotImplementedError

    def seen(self, counts: Sequence[int], reports: int) -> tuple[list[int], list[int]]:
        """Return for each option how many reports support it, and of how many."""
        raise NotImplementedError

    def sent_words(self, report: Report, words: Sequence[str]) -> str:
        """Return a report as text; `words` has the name of each option."""
        raise NotImplementedError

    def concluded(self) -> str:
        """Return what a holder can conclude from a report, as a sentence."""
        raise NotImplementedError

    def share_variance(self, share: float) -> float:
        """Return N times the variance of an option's estimated share, for a population that N people are a sample of."""
        p, q = float(self.p), float(self.q)
        seen = q + (p - q) * share
        return seen * (1 - seen) / (p - q) ** 2

    def checked(self, basket: Sequence[int]) -> list[int]:
        """Return the chosen options in ascending order; refuse invalid ones without quoting them."""
        chosen = sorted(basket)
        if not is_set(chosen, self.items):
            raise Unsupported("Name each chosen option once, and only listed options.", "Nothing was sent.")
        if len(chosen) > self.choose:
            raise Unsupported(
                f"At most {self.choose:,} options can be chosen; these are {len(chosen):,}.", "Leave options out."
            )
        return chosen

    def probability(self, report: Report, value: int) -> Fraction:
        """Return `probability_of` for the options that are the bits of `value`."""
        return self.probability_of(report, bits_of(value))

    def sample(self, value: int, source: Bytes) -> Report:
        """Return `sample_basket` for the options that are the bits of `value`."""
        return self.sample_basket(bits_of(value), source)

    def likelihoods(self, report: Report) -> list[Fraction]:
        """Return P(report | options) for every set; 0 for one with too many options, because it sends no report."""
        self._refuse_many()
        sets = range(self.values)
        return [self.probability(report, value) if value.bit_count() <= self.choose else Fraction(0) for value in sets]

    def exact_channel(self) -> list[list[Fraction]]:
        self._refuse_many()
        return [self.likelihoods(report) for report in self.reports()]

    def channel_array(self, *, merge: int = 1) -> Any:
        raise Unsupported("Chosen options have no channel over single values.", "Estimate the shares of the options.")

    def _refuse_many(self) -> None:
        if self.items > FEW:
            raise Unsupported(
                f"{self.items:,} options have 2**{self.items:,} sets, too many to list.",
                f"Use at most {FEW} options.",
            )


def bits_of(value: int) -> list[int]:
    """Return the positions of the bits of a number, ascending."""
    return [position for position in range(value.bit_length()) if value >> position & 1]


def chosen_count(chosen: Mapping[str, Fraction]) -> int:
    """Return the limit of a policy's parameters."""
    return int(chosen["choose"])
