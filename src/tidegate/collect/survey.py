"""A survey: one collection of a policy, its reports, and their estimates.

survey = session.collect("shoppers")                 opens a new collection with an entry in the ledger
survey.client().randomize({"age": 34})               on the device
survey.submit(reports)                               valid reports are counted, others are refused with a reason
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

from tidegate.accounting.later_reader import LaterReader, later_reader
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
from tidegate.ledger.entry import Entry
from tidegate.ledger.invitations import InvitationBook
from tidegate.operators import BasketOperator, Operator
from tidegate.policy import Policy
from tidegate.policy.collection import Collection, Question
from tidegate.tables.segments import Segments

if TYPE_CHECKING:
    from tidegate.collect.baskets.rules import RuleSet
    from tidegate.collect.means import Mean
    from tidegate.collect.polls.results import PollResults
    from tidegate.collect.reconstruct.bank import Progress
    from tidegate.collect.result import Band, Distribution
    from tidegate.collect.shares import ShareTable
    from tidegate.collect.strings import StringTable
    from tidegate.collect.trees.survey_tree import SurveyTree


class Survey:
    """One collection. Its randomized reports are stored at `location`, a folder or any fsspec URL.

    Guarantee:
        Only randomized reports are stored, without identity and time. A report is counted once, and only together with
        its entry in the ledger. The promise to respondents is in the ledger before the first report.
    """

    def __init__(self, name: str, policy: Policy, ledger: Ledger, *, location: str | Path) -> None:
        self.collection = _collection(name, policy)
        self._book = CollectionBook(ledger, self.collection, dataset=policy.dataset.name)
        self._location, self._dataset, self._ledger = location, policy.dataset.name, ledger
        self._open()
        if self.collection.closed:
            self.close()

    # Receiving reports

    def client(self, *, memory: Memory | str | Path | None = None) -> Client:
        """Return a client, as a device would build it from the public description."""
        return Client(self.collection.public_dict(), memory=memory, fingerprint=self.collection.fingerprint)

    def submit(self, reports: Iterable[Mapping[str, Any]], *, batch: str = "") -> Submitted:
        """Submit a batch of reports: each is accepted or refused with a reason.

        The same list or the same `batch` id again returns the earlier result and counts nothing twice. The ledger
        records the time of each batch, so use it for reports of many people that were gathered elsewhere. Use `receive`
        for single reports.
        """
        return self._server.submit(reports, batch=batch)

    def receive(self, reports: Iterable[Mapping[str, Any]]) -> Submitted:
        """Receive reports as they arrive: each waits for a later batch, or is refused with a reason.

        Guarantee:
            An accepted report is on disk and counts once. Neither its time nor its order is recorded.
        """
        return self._server.receive(reports)

    def invite(self, count: int, *, user: str = "") -> list[str]:
        """Create single-use invitation codes and return them. They are not stored, so this is the only time they are known.

        Raises:
            Unsupported: The collection is not an invited poll, is closed, or its key is not in this ledger.
        """
        return self._server.invite(self._invitations, count, user=user)

    def sign(self, code: str, blinded: str) -> str:
        """Return the blind signature for an invitation code, which is marked as used. The same request returns it again.

        Raises:
            NotAllowed: The code is unknown, or was used for another blinded message.
            Unsupported: The collection is not an invited poll, or is closed.
        """
        return self._server.sign(self._invitations, code, blinded)

    @property
    def invitations(self) -> tuple[int, int]:
        """The number of invitation codes, and of those that were used, rounded down like `waiting`."""
        poll = self.collection.poll
        if poll is None or not poll.invited:
            return 0, 0
        codes, used = self._invitations.counts(poll.invitation_key)
        return codes, self.collection.batches.rounded(used)

    def flush(self, *, now: datetime | None = None) -> int:
        """Count all waiting reports as one batch, under the last scheduled time; return how many.

        Raises:
            Unsupported: Fewer reports wait than the policy's minimum, or the policy counts them only at the close.
        """
        return self._server.flush_slot(now or datetime.now(UTC))

    def flush_if_due(self, *, now: datetime | None = None) -> int:
        """Count all waiting reports if a scheduled batch is due and enough reports wait; return how many were counted.

        A batch is due if a slot of the policy's schedule began after the collection was opened and has no batch yet.
        """
        return self._server.flush_if_due(now or datetime.now(UTC))

    @property
    def waiting(self) -> int:
        """The number of received reports that are not yet counted, rounded down to a multiple of the policy's minimum."""
        return self.collection.batches.rounded(self._book.waiting)

    @property
    def received(self) -> int:
        """The exact number of counted and waiting reports. For audits and tests: to show it reveals when reports arrive."""
        return self.reports + self._book.waiting

    def close(self, *, user: str = "") -> None:
        """Close permanently. Waiting reports are counted as a last batch. A new version can be opened."""
        self._server.close(user=user)

    @property
    def closed(self) -> bool:
        return self._book.closed

    # Estimates

    @property
    def reports(self) -> int:
        """The number of counted reports."""
        return self._book.reports

    def batch_sizes(self) -> list[tuple[str, int]]:
        """Return the time of each counted batch and the number of its reports."""
        entries, _ = self._book.batches()
        sizes = [(entry.at, int(entry.content()["accepted"])) for entry in entries]
        return [(at, size) for at, size in sizes if size]

    def later_readers(self, *, delta: float | None = None) -> list[tuple[str, LaterReader]]:
        """Return the scheduled time of each shuffled batch, and what a later reader can learn about one of its reports.

        Lists that were submitted as one batch are not shuffled here and have no claim beyond the local loss.
        """
        return [
            (at, claim)
            for at, size in self._shuffled_sizes()
            if (claim := later_reader(self.collection, size, delta=delta)) is not None
        ]

    def weakest_reader(self) -> LaterReader | None:
        """Return the claim for the smallest shuffled batch, which holds for all of them; None if there is no claim."""
        smallest = min((size for _, size in self._shuffled_sizes()), default=0)
        return later_reader(self.collection, smallest)

    def _shuffled_sizes(self) -> list[tuple[str, int]]:
        entries, _ = self._book.batches()
        bodies = [(entry.at, entry.content()) for entry in entries]
        return [(at, int(body["accepted"])) for at, body in bodies if "scheduled" in body and body["accepted"]]

    @property
    def respondent_loss(self) -> RespondentLoss:
        """The largest loss of one person. Reports name nobody, so it cannot be summed by person."""
        return respondent_loss(self.collection)

    def counts(self, question: str) -> Ints:
        """Return the number of reports of each code, or, for sets, of reports that contain each value."""
        return self._counted(question).counts

    def asked(self, question: str) -> int:
        """Return the number of counted reports that answer a question."""
        return self._counted(question).reports

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
            raise Unsupported(f'There is no counted report yet, so "{question}" cannot be estimated.')
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
        """The questions that have a distribution: all but those about sets of items and those for a mean only."""
        return [question for question, operator in self.operators.items() if has_distribution(operator)]

    def mean(self, question: str, *, confidence: float = 0.95) -> Mean:
        """Estimate the mean of a question about a number, with its interval."""
        from tidegate.collect.means import estimate_mean  # here: its libraries take long to load

        self._question(question)
        return estimate_mean(self, question, confidence=confidence)

    def shares(self, question: str = "", *, confidence: float = 0.95) -> ShareTable:
        """Estimate how many people chose each option of a question about a set, each with its interval.

        Args:
            question: Optional if only one question is about a set.
        """
        from tidegate.collect.shares import estimate_shares  # here: its libraries take long to load

        name = question or self._only_set()
        self._question(name)
        return estimate_shares(self, name, confidence=confidence)

    def strings(self, question: str = "", *, confidence: float = 0.95, dictionary: Iterable[str] = ()) -> StringTable:
        """Find the frequent answers to a question about free text, each with its share and its interval.

        Args:
            question: Optional if only one question is about text.
            dictionary: The public list in which hashed texts are found.
        """
        from tidegate.collect.strings import estimate_strings  # here: its libraries take long to load

        if not question and len(self.texts) != 1:
            raise Unsupported(
                f"This collection has {len(self.texts) or 'no'} questions about text.",
                f"Name one of them as `question`: {', '.join(self.texts)}." if self.texts else "Strings need one.",
            )
        name = question or self.texts[0]
        self._question(name)
        return estimate_strings(self, name, confidence=confidence, dictionary=dictionary)

    @property
    def texts(self) -> list[str]:
        """The questions about free text, which have a table of strings."""
        return [question for question, operator in self.operators.items() if operator.of_texts]

    @property
    def sets(self) -> list[str]:
        """The questions about sets, which have a table of shares."""
        return [question for question, operator in self.operators.items() if operator.of_sets]

    @property
    def baskets(self) -> list[str]:
        """The questions about sets that have rules as well."""
        return [question for question, operator in self.operators.items() if isinstance(operator, BasketOperator)]

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
        """Estimate frequent itemsets and association rules of a question about baskets, each with its standard error.

        Args:
            question: Optional if only one question is about baskets.
            slack: A candidate is extended while its estimate is at most this many standard errors below `min_support`.
            sizes: Public shares of basket sizes, for old collections that cut baskets.
        """
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

    def results(self, *, confidence: float = 0.95) -> PollResults:
        """Estimate every question, from counted batches only, with intervals, bounds for false reports and warnings."""
        from tidegate.collect.polls.estimates import estimate_poll  # here: its libraries take long to load

        return estimate_poll(self, confidence=confidence)

    def state(self) -> dict[str, Any]:
        """Return the number of counted and of waiting reports (rounded down), the closing time, and the loss of one person."""
        from tidegate.collect.state import state_of

        return state_of(self, self.weakest_reader())

    def entries(self) -> tuple[Entry, Entry | None, str]:
        """Return the ledger entry that opened this version, that of the last counted batch, and the hash of the last entry."""
        batches, _ = self._book.batches()
        return self._book.open(), batches[-1] if batches else None, self._ledger.head()

    def tree(self, label: str, *, by: Sequence[str] = (), strategy: str = "best") -> SurveyTree:
        """Learn a decision tree that predicts the answer to `label` from other answers, from randomized reports."""
        from tidegate.collect.trees.survey_tree import tree_of  # here: its libraries take long to load

        return tree_of(self, label, by=list(by), strategy=strategy)

    # Segments

    @cached_property
    def segments(self) -> Segments:
        """The stored reports."""
        return segments_of(self.collection, self.operators, dataset=self._dataset, location=self._location)

    def files(self) -> list[str]:
        """Return the Parquet files of all counted reports, for any engine. Files that are not listed do not count."""
        return [self.segments.path(name) for name in self._names()]

    def recount(self, engine: str = "duckdb") -> dict[str, Ints]:
        """Count again from the segments with DuckDB or Spark; the result equals `counts`."""
        again = self.segments.count(self._names(), engine=engine)
        return {name: self.segments.columns[name].answers(0, counts)[1] for name, counts in again.items()}

    def codes(self, *questions: str) -> dict[str, Array]:
        """Return the reports of some questions, one row for each person who was asked all of them: codes, or packed bits."""
        parts = list(self.batches(*questions))
        if not parts:
            raise Unsupported("There is no counted report yet.")
        return {question: np.concatenate([part[question] for part in parts]) for question in questions}

    def batches(self, *questions: str) -> Iterator[dict[str, Array]]:
        """Yield the same as `codes` in parts of some ten thousand reports."""
        for question in questions:
            self._question(question)
        parts = self.segments.read(self._names(), questions)
        return parts if self.collection.ask is None else map(self._answered, parts)

    def _answered(self, part: dict[str, Array]) -> dict[str, Array]:
        """Return the rows of people who were asked all of these questions."""
        columns = {question: self.segments.columns[question] for question in part}
        rows = np.logical_and.reduce([column.is_answered(part[question]) for question, column in columns.items()])
        return {question: column.without_mark(part[question][rows]) for question, column in columns.items()}

    def verify(self, engine: str = "duckdb") -> list[str]:
        """Compare the counts with the segments that the entries name; return a text for each difference."""
        return self._server.verify(engine)

    # Internals

    @cached_property
    def operators(self) -> dict[str, Operator]:
        """The operator of each question."""
        return operators_of(self.collection)

    @cached_property
    def _invitations(self) -> InvitationBook:
        return InvitationBook(self._ledger, self._book.account)

    @cached_property
    def _server(self) -> Server:
        return Server(self.collection, self.operators, self._book, self.segments)

    def _open(self) -> None:
        open_collection(self._ledger, self.collection, dataset=self._dataset, location=self._location)

    def _names(self) -> Sequence[str]:
        return [entry.content()["segment"] for entry in self._book.batches()[0]]

    def _question(self, name: str) -> Question:
        if name not in self.collection.questions:
            raise Unsupported(
                f'"{name}" is not a question of this collection.', did_you_mean(name, self.collection.questions)
            )
        return self.collection.questions[name]

    def _only_basket(self) -> str:
        """Return the question about baskets if there is exactly one."""
        baskets = self.baskets
        if len(baskets) == 1:
            return baskets[0]
        raise Unsupported(
            f"This collection has {len(baskets) or 'no'} questions about a basket of items.",
            f"Name one of them as `question`: {', '.join(baskets)}."
            if baskets
            else "Rules need a question about items.",
        )

    def _only_set(self) -> str:
        """Return the question about a set if there is exactly one."""
        if len(self.sets) == 1:
            return self.sets[0]
        raise Unsupported(
            f"This collection has {len(self.sets) or 'no'} questions about a set of options.",
            f"Name one of them as `question`: {', '.join(self.sets)}."
            if self.sets
            else "Shares of options need a question about items.",
        )

    def _counted(self, name: str) -> Counted:
        self._question(name)
        counted = self._book.counts().get(name)
        if counted is None:
            return Counted(0, np.zeros(self.operators[name].report_size, np.int64))
        return Counted(*self.segments.columns[name].answers(counted.reports, counted.counts))


def _collection(name: str, policy: Policy) -> Collection:
    if name in policy.collections:
        return policy.collections[name]
    known = policy.collections
    raise Unsupported(
        f'"{policy.dataset.name}" has no collection called "{name}".',
        did_you_mean(name, known) if known else "Add [collection.NAME] to the policy.",
    )
