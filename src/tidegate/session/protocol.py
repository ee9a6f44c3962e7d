"""What every session can do, on this machine or over HTTP.

Write functions against these protocols, and they work with `tidegate.open` and with `tidegate.connect`. Both return the same
classes. `tests/session` runs every method on both and compares types, JSON and text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, overload

from tidegate.answer import Answer, Answers, Preview, Query
from tidegate.answer.derive import Derived
from tidegate.answer.spending import Calibration, Planning
from tidegate.answer.sql import SqlPlan
from tidegate.errors import Unsupported, did_you_mean
from tidegate.exact import Number
from tidegate.ledger import Account
from tidegate.policy import Policy

if TYPE_CHECKING:
    from tidegate.collect.baskets.rules import RuleSet
    from tidegate.collect.client import Client
    from tidegate.collect.means import Mean
    from tidegate.collect.memory import Memory
    from tidegate.collect.polls.results import PollResults
    from tidegate.collect.result import Band, Distribution
    from tidegate.collect.run import Submitted
    from tidegate.collect.shares import ShareTable
    from tidegate.collect.trees.survey_tree import SurveyTree
    from tidegate.release.hiding import Selection
    from tidegate.release.result import Outcome, Outcomes, Records
    from tidegate.synthesize.model import Progress
    from tidegate.synthesize.quality import PaidQuality
    from tidegate.synthesize.result import SynthesisPreview, SyntheticTables

Question: TypeAlias = Query | Sequence[Query] | list[str] | str | SqlPlan


def choose_poll(policy: Policy, name: str) -> str:
    """Return the name of a poll; the only one if `name` is empty."""
    polls = list(policy.polls)
    if name in polls or (not name and len(polls) == 1):
        return name or polls[0]
    if not name:
        listed = f"Name one of: {', '.join(polls)}." if polls else "Add [poll.NAME] to the policy."
        raise Unsupported(f'"{policy.dataset.name}" has {len(polls) or "no"} polls.', listed)
    raise Unsupported(f'"{policy.dataset.name}" has no poll called "{name}".', did_you_mean(name, polls))


class ReleaseDesk(Protocol):
    """Releases records under one concealment or hiding promise."""

    def request(self, key: str | int) -> Outcome:
        """Request the record of a key."""
        ...

    def request_many(self, keys: Iterable[str | int]) -> Outcomes:
        """Request many records in order. A request is decided once, however often it is sent."""
        ...

    def status(self, key: str | int) -> Outcome:
        """Return the state of a request."""
        ...

    def withdraw(self, key: str | int) -> None:
        """Withdraw a waiting request and delete its record. Released records cannot be withdrawn."""
        ...

    def released(self, since: int = 0, *, limit: int | None = None) -> tuple[Records, int]:
        """Return the records released after a cursor, and the next cursor."""
        ...


class CollectionSurvey(Protocol):
    """Collects randomized reports, and estimates distributions, rules and trees from them."""

    @property
    def reports(self) -> int:
        """The number of counted reports."""
        ...

    @property
    def waiting(self) -> int:
        """The number of received reports that are not counted yet, rounded down to the policy's minimum."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the collection accepts no more reports."""
        ...

    @property
    def estimable(self) -> list[str]:
        """The questions that have a distribution."""
        ...

    def client(self, *, memory: Memory | str | Path | None = None) -> Client:
        """Return the randomizer that runs on a respondent's device."""
        ...

    def submit(self, reports: Iterable[Mapping[str, Any]], *, batch: str = "") -> Submitted:
        """Submit randomized reports: each is accepted, or refused with a reason. A service counts them in a later batch."""
        ...

    def receive(self, reports: Iterable[Mapping[str, Any]]) -> Submitted:
        """Submit single reports, which wait and are counted in a later batch."""
        ...

    def invite(self, count: int) -> list[str]:
        """Create single-use codes for an invited poll and return them: this is the only time they are known."""
        ...

    def sign(self, code: str, blinded: str) -> str:
        """Return the blind signature for a code, which is used up."""
        ...

    def distribution(
        self,
        question: str,
        *,
        method: str = "",
        confidence: float = 0.95,
        band: Band = "default",
        atoms: bool = False,
    ) -> Distribution:
        """Estimate the distribution of the true values."""
        ...

    def estimates(
        self, *, method: str = "", confidence: float = 0.95, band: Band = "default", atoms: bool = False
    ) -> dict[str, Distribution]:
        """Estimate the distribution of every question in `estimable`."""
        ...

    def mean(self, question: str, *, confidence: float = 0.95) -> Mean:
        """Estimate the mean of a question about a number, with its interval."""
        ...

    def shares(self, question: str = "", *, confidence: float = 0.95) -> ShareTable:
        """Estimate how many people chose each option of a question about a set, each with its interval."""
        ...

    def results(self, *, confidence: float = 0.95) -> PollResults:
        """Return the results of every question, from counted batches only."""
        ...

    def state(self) -> dict[str, Any]:
        """Return the number of counted and of waiting reports (rounded down), the closing time, and the loss of one person."""
        ...

    def rules(
        self, question: str = "", *, min_support: float, min_confidence: float = 0.5, largest: int | None = None
    ) -> RuleSet:
        """Find frequent itemsets and association rules, each with its standard error."""
        ...

    def tree(self, label: str, *, by: Sequence[str] = (), strategy: str = "best") -> SurveyTree:
        """Learn a decision tree that predicts one answer from the others."""
        ...

    def close(self) -> None:
        """Accept no more reports, permanently. Waiting reports are counted as a last batch."""
        ...


