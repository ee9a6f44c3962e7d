"""Events and their prices (pure functions): rho <-> epsilon, composition, several protected targets, remaining budget."""

from tidegate.accounting.amount import ZERO, Amount
from tidegate.accounting.budget import Budget, Target, budget_of
from tidegate.accounting.events import DiscreteLaplace, Event, Exponential, Filtered, KNorm, Together, event_from_dict
from tidegate.accounting.identification import feasible, identification_after, loss_for, yes_no_certainty
from tidegate.accounting.moments import Moments

__all__ = [
    "ZERO",
    "Amount",
    "Budget",
    "DiscreteLaplace",
    "Event",
    "Exponential",
    "Filtered",
    "KNorm",
    "Moments",
    "Target",
    "Together",
    "budget_of",
    "event_from_dict",
    "feasible",
    "identification_after",
    "loss_for",
    "yes_no_certainty",
]
