"""Responses about collections: description, state, estimates, results."""

from __future__ import annotations

from typing import Any, Literal

from tidegate.service.models.base import Charts, Codes, Free, Hash, Moment, Reply, Texts, field, optional


class CollectionDescription(Reply):
    """All that a client needs. The fingerprint covers it."""

    collection: str = field("The name of the collection.")
    version: int = field("Its version.")
    repeats: str = field("What a device does if it is asked again.")
    questions: dict[str, Free] = field("By question: its operator with parameters, and its universe.")
    fingerprint: Hash = field("The fingerprint of the description.")
    holder: str = optional("Who collects.")
    poll: Free = optional("The wording, the access and the closing time of a poll.")
    ask: int = optional("The number of questions for each person.")
    together: list[list[str]] = optional("Questions that are drawn together.")
    lifetime: Any = optional("The largest loss of one person over all rounds.")
    rounds: Any = optional("The number of rounds.")
    batch: Any = optional("When received reports are counted, if the policy states it.")


class RespondentLossView(Reply):
    """The privacy loss of one person."""

    questions: dict[str, str | None] = field("Epsilon by question; null if it has no limit.")
    in_all: str | None = field("Epsilon of all reports of a person; null if it has no limit.")
    each_report: str | None = field("Epsilon of each report; null if it has no limit.")
    size_in_clear: list[str] = optional("Questions whose reports show the size of a basket.")


class CollectionSummary(Reply):
    collection: str = field("The name of the collection.")
    version: int = field("Its version.")
    questions: dict[str, str] = field("A description of each question.")
    says: str = field("What one person loses.")
    clients: int | None = field("The expected number of respondents; null if the policy names none.")
    is_poll: bool = field("Whether it is a poll.")
    reports: int | None = field("The number of counted reports; null if it cannot be opened.")
    closed: bool | None = field("Whether it accepts no more reports; null if it cannot be opened.")
    problem: str | None = field("Why it cannot be opened; null if it can.")


class AvailableAttribute(Reply):
    attribute: str = field("The name of the attribute.")
    kind: str = field("Its kind.")
    says: str = field("A description of its values.")
    values: int = field("The number of values.")
    ordered: bool = field("Whether the values have an order.")


class CollectionList(Reply):
    collections: list[CollectionSummary] = field("The collections of the policy.")
    attributes: list[AvailableAttribute] = field("The attributes that a question can be about.")
    may_add: bool = field("Whether the data set has a policy file, to which collections can be added.")


class CollectionDraft(Reply):
    collection: str = field("The name of the collection.")
    section: str = field("Its section of the policy file.")
    gives: RespondentLossView = field("The privacy loss of one person.")
    says: str = field("What one person loses.")
    each: dict[str, str] = field("What one report of each question reveals.")
    codes: Codes = field("Code that creates the collection.")


class LaterReader(Reply):
    """What a later reader of ledger and results learns about one report of a shuffled batch."""

    local: str = field("Epsilon of the report itself.")
    reports: int = field("The number of reports of the smallest batch.")
    epsilon: float | None = field("Epsilon after the shuffle.")
    delta: float = field("Its delta.")
    says: str = field("The same as a sentence.")


class CollectionState(Reply):
    collection: str = field("The name of the collection.")
    version: int = field("Its version.")
    repeats: str = field("What a device does if it is asked again.")
    questions: dict[str, str] = field("A description of each question.")
    reports: int = field("The number of counted reports.")
    clients: int | None = field("The expected number of respondents; null if the policy names none.")
    closed: bool = field("Whether it accepts no more reports.")
    waiting: int = field("The number of waiting reports, rounded down.")
    at_least: int = field("The smallest number of reports of a batch.")
    batch: str = field("When waiting reports are counted.")
    title: Texts = field("The title.")
    access: str = field("Who can answer; empty if it is no poll.")
    closes: Moment | None = field("When a poll closes; null if it is no poll.")
    next_count: Moment | None = field("When waiting reports are counted next; null if they are not.")
    status: str = field("The state as a sentence.")
    estimable: list[str] = field("The questions that have a distribution.")
    baskets: list[str] = field("The questions about a set.")
    gives: RespondentLossView = field("The privacy loss of one person.")
    says: str = field("What one person loses.")
    later_reader: LaterReader | None = field("What a later reader learns; null if no batch was counted.")
    charts: Charts = optional("The charts, if they were requested.")


class EstimatedRun(Reply):
    label: str = field("The value, or a range of values.")
    mass: float | None = field("Its estimated share.")
    low: float | None = field("The lower end of its interval.")
    high: float | None = field("The upper end of its interval.")
    low_poisoned: float | None = field("The lower end if 1% of the reports are false; null if it is not known.")
    high_poisoned: float | None = field("The upper end if 1% of the reports are false; null if it is not known.")


class OptionDifference(Reply):
    first: str = field("The option with the larger share.")
    second: str = field("The option with the smaller share.")
    difference: float = field("The difference of their shares.")
    low: float = field("The lower end of its interval.")
    high: float = field("The upper end of its interval.")
    clear: bool = field("Whether the interval excludes 0.")


