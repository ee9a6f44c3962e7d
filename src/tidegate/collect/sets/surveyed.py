"""The baskets of a survey: its reports of one question, turned on their side, as a source for `mine` and `rules`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.collect.mechanisms.select_a_size import BasketOperator
from tidegate.collect.sets.bitsets import BitsetFolder
from tidegate.collect.sets.mining import Mined, mine
from tidegate.collect.sets.randomized import RandomizedSupports
from tidegate.collect.sets.rules import Rule, rules
from tidegate.errors import Unsupported

GATHERED = 1 << 20  # reports that go into a chunk of bitsets together


@dataclass(frozen=True)
class Found:
    """Frequent itemsets and rules of randomized baskets, with the names of the items."""

    items: Sequence[str]
    mined: Mined
    rules: Sequence[Rule]

    def named(self, codes: Sequence[int]) -> list[str]:
        """The names of some items."""
        return [self.items[code] for code in codes]

    def to_dict(self) -> dict[str, Any]:
        """As JSON: itemsets and rules by name."""
        return {
            "reports": self.mined.transactions,
            "min_support": self.mined.min_support,
            "stopped": self.mined.stopped,
            "itemsets": [{**one.to_dict(), "items": self.named(one.items)} for one in self.mined.frequent()],
            "rules": [
                {**rule.to_dict(), "given": self.named(rule.given), "then": self.named(rule.then)}
                for rule in self.rules
            ],
        }


def find(
    survey: Any, question: str, *, min_support: float, min_confidence: float, largest: int | None, slack: float
) -> Found:
    """Mine the reports of a question about baskets. Estimates are right on average; each has its standard error."""
    with supports(survey, question) as source:
        mined = mine(source, min_support=min_support, slack=slack, largest=largest)
        found = rules(mined, min_confidence=min_confidence, source=source)
    return Found(survey.collection.questions[question].universe.vocabulary, mined, found)


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
