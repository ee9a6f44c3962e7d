""" "metropolis/1": the published sampler. Only asymptotic: a chain of finite length is not exactly its target.

Metropolis chains over the parameters of normal linear regressions, with target exp(-epsilon u / (2 sensitivity)) on public
bounds. Four chains start far apart, at public states; split R-hat and the effective sample size show whether they have
converged. Epsilon covers neither the distance of a finite chain from its target nor its floating point, and for the greedy
score not even the sensitivity: a policy that promises epsilon refuses this model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.errors import Unsupported
from tidegate.noise import Bits
from tidegate.risk.cart import pmse_greedy
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.model import Progress, Rows, Stage
from tidegate_papers.baselines import rounds as near
from tidegate_papers.baselines.regressions import Number, Regressions
from tidegate_papers.baselines.rounds import MOST_FEATURES, is_number, pure_loss
from tidegate_papers.baselines.scores import sequential_scale, sequential_scores

Score = Literal["variation", "grid", "dyadic", "greedy"]
Energy = Callable[[Floats], float]

CHAINS = 4
MOST_COLUMNS = 1 + MOST_FEATURES
STEEPEST = 100.0  # slopes, in sizes of one universe per whole other universe
MET, ENOUGH = 1.01, 400.0  # R-hat and effective size below and above which chains count as converged
LEAPS = 0.1  # of all moves
FURTHEST, NEAREST = 0.5, -3.5  # powers of ten of a step, in standard deviations


@dataclass(frozen=True)
class Traces:
    """Chains (chains, draws, parameters). Private: they, R-hat and effective sizes depend on the rows."""

    draws: Floats
    energies: Floats

    @property
    def rhat(self) -> float:
        """The worst of all parameters."""
        return max(split_rhat(self.draws[:, :, p]) for p in range(self.draws.shape[2]))

    @property
    def effective(self) -> float:
        """The smallest of all parameters."""
        return min(effective_size(self.draws[:, :, p]) for p in range(self.draws.shape[2]))

    @property
    def has_converged(self) -> bool:
        return self.rhat < MET and self.effective > ENOUGH


@dataclass(frozen=True)
class Asymptotic(Regressions):
    """Regressions from a chain. `traces` is for the data holder, if the chain was run and not read from a diary."""

    traces: Traces | None = None
    label: ClassVar[str] = "asymptotic"
    exact: ClassVar[bool] = False


@dataclass(frozen=True)
class Metropolis:
    """Regressions from a Markov chain.

    Needs:
        Numbers only. `score`: total variation, pMSE on a grid or of the best dyadic tree (all with a proven sensitivity),
        or pMSE of a greedy tree with the published, unproven 1/n.

    Reference:
        Snoke & Slavkovic 2018, Section 3; Metropolis et al. 1953.
    """

    score: Score = "variation"
    steps: int = 4_000
    seed: int = 2018
    depth: int = 30  # of greedy trees
    cp: float = 0.01
    name: ClassVar[str] = "metropolis/1"
    exact: ClassVar[bool] = False

    def stages(self, facts: Facts, *, limit: Loss) -> tuple[Stage, ...]:
        pure_loss(limit)
        _numbers_only(facts)
        return (Stage("chain", Fraction(1), "run Markov chains; what they give is only asymptotically private"),)

    def learn(self, facts: Facts, rows: Rows, diary: Diary, *, bits: Bits, progress: Progress) -> Asymptotic:
        _numbers_only(facts)
        traces: list[Traces] = []

        def measure() -> Ints:
            traces.append(self.chains(facts, rows.codes(facts.columns), float(diary.epsilon), bits, progress))
            ends = traces[0].draws[:, -1]
            return near.whole(theta_of(ends[int(bits.words(1)[0] % np.uint64(CHAINS))]))

        theta = near.real(diary.step("chain", diary.epsilon, measure))
        return Asymptotic(states_of(facts.columns, theta), traces[0] if traces else None)

    def chains(self, facts: Facts, codes: Ints, epsilon: float, bits: Bits, progress: Progress) -> Traces:
        """Run four chains and discard the first half of each."""
        energy = self.energy(facts, codes, epsilon)
        random = np.random.default_rng(bits.words(4))
        runs = []
        for number, begin in enumerate(starts(facts.columns)):
            runs.append(run_chain(begin, lambda at: energy(theta_of(at)), facts.columns, self.steps, random))
            progress("chain", number + 1, CHAINS)
        half = self.steps // 2
        return Traces(np.stack([d[half:] for d, _ in runs]), np.stack([e[half:] for _, e in runs]))

    def energy(self, facts: Facts, codes: Ints, epsilon: float) -> Energy:
        """Return -log of the target: epsilon u / (2 sensitivity)."""
        values = np.asarray(codes, np.float64)
        if self.score == "greedy":
            return self._greedy(facts, values, epsilon)
        kind = self.score
        scale = sequential_scale(rows=facts.rows, columns=len(facts.columns), kind=kind)
        rate = float(scale.rate(Fraction(epsilon).limit_denominator(10**9), reach=facts.reach))
        return lambda theta: rate * float(sequential_scores(values, theta[None], kind=kind)[0])

    def _greedy(self, facts: Facts, values: Floats, epsilon: float) -> Energy:
        """Return the published energy: one synthetic table, always of the same noise, a greedy tree, and sensitivity 1/n."""
        noise = np.random.default_rng(self.seed).standard_normal(values.shape)
        rate = epsilon * facts.rows / 2

        def energy(theta: Floats) -> float:
            table = synthetic(noise, theta)
            return rate * pmse_greedy(values, table, cp=self.cp, max_depth=self.depth)

        return energy


def _numbers_only(facts: Facts) -> None:
    others = [c.name for c in facts.columns if not is_number(c) or c.missing]
    if others or not 1 <= len(facts.columns) <= MOST_COLUMNS:
        what = f"{', '.join(others)} is not one" if others else f"there are {len(facts.columns)} columns"
        raise Unsupported(
            f"Markov chains are for up to {MOST_COLUMNS} numbers without missing values; {what}.",
            'Use the exact sampler (model = "sequential/1"), which accepts every column.',
        )


def run_chain(
    begin: Floats, energy: Energy, columns: tuple[Column, ...], steps: int, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Run Metropolis' rule; return every state of the chain (steps, parameters) and its energy."""
    here, cost = begin, energy(begin)
    draws, energies = np.empty((steps, begin.size)), np.empty(steps)
    for number in range(steps):
        there, back = _leap(here, columns, random) if random.random() < LEAPS else _step(here, columns, random)
        if inside(there, columns):
            tried = energy(there)
            if math.log(random.random() or 1e-300) < cost - tried + back:
                here, cost = there, tried
        draws[number], energies[number] = here, cost
    return draws, energies


