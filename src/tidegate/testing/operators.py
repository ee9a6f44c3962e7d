"""The contract of an operator: its reports are exactly what it states."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from tidegate.audit.bounds import lower_bound, upper_bound
from tidegate.operators.exact_draws import SeededBytes
from tidegate.operators.operator import Operator, Report
from tidegate.testing.contract import Contract, documented


def unlike(draws: Iterable[Any], probabilities: Mapping[Any, float], *, alpha: float) -> str:
    """Return what is wrong with draws: an impossible outcome, or one outside its exact bounds (Clopper and Pearson).

    All outcomes and both sides share `alpha`.
    """
    counts = Counter(draws)
    total = sum(counts.values())
    strange = [outcome for outcome in counts if probabilities.get(outcome, 0.0) <= 0]
    if strange:
        return f"{counts[strange[0]]} of {total:,} draws have a probability of 0"
    each = alpha / (2 * len(probabilities))
    for outcome, probability in probabilities.items():
        hits = counts[outcome]
        low, high = lower_bound(hits, total, alpha=each), upper_bound(hits, total, alpha=each)
        if not low <= probability <= high:
            return f"{hits:,} of {total:,} draws; {probability * total:,.0f} are expected"
    return ""


ALPHA, DRAWS = 1e-6, 20_000
NO_REPORTS: tuple[Any, ...] = (-1, True, None, "0", 1.5, [[0]], [-1], {"a": 1})
MOST_REPORTS = 100_000


def check_operator(operator: Operator, *, draws: int = DRAWS, alpha: float = ALPHA, seed: str = "contract") -> Contract:
    """Check the contract of an operator whose channel is small enough to enumerate.

    Guarantee:
        The sampled clauses together accuse a correct operator with probability at most `alpha`.
    """
    contract = Contract(f"operator {operator.name}", alpha=alpha)
    contract.clause("it is documented, with a reference or a guarantee", documented, operator)
    contract.clause("every value's reports have probabilities that add up to 1, exactly", _sums, operator)
    contract.clause("gamma is the largest ratio of its channel, exactly", _gamma, operator)
    contract.clause("all reports of one value together lose at least as much as one", _lifetime, operator)
    contract.clause("it accepts every report that it can send", _accepts, operator)
    contract.clause("it refuses what it cannot send", _refuses, operator)
    contract.clause("the same bytes give the same report", _repeats, operator, seed)
    for value in sorted({0, operator.values - 1}):
        part = alpha / 2
        contract.clause(
            f"reports of value {value} are drawn from its channel",
            _drawn,
            operator,
            value,
            draws,
            part,
            seed,
        )
    contract.clause("its recipe for other languages is JSON", _recipe, operator)
    return contract


def _reports(operator: Operator) -> list[Report]:
    reports = list(operator.reports())
    if len(reports) > MOST_REPORTS:
        raise ValueError(f"it has more than {MOST_REPORTS:,} reports: check it on fewer values")
    return reports


def _sums(operator: Operator) -> str:
    for value in range(operator.values):
        total = sum((operator.probability(report, value) for report in _reports(operator)), Fraction(0))
        if total != 1:
            return f"{float(total):.6g} for value {value}"
    return ""


def _gamma(operator: Operator) -> str:
    largest: Fraction | None = Fraction(1)
    for report in _reports(operator):
        likely = operator.likelihoods(report)
        if min(likely) == 0 < max(likely):
            largest = None
        elif max(likely) > 0 and largest is not None:
            largest = max(largest, max(likely) / min(likely))
    if operator.gamma == largest:
        return ""
    return f"it states {_number(operator.gamma)}, the channel has {_number(largest)}"


def _lifetime(operator: Operator) -> str:
    single, lifetime = operator.gamma, operator.lifetime_gamma
    less = lifetime is not None and (single is None or lifetime < single)
    return f"lifetime_gamma {_number(lifetime)} is less than gamma {_number(single)}" if less else ""


def _accepts(operator: Operator) -> str:
    refused = [report for report in _reports(operator) if _possible(operator, report) and not operator.accepts(report)]
    return f"{len(refused)} are refused" if refused else ""


def _refuses(operator: Operator) -> str:
    strange = [*NO_REPORTS, operator.report_size if operator.form == "code" else [operator.values]]
    accepted = [report for report in strange if operator.accepts(report)]
    impossible = [
        report for report in _reports(operator) if not _possible(operator, report) and operator.accepts(report)
    ]
    return f"{[*accepted, *impossible][:3]} are accepted" if accepted or impossible else ""


def _possible(operator: Operator, report: Report) -> bool:
    return any(operator.likelihoods(report))


def _repeats(operator: Operator, seed: str) -> str:
    first, again = SeededBytes(seed), SeededBytes(seed)
    same = all(operator.sample(0, first) == operator.sample(0, again) for _ in range(20))
    return "" if same else "it uses other randomness"


def _drawn(operator: Operator, value: int, draws: int, alpha: float, seed: str) -> str:
    source = SeededBytes(f"{seed}/{operator.name}/{value}")
    return unlike((_named(operator.sample(value, source)) for _ in range(draws)), _likely(operator, value), alpha=alpha)


def _likely(operator: Operator, value: int) -> dict[Hashable, float]:
    return {_named(report): float(operator.probability(report, value)) for report in _reports(operator)}


def _named(report: Report) -> Hashable:
    return tuple(report) if isinstance(report, list) else report


def _recipe(operator: Operator) -> str:
    recipe = operator.recipe()
    return "" if json.loads(json.dumps(recipe)) == recipe else "it does not survive JSON"


def _number(gamma: Fraction | None) -> str:
    return "unlimited" if gamma is None else f"{float(gamma):.6g}"
