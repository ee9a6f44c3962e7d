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
    from tidegate.synthesize.quality.margins import Margin
    from tidegate.synthesize.quality.pairs import Pair
    from tidegate.synthesize.quality.regression import Coefficient, Regression
    from tidegate.synthesize.quality.result import Quality

MOST_COLUMNS = 18  # of a matrix of associations
MOST_DISTANCES = 40
MOST_VALUES = 8  # of a category
SPAN = 8.0  # standard errors to either side
ROW = 26  # pixels of a horizontal bar
STRONGER = 2.5  # how much stronger a difference of associations is shaded
KINDS = {"logistic": "shares and means", "logistic with pairs": "associations", "tree": "a tree's splits"}
PARTS = {
    "original": "In the original",
    "synthetic": "In the synthetic table",
    "difference": "Difference: orange is weaker in the synthetic table",
}


def separations(found: Quality) -> Chart:
    """How well classifiers distinguish the tables, as a share of the largest possible pMSE."""
    kinds = found.separations
    rows = numbers(range(len(kinds)))
    tips = tuple(f"{one.kind}: pMSE {one.value:.3g}, {times(one.ratio)} times chance" for one in kinds)
    return Chart(
        _separation_title(found),
        (
            Bar("pMSE", rows, numbers(one.value / one.most for one in kinds), tips=tips),
            Rule("by chance", numbers(one.null / one.most for one in kinds), rows, tone="ink"),
        ),
        Axis(kind="category", categories=tuple(one.kind for one in kinds)),
        Axis("share of the largest possible pMSE", format="percent", low=0, high=1),
        horizontal=True,
        height=ROW * len(kinds),
    )


def _separation_title(found: Quality) -> str:
    known = [one for one in found.separations if one.ratio is not None]
    if not known:
        return "Chance alone gives exactly 0 here: the tables are too small or constant for a ratio"
    worst = max(known, key=lambda one: one.ratio or 0.0)
    if (worst.ratio or 0.0) < 2:
        return "No classifier distinguishes them better than chance"
    return f"They differ most by {KINDS[worst.kind]}: {times(worst.ratio)} times what chance gives"


def distances(found: Quality) -> Chart:
    """The share of rows that would have to change in each column, beside what chance gives."""
    every = found.worst_margins
    shown = every[:MOST_DISTANCES]
    rows = numbers(range(len(shown)))
    return Chart(
        found.margin_finding,
        (
            Bar("differs", rows, numbers(one.distance for one in shown)),
            Rule("by chance", numbers(one.expected for one in shown), rows, tone="ink"),
        ),
        Axis(kind="category", categories=tuple(one.column for one in shown)),
        Axis("share of rows that would have to change their value", format="percent", low=0),
        Table(
            ("column", "differs", "by chance"),
            tuple((one.column, percent(one.distance), percent(one.expected)) for one in every),
        ),
        horizontal=True,
        height=ROW * len(shown),
    )


def margin(one: Margin, *, height: int = 220) -> Chart:
    """One column: shares of its values in both tables."""
    finding = (
        "one table has no value"
        if one.distance is None
        else f"{percent(one.distance)} of the rows would have to change"
    )
    missing = f" (missing {percent(one.missing[0])} → {percent(one.missing[1])})" if any(one.missing) else ""
    cells = tuple(zip(one.labels, one.original, one.synthetic, strict=True))
    chart = Chart(
        f"{one.column}: {finding}{missing}",
        table=Table(
            (one.column, "original", "synthetic"), tuple((label, percent(a), percent(b)) for label, a, b in cells)
        ),
    )
    drawn = _number_marks(one, height) if _is_ordered(one) else _category_marks(one)
    return replace(chart, **drawn)


def _is_ordered(one: Margin) -> bool:
    first = [label.replace(" to ", "").translate({ord(mark): None for mark in ",.-"}) for label in one.labels[:2]]
    return len(one.labels) > 2 and all(label.isdigit() for label in first)


def _number_marks(one: Margin, height: int) -> dict[str, Any]:
    places, tips = numbers(range(len(one.labels))), _both(one, range(len(one.labels)))
    return {
        "marks": (
            Bar("original", places, one.original, "quiet", width=1.0, tips=tips),
            Step("synthetic", numbers(i - 0.5 for i in range(len(places) + 1)), one.synthetic, tips=tips),
        ),
        "x": Axis(one.column, "category", one.labels),
        "y": Axis("share of rows", format="percent", low=0),
        "height": height,
    }


