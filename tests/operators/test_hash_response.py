"""Hash response (LOLOHA): the exact channel and family, the decoder against counting, rounds, and what they reveal."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from collect.surveys import open_survey
from golden.papers import paper

from tidegate.accounting.respondent import respondent_loss
from tidegate.collect.client import Client
from tidegate.collect.measures import measure
from tidegate.collect.reconstruct import shares
from tidegate.errors import Unsupported
from tidegate.operators import HashResponse, RandomizedResponse
from tidegate.operators.exact_draws import ONE, WHOLE, SeededBytes, exp_below
from tidegate.policy import Category, Collection, Question
from tidegate.risk.entropy import entropy_privacy
from tidegate.risk.local import worst_posterior
from tidegate.testing.operators import check_operator

F = Fraction
SIZES = [2, 3, 4, 5, 8, 11, 20, 33]
TOWNS = Category(tuple(f"t{number}" for number in range(20)))
ROUNDS = Collection(
    "rounds", {"town": Question("town", TOWNS, "hash-response", epsilon=2, each=1)}, "two-layers", lifetime=F(4)
)


def supported(operator: HashResponse) -> np.ndarray:
    """Which report supports which value, one by one."""
    reports = range(operator.report_size)
    return np.array([[operator.is_supported(report, value) for value in range(operator.values)] for report in reports])


@pytest.mark.parametrize("values", SIZES)
@pytest.mark.parametrize("epsilon", [F(1, 1000), F(1), F(8)], ids=str)
def test_channel_is_exact_and_keeps_its_loss(values: int, epsilon: Fraction) -> None:
    operator = HashResponse(values, epsilon=epsilon)
    channel = operator.exact_channel()
    assert all(sum(column) == 1 for column in zip(*channel, strict=True))
    assert max(max(row) / min(row) for row in channel) == operator.gamma
    assert operator.gamma * ONE <= exp_below(epsilon)
    assert operator.epsilon == pytest.approx(float(epsilon), abs=1e-9)
    assert np.allclose(operator.channel_array(), np.array([[float(p) for p in row] for row in channel]), atol=1e-15)


@pytest.mark.parametrize("values", SIZES)
def test_cells_of_any_three_values_are_independent_over_the_family(values: int) -> None:
    operator = HashResponse(values, epsilon=F(1))
    cells = np.array([[operator.cell(value, seed) for value in range(values)] for seed in range(operator.seeds)])
    for triple in {(0, 1, values - 1), (values // 2, values - 1, 0), (1, values // 2, values - 1)}:
        columns = sorted(set(triple))
        patterns, counts = np.unique(cells[:, columns], axis=0, return_counts=True)
        assert (len(patterns), set(counts)) == (2 ** len(columns), {operator.seeds // 2 ** len(columns)})


@pytest.mark.parametrize("values", SIZES)
def test_supports_equal_the_count_of_each_value(values: int) -> None:
    operator = HashResponse(values, epsilon=F(2), each=F(1))
    holds, column = supported(operator), operator.column(0)
    counts = np.random.default_rng(3).integers(0, 10**6, operator.report_size)
    assert (operator.supports(counts) == counts @ holds).all()
    assert [operator.supported_count(report) for report in range(operator.report_size)] == holds.sum(axis=1).tolist()
    stated = operator.support()
    assert column @ holds[:, 0] == pytest.approx(stated.true)
    assert np.allclose(column @ holds[:, 1:], stated.false)
    assert np.allclose(column @ (holds[:, :1] & holds[:, 1:]), stated.pair_with_true)
    assert np.allclose(column @ (holds[:, 1:2] & holds[:, 2:]), stated.pair_without)


@pytest.mark.parametrize("values", SIZES)
def test_conclusions_equal_those_of_the_whole_channel(values: int) -> None:
    operator = HashResponse(values, epsilon=F(2), each=F(1))
    measured, channel, prior = measure(operator), operator.channel_array(), np.full(values, 1 / values)
    assert measured.entropy.loss == pytest.approx(entropy_privacy(channel, prior).loss, abs=1e-12)
    assert measured.breach == pytest.approx(worst_posterior(channel, prior, 0.05), abs=1e-12)
    assert sum(operator.member_chances().values()) == pytest.approx(1)
    for report in range(operator.report_size):
        likelihoods = operator.likelihoods(report)
        best = max(range(values), key=likelihoods.__getitem__)
        expected = best, likelihoods.count(likelihoods[best]), likelihoods[best] / sum(likelihoods)
        assert operator.likeliest(report) == expected


def test_contract_holds() -> None:
    check_operator(HashResponse(5, epsilon=F(3, 2)), draws=5_000).refuse()


@paper("Arcolezi, Pinzon, Palamidessi, Gambs 2023")
@pytest.mark.parametrize(
    ("lifetime", "each", "expected"),
    [
        ("1", "0.5", {2: 3.92, 4: 8.67, 20: 46.7, "hashed": 16.7}),
        ("2", "1", {2: 0.92, 4: 1.60, 20: 7.02, "hashed": 4.68}),
        ("4", "2", {2: 0.18, 4: 0.23, 20: 0.62, "hashed": 1.72}),
    ],
)
def test_variance_of_a_round_equals_the_golden_table(
    lifetime: str, each: str, expected: dict[int | str, float]
) -> None:
    """The rows of plain response state the variance of a rare value, as q (1 - q) / (p - q)**2."""
    for values, variance in expected.items():
        layers = {"epsilon": F(lifetime), "each": F(each)}
        if values == "hashed":
            built = [HashResponse(size, **layers) for size in (5, 300, 65_536)]
            composed = float(built[0].p)
            assert built[0].variance() == pytest.approx(0.25 / (composed - 0.5) ** 2)
        else:
            built = [RandomizedResponse(int(values), **layers)]
        for operator in built:
            assert operator.variance() == pytest.approx(variance, rel=0.006)


def test_two_layers_compose_to_the_stated_channel() -> None:
    both, first = HashResponse(3, epsilon=F(2), each=F(1)), HashResponse(3, epsilon=F(2))
    stay = F(both.cells.again, WHOLE)
    channel = first.exact_channel()
    composed = [
        [stay * channel[report][value] + (1 - stay) * channel[report ^ 1][value] for value in range(3)]
        for report in range(both.report_size)
    ]
    assert composed == both.exact_channel()
    assert both.lifetime_gamma == first.gamma


def test_device_draws_one_seed_and_at_most_two_permanent_answers() -> None:
    memory: dict[str, object] = {}
    client = Client(ROUNDS.public_dict(), memory=memory, source=SeededBytes("device"))
    reports = [client.randomize({"town": f"t{week % 20}"})["answers"]["town"] for week in range(60)]
    assert len({report // 2 for report in reports}) == 1
    assert len([key for key in memory if key.startswith("answer/")]) == 2
    assert client.given()[0].epsilon == 4
    assert str(client.account()) == "Your answers to rounds have used 4.0 of 4.0."


def test_lifetime_counts_cells_and_not_values() -> None:
    loss = respondent_loss(ROUNDS)
    assert (loss.in_all, loss.each_report, loss.ever, loss.default_lifetime) == (2, 1, {"town": 4}, 4)
    assert str(loss).endswith("a changed value adds its part again, up to 4 for town")
    assert loss.to_dict()["ever"] == {"town": "4"}
    plain = Collection(
        "rounds",
        {"town": Question("town", TOWNS, "randomized-response", epsilon=2, each=1)},
        "two-layers",
        lifetime=F(4),
    )
    client = Client(plain, source=SeededBytes("three values"))
    client.randomize({"town": "t0"})
    client.randomize({"town": "t1"})
    with pytest.raises(Unsupported, match=r"have used 4\.0 of 4\.0"):
        client.randomize({"town": "t2"})


def history_probability(operator: HashResponse, cells: tuple[int, ...], sent: tuple[int, ...]) -> Fraction:
    """P(sent cells | cells of the true values), over both permanent answers, for a known seed."""
    keep, stay = F(operator.cells.keep, WHOLE), F(operator.cells.again, WHOLE)
    total = F(0)
    for answers in product((0, 1), repeat=2):
        chance = math.prod((keep if answer == cell else 1 - keep for cell, answer in enumerate(answers)), start=F(1))
        for cell, shown in zip(cells, sent, strict=True):
            chance *= stay if answers[cell] == shown else 1 - stay
        total += chance
    return total


def test_rounds_of_one_answer_lose_at_most_epsilon_and_a_change_is_hidden_by_the_second_layer_only() -> None:
    operator, rounds = HashResponse(20, epsilon=F(2), each=F(1)), 8
    histories = list(product((0, 1), repeat=rounds))

    def loss(first: tuple[int, ...], second: tuple[int, ...]) -> float:
        ratios = [
            history_probability(operator, first, sent) / history_probability(operator, second, sent)
            for sent in histories
        ]
        return math.log(max(*ratios, *(1 / ratio for ratio in ratios)))

    unchanged, other = (0,) * rounds, (1,) * rounds
    changed = (0,) * (rounds // 2) + (1,) * (rounds // 2)
    assert loss(unchanged, other) < 2  # however many rounds
    stay = F(operator.cells.again, WHOLE)
    in_one_round = loss(unchanged, (*unchanged[1:], 1))
    assert in_one_round <= math.log(stay / (1 - stay))  # the second layer: 1.408 for epsilon 2 and each 1
    assert loss(unchanged, changed) > 5  # when an answer changed is not limited by 4, the loss of two permanent answers


def test_survey_estimates_rounds_and_recounts_them(tmp_path: Path) -> None:
    """300 people, standard errors of 13 points; the estimate of a share of 1 is above 0.5 but for a chance of 1 in 10,000."""
    with open_survey(f"sqlite:///{tmp_path}/ledger.db", tmp_path / "reports", ROUNDS)[0] as session:
        survey = session.collect("rounds", reports=str(tmp_path / "reports"))
        reports = []
        for person in range(300):
            client = Client(ROUNDS.public_dict(), source=SeededBytes(f"person {person}"))
            reports.append(client.randomize({"town": "t7"}))
        assert survey.submit(reports).accepted == 300
        estimated = survey.distribution("town")
        assert estimated.unbiased is not None
        assert estimated.unbiased[7] > 0.5
        assert survey.recount()["town"].tolist() == survey.counts("town").tolist()


@pytest.mark.parametrize("runs", [40, pytest.param(600, marks=pytest.mark.long)])
def test_variance_and_intervals_are_those_of_theory(runs: int) -> None:
    """200 values: the mean of squares over runs * 196 values has a relative standard deviation of about sqrt(2 / (runs * 20))."""
    operator, rng, people = HashResponse(200, epsilon=F(2), each=F(1)), np.random.default_rng(11), 3_000
    truth = np.full(200, 0.2 / 196)
    truth[:4] = 0.4, 0.2, 0.1, 0.1
    channel = operator.channel_array() @ truth
    hits, squares = [], []
    for _ in range(runs):
        estimated = shares(
            operator.supports(rng.multinomial(people, channel)), total=people, support=operator.support()
        )
        errors = estimated.raw - truth
        hits.append(np.abs(errors[:4]) <= 1.96 * estimated.errors[:4])
        squares.append((errors[4:] ** 2).mean() * people)
    assert np.mean(hits) == pytest.approx(0.95, abs=0.06 if runs < 100 else 0.02)
    assert np.mean(squares) == pytest.approx(operator.variance(0.2 / 196) + 0.001, rel=0.1 if runs < 100 else 0.02)