class EstimatedSupport(Reply):
    """Of items: how reports show that an item is there."""

    true: float = field("The probability that a report shows an item that is there.")
    false: float = field("The probability that a report shows an item that is not there.")
    pair_with_true: float = field("The same for two items of which one is there.")
    pair_without: float = field("The same for two items that are not there.")


class Poisoning(Reply):
    """How far 1% of false reports can move the shares."""

    false: int = field("The assumed number of false reports.")
    low: list[float] = field("The lower ends.")
    high: list[float] = field("The upper ends.")
    first: str | None = field("The first option; null if there is none.")
    second: str | None = field("The second option; null if there is none.")
    decisive: int | None = field("The number of false reports that could have decided their order; null if unknown.")


class MeanInterval(Reply):
    """A mean with its interval; of dates and times as ISO 8601 text."""

    estimate: float | str | None = field("The estimated mean.")
    low: float | str | None = field("The lower end of its interval.")
    high: float | str | None = field("The upper end of its interval.")


class DistributionEstimate(Reply):
    question: str = field("The question.")
    attribute: str = field("Its attribute.")
    method: str = field("The method of the estimate.")
    reports: int = field("The number of counted reports.")
    confidence: float = field("The confidence of the intervals.")
    labels: list[str] = field("The values.")
    masses: list[float] = field("The estimated share of each value.")
    low: list[float | None] | None = field("The lower ends of their intervals; null if the method has none.")
    high: list[float | None] | None = field("The upper ends of their intervals; null if the method has none.")
    raw: list[float] = field("The share of each value among the reports.")
    unbiased: list[float] | None = field("The unbiased shares, which can be negative; null if the method has none.")
    errors: list[float] | None = field("Their standard errors; null if the method has none.")
    first: int = field("The index of the first value on the scale.")
    mean: MeanInterval | None = field("The mean; null if the values have none.")
    sure: str = field("How exact the estimate is, as a sentence.")
    finding: str = field("What the estimate shows, as a sentence.")
    warnings: list[str] = field("What limits the estimate.")
    scale: Any = field("The unit of the values; null if they are no numbers.")
    runs: list[EstimatedRun] = field("The shares as they are shown.")
    support: EstimatedSupport | None = field("How reports show items; null for other operators.")
    poisoning: Poisoning | None = field("How far false reports can move the shares; null if it is not known.")
    too_few: str | None = field("Why there are too few reports; null if there are enough.")
    differences: list[OptionDifference] = field("The differences of options.")
    charts: Charts = optional("The charts, if they were requested.")


class MeanResult(MeanInterval):
    low_poisoned: float | str | None = field("The lower end if 1% of the reports are false; null if it is not known.")
    high_poisoned: float | str | None = field("The upper end if 1% of the reports are false; null if it is not known.")


class MeanEstimate(MeanResult):
    question: str = field("The question.")
    attribute: str = field("Its attribute.")
    reports: int = field("The number of counted reports.")
    confidence: float = field("The confidence of the interval.")


class ShareRow(Reply):
    option: str = field("The option.")
    share: float | None = field("Its estimated share.")
    low: float | None = field("The lower end of its interval.")
    high: float | None = field("The upper end of its interval.")
    low_poisoned: float | None = field("The lower end if 1% of the reports are false; null if it is not known.")
    high_poisoned: float | None = field("The upper end if 1% of the reports are false; null if it is not known.")
    raw: float | None = field("The unbiased share, which can be negative.")


class ShareEstimate(Reply):
    question: str = field("The question.")
    attribute: str = field("Its attribute.")
    reports: int = field("The number of counted reports.")
    confidence: float = field("The confidence of each interval.")
    sure: str = field("How exact the estimate is, as a sentence.")
    rows: list[ShareRow] = field("The share of each option.")
    errors: list[float] = field("The standard errors.")


class TreeNodes(Reply):
    """The nodes, each list by node."""

    attribute: list[int] = field("The question that the node tests; -1 for a leaf.")
    boundary: list[int] = field("The value that it compares with.")
    left: list[int] = field("The node for smaller values.")
    right: list[int] = field("The node for other values.")
    counts: list[list[float]] = field("The estimated number of people of each class.")


class DecisionTree(Reply):
    label: str = field("The attribute to predict.")
    classes: list[str] = field("Its classes.")
    questions: list[str] = field("The predictors.")
    strategy: str = field("How the tree was learned.")
    reports: int = field("The number of counted reports.")
    leaves: int = field("The number of leaves.")
    tree: list[str] = field("The tree as lines of text.")
    collection: str = field("The name of the collection.")
    label_question: str = field("The question to predict.")
    class_codes: list[int] = field("The code of each class.")
    nodes: TreeNodes = field("The tree as lists of numbers.")


