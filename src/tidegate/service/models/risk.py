"""Responses of the risk lab: conversions, curves, measures, advice."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from tidegate.service.models.base import Amount, Charts, Guaranteed, Reply, field, optional

Limitless: TypeAlias = Annotated[float | Literal["unlimited"] | None, Field(description="A number, or `unlimited`.")]


class EqualAnswers(Reply):
    answers: int = field("The number of equal answers.")
    error: float = field("The standard deviation of each, in ranges of the answer.")


class RiskReading(Reply):
    """A promise under one guarantee."""

    epsilon: Amount = optional("The total loss, in the worst case.")
    z: Amount = optional("The total loss, on average.")
    yes_no: float = field("How often a yes/no question about one person can be answered correctly.")
    epsilon_at_delta: float = field("The loss as epsilon at the delta, at most.")
    delta: float = field("The delta; 0 in the worst case.")
    errors: list[EqualAnswers] = field("The error if several answers share the loss.")


class RiskConversion(Reply):
    worlds: str = field("The number of possible values.")
    rho: str = field("The probability of identification.")
    epsilon: Amount = optional("The total loss, in the worst case.")
    z: Amount = optional("The total loss, on average.")
    yes_no: str = field("How often a yes/no question about one person can be answered correctly.")
    says: str = field("The same as a sentence.")
    readings: dict[Guaranteed, RiskReading] | None = field("Both guarantees; null if rho cannot be promised.")
    guarantee: Guaranteed = field("The guarantee of the loss.")
    within: int = field("The number of steps on each side of a guess that count as right.")
    blind_guess: float = field("The probability that a random guess is right.")
    charts: Charts = optional("The charts, if they were requested.")


class KnownRisk(Reply):
    rho: str = field("A known value.")
    what: str = field("What it is.")
    source: str = field("Where it is from.")


class RiskMeaning(Reply):
    rho: str = field("The probability of identification.")
    worlds: str | None = field("The number of possible values; null if it was not stated.")
    one_in: float = field("The size of the crowd.")
    blind_guess: float | None = field("The probability that a random guess is right; null without `worlds`.")
    epsilon: Amount | None = field("The total loss that rho allows in the worst case; null without `worlds`.")
    z: Amount = optional("The total loss that rho allows on average.")
    odds: float | None = field("The factor by which the odds of a guess rise; null without `worlds`.")
    yes_no: float | None = field("How often a yes/no question can be answered correctly; null without `worlds`.")
    says: list[str] = field("The meaning in sentences.")
    known: list[KnownRisk] = field("Known values nearby.")


class CurvePoint(Reply):
    epsilon: float = optional("The loss, in the worst case.")
    z: float = optional("The loss, on average.")
    rho: float = field("The probability of identification.")
    yes_no: float = field("How often a yes/no question about one person can be answered correctly.")


class RiskCurve(Reply):
    worlds: str = field("The number of possible values.")
    blind_guess: float = field("The probability that a random guess is right.")
    points: list[CurvePoint] = field("The points, by increasing loss.")


class IntervalMeasure(Reply):
    noise_width: float | None = field("The width of the 95% interval of the noise, as a share of the range.")
    privacy: float | None = field("The width of the 95% interval of the value, as a share of the range.")
    concluded: int | None = field("The smallest number of values of a 95% set.")
    concluded_mean: float | None = field("The mean number of values of a 95% set.")


class EntropyMeasure(Reply):
    before: float = field("The entropy before the report, in bits.")
    after: float = field("The entropy after the report, in bits.")
    bits_told: float = field("The information of a report, in bits.")
    loss: float = field("The privacy loss P(X|Z).")


class BreachMeasure(Reply):
    from_: float = Field(alias="from", description="A probability before the report.")
    to: float | None = field("The largest probability after it, for equally likely values.")
    to_for_any_prior: float | None = field("The largest probability after it, whatever the prior.")


class RevealingReport(Reply):
    before: float = field("The probability of a value before the report.")
    after: float = field("Its probability after the most revealing report.")


class OperatorMeasures(Reply):
    """The privacy measures of a randomized report."""

    operator: str = field("The operator.")
    values: int = field("The number of values.")
    epsilon: Limitless = field("The local loss.")
    lifetime_epsilon: Limitless = field("The local loss of repeated reports.")
    gamma: Limitless = field("The largest ratio of probabilities.")
    interval: IntervalMeasure | None = field("The interval measures; null if the values have no order.")
    entropy: EntropyMeasure = field("The entropy measures.")
    breach: BreachMeasure = field("The largest breach.")
    most_revealing: RevealingReport = field("The most revealing report.")
    merged: int = field("The number of reports that were merged into one.")


class MeasureRow(Reply):
    measure: str = field("The measure.")
    value: str = field("Its value.")
    says: str = field("What it means.")


class MeasuredOperator(OperatorMeasures):
    parameters: dict[str, str] = field("The parameters of the operator.")
    rows: list[MeasureRow] = field("The measures as they are shown.")


class OperatorComparison(Reply):
    operators: list[MeasuredOperator] = field("The measures of each operator.")
    charts: Charts = field("The chart of the main measures.")


class ItemMeasure(Reply):
    """What a report says about one item."""

    seen_if_there: float = field("The probability that a report shows an item that is there.")
    seen_if_not: float = field("The probability that a report shows an item that is not there.")
    odds_if_seen: float | None = field("The factor of the odds if the report shows the item; null if it has no limit.")
    odds_if_not_seen: float | None = field("The factor of the odds if it does not; null if it has no limit.")
    prior: float = field("The assumed probability of the item.")
    entropy_loss: float = field("The entropy loss.")
    bits_told: float = field("The information, in bits.")


class BasketBreach(Reply):
    items: int = field("The number of items together.")
    before: float = field("Their probability before the report.")
    visible: float | None = field("Their largest probability if the report shows all of them.")
    absent: float | None = field("Their largest probability if it shows none of them.")
    mixed: float | None = field("Their largest probability otherwise; null for one item.")


class AnyPriorBreach(Reply):
    from_: float = Field(alias="from", description="A probability before the report.")
    to_for_any_prior: float | None = field("The largest probability after it, whatever the prior.")


class BasketMeasures(Reply):
    """The privacy measures of a randomized basket."""

    operator: str = field("The operator.")
    size: int = field("The number of items in a basket.")
    keep: list[str] = field("The probability of keeping 0, 1, ... items.")
    insert: str = field("The probability of inserting another item.")
    epsilon: float | None = field("The local loss; null if it has no limit.")
    gamma: float | None = field("The largest ratio of probabilities; null if it has no limit.")
    epsilon_one_item_replaced: float | None = field("The loss if one item is replaced; null if it has no limit.")
    gamma_one_item_replaced: float | None = field("The ratio if one item is replaced; null if it has no limit.")
    item: ItemMeasure = field("What a report says about one item.")
    interval: None = field("There is no interval measure of a basket.")
    breach: AnyPriorBreach = field("The largest breach, whatever the prior.")
    breaches: list[BasketBreach] = field("The largest breaches by number of items.")
    worst_breach: float | None = field("The largest of them.")
    size_in_epsilon: bool = field("Whether epsilon covers the size of the basket.")
    size_sent: bool = field("Whether a report contains the size of the basket.")
    charts: Charts = optional("The charts, if they were requested.")


class AdvisedOperator(Reply):
    operator: str = field("The operator.")
    parameters: dict[str, float] = field("Its parameters; empty if it cannot meet the requirement.")
    policy: str = field("Its line of the policy file; empty if it cannot meet the requirement.")
    features: int | None = field("The number of features of the distribution that can be estimated; null if none can.")
    error_95: float | None = field("The error with 95% confidence; null if it is not known.")
    why_not: str = field("Why it is not recommended; empty if nothing is against it.")
    measures: OperatorMeasures | None = field("Its privacy measures; null if it cannot meet the requirement.")


class OperatorAdvice(Reply):
    wanted: str = field("The requirement.")
    values: int = field("The number of values.")
    clients: int = field("The expected number of respondents.")
    says: str = field("The recommendation as a sentence.")
    recommended: str | None = field("The line of the policy file; null if no operator meets the requirement.")
    options: list[AdvisedOperator] = field("All operators, the recommended one first.")
