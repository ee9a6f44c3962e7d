"""COLLECT, one report: how far it moves an adversary who knows the operator, over all possible reports. Exact.

The adversary has one report and any prior. By Bayes' rule the step from prior to posterior is the ratio of the report's
probabilities, so enumeration finds the worst report, the worst two answers and the worst property.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import exp, inf, isinf, log

import numpy as np

from tidegate.accounting.respondent import Loss
from tidegate.arrays import Floats
from tidegate.audit.collections.value_pairs import ValuePair, answer_of, channel_table, listed_values, shrink
from tidegate.audit.finding import Finding, judge
from tidegate.collect.encoding import words_of
from tidegate.collect.measures import Measures
from tidegate.operators import BasketOperator, Operator
from tidegate.operators.basket_plans import SetOperator
from tidegate.policy.attributes import Items
from tidegate.policy.collection import Question
from tidegate.risk.local import posterior_limit

UNLIKELY, CERTAIN = 0.05, 0.95
ROUNDING = 1e-9  # of logarithms of floats converted from exact fractions
KNOWS = "the operator and its parameters, one report, and any prior knowledge about the person"
MOST_LISTED = 8  # values of which all sets are listed
MOST_ITEMS = 6  # of a basket question up to which all item patterns are searched


def single_report(
    name: str, question: Question, pairs: list[ValuePair], promised: Loss, *, what: str = "one report"
) -> list[Finding]:
    """Return the worst ratio of odds, and the worst step from unlikely to likely, of a question's single report."""
    if not pairs:
        return [_not_listed(name)]
    worst = max(pair.loss for pair in pairs)
    limit = inf if promised is None else float(promised)
    worst_pair = pairs[0]
    values = f"{_words(question, worst_pair.here)} against {_words(question, worst_pair.there)}"
    finding = Finding(
        verb="collect",
        promise=f'{what} of "{name}" changes no odds by more than e^epsilon, epsilon {_format_limit(limit)}',
        attack="posterior",
        knows=KNOWS,
        bound=worst,
        promised=None if promised is None else limit,
        alpha=0.0,
        tries=sum(len(pair.chances) for pair in pairs),
        verdict="observed" if promised is None else judge(worst, limit + ROUNDING),
        says=_posterior_says(f'{what} of "{name}"', worst, limit, values),
    )
    return [finding, _breach(finding, name, worst, limit)]


def _posterior_says(what: str, worst: float, limit: float, values: str) -> str:
    if isinf(worst):
        sentence = f"{what} can rule out a value completely ({values})"
        return f"{sentence}: the description states an unlimited epsilon." if isinf(limit) else f"{sentence}."
    return (
        f"{what} changes the odds of two answers by a factor of at most {exp(min(worst, 700.0)):.4g}, whatever its content "
        f"(epsilon {worst:.6g}; {values}); the description states {_format_limit(limit)}."
    )


def _breach(finding: Finding, name: str, worst: float, limit: float) -> Finding:
    before = f"{UNLIKELY:.0%}"
    after, allowed = (posterior_limit(UNLIKELY, gamma=_gamma(loss)) for loss in (worst, limit))
    return replace(
        finding,
        promise=f'what has probability {before} before has probability at most {allowed:.4g} after a report of "{name}"',
        attack="breach",
        unit="probability",
        bound=after,
        promised=None if isinf(limit) else allowed,
        verdict="observed" if isinf(limit) else judge(after, allowed + ROUNDING),
        says=f'an adversary who gives an answer to "{name}" probability {before} gives it probability {after:.4g} after '
        f"the report that reveals most{'' if isinf(limit) else f'; the description allows {allowed:.4g}'}.",
    )


def stated_measures(name: str, operator: Operator, measures: Measures) -> list[Finding]:
    """Recompute the measures that adviser and client state from all reports: interval, entropy, best guess."""
    table = _whole_table(operator)
    if table is None or measures.merged != 1:
        return []
    guess, bits, interval = _best_guess(table), _information(table), _narrower(table, measures.noise_width)
    wrong = [
        f"{what} is {mine:.6g}, but {stated:.6g} is stated"
        for what, mine, stated in (
            ("the surest guess", guess, measures.revealed),
            ("the entropy loss", 1 - 2**-bits, measures.entropy.loss),
            ("the coverage of a narrower interval", interval, CERTAIN),
        )
        if mine > stated + ROUNDING
    ]
    sentences = [
        f'after the report of "{name}" that reveals most the best guess is right with probability {guess:.4g} (all equally '
        f"likely before), reports reveal {bits:.4g} bits"
    ]
    if interval:
        sentences += [
            f"no interval narrower than the stated {measures.noise_width:g} steps contains the noise with probability 95%"
        ]
    finding = Finding(
        verb="collect",
        promise=f'the stated measures of "{name}": 95% interval, entropy loss, most revealing report',
        attack="measures",
        knows="the operator and its parameters, one report; all values are equally likely to them",
        unit="probability",
        bound=guess,
        promised=measures.revealed,
        alpha=0.0,
        tries=table.size,
        verdict="broken" if wrong else "held",
        says="; ".join(wrong or sentences) + ".",
    )
    return [finding]


def _whole_table(operator: Operator) -> Floats | None:
    """Return P(report | value) of all reports and all values; None if there are too many."""
    if operator.form == "set":
        few = operator.values <= MOST_LISTED
        return np.array([[float(p) for p in row] for row in operator.exact_channel()]) if few else None
    values = listed_values(operator)
    return channel_table(operator, values) if len(values) == operator.values else None


