"""Responses about release desks, selections, and a respondent's own record."""

from __future__ import annotations

from typing import Any, Literal

from tidegate.service.models.base import Charts, Day, Moment, Reply, Sentence, field, optional


class DeskPromise(Reply):
    """What a desk releases, and the promise that it checks."""

    promise: str = field("The promise.")
    kind: Literal["concealment", "hiding"] = field("The kind of promise.")
    releases: list[str] = field("The columns of released records.")
    reveals: list[str] = field("The columns that observers may learn.")
    about: list[str] = field("The columns of the protected groups.")
    significance: float = optional("The significance of the tests, of a concealment promise.")


class OwnDesk(DeskPromise):
    desk: str = field("The name of the promise.")


class OwnRecord(Reply):
    """Where a respondent can request their own record."""

    dataset: str = field("The data set.")
    key: str = field("The name of the key column; empty if there is more than one.")
    desks: list[OwnDesk] = field("The release desks.")


class SelectionView(Reply):
    """What is public about an open selection."""

    epoch: int = field("The number of the selection.")
    opened: Day = field("When it was opened.")
    entry: int = field("The number of its ledger entry.")
    share: float = field("The share of the records that it releases.")
    mix: list[str] = field("The share of each value among released records.")
    at_most: str = field("The largest share of the records that it can release.")
    groups: list[str] = field("The groups.")
    values: list[str] = field("The values.")
    sizes: list[int] = field("The number of chosen records of each group.")
    hidden: list[int] = field("The indexes of the groups that have the mix.")
    quotas: list[list[int] | None] = field(
        "The number of chosen records by group and value; null for a group without the mix."
    )


class SelectionList(Reply):
    selections: list[SelectionView] = field("The open selections, the oldest first.")


class WatchedTest(Reply):
    measure: str = field("What the test measures.")
    sees: str = field("What it detects.")
    blind: str = field("What it cannot detect.")


class TestReading(Reply):
    group: str = field('The group, or "all".')
    value: float = field("The present value of the measure.")
    critical: float | None = field("The value that would be significant; null if there is none yet.")


class ExposureTrack(Reply):
    """The history of one measure."""

    test: str = field("The test.")
    measure: str = field("What it measures.")
    group: str = field('The group, or "all".')
    records: list[int] = field("Numbers of released records.")
    values: list[float] = field("The value after each of them.")
    critical: list[float | None] = field("The critical value after each of them.")


class Simulation(Reply):
    """The summary of the last simulation of a desk."""

    at: Moment = field("When it ran.")
    worlds: int = field("The number of simulated pairs of data sets.")
    records: int = field("The number of records in each.")
    observers: int = field("The number of simulated observers.")
    successful: int = field("The number of observers that find the sensitive group.")
    right: float | None = field("The share of comparisons in which the best observer is right; 0.5 is a coin flip.")
    released: float | None = field("The share of records that was released.")
    says: list[str] = field("What the simulation shows, the verdict first.")


class ConcealmentDesk(OwnDesk):
    """The state of a desk under a concealment promise."""

    out_in_all: dict[str, int] = field("The number of released records, by group.")
    asked_for: dict[str, int] = field("The number of requested records, by group.")
    waiting: int = field("The number of waiting requests.")
    shares: dict[str, float] = field("The known share of each group.")
    values: list[str] = field("The values of the revealed columns.")
    watched: dict[str, WatchedTest] = field("The tests of the promise, by name.")
    tests: dict[str, list[TestReading]] = field("The present readings, by test.")
    tracks: list[ExposureTrack] = field("The history of every measure.")
    simulation: Simulation | None = field("The last simulation of this policy; null if there is none.")
    charts: Charts = optional("The charts, if they were requested.")


class HidingDesk(OwnDesk):
    """The state of a desk under a hiding promise."""

    open: bool = field("Whether a selection is open.")
    groups: list[str] = field("The groups.")
    values: list[str] = field("The values of the revealed columns.")
    joint_groups: list[str] = field("The groups of all hiding promises together.")
    joint_values: list[str] = field("The values of all hiding promises together.")
    selections: list[SelectionView] = field("The open selections.")
    says: list[Sentence] = field("What the promise says, by subject.")
    out_in_all: dict[str, int] = field("The number of released records, by group.")
    withheld: int = field("The number of requests whose record is withheld.")
    counts: list[list[int]] = field("The number of released records, by group and value.")
    simulation: Simulation | None = field("The last simulation of this policy; null if there is none.")


class RequestOutcome(Reply):
    """The state of a request for a record."""

    outcome: Literal["released", "deferred", "withheld", "refused"] = field("What came of the request.")
    number: int = optional("The number of the request, unless it was refused.")
    record: dict[str, Any] = optional("The record, if it was released: its columns depend on the promise.")
    ahead: int | None = optional("The number of requests that have waited longer; null if they were not counted.")
    later: bool = optional("True if the record was added after the selection.")
    day: Day = optional("The day of the selection that withholds the record.")
    reason: str = optional("Why the request was refused.")


class OutcomeList(Reply):
    outcomes: list[RequestOutcome] = field("The outcome of each key, in the order of the request.")


class Withdrawn(Reply):
    outcome: Literal["withdrawn"] = field("The request was withdrawn, and its record deleted.")


class ReleasedPage(Reply):
    records: list[dict[str, Any]] = field("The released records: their columns depend on the promise.")
    cursor: int = field("The number of the last of these records. Later ones come after it.")
    next: str | None = field("The cursor of the next page; null at the end.")


class SimulatedObserver(Reply):
    test: str = field("The promise or control that was simulated.")
    significance: float | None = field("Its significance; null if it has none.")
    observer: str = field("What the observer looks at.")
    auc: float | None = field("How well the observer distinguishes the data sets: 0.5 is a random guess.")
    low: float | None = field("The lower end of its interval.")
    high: float | None = field("The upper end of its interval.")
    released: float | None = field("The share of records that was released.")
    betrayed: bool = field("Whether the observer does better than a random guess.")


class ReleaseAudit(Reply):
    observations: list[SimulatedObserver] = field("What each observer could infer.")
    simulation: Simulation = field("The summary that the page of the desk shows.")
    worlds: int = field("The number of simulated pairs of data sets.")
    records: int = field("The number of records in each.")
    seed: int = field("The seed of the simulation.")


class QueueObstacle(Reply):
    """A test that would fail if the record were released now."""

    promise: str = field("The promise that the test belongs to.")
    test: str = field("The test.")
    group: str = field('The group that the test is about; "all" if it is about all groups together.')
    value: float | None = field("The measure if the record were released.")
    critical: float | None = field("The critical value then.")
    excess: float | None = field("How far the measure would be above it, as a share of it: 0.25 is 25%.")


class QueuedRequest(Reply):
    """A waiting request."""

    number: int = field("The number of the request.")
    key: str | None = field("The key of the record; null if the desk does not release it.")
    since: Moment = field("The time since the request waits.")
    group: str = field("The group of the record.")
    obstacles: list[QueueObstacle] = field("The tests that hold the record, the largest excess first.")


class QueuePage(Reply):
    requests: list[QueuedRequest] = field("The waiting requests.")
    waiting: int = field("The number of all waiting requests.")
    next: str | None = field("The cursor of the next page; null at the end.")
