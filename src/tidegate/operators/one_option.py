"""One option: a report is about a single option, drawn uniformly, with a randomized yes or no."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Self

from tidegate.exact import say
from tidegate.operators.choice import ChoiceOperator
from tidegate.operators.exact_draws import ONE, WHOLE, Bytes, below, coin, exp_below
from tidegate.operators.operator import Report, code


class OneOption(ChoiceOperator):
    """The code 2 option + answer: the option is uniform and public, the answer is true with probability keep / 2**48.

    Order of the draws: the option, then the coin.

    Guarantee:
        Local loss at most epsilon between any two sets, in integer arithmetic: keep is rounded down. The option does not
        depend on the choices.

    Reference:
        Warner 1965, for one option; sampling of attributes: Nguyen, Xiao, Yang, Hui, Shin, Shin 2016.
    """

    name = "one-option"

    def __init__(self, items: int, *, epsilon: Fraction) -> None:
        self.items = self.choose = items
        self.values, self.report_size = 2**items, 2 * items
        power = exp_below(epsilon)
        self.keep = WHOLE * power // (power + ONE)
        self.p = Fraction(self.keep, WHOLE)
        self.q = 1 - self.p

    @classmethod
    def from_parameters(
        cls, values: int, step: Fraction, chosen: Mapping[str, Fraction], plans: Iterable[Any] = ()
    ) -> Self:
        return cls(values, epsilon=chosen["epsilon"])

    @property
    def gamma(self) -> Fraction:
        return self.p / self.q

    def probability_of(self, report: Report, basket: Sequence[int]) -> Fraction:
        option, answer = divmod(code(report), 2)
        is_true = answer == (option in self.checked(basket))
        return (self.p if is_true else self.q) / self.items

    def sample_basket(self, basket: Sequence[int], source: Bytes) -> Report:
        chosen, option = self.checked(basket), below(self.items, source)
        is_true = coin(self.keep, source)
        return 2 * option + int((option in chosen) == is_true)

    def seen(self, counts: Sequence[int], reports: int) -> tuple[list[int], list[int]]:
        yes, no = list(counts[1::2]), list(counts[::2])
        return yes, [first + second for first, second in zip(yes, no, strict=True)]

    def share_variance(self, share: float) -> float:
        return self.items * super().share_variance(share)

    def sent_words(self, report: Report, words: Sequence[str]) -> str:
        option, answer = divmod(code(report), 2)
        return f"{'yes' if answer else 'no'} to {words[option]}"

    def concluded(self) -> str:
        return (
            f"The option was drawn at random; the answer is yours with probability {say(self.p, 2)}. From it the holder can "
            f"conclude that you chose this option with odds at most {say(self.gamma)} times as high or as low as before, and "
            "nothing about the others."
        )

    def recipe(self) -> dict[str, Any]:
        return {"draw": self.name, "items": self.items, "keep": self.keep}
