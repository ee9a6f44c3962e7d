"""A survey: one collection of a policy, its reports, and what they say.

survey = session.collect("shoppers")                 opens it, where it is new: an entry in the ledger
survey.client().randomize({"age": 34})               at home
survey.submit(reports)                               the good ones are counted, the others refused with a reason
survey.receive([report])                             the same for single reports: they wait, and count in a later batch
survey.distribution("age")                           at any time, from the counts
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.accounting.respondent import RespondentLoss, respondent_loss
from tidegate.arrays import Array, Ints
from tidegate.collect.client import Client
from tidegate.collect.memory import Memory
from tidegate.collect.run import Server, Submitted, open_collection, operators_of, segments_of
from tidegate.collect.validation import has_distribution
from tidegate.errors import Unsupported, did_you_mean
from tidegate.ledger import Ledger
from tidegate.ledger.collection_book import CollectionBook
from tidegate.ledger.counts import Counted
from tidegate.operators import Operator
from tidegate.policy import Policy
from tidegate.policy.collection import Collection, Question
from tidegate.tables.segments import Segments

if TYPE_CHECKING:
    from tidegate.collect.baskets.rules import RuleSet
    from tidegate.collect.reconstruct.bank import Progress
    from tidegate.collect.result import Band, Distribution
    from tidegate.collect.trees.survey_tree import SurveyTree


class Survey:
    """One collection. `place` is where its randomized reports are kept: a folder or any fsspec URL.

    Guarantee  Only randomized reports are kept, with no identity and no time beside them; a report is counted once, and
               only together with its entry in the ledger; what a respondent was promised is in the ledger before the
               first report.
    """

    def __init__(self, name: str, policy: Policy, ledger: Ledger, *, place: str | Path) -> None:
        self.collection = _collection(name, policy)
        self._book = CollectionBook(ledger, self.collection, dataset=policy.dataset.name)
        self._place, self._dataset, self._ledger = place, policy.dataset.name, ledger
        self._open()
        if self.collection.closed:
            self.close()

    # Reports in

    def client(self, *, memory: Memory | str | Path | None = None) -> Client:
        """The person's side, as a device would have it from the public description."""
        return Client(self.collection.public_dict(), memory=memory, fingerprint=self.collection.fingerprint)

    def submit(self, reports: Iterable[Mapping[str, Any]], *, batch: str = "") -> Submitted:
        """Take a batch of reports: each is taken or refused with a reason.

        The same list again, or the same `batch` id, is told what it was told before, and counts nothing twice. The
        ledger has the time of each batch: it is for reports of many people that were gathered elsewhere. Single
        reports go through `receive`.
        """
        return self._server.submit(reports, batch=batch)

    def receive(self, reports: Iterable[Mapping[str, Any]]) -> Submitted:
        """Take reports as they arrive: each waits, or is refused with a reason. Those that wait count in a later batch.

        Guarantee  What was accepted is on disk and counts once. Neither its time nor its order is recorded.
        """
        return self._server.receive(reports)

    def flush(self, *, now: datetime | None = None) -> int:
        """Count all waiting reports as one batch, under the last scheduled time; return how many.

        Raises:
            Unsupported: Fewer wait than the policy's minimum, or the policy counts them at the close only.
        """
        return self._server.flush_slot(now or datetime.now(UTC))

    def flush_if_due(self, *, now: datetime | None = None) -> int:
        """Count all waiting reports if a slot of the policy's schedule has begun since the collection opened, has no batch
        yet, and enough reports wait; return how many were counted."""
        return self._server.flush_if_due(now or datetime.now(UTC))

    @property
    def waiting(self) -> int:
        """How many received reports are not yet counted, rounded down to a multiple of the policy's minimum."""
        return self.collection.batches.rounded(self._book.waiting)

    def close(self, *, user: str = "") -> None:
        """Take no more reports, for good. What waits is counted as a last batch. A new version can be opened."""
        self._server.close(user=user)

    @property
    def closed(self) -> bool:
        return self._book.closed

    # What they say

    @property
    def reports(self) -> int:
        """How many were taken."""
        return next((counted.reports for counted in self._book.counts().values()), 0)

    def batch_sizes(self) -> list[tuple[str, int]]:
        """Return the time of each counted batch and the number of its reports."""
        entries, _ = self._book.batches()
        sizes = [(entry.at, int(entry.content()["accepted"])) for entry in entries]
        return [(at, size) for at, size in sizes if size]

    @property
    def respondent_loss(self) -> RespondentLoss:
        """What one person gives at most; it cannot be added up by person, for a report names nobody."""
        return respondent_loss(self.collection)

    def counts(self, question: str) -> Ints:
        """How many reports of each code there are, or (for sets) how many hold each value."""
        return self._counted(question).counts

    def distribution(
        self,
        question: str,
        *,
        method: str = "",
        confidence: float = 0.95,
        band: Band = "default",
        values: Sequence[Any] | None = None,
        atoms: bool = False,
        progress: Progress | None = None,
    ) -> Distribution:
        """Estimate the distribution of the true values.

        Args:
            method: "bank" (if empty), "em", ... for numbers; "shares" for categories.
            band: "default", or "strict", which assumes only that no mass is negative.
            values: The values that can occur at all; every value of the attribute if None.
            atoms: Whether the values are few and unknown.
        """
        from tidegate.collect.result import estimate  # here: its libraries take long to load

        counted = self._counted(question)
        if not counted.reports:
            raise Unsupported(f'no report has come in yet, so nothing is known of "{question}".')
        return estimate(
            question,
            self._question(question),
            self.operators[question],
            counted,
            method=method,
            confidence=confidence,
            band=band,
            values=values,
            atoms=atoms,
            progress=progress,
        )

    def estimates(
        self, *, method: str = "", confidence: float = 0.95, band: Band = "default", atoms: bool = False
    ) -> dict[str, Distribution]:
        """Estimate the distribution of every question about a number or a category."""
        return {
            question: self.distribution(question, method=method, confidence=confidence, band=band, atoms=atoms)
            for question in self.estimable
        }

    @property
    def estimable(self) -> list[str]:
        """The questions that have a distribution: all but those about sets of items."""
        return [question for question, operator in self.operators.items() if has_distribution(operator)]

    def rules(
        self,
        question: str = "",
        *,
        min_support: float,
        min_confidence: float = 0.5,
        largest: int | None = None,
        slack: float = 1.0,
        sizes: Mapping[int, float] | None = None,
    ) -> RuleSet:
        """Frequent itemsets and association rules of a question about baskets, each with its standard error. A candidate is
        followed while its estimate is at most `slack` standard errors below the least support. `question` is optional if
        there is one about baskets; `sizes` are public shares of basket sizes, for old collections that cut baskets."""
        from tidegate.collect.baskets.rules import find  # here: its compiler takes long to load

        name = question or self._only_basket()
        self._question(name)
        return find(
            self,
            name,
            min_support=min_support,
            min_confidence=min_confidence,
            largest=largest,
            slack=slack,
            sizes=sizes,
        )

    def tree(self, label: str, *, by: Sequence[str] = (), strategy: str = "best") -> SurveyTree:
        """A decision tree that tells the answer of one question from the others, learnt from randomized reports."""
        from tidegate.collect.trees.survey_tree import tree_of  # here: its libraries take long to load

        return tree_of(self, label, by=list(by), strategy=strategy)

    # The segments

    @cached_property
    def segments(self) -> Segments:
        """Where the reports are."""
        return segments_of(self.collection, self.operators, dataset=self._dataset, place=self._place)

    def files(self) -> list[str]:
        """The Parquet files of all reports taken so far, for any engine. (A file that is not listed counts for nothing.)"""
        return [self.segments.path(name) for name in self._names()]

    def recount(self, engine: str = "duckdb") -> dict[str, Ints]:
        """The counts once more from the segments, by DuckDB or Spark: the same as `counts`."""
        return self.segments.count(self._names(), engine=engine)

    def codes(self, *questions: str) -> dict[str, Array]:
        """The reports of some questions beside each other, one row for each person: codes, or rows of packed bits."""
        parts = list(self.batches(*questions))
        if not parts:
            raise Unsupported("no report has come in yet.")
        return {question: np.concatenate([part[question] for part in parts]) for question in questions}

    def batches(self, *questions: str) -> Iterator[dict[str, Array]]:
        """As `codes`, some ten thousand at a time."""
        for question in questions:
            self._question(question)
        return self.segments.read(self._names(), questions)

    def verify(self, engine: str = "duckdb") -> list[str]:
        """Compare the counts with the segments that the entries name; what is wrong, in words. Empty: all holds."""
        return self._server.verify(engine)

    # Inside

    @cached_property
    def operators(self) -> dict[str, Operator]:
        """The operator of each question."""
        return operators_of(self.collection)

    @cached_property
    def _server(self) -> Server:
        return Server(self.collection, self.operators, self._book, self.segments)

    def _open(self) -> None:
        open_collection(self._ledger, self.collection, dataset=self._dataset, place=self._place)

    def _names(self) -> Sequence[str]:
        return [entry.content()["segment"] for entry in self._book.batches()[0]]

    def _question(self, name: str) -> Question:
        if name not in self.collection.questions:
            raise Unsupported(f'"{name}" is not asked here.', did_you_mean(name, self.collection.questions))
        return self.collection.questions[name]

    def _only_basket(self) -> str:
        """The question about baskets, where there is one; else it must be named."""
        baskets = [name for name in self.collection.questions if name not in self.estimable]
        if len(baskets) == 1:
            return baskets[0]
        raise Unsupported(
            f"This collection has {len(baskets) or 'no'} questions about a basket of items.",
            f"Name one of them as `question`: {', '.join(baskets)}."
            if baskets
            else "Rules need a question about items.",
        )

    def _counted(self, name: str) -> Counted:
        self._question(name)
        found = self._book.counts().get(name)
        return found or Counted(0, np.zeros(self.operators[name].report_size, np.int64))


def _collection(name: str, policy: Policy) -> Collection:
    if name in policy.collections:
        return policy.collections[name]
    known = policy.collections
    raise Unsupported(
        f'"{policy.dataset.name}" has no collection called "{name}".',
        did_you_mean(name, known) if known else "Add [collection.NAME] to the policy.",
    )
