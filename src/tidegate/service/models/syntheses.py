"""Responses about synthetic tables: previews, jobs, tables, quality."""

from __future__ import annotations

from typing import Any, Literal

from tidegate.service.models.answers import Budgeted, Charged
from tidegate.service.models.base import (
    Amount,
    AmountByUnit,
    Charts,
    CodedFailure,
    Codes,
    Free,
    Hash,
    Moment,
    Reply,
    Unit,
    field,
    optional,
)


class JobProgress(Reply):
    stage: str = field("The stage; empty before the first one.")
    done: int = field("The finished steps of the stage.")
    of: int = field("The steps of the stage; 0 if they are not known.")


class SynthesisOptions(Reply):
    """What was requested."""

    epsilon: Amount | None = optional("The loss of each table.")
    rho: Amount | None = optional("The largest probability of identification.")
    z: Amount | None = optional("The loss of each table under the average guarantee.")
    share: Amount | None = optional("The part of the total budget.")
    delta: Amount | None = optional("The delta at which epsilon was stated.")
    tables: int = optional("The number of tables.")
    rows: int | None = optional("The number of rows; null for that of the original.")
    model: str = optional("The model.")
    target: str = optional("The column that other columns should predict; empty if there is none.")
    seed: int | None = optional("The seed of the rows.")
    columns: list[str] = optional("The columns; empty for all.")


class JobState(Reply):
    """The state of a job of any kind."""

    id: str = field("The id of the job.")
    dataset: str = field("The data set.")
    who: str = field("The name of the user who started it.")
    made: Moment = field("When it was started.")
    state: Literal["waiting", "running", "done", "failed", "cancelled"] = field("Its state.")
    progress: JobProgress = field("How far it is.")
    kind: Literal["synthesis", "audit"] = field("What it does.")
    says: str = field("Its state as a sentence.")
    resumed: bool = field("Whether another process started it.")
    attempts: int = field("How often a process took it.")
    seconds: float = field("How long it has run.")
    problem: CodedFailure | None = field("Why it failed; null if it did not.")
    entry: Hash | None = field("The hash of the ledger entry of its charge; null before it is done.")
    asked: str = field("A description of the request.")


class SynthesisJob(JobState):
    """The state of a synthesis."""

    wanted: SynthesisOptions = field("The request.")


class AuditOptions(Reply):
    """What was requested."""

    seconds: float = field("The approximate time of all attacks.")
    verbs: list[str] = field("The attacked promises; empty for all.")
    seed: int | None = field("The seed of the simulated data sets; null for a random one.")


class AuditJob(JobState):
    """The state of an audit."""

    wanted: AuditOptions = field("The request.")
    verdict: str | None = field("The result in one sentence; null before it is done.")
    broken: int | None = field("The number of broken promises; null before it is done.")


class UnfinishedJob(JobState):
    """The state of a waiting or running job."""

    wanted: SynthesisOptions | AuditOptions = field("The request.")


class AuditPage(Reply):
    audits: list[AuditJob] = field("The audits, in the order of creation.")
    next: str | None = field("The cursor of the next page; null at the end.")


class AuditReport(Reply):
    """The report of an audit."""

    format: str = field("The version of this form.")
    dataset: str = field("The data set.")
    policy: Hash = field("The fingerprint of the policy.")
    tidegate: str = field("The version of Tidegate.")
    when: Moment = field("When it ended.")
    seconds: float = field("How long it took.")
    seed: int = field("The seed of the simulated data sets.")
    alpha: float = field("The probability with which all findings together accuse correct code.")
    verdict: str = field("The result in one sentence.")
    broken: int = field("The number of broken promises.")
    findings: list[Free] = field("What each attack proved.")
    not_tried: list[str] = field("What was not tried.")


class SynthesisPage(Reply):
    syntheses: list[SynthesisJob] = field("The jobs, in the order of creation.")
    next: str | None = field("The cursor of the next page; null at the end.")


class SynthesisStage(Reply):
    name: str = field("The name of the stage.")
    share: float = field("Its part of the loss.")
    says: str = field("What it learns.")


