"""Projective geometry response: the space, the exact channel, the decoder against counting, variance and intervals."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from collect.surveys import open_survey
from golden.papers import paper

from tidegate.collect.client import Client
from tidegate.collect.measures import measure
from tidegate.collect.reconstruct import shares
from tidegate.collect.trees.survey_tree import train
from tidegate.errors import PolicyUnreadable, Unsupported
from tidegate.operators import ProjectiveGeometry
from tidegate.operators.exact_draws import ONE, SeededBytes, exp_below
from tidegate.policy import Category, Collection, Question
from tidegate.risk.entropy import entropy_privacy
from tidegate.risk.local import worst_posterior
from tidegate.testing.operators import check_operator

F = Fraction
SIZES = [2, 3, 4, 5, 8, 13, 14, 40, 41, 100]


def supported(operator: ProjectiveGeometry) -> np.ndarray:
    """Which report supports which value, by inner products."""
    points = range(operator.report_size)
    vectors = np.array([operator.vector(point) for point in points])
    return np.asarray(vectors @ vectors[: operator.values].T % operator.prime == 0)


@pytest.mark.parametrize("values", SIZES)
@pytest.mark.parametrize("epsilon", [F(1, 1000), F(1), F(3), F(8)], ids=str)
def test_every_value_is_supported_by_one_hyperplane_of_reports(values: int, epsilon: Fraction) -> None:
    operator = ProjectiveGeometry(values, epsilon=epsilon)
    holds = supported(operator)
    assert [operator.point(operator.vector(point)) for point in range(operator.report_size)] == [
        *range(operator.report_size)
    ]
    assert set(holds.sum(axis=0)) == {operator.in_hyperplane}
    assert [operator.supported_count(point) for point in range(operator.report_size)] == holds.sum(axis=1).tolist()
    assert (
        operator.in_hyperplane * operator.inside + (operator.report_size - operator.in_hyperplane) * operator.outside
        == 1
    )
    counts = operator.member_counts()
    assert (counts.start, counts.stop - 1) == (min(holds.sum(axis=1)), max(holds.sum(axis=1)))
    assert operator.gamma * ONE <= exp_below(epsilon)
    assert np.allclose(operator.column(values - 1) == float(operator.inside), holds[:, -1])
    pairs = holds[:, :1] & holds[:, 1:]
    common = (operator.prime ** (operator.dimension - 2) - 1) // (operator.prime - 1)
    assert set(pairs.sum(axis=0)) == {common}
    assert operator.q == operator.inside * common + operator.outside * (operator.in_hyperplane - common)


@pytest.mark.parametrize("values", [2, 5, 12])
def test_contract_holds(values: int) -> None:
    check_operator(ProjectiveGeometry(values, epsilon=F(3, 2)), draws=5_000).refuse()


@pytest.mark.parametrize("values", SIZES)
@pytest.mark.parametrize("epsilon", [F(1), F(4)], ids=str)
def test_decoder_counts_the_reports_that_support_each_value(values: int, epsilon: Fraction) -> None:
    operator = ProjectiveGeometry(values, epsilon=epsilon)
    counts = np.random.default_rng(7).integers(0, 10**6, operator.report_size)
    assert (operator.supports(counts) == counts @ supported(operator)).all()


def test_decoder_refuses_counts_that_are_not_integers() -> None:
    operator = ProjectiveGeometry(100, epsilon=F(1))
    with pytest.raises(ArithmeticError, match="not an integer"):
        operator.supports(np.full(operator.report_size, 0.3))


@pytest.mark.parametrize("values", SIZES)
def test_measures_equal_those_of_the_whole_channel(values: int) -> None:
    operator = ProjectiveGeometry(values, epsilon=F(2))
    measured, channel = measure(operator), operator.channel_array()
    prior = np.full(values, 1 / values)
    assert measured.entropy.loss == pytest.approx(entropy_privacy(channel, prior).loss, abs=1e-12)
    assert measured.breach == pytest.approx(worst_posterior(channel, prior, 0.05), abs=1e-12)
    assert measured.revealed == pytest.approx((channel / channel.sum(axis=1, keepdims=True)).max(), abs=1e-12)
    assert sum(operator.member_chances().values()) == pytest.approx(1)


@paper("Feldman, Nelson, Nguyen, Talwar 2022")
@pytest.mark.parametrize(
    ("epsilon", "prime", "bits", "ratio"),
    [("0.5", 3, 22, 1.01), ("1", 3, 22, 1.02), ("2", 7, 23, 1.01), ("3", 19, 22, 1.00), ("4", 19, 22, 1.34)],
)
def test_variance_for_a_million_values_is_close_to_the_optimum(
    epsilon: str, prime: int, bits: int, ratio: float
) -> None:
    operator, power = ProjectiveGeometry(10**6, epsilon=F(epsilon)), math.exp(float(epsilon))
    assert (operator.prime, (operator.report_size - 1).bit_length()) == (prime, bits)
    assert operator.variance() / (4 * power / (power - 1) ** 2) == pytest.approx(ratio, abs=0.006)


def simulated_counts(operator: ProjectiveGeometry, people: list[int], rng: np.random.Generator) -> np.ndarray:
    """Counts of the reports of so many people with each value, from the channel."""
    drawn = (rng.multinomial(number, operator.column(value)) for value, number in enumerate(people) if number)
    return np.asarray(sum(drawn))


def test_variance_of_all_shares_is_that_of_theory() -> None:
    """20,000 values: the mean of squares has a standard deviation of about 1%; the seed is fixed."""
    operator, people = ProjectiveGeometry(20_000, epsilon=F(1)), 200_000
    counts = simulated_counts(operator, [people], np.random.default_rng(5))
    estimated = shares(operator.supports(counts), total=people, support=operator.support())
    errors = estimated.raw - np.eye(1, operator.values)[0]
    assert (errors[1:] ** 2).mean() * people == pytest.approx(operator.variance(), rel=0.02)


def covered(runs: int, seed: int) -> float:
    """How often the interval of a share contains the share of the population, over the four large values."""
    operator, rng = ProjectiveGeometry(200, epsilon=F(2)), np.random.default_rng(seed)
    truth = np.full(200, 0.2 / 196)
    truth[:4] = 0.4, 0.2, 0.1, 0.1
    hits = []
    for _ in range(runs):
        counts = simulated_counts(operator, rng.multinomial(3_000, truth).tolist(), rng)
        estimated = shares(operator.supports(counts), total=3_000, support=operator.support())
        hits.append(np.abs(estimated.raw - truth)[:4] <= 1.96 * estimated.errors[:4])
    return float(np.mean(hits))


def test_intervals_cover_the_share() -> None:
    assert covered(30, 1) > 0.88  # 120 intervals


@pytest.mark.long
def test_intervals_cover_95_percent() -> None:
    assert covered(600, 2) == pytest.approx(0.95, abs=0.02)


def test_survey_estimates_a_question_with_many_values(tmp_path: Path) -> None:
    words = tuple(f"w{number}" for number in range(70_000))
    words_collection = Collection(
        "words", {"word": Question("word", Category(words), "projective-geometry", epsilon=4)}, "once"
    )
    with open_survey(f"sqlite:///{tmp_path}/ledger.db", tmp_path / "reports", words_collection)[0] as session:
        survey = session.collect("words", reports=str(tmp_path / "reports"))
        operator, source = survey.operators["word"], SeededBytes("many words")
        client = Client(words_collection, source=source)
        assert "likeliest values, and is right with probability" in client.tell({"word": "w69999"})[0]
        first = client.randomize({"word": "w69999"})
        codes = [69_999 if number % 3 else number for number in range(299)]
        answers = [{"word": operator.sample(code, source)} for code in codes]
        reports = [{**first, "answers": answer, "id": f"{n:032x}"} for n, answer in enumerate(answers)]
        assert survey.submit([first, *reports]).accepted == 300
        estimated = survey.distribution("word")
        best = estimated.runs()[0]
        assert best.label == "w69999"
        assert best.mass > 0.3
        assert survey.recount()["word"].tolist() == survey.counts("word").tolist()
        with pytest.raises(Unsupported, match="each supports many values"):
            train({"word": survey.codes("word")["word"]}, {"word": operator}, label="word")


def test_longer_lists_are_refused_with_an_operator_that_fits() -> None:
    values = Category(tuple(range(65_537)))
    with pytest.raises(PolicyUnreadable, match="from 2 to 65,536") as refused:
        Question("word", values, "subset", epsilon=1)
    assert "Use projective-geometry." in str(refused.value)
    with pytest.raises(PolicyUnreadable, match="from 2 to 1,048,576"):
        Question("word", Category(tuple(range(2**20 + 1))), "projective-geometry", epsilon=1)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["1", "2", "4"])
def test_a_million_values_are_decoded_in_seconds(epsilon: str) -> None:
    operator, people = ProjectiveGeometry(10**6, epsilon=F(epsilon)), 10**6
    counts = simulated_counts(operator, [people], np.random.default_rng(9))
    started = time.process_time()
    raw = shares(operator.supports(counts), total=people, support=operator.support()).raw
    assert time.process_time() - started < 30
    assert raw[0] == pytest.approx(1, abs=6 * math.sqrt(operator.variance(1) / people))
    assert (raw[1:] ** 2).mean() * people == pytest.approx(operator.variance(), rel=0.02)
