"""Every number of the golden file on identification on average: limits, prices, success rates, displays, noise, persons."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from golden.papers import golden, paper
from reference import average as slow

from tidegate.accounting import (
    Amount,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Filtered,
    GaussianMoments,
    KNorm,
    Target,
    average_identification_after,
    average_loss_for,
    average_yes_no,
    budget_of,
    epsilon_at_delta,
    zcdp_for,
)
from tidegate.noise import Gaussian, sigma_for
from tidegate.policy import Dataset, Grid, Identification, Integer, Policy

FACTS = golden("average")
EXACT, CLOSE = 1e-12, 1e-9  # relative: as the file states
PRIOR = [Fraction(p, 100) for p in (4, 6, 10, 15, 20, 15, 10, 8, 7, 5)]
F = Fraction
RENYI = "Renyi 1961: the divergence of two coins"
NOISE = "Canonne, Kamath, Steinke 2020, arXiv:2004.00010"


def close(ours: Amount | float | mpmath.mpf, expected: str, relative: float) -> bool:
    exact = mpmath.mpf(ours.grains) / 10**30 if isinstance(ours, Amount) else mpmath.mpf(ours)
    return bool(abs(exact - mpmath.mpf(expected)) <= relative * mpmath.mpf(expected))


def names(section: str) -> list[str]:
    """Return a label for every fact of a section."""
    return [f"{number} {fact.get('case', fact.get('event', ''))}" for number, fact in enumerate(FACTS[section])]


def test_file_has_all_facts() -> None:
    sizes = {name: len(facts) for name, facts in FACTS.items() if isinstance(facts, list)}
    assert sizes == {
        "ceilings": 30,
        "events": 13,
        "success_by_enumeration": 12,
        "epsilon_at_delta_1e-6": 7,
        "yes_no": 5,
        "discrete_gaussian": 3,
        "persons": 3,
    }


# Limits


@paper(RENYI)
@pytest.mark.parametrize("fact", FACTS["ceilings"], ids=names("ceilings"))
def test_limit_is_the_supremum_over_all_orders(fact: dict[str, str]) -> None:
    rho, q = F(fact["rho"]), F(fact["q"])
    limit = average_loss_for(rho, q)
    assert close(limit, fact["z"], EXACT)
    assert mpmath.mpf(limit.grains) / 10**30 >= mpmath.mpf(fact["z_closed"])
    assert close(slow.closed_ceiling(rho, q), fact["z_closed"], EXACT)
    assert close(Target("x", 1 / q, rho, "average").limit, fact["z"], EXACT)


@paper("Lee & Clifton 2012, equation (15), with 1 / q worlds")
@pytest.mark.parametrize("fact", FACTS["ceilings"], ids=names("ceilings"))
def test_worst_case_limit_uses_the_same_number_of_worlds(fact: dict[str, str]) -> None:
    assert close(Target("x", 1 / F(fact["q"]), F(fact["rho"])).limit, fact["epsilon"], EXACT)


STATED = {
    "income": (Grid(0, 1_000_000, 1), None),
    "age": (Integer(18, 90), None),
    "prior": (Integer(0, 9), PRIOR),
    "largest": (Integer(0, 99), [F(4, 100)]),
}


@pytest.mark.parametrize(
    "fact", [fact for fact in FACTS["ceilings"] if "equally likely" not in fact["case"]], ids=lambda fact: fact["case"]
)
def test_policy_states_the_same_limits(fact: dict[str, str]) -> None:
    attribute, prior = STATED[fact["case"].split()[0]]
    within = int(fact["case"].rsplit("within ", 1)[1]) if "within" in fact["case"] else 0
    for guarantee, expected in (("average", fact["z"]), ("worst-case", fact["epsilon"])):
        promise = Identification(
            F(fact["rho"]),
            protect=("x",),
            prior={"x": tuple(prior)} if prior else None,
            guarantee=guarantee,  # type: ignore[arg-type]
            within={"x": within},
        )
        ceilings = budget_of(Policy(Dataset("d"), {"x": attribute}, promise)).ceilings
        limit = ceilings.z if guarantee == "average" else ceilings.pure
        assert limit is not None
        assert close(limit, expected, EXACT)


# Prices


def event_of(fact: dict[str, Any]) -> Event:
    """Return the event of a fact. Distances, where the file has none, follow from its description."""
    kind, _, described = fact["event"].partition(" ")
    sigma = F(fact.get("sigma", 1))
    if kind == "discrete-laplace/1":
        return DiscreteLaplace(F(fact["sensitivity"]), F(fact["scale"]))
    if kind == "exponential/1":
        return Exponential(F(fact["sensitivity"]), F(fact["rate"]), fact["one_sided"])
    if kind == "filtered/1":
        return Filtered(F(fact["epsilon"]), fact["times"])
    if kind == "k-norm/1":
        return KNorm(tuple(fact["bounds"]), fact["steps"], F(fact["scale"]))
    if described.startswith("number and sum"):
        return GaussianMoments(-36, 36, 1, (sigma / 36, sigma, None))
    if described.startswith("grouped number and sum"):
        return GaussianMoments(-36, 36, 1, (F(2), F(72), None), cells=6)
    diameters = {"count": 1, "sum, codes 0..72": 72**2, "histogram, 73 cells": 2}
    diameters["histogram, 73 cells, persons with 3 rows"] = 18
    return DiscreteGaussian(F(fact["squared_radius"]), F(diameters[described]), sigma)


@paper(NOISE)
@pytest.mark.parametrize("fact", FACTS["events"], ids=names("events"))
def test_event_has_its_price_in_three_units(fact: dict[str, Any]) -> None:
    price = event_of(fact).price
    assert price.zcdp == Amount.up(F(fact["zcdp"]))
    assert price.z == Amount.up(F(fact["z"]))
    assert price.pure == (None if fact["pure"] is None else Amount.up(F(fact["pure"])))


@pytest.mark.parametrize(
    "fact", [fact for fact in FACTS["events"] if "squared_radius" in fact], ids=lambda fact: fact["event"]
)
def test_price_leads_back_to_its_sigma(fact: dict[str, Any]) -> None:
    assert sigma_for(F(fact["squared_radius"]), F(fact["z"])) == F(fact["sigma"])


# Success


def values_of(fact: dict[str, Any]) -> list[int]:
    return list(range(73)) if fact["values"] == "0..72" else fact["values"]


@paper("Enumeration of all values and responses")
@pytest.mark.parametrize("fact", FACTS["success_by_enumeration"], ids=names("success_by_enumeration"))
def test_best_guess_is_right_as_often_as_enumerated_and_below_its_bound(fact: dict[str, Any]) -> None:
    values, sigma, q = values_of(fact), F(fact["sigma"]), F(fact["q"])
    prior = np.full(len(values), 1 / len(values))
    if "prior" in fact["case"]:
        prior = np.array([0.7, 0.3]) if len(values) == 2 else np.array([float(p) for p in PRIOR])
    support = np.arange(-int(40 * sigma) - 5, max(values) + int(40 * sigma) + 6)
    channel = np.exp(slow.gaussian_log_weights(float(sigma), np.array(values), support))
    masses = slow.guess_masses(prior, range(len(values)), fact["within"])
    assert masses.sum(axis=1).max() == pytest.approx(float(q), rel=EXACT)
    success = slow.best_success(channel, masses)
    assert success == pytest.approx(float(fact["success"]), rel=EXACT)
    bound = float(average_identification_after(Amount.up(F(fact["z"])), q))
    assert bound == pytest.approx(float(fact["bound"]), rel=CLOSE)
    assert success <= bound
    assert F(fact["z"]) == F((max(values) - min(values)) ** 2) / 4 / (2 * sigma**2)


# Displays


@paper(NOISE)
@pytest.mark.parametrize("fact", FACTS["epsilon_at_delta_1e-6"], ids=lambda fact: fact["zcdp"])
def test_zcdp_is_shown_as_epsilon_at_delta(fact: dict[str, str]) -> None:
    assert close(epsilon_at_delta(Amount.up(fact["zcdp"])), fact["epsilon"], EXACT)


@paper(NOISE)
@pytest.mark.parametrize(
    ("epsilon", "zcdp"), [("0.25", "0.00235636"), ("1", "0.0305566"), ("4", "0.373144")], ids=["0.25", "1", "4"]
)
def test_epsilon_at_delta_1e_5_is_the_zcdp_of_the_design(epsilon: str, zcdp: str) -> None:
    assert close(zcdp_for(F(epsilon), F(1, 10**5)), zcdp, 2e-6)  # as many digits as are stated


@paper(RENYI)
@pytest.mark.parametrize("fact", FACTS["yes_no"], ids=lambda fact: fact["z"])
def test_yes_no_limit_is_as_computed(fact: dict[str, str]) -> None:
    assert float(average_yes_no(Amount.up(fact["z"]))) == pytest.approx(float(fact["limit"]), rel=CLOSE)


# Noise


@paper(NOISE)
@pytest.mark.parametrize("fact", FACTS["discrete_gaussian"], ids=lambda fact: fact["sigma"])
def test_noise_has_its_probabilities_and_variance(fact: dict[str, Any]) -> None:
    sigma = F(fact["sigma"])
    for z, probability in fact["P"].items():
        assert close(slow.gaussian_probability(sigma, int(z)), probability, EXACT)
    assert close(Gaussian(sigma).variance, fact["variance"], EXACT)


# Persons


@paper(RENYI)
@pytest.mark.parametrize("fact", FACTS["persons"], ids=lambda fact: f"{fact['known']} known")
def test_persons_have_their_limit(fact: dict[str, Any]) -> None:
    """The file has the closed form. With one unknown row, the supremum is used, which is at most 0.1% larger here."""
    promise = Identification(
        F(fact["rho"]), worlds="persons", population=fact["population"], known=fact["known"], guarantee="average"
    )
    policy = Policy(Dataset("d", rows=fact["rows"]), {"x": Integer(0, 1)}, promise)
    limit = budget_of(policy).ceilings.z
    assert limit is not None
    if fact["rows"] - fact["known"] > 1:
        assert close(limit, fact["z"], EXACT)
    else:
        assert 1 <= mpmath.mpf(limit.grains) / 10**30 / mpmath.mpf(fact["z"]) <= 1.001
        assert close(
            limit, mpmath.nstr(slow.ceiling(F(fact["rho"]), F(1, fact["population"] - fact["rows"] + 1)), 25), EXACT
        )


def test_nothing_spent_is_no_epsilon() -> None:
    assert epsilon_at_delta(Amount(0)) == 0
