"""The sentences of a quality report: whom it is for, how to read each number, and the report for a terminal."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from tidegate.html.render import percent, times

if TYPE_CHECKING:
    from tidegate.synthesize.quality.columns import Margin
    from tidegate.synthesize.quality.dependencies import Dependency
    from tidegate.synthesize.quality.pairs import Pair
    from tidegate.synthesize.quality.result import Quality

CAUTION = "Not for analysts: computed from the true rows and not paid for."
WHY = (
    "These numbers depend on true rows beyond the charges in the ledger. They are for the data holder only: an analyst who "
    "reads them learns more than the policy promises. Analysts can see the paid quality (private_quality), which is charged "
    "on the ledger."
)

LINES = (
    "A line becomes part of the public policy. Add it only if the rule is public knowledge anyway, and correct values that "
    "these rows alone suggest."
)

READS = {
    "margin": "Total variation: the share of rows that would have to change their value for the two columns to agree. The tick "
    "marks the value that two samples of one population show by chance at these sizes.",
    "pair": "Total variation of two columns together, each in at most 16 bins of about equal numbers of original rows: the share "
    "of rows that would have to change. A measured pair was counted by the model; of the others it knows only what follows "
    "from measured pairs.",
    "association": "Cramér's V is 0 if two columns are independent and 1 if one determines the other; the rank correlation of two "
    "numbers runs from -1 to 1. Values closer to 0 in the synthetic table are a lost association.",
    "dependency": "A column that follows from another one in at least 99% of the original rows, and the share of synthetic rows "
    "that break this. A line in the section [synthesis] of the policy makes it hold in every row, at no cost.",
    "boosted trees": "Boosted trees learn to distinguish synthetic from original rows and are tested on rows that they have not "
    "seen. pMSE is 0 if they cannot, and the largest possible value if they always can. A bootstrap of the original rows shows "
    "what a perfect model of these rows would reach; a fresh sample of the same population has up to twice as much.",
    "CART": "One tree with leaves of at least 100 rows (fewer in small tables), scored on the rows that it learned from.",
    "prediction": "Boosted trees predict one column in original rows that they have not seen. An analyst who trains on the "
    "synthetic table reaches the second number. AUC is 0.5 for guessing and 1 for a perfect order.",
    "queries": "Each query is the share of rows in random ranges of one to three columns. An error below the sampling error is "
    "smaller than the difference between the original and a fresh sample of its size.",
    "regression": "If an interval of the synthetic tables covers the original estimate, an analyst reaches the same conclusion. "
    "Overlap is 1 for equal intervals, 0 if they touch, and below 0 if they are apart.",
    "single": "Interval from one table: v (n_s/n + 1), for rows drawn from a fitted model (Raab, Nowok, Dibben 2017). It does not "
    "include the noise for privacy, which one table cannot show: at a small epsilon it is too short. It is wider than the "
    "original's interval, so an overlap of 0.85 is the best that one table of the same size can reach.",
    "between": "Intervals from several tables, each from its own private model: v n_s/n + b/m (Reiter 2003, with the sizes). The "
    "noise for privacy is included in b, the variance between tables.",
    "raghunathan": "Intervals from several tables by (1 + 1/m) b - v (Raghunathan, Reiter, Rubin 2003), designed for multiple "
    "imputation. For private models, which are not drawn from the original's posterior, they are usually too wide.",
}

SHOWN = 5  # rows of each table in a terminal
MOST_PAIRS = 10
MOST_TEXT = 96  # characters of a line for the policy in a terminal; the page and the JSON have all of it


def describe(quality: Quality) -> str:
    """Return the report for a terminal: a caution, the findings, and the largest differences."""
    banner = [quality.banner] if quality.banner else []
    parts = [CAUTION.upper(), *banner, "", f"{quality.name or 'Quality'}: {say_size(quality)}", *quality.findings, ""]
    parts += _margins(quality) + _pairs(quality) + _dependencies(quality) + _separations(quality) + _regression(quality)
    return "\n".join([*parts, *quality.notes]).rstrip()


def wrap(*texts: str) -> list[str]:
    """Return sentences as indented lines for a terminal."""
    return textwrap.wrap(" ".join(texts), 110, initial_indent="  ", subsequent_indent="  ")


def say_size(quality: Quality) -> str:
    """Return how many rows and columns are compared."""
    tables = (
        f"{len(quality.synthetic_rows)} synthetic tables of {quality.synthetic_rows[0]:,}"
        if len(quality.synthetic_rows) > 1
        else f"{quality.synthetic_rows[0]:,} synthetic"
    )
    return f"{tables} rows beside {quality.rows:,} original rows, {len(quality.columns)} columns"


def _separations(quality: Quality) -> list[str]:
    lines = [
        f"  {separation.kind:<20} pMSE {separation.value:<10.3g} bootstrap {separation.bootstrap:<10.3g} ratio {times(separation.ratio)}"
        for separation in quality.separations
    ]
    return ["Distinguished by", *lines, *wrap(READS["boosted trees"]), ""] if lines else []


def _dependencies(quality: Quality) -> list[str]:
    lines = [
        f"  {f'{of.column} by {of.by}':<34} holds {percent(of.holds):>6}   broken {percent(of.broken):>6}"
        for of in quality.dependencies
    ]
    shown = [line for of in quality.dependencies for line in policy_lines(of)]
    short = [f"  {line if len(line) <= MOST_TEXT else f'{line[:MOST_TEXT]} …'}" for line in shown]
    whole = [*short, *wrap(LINES, "Whole lines are on the page and in the JSON version.")] if short else []
    return ["Dependencies", *lines, *wrap(READS["dependency"]), *whole, ""] if lines else []


def _margins(quality: Quality) -> list[str]:
    lines = [
        f"  {margin.column:<20} {percent(margin.distance):>6}   by chance {percent(margin.expected):<6} {_landmarks(margin)}".rstrip()
        for margin in quality.worst_margins[:SHOWN]
    ]
    return ["Columns that differ most", *lines, *wrap(READS["margin"].partition(" The tick")[0]), ""]


def _pairs(quality: Quality) -> list[str]:
    lines = [
        f"  {' and '.join(pair.columns):<34} {percent(pair.distance):>6}   {say_measured(pair):<12} {_association(pair)}"
        for pair in quality.worst_pairs[:MOST_PAIRS]
    ]
    return ["Pairs that differ most", *lines, *wrap(READS["pair"], READS["association"]), ""] if lines else []


def _association(pair: Pair) -> str:
    measure, (original, synthetic) = (
        ("Cramér's V", pair.association) if pair.correlation is None else ("rank correlation", pair.correlation)
    )
    return f"{measure} {two_digits(original)} -> {two_digits(synthetic)}"


def _landmarks(margin: Margin) -> str:
    """Return the median and the shares of zero or the lowest value, for a terminal."""
    if not margin.quartiles:
        return ""
    kinds = {value.kind: value for value in margin.values}
    value = kinds.get("zero", kinds["lowest"])
    shares = f"{value.value} in {percent(value.original)} -> {percent(value.synthetic)}"
    return f"median {' -> '.join(margin.quartiles[1])}, {shares}"


def _regression(quality: Quality) -> list[str]:
    fit = quality.regression
    if fit is None:
        return []
    lines = []
    for coefficient in fit.coefficients:
        here, there = (
            "–" if side is None else f"{side.value:.4g} ± {side.interval()[1] - side.value:.2g}"
            for side in (coefficient.original, coefficient.synthetic)
        )
        lines.append(f"  {coefficient.name:<28} {here:>22}   {there:>22}   overlap {times(coefficient.overlap)}")
    return [
        f"{fit.formula} ({fit.kind}), original beside synthetic",
        *lines,
        *wrap(READS["regression"], READS[fit.rule]),
        "",
    ]


def policy_lines(dependency: Dependency) -> list[str]:
    """Return the line for the policy, with the values that the original does not show as a comment above it."""
    if not dependency.line:
        return []
    unseen = ", ".join(" ".join(text.split()) for text in dependency.unseen)
    return [*([f"# no original row has {dependency.by} = {unseen}: set by hand"] if unseen else []), dependency.line]


def two_digits(value: float) -> str:
    """Return a correlation in two digits, without a negative zero."""
    return f"{round(value, 2) + 0.0:.2f}"


def say_measured(pair: Pair) -> str:
    """Return whether the model has counted a pair, as a word."""
    return "–" if pair.measured is None else "measured" if pair.measured else "not measured"
