"""Posterior: no observer who knows the profile of a sensitive group can become certain about one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tidegate.arrays import Ints
from tidegate.release import _kernels, exact_tests
from tidegate.release.mechanisms.test import Reading, Test


class Posterior(Test):
    """Releases while the posterior probability of every group to be sensitive is at most rho.

    Guarantee:
        An observer with the declared priors and profiles, for whom the released values of a group are independent draws,
        never reaches, from the released records of a group, a probability above rho that it is a sensitive one. Exact
        from the first record on: no approximation, no simulation.

    Needs:
        The priors of all profiles together below rho; a baseline without zeros.
    """

    name = "posterior"
    index = _kernels.POSTERIOR
    measure = "probability of a sensitive group"
    sees = "an observer who compares every group with the declared profile, from the first record on"
    blind = (
        "an observer with any other profile: used alone it releases 81% of the paper's L2, which then looks like no other "
        "group (no soldier above 54, 218 of 40 to 44). Use it together with kullback-leibler, never alone. It does not "
        "see order, timing, the sizes of groups, or that records are deferred at all"
    )

    @property
    def profiles(self) -> list[tuple[Fraction, tuple[Fraction, ...]]]:
        return [(p.prior, _shares(p.values)) for p in self.plan.promise.profiles.values()]

    @property
    def rho(self) -> Fraction:
        return self.plan.promise.rho or Fraction(0)

    def arrays(self) -> dict[str, Any]:
        ordinary = 1 - sum((prior for prior, _ in self.profiles), Fraction(0))
        with np.errstate(divide="ignore"):
            ratios = [[float(v / b) for v, b in zip(vs, self.plan.baseline, strict=True)] for _, vs in self.profiles]
            return {
                "log_ratios": np.log(np.array(ratios)),
                "prior_odds": np.array([float(prior / ordinary) for prior, _ in self.profiles]),
                "odds": float(self.rho / (1 - self.rho)),
            }

    def holds(self, counts: Ints, target: int) -> bool:
        column = [int(c) for c in counts[:, target]]
        return exact_tests.odds(column, self.plan.baseline, self.profiles) <= self.rho / (1 - self.rho)

    def readings(self, counts: Ints) -> list[Reading]:
        """Return the posterior of each target with records, rounded for display; decisions are exact."""
        logs = self.arrays()
        posteriors = []
        for y in np.flatnonzero(counts.sum(axis=0)):
            seen = counts[:, y] > 0
            evidence = (counts[seen, y] * logs["log_ratios"][:, seen]).sum(axis=1)
            odds = float((logs["prior_odds"] * np.exp(np.minimum(evidence, 700))).sum())
            posteriors.append(Reading(int(y), odds / (1 + odds), float(self.rho)))
        return posteriors


def _shares(values: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    total = sum(values, Fraction(0))
    return tuple(value / total for value in values)
