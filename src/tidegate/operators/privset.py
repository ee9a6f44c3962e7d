"""PrivSet: a set of fixed size that meets the chosen options more often than chance, for at most m choices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any, ClassVar, Literal, Self

from tidegate.exact import say
from tidegate.operators.choice import CHOOSE, ChoiceOperator, chosen_count
from tidegate.operators.exact_draws import ONE, WHOLE, Bytes, below, coin, exp_below
from tidegate.operators.operator import EPSILON, Report, is_set, members
from tidegate.operators.select_a_size import first_of_shuffled


class PrivSet(ChoiceOperator):
    """The choices are padded with blanks to `choose` items. With probability meet / 2**48 a set that contains one of them.

    Blanks have the codes after those of the options and can be reported. All sets of `size` codes that meet the padded
    choices are equally likely, and so are all others.

    Order of the draws: a coin; if it is heads, `below` the number of sets that meet the choices, whose position among the
    sets with 1, 2, ... choices is the number of choices in the report; these choices and then the other codes (partial
    shuffles of ascending lists).

    Guarantee:
        Local loss at most epsilon between any two sets of choices, in integer arithmetic: meet is rounded down.

    Reference:
        Wang, Huang, Nie, Wang, Xu, Yang 2018 (INFOCOM), "PrivSet: set-valued data analyses with local differential privacy".
    """

    name = "privset"
    parameters = (EPSILON, CHOOSE)
    form: ClassVar[Literal["code", "set"]] = "set"

    def __init__(self, items: int, *, epsilon: Fraction, choose: int) -> None:
        self.items, self.choose = items, choose
        self.values, self.report_size = 2**items, items + choose
        power = exp_below(epsilon)
        self.size = best_size(items, choose, power)
        self.apart = comb(items, self.size)  # sets without a choice
        self.meeting = comb(self.report_size, self.size) - self.apart
        self.meet = WHOLE * power * self.meeting // (power * self.meeting + self.apart * ONE)
        chance = Fraction(self.meet, WHOLE)
        own, alone = comb(self.report_size - 1, self.size - 1), comb(items - 1, self.size - 1)
        self.p = chance * own / self.meeting
        self.q = chance * (own - alone) / self.meeting + (1 - chance) * alone / self.apart

    @classmethod
    def from_parameters(
        cls, values: int, step: Fraction, chosen: Mapping[str, Fraction], plans: Iterable[Any] = ()
    ) -> Self:
        return cls(values, epsilon=chosen["epsilon"], choose=chosen_count(chosen))

    @property
    def gamma(self) -> Fraction:
        return Fraction(self.meet * self.apart, (WHOLE - self.meet) * self.meeting)

    def probability_of(self, report: Report, basket: Sequence[int]) -> Fraction:
        padded = set(self.padded(basket))
        if len(members(report)) != self.size:
            return Fraction(0)
        if padded.isdisjoint(members(report)):
            return (1 - Fraction(self.meet, WHOLE)) / self.apart
        return Fraction(self.meet, WHOLE) / self.meeting

    def padded(self, basket: Sequence[int]) -> list[int]:
        """Return the choices with as many blanks as are missing."""
        chosen = self.checked(basket)
        return [*chosen, *range(self.items, self.items + self.choose - len(chosen))]

    def sample_basket(self, basket: Sequence[int], source: Bytes) -> Report:
        padded = self.padded(basket)
        others = [code for code in range(self.report_size) if code not in set(padded)]
        true = self._true_count(source) if coin(self.meet, source) else 0
        shown = first_of_shuffled(padded, true, source)[:true]
        return sorted([*shown, *first_of_shuffled(others, self.size - true, source)[: self.size - true]])

    def _true_count(self, source: Bytes) -> int:
        """Draw how many of the padded choices are in a report that has some."""
        position, true = below(self.meeting, source), 0
        while position >= 0:
            true += 1
            position -= comb(self.choose, true) * comb(self.items, self.size - true)
        return true

    def reports(self) -> Iterator[Report]:
        return map(list, combinations(range(self.report_size), self.size))

    def accepts(self, report: Any) -> bool:
        return is_set(report, self.report_size) and len(report) == self.size

    def seen(self, counts: Sequence[int], reports: int) -> tuple[list[int], list[int]]:
        return list(counts[: self.items]), [reports] * self.items

    def sent_words(self, report: Report, words: Sequence[str]) -> str:
        blanks = sum(code >= self.items for code in members(report))
        shown = [words[code] for code in members(report) if code < self.items]
        return " and ".join([*shown, *([f"{blanks:,} blank{'s' if blanks > 1 else ''}"] if blanks else [])])

    def concluded(self) -> str:
        return (
            f"Your report lists {self.size:,} entries. One that you chose is on it with probability {say(self.p, 2)}, any other with "
            f"probability {say(self.q, 2)}; from all of it together no odds change more than {say(self.gamma)} times."
        )

    def recipe(self) -> dict[str, Any]:
        draws = {"choose": self.choose, "size": self.size, "meet": self.meet}
        return {"draw": self.name, "items": self.items, **draws}


@lru_cache(maxsize=256)
def best_size(items: int, choose: int, power: int) -> int:
    """Return the size of a report: the first one whose successor has a larger variance; `power` is e**epsilon over `ONE`."""
    size, best = 1, _variance(items, choose, 1, power)
    while size < items:
        following = _variance(items, choose, size + 1, power)
        if following[0] * best[1] >= best[0] * following[1]:
            break
        size, best = size + 1, following
    return size


def _variance(items: int, choose: int, size: int, power: int) -> tuple[int, int]:
    """Return numerator and denominator of a number proportional to the variance of a rare option's share."""
    every, apart = comb(items + choose, size), comb(items, size)
    own, alone = comb(items + choose - 1, size - 1), comb(items - 1, size - 1)
    total = power * (every - apart) + apart * ONE
    false = power * (own - alone) + alone * ONE
    return false * (total - false), alone**2
