"""The charts of a quality report. Gray is the original, the accent color is the synthetic table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidegate.charts import Axis, Bar, Cell, Chart, Interval, Rule, Step, Table, numbers
from tidegate.charts.chart import Tone
from tidegate.html.render import percent, times

if TYPE_CHECKING:
    from tidegate.synthesize.quality.columns import Margin
    from tidegate.synthesize.quality.pairs import Pair
    from tidegate.synthesize.quality.regression import Coefficient, Regression
    from tidegate.synthesize.quality.result import Quality

MOST_COLUMNS = 18  # of a matrix of associations
MOST_DISTANCES = 40
MOST_VALUES = 8  # of a category
SPAN = 8.0  # standard errors to either side
ROW = 26  # pixels of a horizontal bar
STRONGER = 2.5  # how much stronger a difference of associations is shaded
PARTS = {
    "original": "In the original",
    "synthetic": "In the synthetic table",
    "difference": "Difference: orange is weaker in the synthetic table",
}


def separations(quality: Quality) -> Chart:
    """Plot how well classifiers distinguish the tables, as a share of the largest possible pMSE."""
    kinds = quality.separations
    rows = numbers(range(len(kinds)))
    tips = tuple(
        f"{separation.kind}: pMSE {separation.value:.3g}, bootstrap {separation.bootstrap:.3g}" for separation in kinds
    )
    return Chart(
        _separation_title(quality),
        (
            Bar("pMSE", rows, numbers(separation.value / separation.most for separation in kinds), tips=tips),
            Rule(
                "bootstrap of the original",
                numbers(separation.bootstrap / separation.most for separation in kinds),
                rows,
                tone="ink",
            ),
        ),
        Axis(kind="category", categories=tuple(separation.kind for separation in kinds)),
        Axis("share of the largest possible pMSE", format="percent", low=0, high=1),
        horizontal=True,
        height=ROW * len(kinds),
    )


def _separation_title(quality: Quality) -> str:
    known = [separation for separation in quality.separations if separation.ratio is not None]
    if not known:
        return "A bootstrap of the original gives exactly 0 here: the tables are too small or constant for a ratio"
    worst = max(known, key=lambda separation: separation.ratio or 0.0)
    if (worst.ratio or 0.0) < 2:
        return "No classifier distinguishes them better than twice a bootstrap of the original"
    return f"{worst.kind[0].upper()}{worst.kind[1:]}: {times(worst.ratio)} times what a bootstrap of the original gives"


def distances(quality: Quality) -> Chart:
    """Plot the share of rows that would have to change in each column, beside what chance gives."""
    margins = quality.worst_margins
    shown = margins[:MOST_DISTANCES]
    rows = numbers(range(len(shown)))
    return Chart(
        quality.margin_finding,
        (
            Bar("differs", rows, numbers(margin.distance for margin in shown)),
            Rule("by chance", numbers(margin.expected for margin in shown), rows, tone="ink"),
        ),
        Axis(kind="category", categories=tuple(margin.column for margin in shown)),
        Axis("share of rows that would have to change", format="percent", low=0),
        Table(
            ("column", "differs", "by chance"),
            tuple((margin.column, percent(margin.distance), percent(margin.expected)) for margin in margins),
        ),
        horizontal=True,
        height=ROW * len(shown),
    )


def margin(comparison: Margin, *, height: int = 220) -> Chart:
    """Plot one column: shares of its values in both tables."""
    finding = (
        "one table has no value"
        if comparison.distance is None
        else f"{percent(comparison.distance)} of the rows would have to change"
    )
    missing = (
        f" (missing {percent(comparison.missing[0])} → {percent(comparison.missing[1])})"
        if any(comparison.missing)
        else ""
    )
    cells = tuple(zip(comparison.labels, comparison.original, comparison.synthetic, strict=True))
    chart = Chart(
        f"{comparison.column}: {finding}{missing}",
        table=Table(
            (comparison.column, "original", "synthetic"),
            tuple((label, percent(a), percent(b)) for label, a, b in cells),
        ),
    )
    drawn = (
        _number_marks(comparison, height)
        if comparison.ordered and len(comparison.labels) > 2
        else _category_marks(comparison)
    )
    return replace(chart, **drawn)


def merge_cells(margin: Margin, most: int = 40) -> Margin:
    """Return a margin with neighboring cells merged for a plot, each run with about the same share of rows.

    The cells that a model finds have very different widths, so that shares of single cells look like spikes.
    """
    ranges = sum(" to " in label for label in margin.labels)
    if len(margin.labels) <= (most if ranges else 5 * most):
        return margin
    labels, pairs, mass, start = [], [], 0.0, 0
    shares = list(zip(margin.original, margin.synthetic, strict=True))
    for index, (true, synthetic) in enumerate(shares):
        mass += (true + synthetic) / 2
        last = index == len(shares) - 1
        if mass >= 1 / most or last or sum(shares[index + 1]) / 2 >= 1 / most:
            first, end = margin.labels[start].partition(" to ")[0], margin.labels[index].rpartition(" to ")[2]
            labels.append(first if first == end else f"{first} to {end}")
            pairs.append([sum(side) for side in zip(*shares[start : index + 1], strict=True)])
            mass, start = 0.0, index + 1
    originals, synthetics = zip(*pairs, strict=True)
    return replace(margin, labels=tuple(labels), original=originals, synthetic=synthetics)


def _number_marks(margin: Margin, height: int) -> dict[str, Any]:
    margin = merge_cells(margin)
    positions, tips = numbers(range(len(margin.labels))), _both(margin, range(len(margin.labels)))
    return {
        "marks": (
            Bar("original", positions, margin.original, "quiet", width=1.0, tips=tips),
            Step("synthetic", numbers(i - 0.5 for i in range(len(positions) + 1)), margin.synthetic, tips=tips),
        ),
        "x": Axis(margin.column, "category", margin.labels),
        "y": Axis("share of rows", format="percent", low=0),
        "height": height,
    }


def _category_marks(margin: Margin) -> dict[str, Any]:
    largest = [max(shares) for shares in zip(margin.original, margin.synthetic, strict=True)]
    order = sorted((i for i, share in enumerate(largest) if share), key=lambda i: -largest[i])
    shown = order[:MOST_VALUES]
    positions, tips = numbers(range(len(shown))), _both(margin, shown)
    rest = f", the {len(shown)} most frequent of {len(order)}" if len(order) > len(shown) else ""
    return {
        "marks": (
            Bar("original", positions, numbers(margin.original[i] for i in shown), "quiet", 0.38, -0.2, tips),
            Bar("synthetic", positions, numbers(margin.synthetic[i] for i in shown), "accent", 0.38, 0.2, tips),
        ),
        "x": Axis(kind="category", categories=tuple(margin.labels[i] for i in shown)),
        "y": Axis(f"share of rows{rest}", format="percent", low=0),
        "horizontal": True,
        "height": max(ROW * len(shown), ROW),
    }


def _both(margin: Margin, indexes: Sequence[int]) -> tuple[str, ...]:
    return tuple(
        f"{margin.labels[i]}: original {percent(margin.original[i])}, synthetic {percent(margin.synthetic[i])}"
        for i in indexes
    )


def associations(pairs: Sequence[Pair], names: Sequence[str], part: str) -> Chart:
    """Plot Cramér's V of every two columns as shades: in the original, in the synthetic table, or their difference."""
    index = {name: position for position, name in enumerate(names)}
    shown = [pair for pair in pairs if pair.columns[0] in index and pair.columns[1] in index]
    corners = [sorted(index[name] for name in pair.columns) for pair in shown]
    values = [_association(pair, part) for pair in shown]
    strength = [STRONGER * value if part == "difference" else value for value in values]
    sign = "+" if part == "difference" else ""
    tips = tuple(f"{' and '.join(pair.columns)}: {value:{sign}.2f}" for pair, value in zip(shown, values, strict=True))
    axis = Axis(kind="category", categories=tuple(names))
    marks = Cell(
        "Cramér's V", numbers(low for low, _ in corners), numbers(high for _, high in corners), numbers(strength), tips
    )
    return Chart(PARTS[part], (marks,), axis, axis, height=min(max(26 * len(names), 60), 320))