def _best_guess(table: Floats) -> float:
    """Return the highest posterior of a value after any report, with a uniform prior."""
    seen = table[table.sum(axis=1) > 0]
    return float((seen.max(axis=1) / seen.sum(axis=1)).max())


def _information(table: Floats) -> float:
    """Return the mutual information of report and value in bits, with a uniform prior."""
    values = table.shape[1]
    reports = table.mean(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(table > 0, table / values * np.log2(table / reports), 0.0)
    return max(0.0, float(parts.sum()))


def _narrower(table: Floats, width: float | None) -> float:
    """Return the highest probability of any value's noise in a run of reports one step shorter than the stated interval."""
    if width is None or width < 1 or table.shape[0] == table.shape[1]:
        return 0.0  # clipped reports accumulate at the ends, but the interval is of the noise before clipping
    reached = np.concatenate([np.zeros((1, table.shape[1])), np.cumsum(table, axis=0)])
    length = min(int(width), table.shape[0])  # the stated run has width + 1 reports
    return float((reached[length:] - reached[:-length]).max()) - 1e-12


def item_patterns(name: str, question: Question, operator: BasketOperator, promised: Loss) -> Finding:
    """Compare every report with every pattern of items and return the worst change of odds.

    Baskets of one size are equally likely.
    """
    limit = inf if promised is None else float(promised)
    items = min(operator.items, MOST_ITEMS)
    worst, step, tries = 0.0, (0.0, 0.0), 0
    for size in [size for size in _searched(operator) if 0 < size < items]:
        loss, ends, pattern_tries = _patterns(shrink(operator.operator, items, (size,)), size)
        tries += pattern_tries
        worst, step = max((worst, step), (loss, ends))
    return Finding(
        verb="collect",
        promise=f'no pattern of items changes its odds by more than e^epsilon after a report of "{name}", epsilon {_format_limit(limit)}',
        attack="item patterns",
        knows=KNOWS + "; baskets of one size are equally likely to them",
        bound=worst,
        promised=None if promised is None else limit,
        alpha=0.0,
        tries=tries,
        verdict="observed" if promised is None else judge(worst, limit + ROUNDING),
        says=f"of all patterns of items in all reports the worst step is from {step[0]:.4g} before to {step[1]:.4g} after "
        f'a report of "{name}": odds change by e^{worst:.4g}, and {_format_limit(limit)} is stated.',
    )


def _searched(operator: BasketOperator) -> list[int]:
    """Return the sizes to search; with two or more items outside the basket, patterns can also be absent."""
    fixed = operator.operator.fixed
    sizes = operator.operator.sizes if fixed is None else range(fixed + 1)
    return [size for size in sizes if size <= MOST_ITEMS // 2]


def _patterns(small: SetOperator, size: int) -> tuple[float, tuple[float, float], int]:
    """Return, over all reports, the worst change of odds of "the basket contains all of these items" and its opposite."""
    items = range(small.vocabulary_size)
    baskets = list(combinations(items, size))
    reports = [report for length in range(len(items) + 1) for report in combinations(items, length)]
    table = np.array([[float(small.probability(report, basket)) for basket in baskets] for report in reports])
    worst, ends, tries = 0.0, (0.0, 0.0), 0
    for length in range(1, size + 1):
        for pattern in combinations(items, length):
            holds = np.array([set(pattern) <= set(basket) for basket in baskets])
            prior, tries = float(holds.mean()), tries + len(reports)
            yes, no = table[:, holds].mean(axis=1), table[:, ~holds].mean(axis=1)
            pair = ValuePair(0, 1, np.stack([yes, no], axis=1), lambda report: -1)
            seen = (yes + no) > 0
            after = (yes * prior)[seen] / (yes * prior + no * (1 - prior))[seen]
            if pair.loss > worst:
                far = int(np.argmax(np.abs(np.log(np.maximum(yes[seen], 1e-300) / np.maximum(no[seen], 1e-300)))))
                worst, ends = pair.loss, (prior, float(after[far]))
    return worst, ends, tries


def sizes_in_clear(name: str, operator: BasketOperator) -> Finding:
    """Report what the number of items reveals if it is sent in clear."""
    sizes = len(operator.operator.sizes)
    return Finding(
        verb="collect",
        promise=f'the number of items of "{name}" is not covered by epsilon, and the description says so',
        attack="sizes in clear",
        knows="one report",
        bound=1.0,
        alpha=0.0,
        unit="probability",
        verdict="observed",
        says=f'the data holder reads the number of items of "{name}" from every report, with certainty, among {sizes} sizes: '
        f"at most {log(max(sizes, 1)):.3g} nats in addition to the stated epsilon. If that is too much, give all baskets "
        "one size (fixed = ...).",
    )


def _not_listed(name: str) -> Finding:
    return Finding(
        verb="collect",
        promise=f'one report of "{name}" changes no odds by more than e^epsilon',
        attack="posterior",
        knows=KNOWS,
        verdict="not tried",
        says=f'"{name}" has too many values to enumerate its sets.',
    )


def _gamma(loss: float) -> float:
    return inf if isinf(loss) else exp(min(loss, 700.0))


def _format_limit(limit: float) -> str:
    return "unlimited" if isinf(limit) else f"{limit:.7g}"


def _words(question: Question, code: int) -> str:
    if isinstance(question.universe, Items):
        basket = answer_of(question, code)
        return f"a basket of {len(basket)}" if basket else "an empty basket"
    return words_of(question, code)