class DataSession(Protocol):
    """One data set under one policy. Specify exactly one of `rho`, `epsilon`, `error`, `share` or `z` wherever they are parameters."""

    @property
    def policy(self) -> Policy:
        """The policy; a served data set shows its public part."""
        ...

    @property
    def account(self) -> Account:
        """The spent and the remaining budget."""
        ...

    @overload
    def answer(
        self,
        question: Query,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        share: Number | None = None,
        z: Number | None = None,
        confidence: float = 0.95,
        calibration: Calibration = "equation-15",
        window: int = 1,
        plan: Planning = "one-by-one",
        key: str = "",
        anyway: bool = False,
    ) -> Answer: ...
    @overload
    def answer(
        self,
        question: str | SqlPlan,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        share: Number | None = None,
        z: Number | None = None,
        confidence: float = 0.95,
        calibration: Calibration = "equation-15",
        window: int = 1,
        plan: Planning = "one-by-one",
        key: str = "",
        anyway: bool = False,
    ) -> Answer | Answers: ...
    @overload
    def answer(
        self,
        question: Sequence[Query] | list[str],
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        share: Number | None = None,
        z: Number | None = None,
        confidence: float = 0.95,
        calibration: Calibration = "equation-15",
        window: int = 1,
        plan: Planning = "one-by-one",
        key: str = "",
        anyway: bool = False,
    ) -> Answers: ...

    def preview(
        self,
        question: Question,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        share: Number | None = None,
        z: Number | None = None,
        confidence: float = 0.95,
        calibration: Calibration = "equation-15",
        window: int = 1,
        plan: Planning = "one-by-one",
    ) -> Preview:
        """Return the cost and the expected error of an answer. Free; reads no row."""
        ...

    def fit(self, question: Question, *, confidence: float = 0.95) -> Preview:
        """Return the accuracy of these queries if they share the remaining budget equally. Free; reads no row."""
        ...

    def derive(self, question: Query | str) -> Derived | None:
        """Return what follows from earlier answers at no cost, or None."""
        ...

    def release(self, promise: str = "") -> ReleaseDesk:
        """Return the release desk of a concealment or hiding promise (optional if the policy has only one)."""
        ...

    def open_release(self, *, sensitive: Sequence[Sequence[str] | str] | None = None, later: bool = False) -> Selection:
        """Choose the records that can be released under the hiding promises. For the data holder; this is final."""
        ...

    def collect(self, name: str = "") -> CollectionSurvey:
        """Return the survey of a collection (optional if the policy has only one)."""
        ...

    def poll(self, name: str = "") -> CollectionSurvey:
        """Return the survey of a poll (optional if the policy has only one)."""
        ...

    def synthesize(
        self,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        z: Number | None = None,
        share: Number | None = None,
        delta: Number | None = None,
        tables: int = 1,
        rows: int | None = None,
        model: str = "forest/2",
        target: str = "",
        seed: int | None = None,
        columns: Iterable[str] = (),
        key: str = "",
        progress: Progress | bool | None = None,
    ) -> SyntheticTables:
        """Generate artificial tables like the original, at an exact loss."""
        ...

    def preview_synthesis(
        self,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        z: Number | None = None,
        share: Number | None = None,
        delta: Number | None = None,
        tables: int = 1,
        rows: int | None = None,
        model: str = "forest/2",
        target: str = "",
        seed: int | None = None,
        columns: Iterable[str] = (),
    ) -> SynthesisPreview:
        """Return the cost, the model and the split of the budget. Free; reads no row."""
        ...

    def paid_quality(self, synthetic: SyntheticTables, *, epsilon: Number, key: str = "") -> PaidQuality:
        """Return the distance of synthetic tables from the original, with noise, charged and recorded."""
        ...

    def close(self) -> None:
        """Close the ledger or the connection."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