def _leap(here: Floats, columns: tuple[Column, ...], random: np.random.Generator) -> tuple[Floats, float]:
    """Draw one column's center and scale uniformly: the way back is as likely."""
    index = int(random.integers(len(columns)))
    part, there = places_of(len(columns))[index], here.copy()
    there[[part.start, part.stop - 1]] = near.real(near.anywhere(columns[index].size, count=1, random=random))[0]
    return there, 0.0


def _step(here: Floats, columns: tuple[Column, ...], random: np.random.Generator) -> tuple[Floats, float]:
    """Draw a normal step of a size over four powers of ten, on one parameter or on all, and how much likelier the way back is.

    Steps are in units of the scales, which can differ at the new state: that is why the way back is not as likely.
    """
    size = 10 ** random.uniform(NEAREST, FURTHEST)
    step = size * random.standard_normal(here.size) * spreads(here, len(columns))
    if random.random() < 0.5:
        step *= np.arange(here.size) == random.integers(here.size)
    there = here + step
    return there, _log_density(step, size, there, len(columns)) - _log_density(step, size, here, len(columns))


def _log_density(step: Floats, size: float, at: Floats, columns: int) -> float:
    moved = step != 0
    unit = step[moved] / (size * spreads(at, columns)[moved])
    return float(-(unit**2).sum() / 2 - np.log(spreads(at, columns)[moved]).sum())


def columns_in(theta: Floats) -> int:
    """Return the number of columns with these parameters: q (q + 3) / 2 of them."""
    return (math.isqrt(9 + 8 * theta.size) - 3) // 2


def theta_of(centered: Floats) -> Floats:
    """Return intercepts instead of centers.

    Chains move centers: a slope then turns a column about its middle.
    """
    theta, centers = centered.copy(), []
    for part_slice in places_of(columns_in(centered)):
        part = theta[part_slice]
        centers.append(float(part[0]))
        part[0] -= sum(slope * center for slope, center in zip(part[1:-1], centers, strict=False))
    return theta


