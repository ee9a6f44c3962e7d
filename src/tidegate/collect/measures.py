"""All privacy measures of one report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import floor, log2
from typing import Any

import numpy as np

from tidegate.arrays import Floats
from tidegate.errors import Unsupported
from tidegate.exact import say
from tidegate.operators import Operator, Pure
from tidegate.risk.entropy import EntropyPrivacy, entropy_privacy
from tidegate.risk.interval import concluded_width
from tidegate.risk.local import most_revealing, posterior_limit, worst_posterior

UNLIKELY = 0.05  # the prior probability from which breaches are measured
MOST_CELLS, COARSE = 1_500_000, 500
FEW = 10  # values up to which sets are listed one by one


@dataclass(frozen=True)
class Measures:
    """The privacy of one report. Widths are in steps of the grid; the range is values - 1 steps.

    epsilon, lifetime     the local loss of one report, and of all that a client ever makes of one value (can be infinite)
    noise_width           the shortest run of reports that contains a value's report with 95% certainty (numbers only)
    concluded             the shortest run of values that a holder can conclude from any report with 95% certainty (numbers only)
    entropy               Pi(X), Pi(X|Z) and the loss P(X|Z), for the prior
    breach                from 5% to what, for this prior; breach_limit: for any prior at all
    revealed              the probability of a value after the report that reveals most; `before`: its prior
    merged                how many neighboring values were merged to keep the arrays small (1: none)
    """

    operator: str
    values: int
    epsilon: float
    lifetime: float
    noise_width: float | None
    concluded: int | None
    concluded_mean: float | None
    entropy: EntropyPrivacy
    breach: float
    breach_limit: float
    revealed: float
    before: float
    merged: int = 1

    @property
    def privacy(self) -> float | None:
        """The noise's 95% interval as a share of the range."""
        return None if self.noise_width is None else self.noise_width / (self.values - 1)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; an unlimited loss is the text "unlimited"."""
        entropy = {
            "before": self.entropy.privacy_before,
            "after": self.entropy.privacy_after,
            "bits_told": self.entropy.information,
            "loss": self.entropy.loss,
        }
        interval = {
            "noise_width": self.noise_width,
            "privacy": self.privacy,
            "concluded": self.concluded,
            "concluded_mean": self.concluded_mean,
        }
        breach = {"from": UNLIKELY, "to": self.breach, "to_for_any_prior": self.breach_limit}
        return {
            "operator": self.operator,
            "values": self.values,
            "epsilon": unlimited(self.epsilon),
            "lifetime_epsilon": unlimited(self.lifetime),
            "gamma": unlimited(math.exp(self.epsilon)),
            "interval": interval,
            "entropy": entropy,
            "breach": breach,
            "most_revealing": {"before": self.before, "after": self.revealed},
            "merged": self.merged,
        }

    def rows(self) -> list[tuple[str, str, str]]:
        """Return measure, number and meaning, for a table."""
        loss = "unlimited" if math.isinf(self.epsilon) else say(self.epsilon, 4)
        factor = (
            "some report rules out some value"
            if math.isinf(self.epsilon)
            else f"no odds change by more than a factor of {say(math.exp(self.epsilon))}"
        )
        rows = [("epsilon of a report", loss, factor)]
        if self.lifetime != self.epsilon:
            rows.append(("epsilon of all", say(self.lifetime, 4), "however many reports of one value are made"))
        if self.noise_width is not None and self.privacy is not None and self.concluded is not None:
            share = f"{say(100 * self.privacy)}% of the range contains the noise with 95% certainty"
            rows.append(("interval of the noise", say(self.noise_width), share))
            rows.append(
                (
                    "interval concluded",
                    f"{say(self.concluded or 0)} .. {say(self.concluded_mean or 0)}",
                    "steps left to the holder with 95% certainty: at least, on average",
                )
            )
        after = f"of {say(self.entropy.privacy_before)} values, as many seem equally likely afterwards"
        return [
            *rows,
            ("entropy privacy", say(self.entropy.privacy_after), after),
            ("entropy loss", say(self.entropy.loss), f"{say(self.entropy.information)} bits are revealed"),
            ("breach", say(self.breach), self._breach_says()),
            ("breach, any prior", say(self.breach_limit), "the same, for any prior belief"),
            (
                "most revealing",
                say(self.revealed),
                f"probability of a value after that report, {say(self.before)} before",
            ),
        ]

    def _breach_says(self) -> str:
        if self.breach:
            return (
                f"the highest probability that a property of prior probability {UNLIKELY:.0%} can reach, for this prior"
            )
        return f"no property has a prior probability of {UNLIKELY:.0%} or less: there are too few values"


def unlimited(loss: float) -> float | str:
    """Return a number, or the text "unlimited", which JSON can represent."""
    return "unlimited" if math.isinf(loss) else loss


def measure(operator: Operator, prior: Any = None) -> Measures:
    """Return all measures; the default prior is uniform."""
    if operator.of_sets:
        raise Unsupported(
            "The measures of single values do not apply to baskets.",
            "Use `gamma` and `item_odds`, or breaches: tidegate collect design.",
        )
    if operator.of_texts and operator.values > MOST_CELLS:
        raise Unsupported(
            "The measures of single values need a list of values, and texts have none.",
            f"The loss of a report is epsilon {say(operator.epsilon)}.",
        )
    weights = _prior(operator, prior)
    width = operator.interval()
    common = (operator.name, operator.values, operator.epsilon, operator.lifetime_epsilon)
    gamma = math.inf if operator.gamma is None else float(operator.gamma)
    limit = posterior_limit(UNLIKELY, gamma=gamma)
    if isinstance(operator, Pure) and operator.supports_several and (prior is None or operator.values > FEW):
        _refuse_prior(operator, prior)
        sets = judge_sets(operator, UNLIKELY)
        return Measures(*common, None, None, None, sets.entropy, sets.breach, limit, sets.revealed, 1 / operator.values)
    merge, channel, prior_cells = judged_channel(operator, weights)
    most = most_revealing(channel, prior_cells)
    shortest, mean = concluded_width(channel, prior_cells) if operator.ordered else (None, None)
    return Measures(
        *common,
        width,
        None if shortest is None else shortest * merge,
        None if mean is None else mean * merge,
        entropy_privacy(channel, prior_cells, step=merge),
        worst_posterior(channel, prior_cells, UNLIKELY),
        limit,
        most.after,
        most.before,
        merge,
    )


def _refuse_prior(operator: Operator, prior: Any) -> None:
    if prior is not None:
        raise Unsupported(
            f"{operator.name} accepts a prior for at most {FEW} values.",
            "Leave `prior` out: all values are then equally likely.",
        )


def judged_channel(operator: Operator, prior: Floats) -> tuple[int, Floats, Floats]:
    """Return the number of merged neighbors, the channel and the prior; long grids are merged."""
    if operator.form == "set":
        return 1, np.array([[float(p) for p in row] for row in operator.exact_channel()]), prior
    small = operator.report_size * operator.values <= MOST_CELLS
    merge = 1 if small else -(-operator.values // COARSE)
    return merge, operator.channel_array(merge=merge), np.add.reduceat(prior, np.arange(0, prior.size, merge))


def _prior(operator: Operator, prior: Any) -> Floats:
    if prior is None:
        return np.full(operator.values, 1 / operator.values)
    weights = np.asarray(prior, np.float64)
    if weights.shape != (operator.values,) or weights.min() < 0 or not math.isclose(weights.sum(), 1, abs_tol=1e-9):
        raise Unsupported(f"`prior` must be {operator.values:,} probabilities that sum to 1.")
    return weights


@dataclass(frozen=True)
class Judged:
    """Entropy, the worst breach from a prior, and the highest posterior of a value."""

    entropy: EntropyPrivacy
    breach: float
    revealed: float


def judge_sets(operator: Pure, unlikely: float) -> Judged:
    """Return all measures of an operator whose report supports several values, for equally likely values.

    Reports that support equally many are equivalent: one that supports c values has the posterior g / (c g + k - c) for each of them
    and 1 / (c g + k - c) for each other value, g being the ratio gamma. So sums run over c, not over all reports.
    """
    k, g = operator.values, float(operator.gamma or 0)
    chances = operator.member_chances()
    left = sum(chance * _left(size, k, g) for size, chance in chances.items())
    few = floor(unlikely * k + 1e-9)
    return Judged(
        EntropyPrivacy(log2(k), max(0.0, log2(k) - left)),
        max((min(few, c) * g + few - min(few, c)) / (c * g + k - c) for c in chances),
        max((g if c else 1.0) / (c * g + k - c) for c in chances),
    )


def _left(size: int, k: int, g: float) -> float:
    """Return the bits of uncertainty after a set of this size."""
    total = size * g + k - size
    member, other = g / total, 1 / total
    return -(size * member * log2(member) + (k - size) * other * log2(other))
