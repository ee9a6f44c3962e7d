"""The published sampler reaches its target in the end, states how far it is, and is never labeled exact."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from baselines.small_tables import quiet
from claims.probabilities import bits
from tidegate_papers.baselines.metropolis import (
    Metropolis,
    effective_size,
    inside,
    run_chain,
    split_rhat,
    starts,
    theta_of,
)
from tidegate_papers.baselines.sequential import Sequential

from tidegate.errors import Unsupported
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.private_rows import ArrayRows

WIDE = (Column("x", 300, (0,)), Column("y", 300, (0,)))


def test_diagnostics_distinguish_chains_that_agree() -> None:
    random = np.random.default_rng(1)
    same = random.standard_normal((4, 1_000))
    assert split_rhat(same) < 1.01
    assert 3_000 < effective_size(same) < 5_500
    assert split_rhat(same + np.arange(4)[:, None]) > 1.3
    assert split_rhat(same + np.linspace(0, 3, 1_000)) > 1.2  # a drift of all chains: the halves differ
    slow = np.cumsum(random.standard_normal((4, 1_000)), axis=1)
    assert effective_size(slow) < 60
    assert split_rhat(np.zeros((4, 10))) == 1


def test_effective_size_of_an_autoregression_is_known() -> None:
    """An AR(1) with coefficient 0.8 has (1 - 0.8) / (1 + 0.8) = 1/9 of its draws."""
    random = np.random.default_rng(2)
    chains = np.zeros((4, 20_000))
    for t in range(1, 20_000):
        chains[:, t] = 0.8 * chains[:, t - 1] + random.standard_normal(4)
    assert effective_size(chains) == pytest.approx(80_000 / 9, rel=0.15)


@pytest.mark.long
def test_chain_has_its_target_as_stationary_distribution() -> None:
    """The energy is a normal's in center and log scale: their moments come out (20 standard errors: no false alarm)."""
    columns = (Column("x", 300, (0,)),)

    def energy(at: np.ndarray) -> float:
        return float((at[0] - 150) ** 2 / (2 * 20**2) + (at[1] - 3) ** 2 / (2 * 0.3**2))

    draws, _ = run_chain(np.array([150.0, 3.0]), energy, columns, 25_000, np.random.default_rng(3))
    states = draws[3_000:]
    assert states.mean(0) == pytest.approx([150, 3], abs=2)
    assert states.std(0) == pytest.approx([20, 0.3], rel=0.1)


def test_starts_are_public_far_apart_and_allowed() -> None:
    states = starts(WIDE)
    assert len(states) == 4
    assert all(inside(state, WIDE) for state in states)
    assert len({tuple(state) for state in states}) == 4
    assert theta_of(np.array([5.0, 0.0, 7.0, 2.0, 0.0])).tolist() == [5, 0, 7 - 10, 2, 0]


@pytest.mark.long  # seconds of CPU
@pytest.mark.one_in(4)
@pytest.mark.parametrize("score", ["variation", "grid", "dyadic", "greedy"])
def test_line_is_learned_and_the_result_is_labeled_asymptotic(score: str) -> None:
    random = np.random.default_rng(4)
    x = random.normal(150, 40, 400)
    codes = np.clip(np.rint(np.column_stack([x, 0.5 * x + 60 + random.normal(0, 15, 400)])), 0, 299).astype(int)
    model = Metropolis(score=score, steps=800 if score == "greedy" else 2_000)
    learned = model.learn(
        Facts(WIDE, 400), ArrayRows(codes, WIDE), Diary(Fraction(8)), bits=bits(score), progress=quiet
    )
    assert learned.label == "asymptotic"
    assert not learned.exact
    assert not model.exact
    assert Sequential.exact
    assert learned.traces is not None
    assert learned.traces.draws.shape[0] == 4
    assert learned.traces.rhat >= 1 - 1e-3 or learned.traces.has_converged
    drawn = learned.draw(2_000, seed=1)
    assert np.corrcoef(drawn.T)[0, 1] > 0.4


def test_stored_chain_is_read_without_running_it_again() -> None:
    codes = np.random.default_rng(5).integers(0, 300, (50, 2))
    facts, diary, model = Facts(WIDE, 50), Diary(Fraction(1)), Metropolis(steps=50)
    rows = ArrayRows(codes, WIDE)
    first = model.learn(facts, rows, diary, bits=bits("a"), progress=quiet)
    again = model.learn(facts, rows, Diary(Fraction(1), diary.steps), bits=bits("b"), progress=quiet)
    assert (first.draw(20, seed=1) == again.draw(20, seed=1)).all()
    assert again.traces is None


def test_unsupported_columns_are_refused() -> None:
    sex = Column("sex", 2, (0, 1), ordered=False)
    with pytest.raises(Unsupported, match="sex is not one"):
        Metropolis().stages(Facts((*WIDE, sex), 9), limit=Loss.of_pure(Fraction(1)))
    with pytest.raises(Unsupported, match="there are 7 columns"):
        Metropolis().stages(
            Facts(tuple(Column(f"c{n}", 9, (0,)) for n in range(7)), 9), limit=Loss.of_pure(Fraction(1))
        )