def places_of(columns: int) -> list[slice]:
    """Return the slices of theta with each column's intercept (or center), slopes and log scale."""
    ends = np.cumsum([0, *(j + 2 for j in range(columns))])
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def spreads(theta: Floats, columns: int) -> Floats:
    """Return the units in which the parameters move.

    Scales for intercepts, ratios of scales for slopes, 1 for logarithms.
    """
    units, scales = np.ones(theta.size), [math.exp(theta[part.stop - 1]) for part in places_of(columns)]
    for j, part in enumerate(places_of(columns)):
        units[part.start] = scales[j]
        for i in range(j):
            units[part.start + 1 + i] = scales[j] / scales[i]
    return units


def starts(columns: tuple[Column, ...]) -> list[Floats]:
    """Return public states that are far apart.

    Centers are at quarters of the universe, scales from a half to a twentieth of it, and slopes are 0.
    """
    states = []
    for part, share in ((0.5, 2.0), (0.4, 6.0), (0.6, 12.0), (0.5, 20.0)):
        theta = [np.array([part * c.size, *np.zeros(j), math.log(c.size / share)]) for j, c in enumerate(columns)]
        states.append(np.concatenate(theta))
    return states


def inside(centered: Floats, columns: tuple[Column, ...]) -> bool:
    """Return whether the prior is positive.

    It is uniform where centers are within one universe of their own, and slopes and scales are possible.
    """
    for part_slice, column in zip(places_of(len(columns)), columns, strict=True):
        part, size = centered[part_slice], column.size
        steep = any(abs(b) * c.size > STEEPEST * size for b, c in zip(part[1:-1], columns, strict=False))
        if steep or not (-size <= part[0] <= 2 * size and math.log(0.25) <= part[-1] <= math.log(size)):
            return False
    return True


def synthetic(noise: Floats, theta: Floats) -> Floats:
    """Return rows that a theta generates from standard normal noise."""
    rows = np.empty_like(noise)
    for j, part_slice in enumerate(places_of(noise.shape[1])):
        part = theta[part_slice]
        rows[:, j] = part[0] + rows[:, :j] @ part[1:-1] + math.exp(part[-1]) * noise[:, j]
    return rows


def states_of(columns: tuple[Column, ...], theta: Floats) -> tuple[Number, ...]:
    """Return a theta as regressions."""
    states = []
    for j, part_slice in enumerate(places_of(len(columns))):
        part, spread = theta[part_slice], math.exp(theta[part_slice.stop - 1])
        states.append(Number(columns[j], tuple(range(j)), 0.0, 1.0, part[:-1].copy(), spread))
    return tuple(states)


# How far chains are from convergence: split R-hat and effective sample size. Private: for the data holder only.
#
# Reference  Gelman, Carlin, Stern, Dunson, Vehtari, Rubin 2013, "Bayesian Data Analysis", Sections 11.4 and 11.5.


def split_rhat(chains: Floats) -> float:
    """Return split R-hat of chains (chains, draws), each cut in half: 1 if all halves agree."""
    halves = _halves(chains)
    draws = halves.shape[1]
    within = halves.var(1, ddof=1).mean()
    between = draws * halves.mean(1).var(ddof=1)
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt((within * (draws - 1) / draws + between / draws) / within))


def effective_size(chains: Floats) -> float:
    """Return the number of equivalent independent draws, by Geyer's initial positive pairs of autocorrelations."""
    halves = _halves(chains)
    count, draws = halves.shape
    within = halves.var(1, ddof=1).mean()
    spread = within * (draws - 1) / draws + halves.mean(1).var(ddof=1)
    if spread == 0:
        return float(count * draws)
    centered = halves - halves.mean(1, keepdims=True)
    covariance = np.stack([_autocovariance(chain) for chain in centered]).mean(0)
    rho = 1 - (within * (draws - 1) / draws - covariance) / spread
    pairs = rho[: 2 * (draws // 2)].reshape(-1, 2).sum(1)
    ends = np.flatnonzero(pairs < 0)
    positive = pairs[: ends[0]] if ends.size else pairs
    positive = np.minimum.accumulate(positive)
    return float(count * draws / max(2 * positive.sum() - 1, 1 / np.log10(count * draws)))


def _autocovariance(chain: Floats) -> Floats:
    size = 2 ** int(np.ceil(np.log2(2 * chain.size)))
    power = np.abs(np.fft.rfft(chain, size)) ** 2
    return np.asarray(np.fft.irfft(power)[: chain.size] / chain.size)


def _halves(chains: Floats) -> Floats:
    half = chains.shape[1] // 2
    return np.vstack([chains[:, :half], chains[:, half : 2 * half]])
