"""Association rules of mined itemsets, with confidences and their standard errors.

The confidence of A -> B is c = s(A and B) / s(A). Its error is that of a ratio to first order (delta method):

    var(c) = (var(s_AB) - 2 c cov(s_AB, s_A) + c**2 var(s_A)) / s_A**2

which holds if s_A is many standard errors above zero; other rules are left out (`LEAST_ERRORS`). The source provides the
covariance, because both supports come from the same reports. Without it, the error is the largest that any covariance
allows: (err(s_AB) + c err(s_A)) / s_A.

Reference:
    Agrawal, Imielinski, Swami 1993 (rules); the errors are our own addition.

The source of a survey's baskets for `mine` and `rules` is its transposed reports of one question.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from math import ceil, comb
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.collect.baskets.bitsets import BitsetFolder
from tidegate.collect.baskets.mining import Frequent, Lattice, Level, Mined, mine
from tidegate.collect.baskets.recovery import RandomizedSupports, channel
from tidegate.collect.baskets.screening import Screening, Verdict, screen
from tidegate.collect.poisoning import SHARE, Scores, honest_range, itemset_scores
from tidegate.errors import Unsupported
from tidegate.frames import Row, Rows
from tidegate.operators import BasketOperator
from tidegate.operators.basket_plans import SetOperator, largest_basket
from tidegate.policy import Policy
from tidegate.policy.collection import Question

LEAST_ERRORS = 3.0
VERDICT = ("p_value", "established", "low", "high")
ROW: dict[str, type] = {
    **dict.fromkeys(("items", "given", "then"), list),
    **dict.fromkeys(("support", "error", "low", "high", "low_poisoned", "high_poisoned"), float),
    **dict.fromkeys(("confidence", "confidence_error", "p_value"), float),
    "established": bool,
}
SURE = 1.959963984540054  # standard errors of a 95% interval


@runtime_checkable
class Covariances(Protocol):
    """A source that also knows the covariance of two supports."""

    def covariance(self, parts: Ints, wholes: Ints) -> Floats:
        """Return Cov of the estimated supports, row by row: of itemsets, and of itemsets that contain them."""


@dataclass(frozen=True)
class Rule:
    """`given` -> `then`, by the raw estimates: a confidence can exceed 1 by chance (`shown` is clipped)."""

    given: tuple[int, ...]
    then: tuple[int, ...]
    support: float
    support_error: float
    confidence: float
    confidence_error: float
    bounded: bool  # the error is the largest that any covariance allows
    verdict: Verdict | None = None  # of the test that the confidence exceeds the minimum

    @property
    def established(self) -> bool:
        """Whether the rule is in the list with a false-discovery rate; otherwise it may be chance."""
        return self.verdict is not None and self.verdict.established

    @property
    def shown(self) -> float:
        return min(1.0, max(0.0, self.confidence))

    def to_dict(self) -> dict[str, Any]:
        return {
            "given": list(self.given),
            "then": list(self.then),
            "support": self.support,
            "support_error": self.support_error,
            "confidence": self.confidence,
            "confidence_error": self.confidence_error,
            "error_is": "at most" if self.bounded else "delta method",
            **(dict.fromkeys(VERDICT) if self.verdict is None else self.verdict.__dict__),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], codes: Mapping[str, int]) -> Rule:
        """Return a rule whose items are names; `codes` has the code of each."""
        return cls(
            given=tuple(codes[name] for name in data["given"]),
            then=tuple(codes[name] for name in data["then"]),
            support=data["support"],
            support_error=data["support_error"],
            confidence=data["confidence"],
            confidence_error=data["confidence_error"],
            bounded=data["error_is"] == "at most",
            verdict=None if data.get("p_value") is None else Verdict(*(data[name] for name in VERDICT)),
        )


def rules(mined: Mined, *, min_confidence: float, source: Any = None) -> list[Rule]:
    """Return the rules of all frequent itemsets with at least `min_confidence`, highest confidence first.

    With `source` (the mined data), the covariance of the two supports enters the error if the source knows it.
    """
    if not 0 <= min_confidence <= 1:
        raise Unsupported("`min_confidence` must be a share from 0 to 1.")
    known = source if isinstance(source, Covariances) else None
    lattice = _lattice(mined)
    unsorted = [rule for level in mined.levels[1:] for rule in _of_level(level, mined, lattice, known, min_confidence)]
    return sorted(unsorted, key=lambda rule: (-rule.confidence, -rule.support, rule.given, rule.then))


def _lattice(mined: Mined) -> Lattice:
    most = max((int(level.itemsets.max()) + 1 for level in mined.levels), default=1)
    lattice = Lattice(most)
    for level in mined.levels:
        lattice.add(level.itemsets)
    return lattice


def _of_level(level: Level, mined: Mined, lattice: Lattice, known: Covariances | None, least: float) -> Iterator[Rule]:
    reported = level.supports >= mined.min_support
    itemsets, supports, errors = level.itemsets[reported], level.supports[reported], level.errors[reported]
    for size in range(1, level.size):
        for chosen in combinations(range(level.size), size):
            parts = itemsets[:, chosen]
            index, base = lattice.find(parts), mined.levels[size - 1]
            below, below_error = base.supports[index], base.errors[index]
            sure = (below > 0) & (below >= LEAST_ERRORS * below_error)
            confidence = np.divide(supports, below, out=np.zeros_like(below), where=sure)
            keep = np.flatnonzero(sure & (confidence >= least))
            together = known.covariance(parts[keep], itemsets[keep]) if known and keep.size else None
            confidence_error = confidence_errors(
                confidence[keep], errors[keep], below[keep], below_error[keep], together
            )
            rest = [k for k in range(level.size) if k not in chosen]
            for row, error in zip(keep, confidence_error, strict=True):
                yield Rule(
                    tuple(parts[row].tolist()),
                    tuple(itemsets[row, rest].tolist()),
                    float(supports[row]),
                    float(errors[row]),
                    float(confidence[row]),
                    float(error),
                    together is None and float(errors[row]) > 0,
                )


def confidence_errors(
    confidence: Floats, error: Floats, below: Floats, below_error: Floats, together: Floats | None
) -> Floats:
    """Return the standard error of a ratio of two estimates to first order; without a covariance, the largest possible."""
    if together is None:
        return (error + np.abs(confidence) * below_error) / below
    variance = error**2 - 2 * confidence * together + (confidence * below_error) ** 2
    return np.asarray(np.sqrt(np.maximum(variance, 0)) / below)


GATHERED = 1 << 20  # reports that go into a chunk of bitsets together


CUT = (
    "Baskets of this collection were cut to {fixed} items, so no support can be estimated: low and high are the smallest and "
    "the largest support that fit the reports (95%). There are no rules, and an itemset that is not listed can be frequent too."
)


@dataclass(frozen=True)
class RuleSet(Rows):
    """Frequent itemsets and rules of randomized baskets, with the names of the items.

    If baskets were `cut`, itemsets have brackets instead of supports, and there are no rules. `scores` has, by the number of items,
    what one report can add to a support: with it, each itemset has the range of its support if 1% of the reports were false.
    """

    items: Sequence[str]
    mined: Mined
    rules: Sequence[Rule]
    cut: Cut | None = None
    screening: Screening | None = None  # None for sources without covariances, and for JSON of older versions
    scores: Mapping[int, Scores] = field(default_factory=dict)

    @property
    def established(self) -> list[Rule]:
        """The rules whose confidence exceeds the minimum at a false-discovery rate of 5%, with intervals."""
        return [rule for rule in self.rules if rule.established]

    @property
    def candidates(self) -> list[Rule]:
        """The other rules: their estimate exceeds the minimum, which may be chance."""
        return [rule for rule in self.rules if not rule.established]

    @property
    def warning(self) -> str | None:
        """Why there are no estimates; None if there are."""
        return CUT.format(fixed=self.cut.fixed) if self.cut else None

    def named(self, codes: Sequence[int]) -> list[str]:
        """Return the names of some items."""
        return [self.items[code] for code in codes]

    def rows(self) -> list[Row]:
        """Return one dictionary per itemset, then one per rule; `kind` tells which. The `items` of a rule are on its sides."""
        content = self.to_dict()
        itemsets = [{"kind": "itemset", **dict.fromkeys(ROW), **itemset} for itemset in content["itemsets"]]
        return itemsets + [
            {
                "kind": "rule",
                **dict.fromkeys(ROW),
                "items": [*rule["given"], *rule["then"]],
                **{
                    name: rule[name]
                    for name in ("given", "then", "support", "confidence", "confidence_error", *VERDICT)
                },
                "error": rule["support_error"],
            }
            for rule in content["rules"]
        ]

    def _kinds(self) -> dict[str, type]:
        return {"kind": str, **ROW}

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, with itemsets and rules by name."""
        return {
            "reports": self.mined.transactions,
            "min_support": self.mined.min_support,
            "stopped": self.mined.stopped,
            "warning": self.warning,
            "itemsets": [self._itemset(itemset) for itemset in self.mined.frequent()],
            "rules": [
                {**rule.to_dict(), "given": self.named(rule.given), "then": self.named(rule.then)}
                for rule in self.rules
            ],
            "items": list(self.items),
            "slack": self.mined.slack,
            "levels": [level.to_dict() for level in self.mined.levels],
            "cut": self.cut.to_dict() if self.cut else None,
            "screening": {**self.screening.to_dict(), "says": str(self.screening)} if self.screening else None,
            "scores": [[items, scores.most, scores.least] for items, scores in self.scores.items()],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy | None = None) -> RuleSet:
        """Return the itemsets and rules that `to_dict` wrote."""
        levels = tuple(Level.from_dict(level) for level in data["levels"])
        mined = Mined(data["reports"], data["min_support"], data["slack"], levels, data["stopped"])
        items, cut = tuple(data["items"]), data["cut"]
        codes = {name: code for code, name in enumerate(items)}
        rules = tuple(Rule.from_dict(rule, codes) for rule in data["rules"])
        screening = Screening.from_dict(data["screening"]) if data.get("screening") else None
        scores = {count: Scores(most, least) for count, most, least in data.get("scores", ())}
        return cls(items, mined, rules, Cut.from_dict(cut) if cut else None, screening, scores)

    def poisoned(self, itemset: Frequent) -> tuple[float, float] | None:
        """Return the range of the honest reports' support of an itemset if 1% of the reports were false; None if unknown."""
        scores, reports = self.scores.get(len(itemset.items)), self.mined.transactions
        if scores is None or self.cut is not None:
            return None
        shown = min(1.0, max(0.0, itemset.support))
        around = np.array([min(itemset.support, shown), max(itemset.support, shown)])
        low, high = honest_range(around, reports, ceil(SHARE * reports), scores)
        return float(np.clip(low[0], 0, 1)), float(np.clip(high[1], 0, 1))

    def _itemset(self, itemset: Frequent) -> dict[str, Any]:
        if self.cut is None:
            low, high = self.poisoned(itemset) or (None, None)
            ends = {"low_poisoned": low, "high_poisoned": high}
            return {**itemset.to_dict(), "items": self.named(itemset.items), **ends}
        low, high = self.cut.of(itemset)
        return {"items": self.named(itemset.items), "support": None, "error": None, "low": low, "high": high}


