""" "metropolis/1": the sampler as published. Only asymptotic: a chain of any length is not quite its target.

Metropolis chains over the parameters of normal linear regressions, target exp(-epsilon u / (2 sensitivity)) on public
bounds. Four start far apart, at public places; split R-hat and the effective sample size tell whether they have met. Neither
the distance of a finite chain from its target nor its floating point is covered by epsilon, and for the greedy score not
even the sensitivity is: a policy that promises epsilon refuses this model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.errors import Unsupported
from tidegate.noise import Bits
from tidegate.risk.cart import pmse_greedy
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.parametric import candidates as near
from tidegate.synthesize.mechanisms.parametric.plan import MOST_FEATURES, is_number
from tidegate.synthesize.mechanisms.parametric.states import Number, Regressions
from tidegate.synthesize.model import Progress, Rows, Stage
from tidegate_papers.baselines.scores import sequential_scale, sequential_scores

Score = Literal["variation", "grid", "dyadic", "greedy"]
Energy = Callable[[Floats], float]

CHAINS = 4
MOST_COLUMNS = 1 + MOST_FEATURES
STEEPEST = 100.0  # slopes, in sizes of one universe for a whole other one
MET, ENOUGH = 1.01, 400.0  # R-hat and effective size below and above which chains are said to have met
LEAPS = 0.1  # of all moves
FURTHEST, NEAREST = 0.5, -3.5  # powers of ten of a step, in standard deviations


@dataclass(frozen=True)
class Traces:
    """Chains (chains, draws, parameters). Private: they, R-hat and effective sizes are functions of the rows."""

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
    def met(self) -> bool:
        return self.rhat < MET and self.effective > ENOUGH


@dataclass(frozen=True)
class Asymptotic(Regressions):
    """What a chain gave. `traces`: for the data holder, where the chain was run and not read from a diary."""

    traces: Traces | None = None
    label: ClassVar[str] = "asymptotic"
    exact: ClassVar[bool] = False


@dataclass(frozen=True)
class Metropolis:
    """Needs      Numbers only. `score`: total variation, pMSE on a grid or of the best dyadic tree (all with a proven
               sensitivity), or pMSE of a greedy tree with the published, unproven 1/n.

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

    def stages(self, facts: Facts, *, epsilon: Fraction, split: Mapping[str, Fraction]) -> tuple[Stage, ...]:
        _numbers_only(facts)
        return (Stage("chain", Fraction(1), "run Markov chains; what they give is only asymptotically private"),)

    def learn(
        self, facts: Facts, rows: Rows, diary: Diary, *, split: Mapping[str, Fraction], bits: Bits, progress: Progress
    ) -> Asymptotic:
        _numbers_only(facts)
        kept: list[Traces] = []

        def measure() -> Ints:
            kept.append(self.chains(facts, rows.codes(facts.columns), float(diary.epsilon), bits, progress))
            ends = kept[0].draws[:, -1]
            return near.whole(theta_of(ends[int(bits.words(1)[0] % np.uint64(CHAINS))]))

        theta = near.real(diary.step("chain", diary.epsilon, measure))
        return Asymptotic(states_of(facts.columns, theta), kept[0] if kept else None)

    def chains(self, facts: Facts, codes: Ints, epsilon: float, bits: Bits, progress: Progress) -> Traces:
        """Four chains; the first half of each is thrown away."""
        energy = self.energy(facts, codes, epsilon)
        random = np.random.default_rng(bits.words(4))
        found = []
        for number, begin in enumerate(starts(facts.columns)):
            found.append(run_chain(begin, lambda at: energy(theta_of(at)), facts.columns, self.steps, random))
            progress("chain", number + 1, CHAINS)
        half = self.steps // 2
        return Traces(np.stack([d[half:] for d, _ in found]), np.stack([e[half:] for _, e in found]))

    def energy(self, facts: Facts, codes: Ints, epsilon: float) -> Energy:
        """-log of the target: epsilon u / (2 sensitivity)."""
        values = np.asarray(codes, np.float64)
        if self.score == "greedy":
            return self._greedy(facts, values, epsilon)
        kind = self.score
        scale = sequential_scale(rows=facts.rows, columns=len(facts.columns), kind=kind)
        rate = float(scale.rate(Fraction(epsilon).limit_denominator(10**9), reach=facts.reach))
        return lambda theta: rate * float(sequential_scores(values, theta[None], kind=kind)[0])

    def _greedy(self, facts: Facts, values: Floats, epsilon: float) -> Energy:
        """As published: one synthetic table, always of the same noise, a greedy tree, and sensitivity 1/n."""
        noise = np.random.default_rng(self.seed).standard_normal(values.shape)
        rate = epsilon * facts.rows / 2

        def energy(theta: Floats) -> float:
            made = synthetic(noise, theta)
            return rate * pmse_greedy(values, made, cp=self.cp, max_depth=self.depth)

        return energy


def _numbers_only(facts: Facts) -> None:
    others = [c.name for c in facts.columns if not is_number(c) or c.missing]
    if others or not 1 <= len(facts.columns) <= MOST_COLUMNS:
        what = f"{', '.join(others)} is not one" if others else f"there are {len(facts.columns)} columns"
        raise Unsupported(
            f"Markov chains are for up to {MOST_COLUMNS} numbers without missing values; {what}.",
            'Use the exact sampler (model = "sequential/1"), which takes every column.',
        )