class FrequentItemset(Reply):
    items: list[str] = field("The items.")
    support: float | None = field("Its estimated support; null if only a bracket is known.")
    error: float | None = field("Its standard error; null if only a bracket is known.")
    low: float | None = optional("The lower end of its interval.")
    high: float | None = optional("The upper end of its interval.")
    low_poisoned: float | None = optional("The lower end if 1% of the reports are false; null if it is not known.")
    high_poisoned: float | None = optional("The upper end if 1% of the reports are false; null if it is not known.")


class AssociationRule(Reply):
    given: list[str] = field("The items of the condition.")
    then: list[str] = field("The items that follow.")
    support: float = field("The estimated support.")
    support_error: float = field("Its standard error.")
    confidence: float = field("The estimated confidence.")
    confidence_error: float | None = field("Its standard error.")
    error_is: Literal["at most", "delta method"] = field("How the standard error was computed.")
    p_value: float | None = optional("The p-value against independence; null if it was not tested.")
    low: float | None = optional("The lower end of the interval of the confidence, after selection.")
    high: float | None = optional("The upper end of the interval of the confidence, after selection.")
    established: bool | None = optional("Whether the rule is established; null if it was not tested.")


class RuleList(Reply):
    reports: int = field("The number of counted reports.")
    min_support: float = field("The smallest support.")
    stopped: Any = field("Why the search stopped early; empty or null if it did not.")
    warning: str | None = field("What limits the estimates; empty if nothing does.")
    itemsets: list[FrequentItemset] = field("The frequent itemsets.")
    rules: list[AssociationRule] = field("The rules.")
    items: list[str] = field("All items, in the order of their codes.")
    slack: Any = field("How far below the smallest support the search went.")
    levels: list[Free] = field("The itemsets by size, as lists of numbers.")
    cut: Free | None = field("How baskets were cut; null if they were not.")
    screening: Free | None = field("How rules were tested; null if they were not.")
    scores: list[Any] = field("By number of items: the largest and the smallest score of a report.")


class OptionResult(Reply):
    option: str = field("The option.")
    label: Texts = field("Its label.")
    share: float | None = field("Its estimated share; null if there are too few reports.")
    low: float | None = field("The lower end of its interval.")
    high: float | None = field("The upper end of its interval.")
    low_poisoned: float | None = field("The lower end if 1% of the reports are false.")
    high_poisoned: float | None = field("The upper end if 1% of the reports are false.")
    raw: float | None = field("The unbiased share, which can be negative.")
    error: float | None = field("Its standard error.")


class FalseReports(Reply):
    assumed: int = field("The assumed number of false reports.")
    first: str | None = field("The first option.")
    second: str | None = field("The second option.")
    decisive: int | None = field("The number of false reports that could have decided their order.")


class QuestionResult(Reply):
    question: str = field("The name of the question.")
    kind: str = field("Whether it is a choice, choices, or a number.")
    text: Texts = field("Its wording.")
    operator: str = field("How answers are randomized.")
    epsilon: float | None = field("The loss of one report; null if it has no limit.")
    reports: int = field("The number of counted reports.")
    confidence: float = field("The confidence of the intervals.")
    too_few: str | None = field("Why there are too few reports; null if there are enough.")
    options: list[OptionResult] = field("The share of each option.")
    mean: MeanResult | None = field("The mean of a number; null for other questions.")
    differences: list[OptionDifference] = field("The differences of options.")
    false_reports: FalseReports | None = field("What false reports could have decided; null if it is not known.")
    sure: str = field("How exact the result is, as a sentence.")
    warnings: list[str] = field("What limits the result.")


class EntryReference(Reply):
    number: int = field("The number of the ledger entry.")
    hash: Hash = field("Its hash.")


class ResultEntries(Reply):
    opened: EntryReference = field("The entry that opened the collection.")
    counted: EntryReference | None = field("The entry of the latest batch; null if there is none.")
    head: Hash = field("The hash of the latest entry.")


class ResultList(Reply):
    """The results of all questions."""

    collection: str = field("The name of the collection.")
    version: int = field("Its version.")
    fingerprint: Hash = field("Its fingerprint.")
    holder: str = field("Who collects; empty if the policy does not say.")
    title: Texts = field("The title.")
    languages: list[str] = field("The languages of its texts.")
    access: str = field("Who can answer; empty if it is no poll.")
    confidence: float = field("The confidence of the intervals.")
    closed: bool = field("Whether it accepts no more reports.")
    closes: Moment | None = field("When a poll closes; null if it is no poll.")
    reports: int = field("The number of counted reports.")
    waiting: int = field("The number of waiting reports, rounded down.")
    next_count: Moment | None = field("When waiting reports are counted next; null if they are not.")
    status: str = field("The state as a sentence.")
    epsilon: float | None = field("The loss of one person; null if it has no limit.")
    loss: str = field("The loss as a sentence.")
    later_reader: LaterReader | None = field("What a later reader learns; null if no batch was counted.")
    ledger: ResultEntries = field("The ledger entries that prove the results.")
    questions: list[QuestionResult] = field("The result of each question.")
    warnings: list[str] = field("What limits the results.")
    charts: Charts = optional("The charts, if they were requested.")