def find(
    survey: Any,
    question: str,
    *,
    min_support: float,
    min_confidence: float,
    largest: int | None,
    slack: float,
    sizes: Mapping[int, float] | None = None,
) -> RuleSet:
    """Mine the reports of a question about baskets. Estimates are unbiased; each has its standard error.

    If baskets were cut, there are brackets instead; `sizes`, the shares of basket sizes from another source, narrow them.
    """
    basket_question = survey.collection.questions[question]
    cut = _cut(basket_question, sizes)
    with supports(survey, question) as source:
        mined = mine(source, min_support=min_support, slack=slack, largest=largest)
        listed = [] if cut else rules(mined, min_confidence=min_confidence, source=source)
        verdicts, screening = screen(listed, source, min_confidence=min_confidence, largest=largest)
        scores = {} if cut else {level.size: scores_of(source.operator, level.size) for level in mined.levels}
    tested = [replace(rule, verdict=verdict) for rule, verdict in zip(listed, verdicts, strict=True)]
    return RuleSet(basket_question.universe.vocabulary, mined, tested, cut, None if cut else screening, scores)


def scores_of(operator: SetOperator, items: int) -> Scores:
    """Return the most and the least that one report, of any size that is accepted, can add to the support of an itemset."""
    if operator.flip is not None or operator.fixed is not None:
        return itemset_scores(*channel(operator, operator.fixed or 0, items), items)
    each = [itemset_scores(*channel(operator, size, items), items) for size in operator.sizes if size >= items]
    smaller = [0.0] if any(size < items for size in operator.sizes) else []
    return Scores(max([part.most for part in each] + smaller), min([part.least for part in each] + smaller))


