"""The baskets of a survey: its reports of one question, turned on their side, as a source for `mine` and `rules`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.collect.mechanisms.select_a_size import BasketOperator
from tidegate.collect.sets.bitsets import BitsetFolder
from tidegate.collect.sets.brackets import Cut
from tidegate.collect.sets.mining import Frequent, Mined, mine
from tidegate.collect.sets.randomized import RandomizedSupports
from tidegate.collect.sets.rules import Rule, rules
from tidegate.errors import Unsupported
from tidegate.policy.baskets import largest_basket
from tidegate.policy.collection import Question

GATHERED = 1 << 20  # reports that go into a chunk of bitsets together


CUT = (
    "Baskets of this collection were cut to {fixed} items, so no support can be estimated: low and high are the smallest and "
    "the largest support that fit the reports (95%). There are no rules, and an itemset that is not listed can be frequent too."
)


@dataclass(frozen=True)
class Found:
    """Frequent itemsets and rules of randomized baskets, with the names of the items.

    Where baskets were `cut`, itemsets have brackets instead of supports, and there are no rules.
    """

    items: Sequence[str]
    mined: Mined
    rules: Sequence[Rule]
    cut: Cut | None = None

    @property
    def warning(self) -> str | None:
        """Why there are no estimates; None where there are."""
        return CUT.format(fixed=self.cut.fixed) if self.cut else None

    def named(self, codes: Sequence[int]) -> list[str]:
        """The names of some items."""
        return [self.items[code] for code in codes]

    def to_dict(self) -> dict[str, Any]:
        """As JSON: itemsets and rules by name."""
        return {
            "reports": self.mined.transactions,
            "min_support": self.mined.min_support,
            "stopped": self.mined.stopped,
            "warning": self.warning,
            "itemsets": [self._itemset(one) for one in self.mined.frequent()],
            "rules": [
                {**rule.to_dict(), "given": self.named(rule.given), "then": self.named(rule.then)}
                for rule in self.rules
            ],
        }

    def _itemset(self, one: Frequent) -> dict[str, Any]:
        if self.cut is None:
            return {**one.to_dict(), "items": self.named(one.items)}
        low, high = self.cut.of(one)
        return {"items": self.named(one.items), "support": None, "error": None, "low": low, "high": high}


def find(
    survey: Any,
    question: str,
    *,
    min_support: float,
    min_confidence: float,
    largest: int | None,
    slack: float,
    sizes: Mapping[int, float] | None = None,
) -> Found:
    """Mine the reports of a question about baskets. Estimates are unbiased; each has its standard error.

    Where baskets were cut there are brackets instead; `sizes`, the shares of basket sizes from another source, make them
    sharp.
    """
    asked = survey.collection.questions[question]
    cut = _cut(asked, sizes)
    with supports(survey, question) as source:
        mined = mine(source, min_support=min_support, slack=slack, largest=largest)
        found = () if cut else rules(mined, min_confidence=min_confidence, source=source)
    return Found(asked.universe.vocabulary, mined, found, cut)


def _cut(question: Question, sizes: Mapping[int, float] | None) -> Cut | None:
    """How the baskets of a question were cut; None where they were not."""
    if not question.cuts:
        return None
    return Cut(int(question.parameters["fixed"]), largest_basket(question.parameters, question.plans), sizes)


@contextmanager
def supports(survey: Any, question: str) -> Iterator[RandomizedSupports]:
    """The estimated supports of a question's baskets. Bitsets are kept in a temporary folder meanwhile."""
    operator = survey.operators.get(question)
    if not isinstance(operator, BasketOperator):
        asked = [name for name, one in survey.operators.items() if isinstance(one, BasketOperator)]
        raise Unsupported(
            f'"{question}" does not ask for a basket of items.',
            f"Baskets here: {', '.join(asked)}." if asked else "This collection asks for none.",
        )
    with tempfile.TemporaryDirectory() as place:
        folder = BitsetFolder(place, operator.operator)
        for rows in _gathered(batch[question] for batch in survey.batches(question)):
            folder.append(rows)
        yield RandomizedSupports(operator.operator, folder.counters())


def _gathered(batches: Iterator[Any]) -> Iterator[Any]:
    """Rows of words, about a million at a time."""
    held: list[Any] = []
    for batch in batches:
        held.append(_words(batch))
        if sum(map(len, held)) >= GATHERED:
            yield np.concatenate(held)
            held = []
    if held:
        yield np.concatenate(held)


def _words(rows: Any) -> Any:
    """Packed bits as 64-bit words."""
    if rows.dtype == np.uint64:
        return rows
    spare = -rows.shape[1] % 8
    padded = np.pad(rows, ((0, 0), (0, spare))) if spare else np.ascontiguousarray(rows)
    return padded.view("<u8").astype(np.uint64)
