"""Sampled claims about randomization on the device: each true claim passes, each planted fault is detected.

A claim gives the probability of results at least as extreme if the code is correct, or a loss that samples prove. Correct
code fails with probability at most ALPHA in each test; there are 18 such tests, so 1.8e-5 for the file. Cells expect at
least ENOUGH draws. Each planted fault was detected in 10 of 10 fresh runs.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from claims.probabilities import ENOUGH, SEED, chance, epsilon_lower_bound
from tidegate_papers.simulation.values import BulkBits, head_start, sample_many

from tidegate.collect.client import Client
from tidegate.collect.encoding import code_of
from tidegate.operators import (
    GaussianNoise,
    LaplaceNoise,
    Operator,
    RandomizedResponse,
    SquareWave,
    SubsetSelection,
    Unary,
    UniformNoise,
)
from tidegate.operators.additive import AdditiveNoise
from tidegate.operators.exact_draws import SeededBytes
from tidegate.policy import Category, Collection, Integer, Question
from tidegate.policy.collection import operator_for

pytestmark = pytest.mark.claim
ALPHA, DRAWS, BULK = 1e-6, 40_000, 2_000_000
F = Fraction
Sampler = Callable[[Operator, int, Any], Any]
OPERATORS = {
    operator.name: operator
    for operator in (
        UniformNoise(20, half_width=10),
        GaussianNoise(20, sigma=F(5)),
        LaplaceNoise(20, epsilon=F(2)),
        SquareWave(20, epsilon=F(2)),
        RandomizedResponse(20, epsilon=F(2)),
        Unary(6, epsilon=F(1)),
        SubsetSelection(6, epsilon=F(1, 2)),
    )
}


def stream(name: str) -> SeededBytes:
    print(f"TIDEGATE_SEED={SEED}")
    return SeededBytes(f"{SEED}/{name}")


# ---- a report has the probabilities of its channel


def honest(operator: Operator, value: int, source: Any) -> Any:
    return operator.sample(value, source)


def cells(operator: Operator, value: int, draws: int) -> tuple[dict[str, int], np.ndarray]:
    """Return a cell for each report that is likely enough, and one for all others together."""
    likely = {str(report): float(operator.probability(report, value)) for report in operator.reports()}
    own = [report for report, p in likely.items() if p * draws >= ENOUGH]
    rest = sum(p for report, p in likely.items() if report not in own)
    while 0 < rest * draws < ENOUGH:  # too few: the rarest cell joins them
        rest += likely[own.pop()]
    shares = [likely[report] for report in own] + ([rest] if rest else [])
    return {report: index for index, report in enumerate(own)}, np.array(shares) / sum(shares)


def frequencies(sampler: Sampler, operator: Operator, value: int = 4, source: Any = None) -> float:
    bits = source or stream(f"frequencies {operator.name}")
    indexes, shares = cells(operator, value, DRAWS)
    counts = np.zeros(len(shares), int)
    for _ in range(DRAWS):
        counts[indexes.get(str(sampler(operator, value, bits)), -1)] += 1
    return chance(counts, shares)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", OPERATORS)
def test_client_draws_from_its_channel(name: str) -> None:
    assert frequencies(honest, OPERATORS[name]) > ALPHA


def sign_lost(operator: AdditiveNoise, value: int, source: Any) -> int:
    """Return a report whose noise is always added, never subtracted."""
    noise = abs(operator.draw(source) - operator.reach)
    report = value + noise + (0 if isinstance(operator, LaplaceNoise) else operator.reach)
    return min(report, operator.report_size - 1)


def off_by_one(operator: Operator, value: int, source: Any) -> Any:
    return operator.sample(value + 1, source)


class Biased:
    """Bytes of which one in sixteen is zero."""

    def __init__(self, name: str) -> None:
        self.inner, self.coin = stream(name), stream(f"{name} bias")

    def take(self, count: int) -> bytes:
        return bytes(0 if self.coin.take(1)[0] < 16 else byte for byte in self.inner.take(count))


@pytest.mark.parametrize("name", ["uniform-noise", "gaussian-noise", "laplace-noise"])
def test_lost_sign_is_detected(name: str) -> None:
    assert frequencies(sign_lost, OPERATORS[name]) < ALPHA


@pytest.mark.parametrize("name", OPERATORS)
def test_grid_shifted_by_one_is_detected(name: str) -> None:
    assert frequencies(off_by_one, OPERATORS[name]) < ALPHA


@pytest.mark.parametrize("name", OPERATORS)
def test_biased_bits_are_detected(name: str) -> None:
    assert frequencies(honest, OPERATORS[name], source=Biased(f"biased {name}")) < ALPHA


# ---- bulk reports have these probabilities for every value


def bulk_frequencies(operator: Operator, shift: int = 0, words: Any = None) -> float:
    """Return the chance of bulk reports, all values equally often; a cell is a value and a report."""
    codes = np.arange(BULK, dtype=np.int32) % operator.values
    drawn = sample_many(operator, (codes + shift) % operator.values, words or BulkBits(f"{SEED}/bulk {operator.name}"))
    if operator.form == "set":
        drawn = drawn[:, 0].astype(np.int64)
        reports = {sum(1 << code for code in report): report for report in operator.reports()}
    else:
        reports = {report: report for report in operator.reports()}
    counts, shares = [], []
    for value in range(operator.values):
        seen = np.bincount(drawn[codes == value], minlength=max(reports) + 1)
        counts += [int(seen[number]) for number in reports]
        shares += [float(operator.probability(report, value)) / operator.values for report in reports.values()]
    return chance_of_counts(np.array(counts), np.array(shares))


def chance_of_counts(counts: np.ndarray, shares: np.ndarray) -> float:
    """Return the chance of counts: 0 if an impossible cell has some. Cells with too few draws are merged."""
    if counts[shares == 0].any():
        return 0.0
    order = np.argsort(-shares, kind="stable")
    order = order[shares[order] > 0]
    enough = shares[order] * BULK >= ENOUGH
    rest = order[~enough]
    lead = order[enough]
    if rest.size and shares[rest].sum() * BULK < ENOUGH:
        rest, lead = np.append(rest, lead[-1]), lead[:-1]
    tail = ([counts[rest].sum()], [shares[rest].sum()]) if rest.size else ([], [])
    kept_shares = np.concatenate([shares[lead], tail[1]])
    return chance(np.concatenate([counts[lead], tail[0]]), kept_shares / kept_shares.sum())


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", OPERATORS)
def test_bulk_reports_have_the_channel_of_every_value(name: str) -> None:
    assert bulk_frequencies(OPERATORS[name]) > ALPHA


HEAD_START = SubsetSelection(12, epsilon=F(1, 2))  # most of its sets start with several values, drawn together


def test_bulk_sets_with_a_head_start_have_the_channel() -> None:
    assert head_start(HEAD_START)
    assert bulk_frequencies(HEAD_START) > ALPHA


def test_bias_in_sets_with_a_head_start_is_detected() -> None:
    assert bulk_frequencies(HEAD_START, words=SmallerOfTwo(f"{SEED}/smaller")) < ALPHA
    assert bulk_frequencies(HEAD_START, shift=1) < ALPHA


@pytest.mark.parametrize("name", ["unary", "subset", "randomized-response"])
def test_bulk_reports_of_a_shifted_grid_are_detected(name: str) -> None:
    assert bulk_frequencies(OPERATORS[name], shift=1) < ALPHA


class SmallerOfTwo(BulkBits):
    """One report in eight is the smaller of two."""

    def run(self, kernel: Any, codes: Any, out: Any, *parameters: Any) -> Any:
        reports = super().run(kernel, codes, out, *parameters)
        again = super().run(kernel, codes, np.empty_like(out), *parameters)
        eighth = slice(None, None, 8)
        reports[eighth] = np.minimum(reports[eighth], again[eighth])
        return reports


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", OPERATORS)
def test_bias_in_bulk_reports_is_detected(name: str) -> None:
    assert bulk_frequencies(OPERATORS[name], words=SmallerOfTwo(f"{SEED}/smaller")) < ALPHA


# ---- what a client reveals, however often it is asked

TOWN = Category(("north", "south"))
ASKED, CLIENTS = 6, 3_000
ONCE = Collection("asked", {"town": Question("town", TOWN, "randomized-response", epsilon=1)})
FRESH = Collection(
    "asked", {"town": Question("town", TOWN, "randomized-response", epsilon=1, each="0.8")}, repeats="two-layers"
)
COLLECTIONS = [ONCE, pytest.param(FRESH, marks=pytest.mark.long)]


class Forgetful(dict[str, Any]):
    """A memory that stores no answer: every report is drawn again."""

    def __contains__(self, key: object) -> bool:
        return not str(key).startswith("answer/") and super().__contains__(key)


def mostly_south(collection: Collection, town: str, memory: type) -> np.ndarray:
    """Return whether nearly all reports of a client that is asked repeatedly say south."""
    source = stream(f"asked {collection.repeats} {town} {memory.__name__}")
    is_south = np.zeros((CLIENTS, ASKED), bool)
    for index in range(CLIENTS):
        client = Client(collection, memory=memory(), source=source)
        is_south[index] = [client.randomize({"town": town})["answers"]["town"] == 1 for _ in range(ASKED)]
    return is_south.sum(axis=1) >= ASKED - 1


def proven_loss(collection: Collection, memory: type = dict) -> float:
    return epsilon_lower_bound(
        mostly_south(collection, "south", memory), mostly_south(collection, "north", memory), alpha=ALPHA
    )


@pytest.mark.long  # audit/test_reports_attack.py averages repeated reports
@pytest.mark.parametrize("collection", COLLECTIONS, ids=lambda collection: collection.repeats)
def test_repeated_questions_prove_no_more_than_epsilon(collection: Collection) -> None:
    assert proven_loss(collection) <= 1


@pytest.mark.long  # audit/test_reports_attack.py detects one by averaging
@pytest.mark.parametrize("collection", COLLECTIONS, ids=lambda collection: collection.repeats)
def test_client_without_memory_is_detected(collection: Collection) -> None:
    assert proven_loss(collection, Forgetful) > 1


# ---- the loss of one report

AGE = Question("age", Integer(16, 60), "square-wave", epsilon=1)


def near(operator: Operator, value: int, draws: int) -> np.ndarray:
    """Return whether a report is where a report of 16 is likeliest."""
    reports = sample_many(operator, np.full(draws, code_of(AGE, value)), BulkBits(f"{SEED}/near {value}"))
    return np.asarray(reports <= 2 * operator_for(AGE).half)


def test_one_report_proves_no_more_than_epsilon() -> None:
    operator = operator_for(AGE)
    assert epsilon_lower_bound(near(operator, 16, 60_000), near(operator, 60, 60_000), alpha=ALPHA) <= 1


def test_larger_epsilon_of_a_report_is_detected() -> None:
    """An epsilon of 1.5 instead of 1."""
    weak = SquareWave(45, epsilon=F(3, 2))
    weak.half = operator_for(AGE).half
    weak.report_size = operator_for(AGE).report_size
    assert epsilon_lower_bound(near(weak, 16, 60_000), near(weak, 60, 60_000), alpha=ALPHA) > 1
