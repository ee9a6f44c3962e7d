"""Sampled claims on baskets: client and bulk follow their stated probabilities, and planted faults are detected.

A claim compares counts of itemsets in reports with the plan, by z-scores. Each of the 80 z-scores exceeds LIMIT with
probability 2e-9, any of them with 1.6e-7. (Expected counts are above 1,000, so the normal tail is close enough, and
alpha = 1e-6 leaves a factor of six for the rest.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from claims.probabilities import SEED, chance
from tidegate_papers.simulation.baskets import Baskets, randomize_baskets
from tidegate_papers.simulation.values import BulkBits

from tidegate.collect.baskets import SetOperator, SizePlan, cut_and_paste, mask, select_a_size
from tidegate.collect.baskets.bitsets import Bitsets
from tidegate.operators import BasketOperator, SelectASize
from tidegate.operators.exact_draws import SeededBytes
from tidegate.operators.mask import Mask
from tidegate.operators.operator import members

F = Fraction
ALPHA, DRAWS = 1e-6, 200_000
LIMIT = 6.0  # two-sided 2e-9
ITEMS, SIZE = 70, 4
PLAN = SizePlan.rounded(SIZE, ["0.1", "0.2", "0.3", "0.3", "0.1"], "0.2")
OPERATORS = {
    "select-a-size": select_a_size([PLAN], vocabulary_size=ITEMS),
    "cut-and-paste": cut_and_paste(3, "0.15", [SIZE], vocabulary_size=ITEMS),
    "mask": mask("0.8", vocabulary_size=ITEMS),
    "asymmetric": mask("0.7", "0.1", vocabulary_size=ITEMS),
}
BASKET = (3, 17, 63, 64)
ITEMSETS = [
    *((item,) for item in (3, 64, 0, 69)),
    *combinations((3, 63, 64, 5), 2),
    *combinations((3, 17, 63, 5, 6), 3),
]


def itemset_probability(operator: SetOperator, itemset: tuple[int, ...]) -> float:
    """Return P(all of the itemset are in the report): j items of the basket stay, including those of the itemset.

    The itemset's other items are inserted by coins.
    """
    plan, true = operator.plan(SIZE), len(set(itemset) & set(BASKET))
    probability = sum(
        chance * F(int(np.prod(range(j - true + 1, j + 1))), int(np.prod(range(SIZE - true + 1, SIZE + 1))))
        for j, chance in enumerate(plan.keep)
        if j >= true
    )
    return float(probability * plan.insert ** (len(itemset) - true))


def z_scores(operator: SetOperator, drawn: SetOperator) -> np.ndarray:
    """Return the z-scores of counts in many reports of one basket, drawn by one operator and expected of another."""
    rows = randomize_baskets(drawn, Baskets.of([BASKET] * DRAWS), BulkBits(f"{SEED}/baskets"))
    sets = Bitsets.of(rows, vocabulary_size=ITEMS)
    counts = np.array([sets.counts(np.array([itemset]))[0] for itemset in ITEMSETS])
    expected = np.array([itemset_probability(operator, itemset) for itemset in ITEMSETS])
    return np.asarray((counts - DRAWS * expected) / np.sqrt(DRAWS * expected * (1 - expected)))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("select-a-size", marks=pytest.mark.long),
        "cut-and-paste",
        pytest.param("mask", marks=pytest.mark.long),
        "asymmetric",
    ],
)
def test_bulk_reports_contain_itemsets_at_the_rates_of_their_plan(name: str) -> None:
    print(f"TIDEGATE_SEED={SEED}")
    assert np.abs(z_scores(OPERATORS[name], OPERATORS[name])).max() < LIMIT


def items_kept_too_often() -> SetOperator:
    return select_a_size([SizePlan.rounded(SIZE, ["0.1", "0.2", "0.28", "0.3", "0.12"], "0.2")], vocabulary_size=ITEMS)


def items_inserted_too_rarely() -> SetOperator:
    return select_a_size([replace(PLAN, insert=F(3, 16))], vocabulary_size=ITEMS)


def same_mean_but_together() -> SetOperator:
    """Return a plan where single items stay as often as they should, but pairs do not."""
    return select_a_size([SizePlan.rounded(SIZE, ["0.12", "0.2", "0.26", "0.3", "0.12"], "0.2")], vocabulary_size=ITEMS)


@pytest.mark.parametrize("fault", [items_kept_too_often, items_inserted_too_rarely, same_mean_but_together])
def test_planted_fault_in_a_plan_is_detected(fault: Callable[[], SetOperator]) -> None:
    assert np.abs(z_scores(OPERATORS["select-a-size"], fault())).max() > LIMIT


SMALL = SizePlan(2, (F(1, 4), F(1, 4), F(1, 2)), F(1, 4))
CLIENTS: dict[str, BasketOperator] = {
    "select-a-size": SelectASize(select_a_size([SMALL], vocabulary_size=4)),
    "padded": SelectASize(
        select_a_size([replace(SMALL, size=3, keep=(F(1, 8), F(3, 8), F(1, 4), F(1, 4)))], vocabulary_size=4, fixed=3)
    ),
    "cut": SelectASize(select_a_size([SizePlan(1, (F(1, 4), F(3, 4)), F(1, 4))], vocabulary_size=4, fixed=1)),
    "mask": Mask(4, keep=F(5, 8)),
}


def chance_at_client(stated: BasketOperator, drawn: BasketOperator) -> float:
    source, basket = SeededBytes(f"{SEED}/basket"), (1, 3)
    reports = [tuple(members(report)) for report in stated.reports() if stated.probability_of(report, basket)]
    counts = dict.fromkeys(reports, 0)
    for _ in range(30_000):
        counts[tuple(members(drawn.sample_basket(basket, source)))] += 1
    expected = np.array([float(stated.probability_of(list(report), basket)) for report in reports])
    return float(chance(np.array(list(counts.values())), expected))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CLIENTS)
def test_client_reports_follow_their_probabilities(name: str) -> None:
    print(f"TIDEGATE_SEED={SEED}")
    assert chance_at_client(CLIENTS[name], CLIENTS[name]) > ALPHA


def test_client_that_drops_the_last_items_is_detected() -> None:
    class Lazy(SelectASize):
        def sample_basket(self, basket: object, source: object) -> list[int]:
            return super().sample_basket([1], source)  # type: ignore[arg-type, return-value]

    assert chance_at_client(CLIENTS["cut"], Lazy(CLIENTS["cut"].operator)) < ALPHA
