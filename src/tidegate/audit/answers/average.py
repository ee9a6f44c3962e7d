"""ANSWER: the best guess against the average guarantee, and exact rates against which the noise is tested.

Under this guarantee a single response can exceed rho; what is bounded is how often the best guess is right, over the prior
and the noise. Four attacks, each with the whole budget:

- The histogram, against rho: name the likeliest value, or the likeliest window. It comes closest to the promise.
- Several histograms that share the budget, against rho: the joint likelihood of all of them.
- A yes/no count, against its exact rate: which of two rows is in the data? The rate is computed from the distribution of the
  noise, so that faults show which leave rho intact: with half the noise, a guesser of a sum still stays below rho.
- Several such counts that share the budget, against the exact rate of their sum.

The number of runs follows from the power of the exact binomial test: a build with half the noise is detected with
probability 0.95, at the level of the finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from tidegate import answer as ask
from tidegate.accounting import DiscreteGaussian, DiscreteLaplace, GaussianMoments
from tidegate.answer import Query
from tidegate.answer.run import plan
from tidegate.audit.answers.ask import event_of
from tidegate.audit.answers.sampling import FIRST, Pricing, Resources, WorldSampler, guesses, histogram_likelihoods
from tidegate.audit.answers.situations import MOST_CELLS, Situation
from tidegate.audit.bounds import POWER, lower_bound, runs_to_detect
from tidegate.audit.fake_data import query_value, whole_budget
from tidegate.audit.finding import Clock, Finding, judge
from tidegate.policy import Dataset, Identification, Integer, Numeric, Policy
from tidegate.policy.predicates import col

KNOWS = "the policy, the method, every unit except one, the probability of each value, and all answers"
PARTS = 4  # answers that share the budget
DIGITS = 60
FAR = 17  # standard deviations (of discrete Laplace noise: eight times as many scales): the rest is below 1e-50
PILOT = 4_000  # runs with approximate noise that plan the number of runs where no exact rate is known
HALF = Fraction(1, 2)
SINGLE = (
    "The average guarantee does not limit a single response, nor a person chosen after the answers: "
    "an adversary who names a value only when sure of it is not covered."
)
WEIGHTS = (1, 1, 2, 6)  # of the attacks' time: histograms have many numbers
OTHERS = "Not tried here: other statistics, and a person chosen after the answers."
Noisy = DiscreteGaussian | DiscreteLaplace


# Exact rates


def noise_weights(event: Noisy, *, beyond: int = 0) -> dict[int, Decimal]:
    """Return the probability of every noise that is not negligible, and of `beyond` more on both sides. For a local context."""
    if isinstance(event, DiscreteLaplace):
        scale = _decimal(event.scale)
        reach = ceil(8 * FAR * event.scale) + 1 + beyond
        half = [(-x / scale).exp() for x in range(reach + 1)]
    else:
        doubled = 2 * _decimal(event.sigma) ** 2
        reach = ceil(FAR * event.sigma) + 1 + beyond
        half = [(-x * x / doubled).exp() for x in range(reach + 1)]
    total = 2 * sum(half) - half[0]
    return {x: half[abs(x)] / total for x in range(-reach, reach + 1)}


def yes_no_rate(events: Sequence[Noisy], *, rows: int = 1) -> float:
    """Return how often the best guess names the right one of two rows, after counts of which one row adds `rows` to each.

    Exact: half of the sum of the larger of both probabilities. Several counts need the same discrete Gaussian noise, of which
    the sum is sufficient.
    """
    if len(events) > 1 and (len(set(events)) > 1 or not isinstance(events[0], DiscreteGaussian)):
        raise ValueError("Several counts have an exact rate only with the same discrete Gaussian noise.")
    shift = rows * len(events)
    with localcontext(prec=DIGITS):
        weights = noise_weights(events[0])
        chances = np.array(list(weights.values()), dtype=object)
        summed = chances
        for _ in events[1:]:
            summed = np.convolve(summed, chances)
        none = np.zeros(shift, dtype=object)
        here, there = np.concatenate([summed, none]), np.concatenate([none, summed])
        return float(np.maximum(here, there).sum() / 2)


def histogram_rate(event: Noisy, candidates: int, *, rows: int = 1) -> float:
    """Return how often the best guess names the cell to which a unit adds `rows`, of equally likely candidates.

    Exact: the cell with the largest likelihood ratio is named, and one of several by chance.
    """
    with localcontext(prec=DIGITS):
        weights = noise_weights(event, beyond=rows)
        classes: dict[int, list[Decimal]] = {}  # of equal likelihood ratios, which increase with the noisy number
        for x in range(min(weights) + rows, max(weights) + 1):
            ratio = min(max(x, 0), rows) if isinstance(event, DiscreteLaplace) else x
            members = classes.setdefault(ratio, [Decimal(0), Decimal(0)])
            members[0] += weights[x]
            members[1] += weights[x - rows]
        rate = below = Decimal(0)
        for other, own in classes.values():
            rate += own * ((below + other) ** candidates - below**candidates) / (candidates * other)
            below += other
        return float(rate)


def sum_rate(event: GaussianMoments, values: int) -> float:
    """Return how often the best guess after a sum over all rows names the value of a row, of equally likely neighbors."""
    (sigma,) = (sigma for sigma in event.sigmas if sigma is not None)
    with localcontext(prec=DIGITS):
        weights = noise_weights(DiscreteGaussian(Fraction(1), Fraction(1), sigma))
        outer = 1 + weights[0]  # a value at an end is also named if the noise leads beyond it: (1 + P(0)) / 2 at both
        return float(((values - 2) * weights[0] + outer) / values)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def with_noise(event: Any, share: Fraction) -> Any:
    """Return the event with a share of its noise."""
    if isinstance(event, DiscreteLaplace):
        return replace(event, scale=event.scale * share)
    if isinstance(event, GaussianMoments):
        number, first, second = (None if sigma is None else sigma * share for sigma in event.sigmas)
        return replace(event, sigmas=(number, first, second))
    return replace(event, sigma=event.sigma * share)


# Power


@dataclass(frozen=True)
class Power:
    """The rates of one attack, honest and with half the noise, and the runs in which half the noise is detected.

    `against_rho`: None if the faulty rate is not above rho, so that no number of runs detects it.
    """

    honest: float
    faulty: float
    against_rho: int | None
    against_honest: int | None


def power_table(values: int, rho: Fraction, *, alpha: float = 1e-3, power: float = POWER) -> dict[str, Power]:
    """Return the runs that each attack needs on a column with that many equally likely values."""
    column = {"value": Integer(0, values - 1, missing="lowest")}
    promise = Identification(rho, protect=("value",), guarantee="average")
    policy = Policy(Dataset("power", rows=2), column, promise, version=1)  # without default windows
    queries = ask.histogram("value"), ask.sum("value"), ask.count().where(col("value") >= values // 2)
    histogram, total, count = (event_of(query, policy, loss=whole_budget(policy)) for query in queries)
    rates: dict[str, list[float]] = {"histogram": [], "sum": [], "yes/no": []}
    for share in (Fraction(1), HALF):
        rates["histogram"].append(histogram_rate(with_noise(histogram, share), values))
        rates["sum"].append(sum_rate(with_noise(total, share), values))
        rates["yes/no"].append(yes_no_rate([with_noise(count, share)]))
    return {
        name: Power(
            honest,
            faulty,
            runs_to_detect(float(rho), faulty, alpha=alpha, power=power) if name != "yes/no" else None,
            runs_to_detect(honest, faulty, alpha=alpha, power=power),
        )
        for name, (honest, faulty) in rates.items()
    }


# Attacks


def guess_on_average(situation: Situation, resources: Resources, *, price: Pricing = plan) -> list[Finding]:
    """Guess the missing value after histograms, and one of two rows after counts: one answer, and several."""
    findings, clock = [_not_tried(situation, "informed adversary, when sure", SINGLE)], resources.clock
    attacks = [(attack, parts) for attack in (guess_row, guess_value) for parts in (1, PARTS)]
    for index, (attack, parts) in enumerate(attacks):
        share = clock.part(WEIGHTS[index] / sum(WEIGHTS[index:]))
        findings.append(attack(situation, replace(resources, clock=share), parts=parts, price=price))
    return findings


def guess_value(
    situation: Situation, resources: Resources, *, parts: int = 1, price: Pricing = plan, runs: int = 0
) -> Finding:
    """Name the likeliest value (or window, or person) after histograms that share the budget; compare the rate with rho."""
    name = "best guess on average" if parts == 1 else f"best guess on average, {parts} answers"
    if situation.attribute.cells > MOST_CELLS:
        return _not_tried(situation, name, f"The histogram has more than {MOST_CELLS:,} cells.")
    if situation.codes.size > MOST_CELLS:
        situation = name_cells(situation)
    queries = [ask.histogram(situation.column)] * parts  # in one request: each has its own noise and its own price
    sampler = WorldSampler(situation, queries, resources, price=price)
    faulty = _half_noise_rate(situation, plan(queries, situation.policy, loss=whole_budget(situation.policy)))
    needed = runs_to_detect(situation.promised, faulty, alpha=resources.alpha)
    done, right = _count_right(sampler, runs or min(needed or resources.most, resources.most), resources.clock)
    near = f" to within {situation.window:,} steps" if situation.window else ""
    subject = f"the {situation.target}{near} by {_histograms(parts)}"
    return _finding(situation, name, subject, done, right, situation.promised, needed, faulty, resources)


def guess_row(
    situation: Situation, resources: Resources, *, parts: int = 1, price: Pricing = plan, runs: int = 0
) -> Finding:
    """Name one of two rows after counts that share the budget; compare the rate with the exact one.

    Half of the values meet the condition: the rows have the lowest and the highest one.
    """
    name = "yes/no count on average" if parts == 1 else f"yes/no counts on average, {parts} answers"
    pair, queries = _two_rows(situation), [_half(situation)] * parts
    honest: list[Any] = list(plan(queries, pair.policy, loss=whole_budget(pair.policy)))
    if parts > 1 and not isinstance(honest[0], DiscreteGaussian):
        return _not_tried(
            situation, name, "The exact rate of several answers is known for discrete Gaussian noise only."
        )
    rows = pair.policy.dataset.unit.rows_per_person
    exact = yes_no_rate(honest, rows=rows)
    faulty = yes_no_rate([with_noise(event, HALF) for event in honest], rows=rows)
    needed = runs_to_detect(exact, faulty, alpha=resources.alpha)
    sampler = WorldSampler(pair, queries, resources, price=price)
    done, right = _count_right(sampler, runs or min(needed or resources.most, resources.most), resources.clock)
    counts = "a count" if parts == 1 else f"{parts} counts that share the budget"
    finding = _finding(pair, name, f"one of two rows by {counts}", done, right, exact, needed, faulty, resources)
    return replace(finding, promise=f"noise has the charged size: one of two rows is named at a rate of {exact:.5f}")


def name_cells(situation: Situation) -> Situation:
    """Return the same situation with the cells of the histogram for its values, for columns with too many of those.

    All values of a cell are equally likely after any answers (the prior is a single number), so the adversary names the middle
    of a cell. Of cells with different widths the widest counts, and of a window that reaches beyond a cell only whole cells:
    both make the attack weaker, never wrong.
    """
    firsts = np.array(situation.attribute.bin_starts())
    width, window = int(np.diff([*firsts, situation.codes.size]).max()), 2 * situation.window + 1
    return replace(
        situation,
        codes=firsts,
        prior=np.add.reduceat(situation.prior, firsts),
        special=0,
        window=max(0, (window - width) // (2 * width)),
        alike=max(1.0, width / window),
    )


def _count_right(sampler: WorldSampler, runs: int, clock: Clock) -> tuple[int, int]:
    """Return the number of runs and of right guesses, as far as time allows; the number depends on nothing else."""
    done = right = 0
    step = FIRST
    while done < runs:
        pace, some = Clock(0), min(step, runs - done)
        right += sampler.count_right(some)
        done, step = done + some, 2 * step
        if done < runs and 2 * pace.spent > clock.remaining:
            break
    return done, right


def _half_noise_rate(situation: Situation, events: Sequence[Any]) -> float:
    """Return how often the value is named with half the noise: exact if the values are equally likely, otherwise estimated.

    It only plans the number of runs. Several histograms with equal noise are planned as one with the noise of their mean.
    """
    prior, share = situation.prior[situation.prior > 0], HALF / Fraction(len(events) ** 0.5).limit_denominator(10**6)
    event, rows = with_noise(events[0], share), situation.policy.dataset.unit.rows_per_person
    one_each = not situation.attribute.cells < situation.codes.size
    if not situation.window and one_each and np.ptp(prior) < 1e-12:
        return histogram_rate(event, prior.size, rows=rows) / situation.alike
    return _simulated_rate(situation, event, rows)


def _simulated_rate(situation: Situation, event: Noisy, rows: int) -> float:
    """Estimate the rate with floating-point noise, which is not the code under test."""
    random, right = np.random.default_rng(1), 0
    world = situation.world(0)
    axis = world.axis(situation.column, binned=True)
    firsts = np.array(axis.firsts or range(axis.length))
    cells = np.searchsorted(firsts, situation.codes, side="right") - 1
    known = world.count([axis]).astype(np.float64)
    known[cells[0]] -= rows
    step = max(1, 4_000_000 // max(situation.codes.size, known.size))
    runs = min(PILOT, 50 * step)
    for start in range(0, runs, step):
        secrets = random.choice(situation.prior.size, min(step, runs - start), p=situation.prior)
        if isinstance(event, DiscreteLaplace):
            noise = random.laplace(0, float(event.scale), (secrets.size, known.size))
        else:
            noise = random.normal(0, float(event.sigma), (secrets.size, known.size))
        noise += known
        noise[np.arange(secrets.size), cells[secrets]] += rows
        right += int(
            situation.is_right(guesses(situation, histogram_likelihoods(situation, event, noise)), secrets).sum()
        )
    return right / runs / situation.alike


def _two_rows(situation: Situation) -> Situation:
    """Return the situation in which the missing unit has the lowest or the highest value, with equal probability."""
    codes = np.array([0, situation.attribute.size - 1])
    return replace(situation, codes=codes, prior=np.array([0.5, 0.5]), special=1, window=0, alike=1)


def _half(situation: Situation) -> Query:
    """Return the number of units with a value in the upper half; of a category, with its last value."""
    attribute, column = situation.attribute, situation.column
    last = attribute.size - 1
    if isinstance(attribute, Numeric):
        return ask.count().where(col(column) >= query_value(attribute, (last + 1) // 2))
    return ask.count().where(col(column) == query_value(attribute, last))


def _histograms(parts: int) -> str:
    return "a histogram" if parts == 1 else f"{parts} histograms that share the budget"


def _finding(
    situation: Situation,
    attack: str,
    subject: str,
    runs: int,
    right: int,
    promised: float,
    needed: int | None,
    faulty: float,
    resources: Resources,
) -> Finding:
    bound = lower_bound(right, runs, alpha=resources.alpha)
    verdict = judge(bound, promised)
    power = (
        f"{needed:,} runs detect half the noise (rate {faulty:.4g}) with probability {POWER:g}"
        if needed
        else f"half the noise (rate {faulty:.4g}) cannot be detected by this test"
    )
    says = (
        f"The adversary names {subject} in {right:,} of {runs:,} runs ({right / runs:.4g}); {bound:.4g} is proven, {promised:.4g} is "
        f"allowed (exact binomial test, level {resources.alpha:.2g}). {power[0].upper()}{power[1:]}. {OTHERS}"
    )
    if verdict == "held" and needed and runs < needed:
        verdict, says = "not tried", f"Too few runs in the available time to detect half the noise: {says}"
    figures: dict[str, Any] = {"alpha": resources.alpha, "tries": runs, "seconds": resources.clock.spent}
    return Finding("answer", situation.promise, attack, KNOWS, says, verdict, "probability", bound, promised, **figures)


def _not_tried(situation: Situation, attack: str, why: str) -> Finding:
    return Finding("answer", situation.promise, attack, KNOWS, why, "not tried", "probability")