def _cut(question: Question, sizes: Mapping[int, float] | None) -> Cut | None:
    """Return how the baskets of a question were cut; None if they were not."""
    if not question.cuts:
        return None
    return Cut(int(question.parameters["fixed"]), largest_basket(question.parameters, question.plans), sizes)


@contextmanager
def supports(survey: Any, question: str) -> Iterator[RandomizedSupports]:
    """Yield the estimated supports of a question's baskets. Bitsets are stored in a temporary folder meanwhile."""
    operator = survey.operators.get(question)
    if not isinstance(operator, BasketOperator):
        baskets = [name for name, known in survey.operators.items() if isinstance(known, BasketOperator)]
        raise Unsupported(
            f'The question "{question}" is not about a basket of items.',
            f"Questions about baskets: {', '.join(baskets)}."
            if baskets
            else "This collection has no question about baskets.",
        )
    with tempfile.TemporaryDirectory() as path:
        folder = BitsetFolder(path, operator.operator)
        for rows in _gathered(batch[question] for batch in survey.batches(question)):
            folder.append(rows)
        yield RandomizedSupports(operator.operator, folder.counters())


def _gathered(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield rows of words, about a million at a time."""
    gathered: list[Any] = []
    for batch in batches:
        gathered.append(_words(batch))
        if sum(map(len, gathered)) >= GATHERED:
            yield np.concatenate(gathered)
            gathered = []
    if gathered:
        yield np.concatenate(gathered)


def _words(rows: Any) -> Any:
    """Return packed bits as 64-bit words."""
    if rows.dtype == np.uint64:
        return rows
    spare = -rows.shape[1] % 8
    padded = np.pad(rows, ((0, 0), (0, spare))) if spare else np.ascontiguousarray(rows)
    return padded.view("<u8").astype(np.uint64)


@dataclass(frozen=True)
class Cut:
    """Baskets of up to `largest` items that were cut to `fixed`. `sizes` are the shares of basket sizes, where known.

    Of a basket of r items that was cut to f, a k-itemset stays with probability w_k(r) = C(f, k) / C(r, k) if r > f, else 1. The
    reports estimate c = sum over r of w_k(r) s_r, where s_r is the share of people with r items who have the itemset. The
    support, the sum of s_r, is not identified: populations with different supports give the same distribution of reports.

    Guarantee:
        `bracket` contains every support that some population with these shares of sizes can have, if c is between `low`
        and `high`; each end is reached by some population.
    """

    fixed: int
    largest: int
    sizes: Mapping[int, float] | None = None

    def __post_init__(self) -> None:
        if self.sizes is None:
            return
        shares = [float(share) for share in self.sizes.values()]
        is_known = all(0 <= size <= self.largest for size in self.sizes)
        if not is_known or min(shares, default=0) < 0 or abs(sum(shares) - 1) > 1e-6:
            raise Unsupported(f"`sizes` must be shares of sizes from 0 to {self.largest} that add up to 1.")

    def to_dict(self) -> dict[str, Any]:
        sizes = None if self.sizes is None else [[size, float(share)] for size, share in self.sizes.items()]
        return {"fixed": self.fixed, "largest": self.largest, "sizes": sizes}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Cut:
        """Return the cut that `to_dict` wrote."""
        return cls(data["fixed"], data["largest"], None if data["sizes"] is None else dict(data["sizes"]))

    def kept(self, size: int, items: int) -> float:
        """Return the probability that an itemset of a basket of this size survives the cut."""
        return 1.0 if size <= self.fixed else float(Fraction(comb(self.fixed, items), comb(size, items)))

    def bracket(self, low: float, high: float, items: int) -> tuple[float, float]:
        """Return the bounds on a support, given the bounds on its support after the cut."""
        low, high = max(0.0, low), min(1.0, max(0.0, high))
        ascending = sorted(size for size in self.sizes or {self.largest: 1.0} if size >= items)
        if items > self.fixed:  # no report shows such an itemset
            return 0.0, min(1.0, sum(float((self.sizes or {self.largest: 1.0})[size]) for size in ascending))
        if self.sizes is None:
            return low, min(1.0, high / self.kept(self.largest, items))
        return self._filled(low, items, ascending), self._filled(high, items, reversed(ascending))

    def of(self, itemset: Frequent) -> tuple[float, float]:
        """Return the 95% bracket of a mined itemset: its support after the cut is widened by its interval first."""
        width = SURE * itemset.error
        return self.bracket(itemset.support - width, itemset.support + width, len(itemset.items))

    def _filled(self, left: float, items: int, order: Iterable[int]) -> float:
        """Fill the support after the cut from the sizes in this order: a fractional knapsack."""
        support = 0.0
        for size in order:
            share, survival = float((self.sizes or {})[size]), self.kept(size, items)
            part = min(share, left / survival)
            support, left = support + part, left - part * survival
        return min(1.0, support)