def _association(pair: Pair, part: str) -> float:
    return {"original": pair.association[0], "synthetic": pair.association[1]}.get(part, pair.change)


def most_changed(pairs: Sequence[Pair], names: Sequence[str]) -> list[str]:
    """Return the columns to show if not all fit: those whose associations changed most, in their original order."""
    worst = {name: max((abs(pair.change) for pair in pairs if name in pair.columns), default=0.0) for name in names}
    shown = set(sorted(names, key=lambda name: -worst[name])[:MOST_COLUMNS])
    return [name for name in names if name in shown]


def coefficients(fit: Regression) -> Chart:
    """Plot the coefficients with their 95% intervals, in standard errors of the original estimate."""
    each = [_standardized(coefficient) for coefficient in fit.coefficients]
    tips = tuple(f"{coefficient.name}: overlap {times(coefficient.overlap)}" for coefficient in fit.coefficients)
    marks = (
        _intervals("original", [original for original, _ in each], tips, tone="quiet", shift=-0.15),
        _intervals("synthetic", [synthetic for _, synthetic in each], tips, tone="accent", shift=0.15),
    )
    ticks = tuple((float(tick), f"{tick:+d}" if tick else "original") for tick in (-8, -4, 0, 4, 8))
    return Chart(
        _coefficient_title(fit),
        marks,
        Axis(kind="category", categories=tuple(coefficient.name for coefficient in fit.coefficients)),
        Axis("standard errors of the original estimate", low=-SPAN, high=SPAN, ticks=ticks),
        horizontal=True,
        height=ROW * len(each),
    )


def _intervals(
    label: str, intervals: Sequence[tuple[float, ...]], tips: tuple[str, ...], *, tone: Tone, shift: float
) -> Interval:
    low, middle, high = (numbers(interval[end] for interval in intervals) for end in range(3))
    return Interval(label, numbers(range(len(intervals))), low, high, middle, tone, shift, tips)


def _standardized(coefficient: Coefficient) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return both estimates with their intervals (low, estimate, high), around the original; gaps if one is not known."""
    if coefficient.original is None or coefficient.synthetic is None or not coefficient.original.error:
        return ((math.nan,) * 3, (math.nan,) * 3)
    middle, error = coefficient.original.value, coefficient.original.error
    low, high = coefficient.original.interval()
    other_low, other_high = coefficient.synthetic.interval()
    return (
        ((low - middle) / error, 0.0, (high - middle) / error),
        ((other_low - middle) / error, (coefficient.synthetic.value - middle) / error, (other_high - middle) / error),
    )


def _coefficient_title(fit: Regression) -> str:
    known = [coefficient for coefficient in fit.coefficients[1:] if coefficient.difference is not None]
    if not known:
        return "The coefficients cannot be estimated from these tables"
    same = sum(abs(coefficient.difference or 0.0) < 2 for coefficient in known)
    return f"{same} of {len(known)} coefficients are within two standard errors of the original"
