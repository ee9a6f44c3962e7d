"""Events and their prices (pure functions): rho <-> loss, composition, several protected targets, remaining budget."""

from tidegate.accounting.amount import FREE, ZERO, Amount, Price
from tidegate.accounting.average import (
    average_identification_after,
    average_loss_for,
    average_yes_no,
    epsilon_at_delta,
    zcdp_for,
)
from tidegate.accounting.budget import Budget, Ceilings, Target, Unit, budget_of, identification_at, yes_no_at
from tidegate.accounting.events import (
    Choices,
    DiscreteLaplace,
    Event,
    Exponential,
    Filtered,
    FilteredGaussian,
    KNorm,
    Together,
    event_from_dict,
)
from tidegate.accounting.gaussian import DiscreteGaussian, GaussianBox, GaussianMoments
from tidegate.accounting.identification import feasible, identification_after, loss_for, yes_no_certainty
from tidegate.accounting.moments import Moments

__all__ = [
    "FREE",
    "ZERO",
    "Amount",
    "Budget",
    "Ceilings",
    "Choices",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Exponential",
    "Filtered",
    "FilteredGaussian",
    "GaussianBox",
    "GaussianMoments",
    "KNorm",
    "Moments",
    "Price",
    "Target",
    "Together",
    "Unit",
    "average_identification_after",
    "average_loss_for",
    "average_yes_no",
    "budget_of",
    "epsilon_at_delta",
    "event_from_dict",
    "feasible",
    "identification_after",
    "identification_at",
    "loss_for",
    "yes_no_at",
    "yes_no_certainty",
    "zcdp_for",
]
