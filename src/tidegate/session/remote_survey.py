"""A survey over HTTP. True values are randomized on this side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate.errors import Unreachable
from tidegate.policy import Policy
from tidegate.session.http import ServiceClient, read_response

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

BATCH, POLL_BATCH = 10_000, 32  # reports sent at once


@dataclass(frozen=True)
class RemoteSurvey:
    """Collects randomized reports. The description is read once; `client` randomizes true values, on this side."""

    _client: ServiceClient
    _path: str
    _read_policy: Callable[[], Policy]

    @property
    def description(self) -> dict[str, Any]:
        """The public description."""
        if "_description" not in self.__dict__:  # no cached_property: in Python 3.11 all surveys would wait for one
            self.__dict__["_description"] = dict(self._client.get(self._path))
        return dict(self.__dict__["_description"])

    def client(self, *, memory: Memory | str | Path | None = None, fingerprint: str | None = None) -> Client:
        """Return the randomizer of a respondent.

        If `fingerprint` is set to the one that the data holder published elsewhere, a different description is refused.
        """
        from tidegate.collect.client import Client

        return Client(self.description, memory=memory, fingerprint=fingerprint)

    def submit(self, reports: Iterable[Mapping[str, Any]], *, batch: str = "") -> Submitted:
        """Submit randomized reports: each is accepted, or refused with a reason.

        Accepted reports wait and are counted later, together with others. A report is counted once by its own id,
        however often it is sent; a named batch is sent whole.
        """
        from tidegate.collect.run import Submitted  # here: arrays and engines take long to load

        all_reports = list(reports)
        if batch or len(all_reports) <= POLL_BATCH:
            return self._send(all_reports, key=batch)
        most = POLL_BATCH if "poll" in self.description else BATCH
        parts = [self._send(all_reports[start : start + most]) for start in range(0, len(all_reports), most)]
        reasons = tuple(reason for part in parts for reason in part.reasons)
        return Submitted("", reasons, parts[-1].entry, all(part.again for part in parts))

    def receive(self, reports: Iterable[Mapping[str, Any]]) -> Submitted:
        """Submit single reports, which wait and are counted in a later batch: the same as `submit`."""
        return self.submit(reports)

    def _send(self, reports: list[Mapping[str, Any]], *, key: str = "") -> Submitted:
        from tidegate.collect.run import Submitted

        data = self._client.post(f"{self._path}/reports", {"reports": reports}, key=key, again=True)
        submitted = None
        try:
            submitted = Submitted.from_dict(data)
        except ValueError:  # pydantic's, for another form
            submitted = None
        if submitted is None or len(submitted.reasons) != len(reports):
            raise Unreachable(
                "The service did not confirm which reports it received: the response has an unexpected form.",
                "Submit the same reports again: each counts once. Check that the service runs this version or a newer one.",
            )
        return submitted

    @property
    def reports(self) -> int:
        """The number of counted reports."""
        return int(self.state()["reports"])

    @property
    def waiting(self) -> int:
        """The number of received reports that are not counted yet, rounded down to the policy's minimum."""
        return int(self.state()["waiting"])

    @property
    def closed(self) -> bool:
        """Whether the collection accepts no more reports."""
        return bool(self.state()["closed"])

    @property
    def estimable(self) -> list[str]:
        """The questions that have a distribution."""
        return list(self.state()["estimable"])

    def distribution(
        self, question: str, *, method: str = "", confidence: float = 0.95, band: Band = "default", atoms: bool = False
    ) -> Distribution:
        """Estimate the distribution of the true values; see `Survey.distribution`."""
        from tidegate.collect.result import Distribution

        path, is_strict = f"{self._path}/distributions/{question}", band == "strict"
        data = self._client.get(path, method=method, confidence=confidence, strict=is_strict, atoms=atoms)
        return read_response(lambda: Distribution.from_dict(data))

    def estimates(
        self, *, method: str = "", confidence: float = 0.95, band: Band = "default", atoms: bool = False
    ) -> dict[str, Distribution]:
        """Estimate the distribution of every question about a number or a category."""
        return {
            question: self.distribution(question, method=method, confidence=confidence, band=band, atoms=atoms)
            for question in self.estimable
        }

    def mean(self, question: str, *, confidence: float = 0.95) -> Mean:
        """Estimate the mean of a question about a number, with its interval."""
        from tidegate.collect.means import Mean  # here: its libraries take long to load

        data = self._client.get(f"{self._path}/means/{question}", confidence=confidence)
        return read_response(lambda: Mean.from_dict(data))

    def shares(self, question: str = "", *, confidence: float = 0.95) -> ShareTable:
        """Estimate how many people chose each option of a question about a set; see `Survey.shares`."""
        from tidegate.collect.shares import ShareTable  # here: its libraries take long to load

        data = self._client.get(f"{self._path}/shares", question=question, confidence=confidence)
        return read_response(lambda: ShareTable.from_dict(data))

    def results(self, *, confidence: float = 0.95) -> PollResults:
        """Return the results of every question, from counted batches only; see `Survey.results`."""
        from tidegate.collect.polls.results import PollResults

        data = self._client.get(f"{self._path}/results", confidence=confidence)
        return read_response(lambda: PollResults.from_dict(data))

    def rules(
        self, question: str = "", *, min_support: float, min_confidence: float = 0.5, largest: int | None = None
    ) -> RuleSet:
        """Find frequent itemsets and association rules, each with its standard error."""
        from tidegate.collect.baskets.rules import RuleSet  # here: its compiler takes long to load

        data = self._client.get(
            f"{self._path}/rules",
            question=question,
            min_support=min_support,
            min_confidence=min_confidence,
            largest=largest,
        )
        return read_response(lambda: RuleSet.from_dict(data))

    def tree(self, label: str, *, by: Sequence[str] = (), strategy: str = "best") -> SurveyTree:
        """Learn a decision tree that predicts one answer from the others."""
        from tidegate.collect.trees.survey_tree import SurveyTree  # here: its libraries take long to load

        data = self._client.get(f"{self._path}/tree", label=label, by=list(by), strategy=strategy)
        policy = self._read_policy()
        return read_response(lambda: SurveyTree.from_dict(data, policy))

    def invite(self, count: int) -> list[str]:
        """Create single-use invitation codes and return them; see `Survey.invite`. Owners only."""
        data = self._client.post(f"{self._path}/invitations", {"count": count})
        return read_response(lambda: [str(code) for code in data["codes"]])

    def sign(self, code: str, blinded: str) -> str:
        """Return the blind signature for an invitation code; see `Survey.sign`. It needs no token of the service."""
        data = self._client.post(f"{self._path}/tokens", {"code": code, "blinded": blinded}, again=True)
        return read_response(lambda: str(data["signature"]))

    def state(self) -> dict[str, Any]:
        """Return the number of counted and of waiting reports (rounded down), the closing time, and the loss of one person."""
        return dict(self._client.get(f"{self._path}/state"))

    def close(self) -> None:
        """Accept no more reports, permanently. Owners only. A new version can be opened."""
        self._client.post(f"{self._path}/closing", {"version": self.state()["version"]})
