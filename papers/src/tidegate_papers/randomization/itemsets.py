"""Section 3: itemsets are recovered from randomized baskets whose breach level is 50%.

For each sample the best cut-and-paste operator at the level is designed (the published family), and the best select-a-size
operator, which the paper leaves open; all reports are drawn, and itemsets of at least 0.2% are mined from true and from
randomized baskets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tidegate.collect.baskets.baselines import Baseline
from tidegate.collect.baskets.design import Design, Wishes, design
from tidegate.collect.baskets.mining import mine
from tidegate.operators.basket_plans import SetOperator, SizePlan
from tidegate.operators.cut_and_paste import cut_and_paste_keep
from tidegate.operators.select_a_size import select_a_size
from tidegate_papers.item import Result
from tidegate_papers.randomization.basket_data import (
    Comparison,
    by_size,
    compare,
    far_off,
    maximum_supports,
    randomized,
)
from tidegate_papers.randomization.samples import Sample
from tidegate_papers.simulation.true_supports import TrueSupports

LEVEL, LEAST, MINED, EPSILON = Fraction(1, 2), Fraction(1, 500), 3, Fraction(6)
CLIENTS = 5_000_000  # the number for which deviations are stated
PUBLISHED_SIGMA, NEAR = 0.0007, 2.0
OPERATORS = {"cut-and-paste": "cut-and-paste", "designed": "designed", "both": "designed, epsilon 6"}
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Recovery:
    """The recovered itemsets of one sample, by operator and number of items, and how far off the wrong ones were."""

    sample: Sample
    maximum: Mapping[
        int, tuple[Fraction, ...]
    ]  # supports of 0 .. 3 items in baskets of each size, which limit the operators
    operators: Mapping[str, SetOperator]
    comparisons: Mapping[str, Sequence[Comparison]]
    wrong: Mapping[str, Sequence[float]]  # of itemsets lost or added: how far from the threshold, in deviations

    def sigma(self, operator: str) -> dict[str, float]:
        """Return the deviations of 1, 2, 3 items in percent, scaled to 5,000,000 baskets."""
        scale = 100 * (len(self.sample.baskets) / CLIENTS) ** 0.5
        return {str(row.size): scale * row.sigma for row in self.comparisons[operator]}

    def table(self, operator: str) -> dict[str, list[int]]:
        """Return how many are frequent, recovered, lost, added by chance."""
        return {
            str(row.size): [row.true, row.recovered, row.dropped, row.by_chance] for row in self.comparisons[operator]
        }


def recover(sample: Sample, *, limited: bool = False) -> Recovery:
    """Design, randomize and mine. With `limited`, also under an epsilon of 6."""
    truth = TrueSupports(sample.baskets, vocabulary_size=sample.items)
    true = mine(truth, min_support=float(LEAST), largest=MINED)
    most = maximum_supports(by_size(sample.baskets), vocabulary_size=sample.items)
    operators = operators_for(sample, most, limited=limited)
    comparisons, wrong = {}, {}
    for name, operator in operators.items():
        source = randomized(operator, sample.baskets, seed=f"{sample.name}/{name}")
        mined = mine(source, min_support=float(LEAST), largest=MINED)
        comparisons[name] = compare(true, mined, source)
        wrong[name] = [off for row in comparisons[name] for off in far_off(true, mined, truth, row.size).tolist()]
    return Recovery(sample, most, operators, comparisons, wrong)


def operators_for(
    sample: Sample, most: Mapping[int, tuple[Fraction, ...]], *, limited: bool = False
) -> dict[str, SetOperator]:
    """Return the best cut-and-paste at the breach level, the best select-a-size, and that under an epsilon."""

    def design_for(epsilon: Fraction | None) -> Design:
        return design(
            Wishes(sample.items, len(sample.baskets), LEAST, LEVEL, epsilon, sizes=sample.shares, maximum=most)
        )

    free = design_for(None)
    baselines = {size_design.plan.size: size_design.same_limits for size_design in free.sizes}
    operators = {"cut-and-paste": _pasted(baselines, sample.items), "designed": free.operator}
    return {**operators, "both": design_for(EPSILON).operator} if limited else operators


def _pasted(baselines: Mapping[int, Baseline | None], items: int) -> SetOperator:
    plans = [
        SizePlan.rounded(size, cut_and_paste_keep(size, baseline.cutoff, baseline.insert), baseline.insert)
        for size, baseline in baselines.items()
        if baseline is not None
    ]
    return select_a_size(plans, vocabulary_size=items)


def recover_all(
    samples: Sequence[Callable[[], Sample]], *, limited: bool, progress: Progress | None = None
) -> list[Recovery]:
    """Recover one sample after the other, so that millions of baskets are in memory only once."""
    done = []
    for index, make in enumerate(samples):
        if progress is not None:
            progress(index, len(samples))
        done.append(recover(make(), limited=limited))
    if progress is not None:
        progress(len(samples), len(samples))
    return done


def section_3(done: Iterable[Recovery]) -> dict[str, Result]:
    """Return the statements about each sample, and what the paper leaves open."""
    results: dict[str, Result] = {}
    for recovery in done:
        name = recovery.sample.name
        results[f"s3_majority_{name}"] = _majority(recovery, "cut-and-paste")
        results[f"s3_sigma_{name}"] = _sigma(recovery)
        results[f"s3_smaller_{name}"] = _smaller(recovery)
        results[f"s3_near_{name}"] = _near(recovery)
        results[f"s3_open_{name}"] = _open(recovery)
        results[f"s3_majority_designed_{name}"] = _majority(recovery, "designed")
        if "both" in recovery.operators:
            results[f"s3_majority_both_{name}"] = _majority(recovery, "both")
    return results


def _majority(recovery: Recovery, operator: str) -> Result:
    scores = [(row.score_mean, row.score_deviation) for row in recovery.comparisons[operator]]
    z = "; ".join(f"{mean:+.2f} and {deviation:.2f}" for mean, deviation in scores)
    note = f"{recovery.sample.words}; errors over their deviations, by items: mean and deviation {z}"
    agrees = len(scores) == MINED and all(2 * row.recovered > row.true for row in recovery.comparisons[operator])
    return Result(recovery.table(operator), note, holds=agrees)


def _sigma(recovery: Recovery) -> Result:
    sigma = recovery.sigma("cut-and-paste")
    return Result(_digits(sigma), holds=len(sigma) == MINED and sigma["3"] <= 100 * PUBLISHED_SIGMA)


def _smaller(recovery: Recovery) -> Result:
    sigma = recovery.sigma("cut-and-paste")
    return Result(_digits(sigma), holds=len(sigma) == MINED and max(sigma["1"], sigma["2"]) < sigma["3"])


def _near(recovery: Recovery) -> Result:
    wrong = np.array(recovery.wrong["cut-and-paste"])
    share = float((np.abs(wrong) <= NEAR).mean()) if wrong.size else 1.0
    note = f"of {wrong.size} itemsets lost or added, the share within {NEAR:g} deviations of the threshold"
    return Result(round(share, 3), note, holds=share > 0.5)


def _open(recovery: Recovery) -> Result:
    ours, theirs = recovery.sigma("designed"), recovery.sigma("cut-and-paste")
    value = {size: [round(ours[size], 4), round(theirs[size], 4)] for size in ours if size in theirs}
    lower = len(value) == MINED and all(ours[size] < theirs[size] for size in value)
    return Result(value, holds=False, better=lower)


def rows(done: Iterable[Recovery]) -> list[list[str]]:
    """Return a line for each sample and operator: recovered of frequent (and by chance), deviation; for 1, 2, 3 items."""
    lines = []
    for recovery in done:
        for name, comparisons in recovery.comparisons.items():
            sigma = recovery.sigma(name)
            cells = [f"{row.recovered}/{row.true} +{row.by_chance}, {sigma[str(row.size)]:.3f}%" for row in comparisons]
            lines.append([recovery.sample.name, OPERATORS[name], *cells, *["not looked for"] * (MINED - len(cells))])
    return lines


def _digits(sigma: Mapping[str, float]) -> dict[str, float]:
    return {size: round(value, 4) for size, value in sigma.items()}