def _category_marks(one: Margin) -> dict[str, Any]:
    largest = [max(shares) for shares in zip(one.original, one.synthetic, strict=True)]
    order = sorted((i for i, share in enumerate(largest) if share), key=lambda i: -largest[i])
    shown = order[:MOST_VALUES]
    places, tips = numbers(range(len(shown))), _both(one, shown)
    rest = f", the {len(shown)} most frequent of {len(order)}" if len(order) > len(shown) else ""
    return {
        "marks": (
            Bar("original", places, numbers(one.original[i] for i in shown), "quiet", 0.38, -0.2, tips),
            Bar("synthetic", places, numbers(one.synthetic[i] for i in shown), "accent", 0.38, 0.2, tips),
        ),
        "x": Axis(kind="category", categories=tuple(one.labels[i] for i in shown)),
        "y": Axis(f"share of rows{rest}", format="percent", low=0),
        "horizontal": True,
        "height": max(ROW * len(shown), ROW),
    }


def _both(one: Margin, indexes: Sequence[int]) -> tuple[str, ...]:
    return tuple(
        f"{one.labels[i]}: original {percent(one.original[i])}, synthetic {percent(one.synthetic[i])}" for i in indexes
    )


def associations(pairs: Sequence[Pair], names: Sequence[str], part: str) -> Chart:
    """Cramér's V of every two columns as shades: in the original, in the synthetic table, or their difference."""
    index = {name: place for place, name in enumerate(names)}
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
    """Return the columns to show where not all fit: those in which associations changed most, in their own order."""
    worst = {name: max((abs(pair.change) for pair in pairs if name in pair.columns), default=0.0) for name in names}
    kept = set(sorted(names, key=lambda name: -worst[name])[:MOST_COLUMNS])
    return [name for name in names if name in kept]


def coefficients(fit: Regression) -> Chart:
    """The coefficients with their 95% intervals, in standard errors of the original estimate."""
    each = [_standardized(one) for one in fit.coefficients]
    tips = tuple(f"{one.name}: overlap {times(one.overlap)}" for one in fit.coefficients)
    marks = (
        _intervals("original", [original for original, _ in each], tips, tone="quiet", shift=-0.15),
        _intervals("synthetic", [synthetic for _, synthetic in each], tips, tone="accent", shift=0.15),
    )
    ticks = tuple((float(tick), f"{tick:+d}" if tick else "original") for tick in (-8, -4, 0, 4, 8))
    return Chart(
        _coefficient_title(fit),
        marks,
        Axis(kind="category", categories=tuple(one.name for one in fit.coefficients)),
        Axis("standard errors of the original estimate", low=-SPAN, high=SPAN, ticks=ticks),
        horizontal=True,
        height=ROW * len(each),
    )


def _intervals(
    label: str, each: Sequence[tuple[float, ...]], tips: tuple[str, ...], *, tone: Tone, shift: float
) -> Interval:
    low, middle, high = (numbers(one[end] for one in each) for end in range(3))
    return Interval(label, numbers(range(len(each))), low, high, middle, tone, shift, tips)


def _standardized(one: Coefficient) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Both estimates with their intervals (low, estimate, high), around the original; gaps where one is not known."""
    if one.original is None or one.synthetic is None or not one.original.error:
        return ((math.nan,) * 3, (math.nan,) * 3)
    middle, error = one.original.value, one.original.error
    low, high = one.original.interval()
    other_low, other_high = one.synthetic.interval()
    return (
        ((low - middle) / error, 0.0, (high - middle) / error),
        ((other_low - middle) / error, (one.synthetic.value - middle) / error, (other_high - middle) / error),
    )


def _coefficient_title(fit: Regression) -> str:
    known = [one for one in fit.coefficients[1:] if one.difference is not None]
    if not known:
        return "The coefficients cannot be estimated from these tables"
    same = sum(abs(one.difference or 0.0) < 2 for one in known)
    return f"{same} of {len(known)} coefficients are within two standard errors of the original"