class ModelDescription(Reply):
    tables: int = field("The number of tables.")
    epsilon: Amount | None = field("The loss of each table; null if it has no limit.")
    z: Amount = field("The loss of each table under the average guarantee.")
    zcdp: Amount = field("The loss of each table as rho of zero-concentrated differential privacy.")
    delta: str | None = field("The delta at which epsilon was stated; null if it was not.")
    model: str = field("The model.")
    why: str = field("Why this model.")
    columns: list[str] = field("The columns of the tables.")
    learnt: list[str] = field("The columns that are learned from the original.")
    notes: list[str] = field("What is worth knowing.")
    stages: list[SynthesisStage] = field("How the loss is split.")
    promise: str = field("What the tables promise.")


class SynthesisPreviewReply(ModelDescription, Budgeted):
    """The cost of synthetic tables. Nothing was charged."""

    shares: str | None = field("What is known about the split of the loss.")
    code: Codes = field("Code that starts the same synthesis.")


class LearnedPair(Reply):
    left: str = field("A column.")
    right: str = field("Another column.")
    groups: list[int] = field("The number of groups of each.")
    deviation: float = field("The standard deviation of the noise of a cell.")
    phase: str = field("When the pair was chosen.")


class LearnedMap(Reply):
    column: str = field("A column that follows from another.")
    by: str = field("That other column.")
    error: float = field("The share of rows that are exceptions.")


class SpentLoss(Reply):
    epsilon: Amount | None = optional("Epsilon; left out if it has no limit.")
    z: Amount = field("Z.")
    zcdp: Amount = field("Rho of zero-concentrated differential privacy.")


class LearnedSummary(Reply):
    """What was learned, with noise."""

    misfit: float | None = field("How far the model is from the noisy counts.")
    banner: str = field("What limits the tables; empty if nothing does.")
    cells: dict[str, list[int]] = field("The noisy count of each cell, by column.")
    deviations: dict[str, float] = field("The standard deviation of their noise, by column.")
    pairs: list[LearnedPair] = field("The pairs of columns that were counted.")
    maps: list[LearnedMap] = field("The columns that follow from others.")
    independent: list[str] = field("The columns without a pair.")
    spent: SpentLoss = field("The loss of the table.")


class SyntheticTableSet(ModelDescription, Charged):
    """The tables of a finished job, without their rows."""

    rows: list[int] = field("The number of rows of each table.")
    summary: list[LearnedSummary] = field("What was learned for each table.")
    banner: str = field("What limits the tables; empty if nothing does.")
    charged: Amount = field("What the job was charged.")


class ColumnDistance(Reply):
    columns: int = field("The number of columns of a marginal.")
    mean_total_variation: float = field("The mean distance, with noise.")
    low: float = field("The lower end of its interval.")
    high: float = field("The upper end of its interval.")


class PaidQualityReply(Reply):
    """The distance to the original with noise."""

    paid: Literal[True] = field("The distances have noise and were charged.")
    distances: list[ColumnDistance] = field("The distance by number of columns.")
    events: list[Free] = field("The noise, as the ledger records and prices it.")
    scores: list[int] = field("The noisy integers that the ledger records.")
    cost: Amount = field("What was charged.")
    left: Amount = field("What remains of the budget.")
    entry: str = field("The hash of the ledger entry.")
    spent: Amount = field("What is spent after it.")
    ceiling: Amount = field("The budget limit.")
    policy: Hash = field("The fingerprint of the policy.")
    unit: Unit = field("The unit of these amounts.")
    spent_by_unit: AmountByUnit = field("The spent budget in every unit.")
    says: str = field("The result as a sentence.")


class QualityReport(Reply):
    """Synthetic tables compared with the original, for the data holder only."""

    format: str = field("The format of the report.")
    caution: str = field("That the numbers are exact, and whom they are for.")
    why: str = field("Why they must not be published.")
    banner: str = field("What limits the tables; empty if nothing does.")
    data_set: str = field("The data set.")
    rows: Free = field("The number of rows of the original and of each synthetic table.")
    columns: list[str] = field("The compared columns.")
    left_out: Free = field("Columns that were not compared, with the reason.")
    findings: list[str] = field("What the report shows.")
    margins: Free | None = field("Columns one by one.")
    pairs: Free | None = field("Columns two by two.")
    dependencies: Free | None = field("Columns that follow from others.")
    separation: list[Free] = field("How well a classifier distinguishes both tables.")
    prediction: Free | None = field("How well a model that learned from synthetic rows predicts original ones.")
    queries: Free | None = field("The error of random counting queries.")
    regression: Free | None = field("A regression on both tables.")
    notes: list[Any] = field("What is worth knowing.")
    charts: Charts = optional("The charts, if they were requested.")