def run_chain(
    begin: Floats, energy: Energy, columns: tuple[Column, ...], steps: int, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Metropolis' rule; every state of the chain (steps, parameters) and its energy."""
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
    """One column's centre and scale anywhere, evenly: the way back is as likely."""
    place = int(random.integers(len(columns)))
    part, there = places_of(len(columns))[place], here.copy()
    there[[part.start, part.stop - 1]] = near.real(near.anywhere(columns[place].size, count=1, random=random))[0]
    return there, 0.0


def _step(here: Floats, columns: tuple[Column, ...], random: np.random.Generator) -> tuple[Floats, float]:
    """A normal step of a size over four powers of ten, on one parameter or on all, and how much likelier the way back is.

    Steps are in units of the scales, which may differ there: that is why the way back is not as likely.
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
    """Of how many columns these are the parameters: q (q + 3) / 2 of them."""
    return (math.isqrt(9 + 8 * theta.size) - 3) // 2


def theta_of(centred: Floats) -> Floats:
    """Intercepts instead of centres. Chains move centres: a slope then turns a column about its middle."""
    found, centres = centred.copy(), []
    for place in places_of(columns_in(centred)):
        part = found[place]
        centres.append(float(part[0]))
        part[0] -= sum(slope * centre for slope, centre in zip(part[1:-1], centres, strict=False))
    return found


def places_of(columns: int) -> list[slice]:
    """Where in theta each column's intercept (or centre), slopes and log scale are."""
    ends = np.cumsum([0, *(j + 2 for j in range(columns))])
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def spreads(theta: Floats, columns: int) -> Floats:
    """In which units the parameters move: scales for intercepts, ratios of scales for slopes, 1 for logarithms."""
    found, scales = np.ones(theta.size), [math.exp(theta[place.stop - 1]) for place in places_of(columns)]
    for j, place in enumerate(places_of(columns)):
        found[place.start] = scales[j]
        for i in range(j):
            found[place.start + 1 + i] = scales[j] / scales[i]
    return found


def starts(columns: tuple[Column, ...]) -> list[Floats]:
    """Public and far apart: centres at quarters of the universe, scales from a half to a twentieth of it, no slopes."""
    found = []
    for part, share in ((0.5, 2.0), (0.4, 6.0), (0.6, 12.0), (0.5, 20.0)):
        theta = [np.array([part * c.size, *np.zeros(j), math.log(c.size / share)]) for j, c in enumerate(columns)]
        found.append(np.concatenate(theta))
    return found


def inside(centred: Floats, columns: tuple[Column, ...]) -> bool:
    """The prior: even where centres lie within a universe of its own universe, slopes and scales are possible."""
    for place, column in zip(places_of(len(columns)), columns, strict=True):
        part, size = centred[place], column.size
        steep = any(abs(b) * c.size > STEEPEST * size for b, c in zip(part[1:-1], columns, strict=False))
        if steep or not (-size <= part[0] <= 2 * size and math.log(0.25) <= part[-1] <= math.log(size)):
            return False
    return True


def synthetic(noise: Floats, theta: Floats) -> Floats:
    """Rows that a theta makes of standard normal noise."""
    made = np.empty_like(noise)
    for j, place in enumerate(places_of(noise.shape[1])):
        part = theta[place]
        made[:, j] = part[0] + made[:, :j] @ part[1:-1] + math.exp(part[-1]) * noise[:, j]
    return made


def states_of(columns: tuple[Column, ...], theta: Floats) -> tuple[Number, ...]:
    """A theta as regressions."""
    found = []
    for j, place in enumerate(places_of(len(columns))):
        part, spread = theta[place], math.exp(theta[place.stop - 1])
        found.append(Number(columns[j], tuple(range(j)), 0.0, 1.0, part[:-1].copy(), spread))
    return tuple(found)


# How far chains are from having met: split R-hat and effective sample size. Private: for the data holder's eyes.
#
# Reference  Gelman, Carlin, Stern, Dunson, Vehtari, Rubin 2013, "Bayesian Data Analysis", Sections 11.4 and 11.5.


def split_rhat(chains: Floats) -> float:
    """Of chains (chains, draws), each cut in half: 1 where all halves tell the same."""
    halves = _halves(chains)
    draws = halves.shape[1]
    within = halves.var(1, ddof=1).mean()
    between = draws * halves.mean(1).var(ddof=1)
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt((within * (draws - 1) / draws + between / draws) / within))


def effective_size(chains: Floats) -> float:
    """To how many independent draws they amount, by Geyer's initial positive pairs of autocorrelations."""
    halves = _halves(chains)
    many, draws = halves.shape
    within = halves.var(1, ddof=1).mean()
    spread = within * (draws - 1) / draws + halves.mean(1).var(ddof=1)
    if spread == 0:
        return float(many * draws)
    centred = halves - halves.mean(1, keepdims=True)
    covariance = np.stack([_autocovariance(chain) for chain in centred]).mean(0)
    rho = 1 - (within * (draws - 1) / draws - covariance) / spread
    pairs = rho[: 2 * (draws // 2)].reshape(-1, 2).sum(1)
    ends = np.flatnonzero(pairs < 0)
    kept = pairs[: ends[0]] if ends.size else pairs
    kept = np.minimum.accumulate(kept)
    return float(many * draws / max(2 * kept.sum() - 1, 1 / np.log10(many * draws)))


def _autocovariance(chain: Floats) -> Floats:
    size = 2 ** int(np.ceil(np.log2(2 * chain.size)))
    power = np.abs(np.fft.rfft(chain, size)) ** 2
    return np.asarray(np.fft.irfft(power)[: chain.size] / chain.size)


def _halves(chains: Floats) -> Floats:
    half = chains.shape[1] // 2
    return np.vstack([chains[:, :half], chains[:, half : 2 * half]])
