"""The sentences of a quality report: how to read each number, the report for a terminal, and the view of its page."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tidegate.charts import Chart
from tidegate.html import render
from tidegate.html.render import percent, times
from tidegate.synthesize.quality import charts

if TYPE_CHECKING:
    from tidegate.synthesize.quality.combine import Estimate
    from tidegate.synthesize.quality.result import Quality

Table: TypeAlias = tuple[Sequence[str], Sequence[Sequence[str]]]  # headers and rows

CAUTION = "Not for analysts: computed from the true rows and not paid for."
WHY = (
    "These numbers depend on true rows beyond the charges in the ledger. They are for the data holder only: an analyst who "
    "reads them learns more than the policy promises. Analysts can see the paid quality (private_quality), which is charged "
    "on the ledger."
)

READS = {
    "tree": "A tree tries to distinguish synthetic from original rows. pMSE is 0 if it cannot, and the largest possible value "
    "if it always can. The ratio compares it with trees on rows shuffled between the tables: about 1 means as similar as two "
    "samples of one population, and rows drawn from a good fit to these very rows can be below 1. The same difference gives a "
    "larger ratio in larger tables, so compare tables of one size.",
    "logistic": "A regression on every column by itself: it detects shifted means and shares, but no associations. The ratio is "
    "about 1 if the synthetic rows come from the right model fitted to these rows. The null follows from the sizes alone, so "
    "noise for privacy raises the ratio.",
    "logistic with pairs": "The same with products of columns: it also detects associations that are weaker or stronger.",
    "margin": "Total variation: the share of rows that would have to change their value for the two columns to agree. The tick "
    "marks the value that two samples of one population show by chance at these sizes.",
    "pair": "Total variation of two columns together, each in at most 12 groups: the share of rows that would have to change.",
    "association": "Cramér's V: 0 if two columns are independent, 1 if one determines the other. A difference below 0 is an "
    "association that the synthetic table lost.",
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
MOST_CHARTS = 24  # of single columns in a page


@dataclass(frozen=True)
class _Section:
    """One part of the page. Charts state their finding above them; small charts are shown side by side."""

    heading: str
    finding: str = ""
    charts: Sequence[Chart] = ()
    terms: Mapping[str, str] = field(default_factory=dict)
    texts: Sequence[str] = ()
    small_charts: Sequence[Chart] = ()
    after: str = ""
    after_heading: str = ""
    after_table: Table | None = None
    table: Table | None = None


def page(quality: Quality) -> str:
    """Return the report as one page that needs nothing else."""
    name = f"Quality of synthetic tables: {quality.name}" if quality.name else "Quality of synthetic tables"
    sections = [
        _separation_section(quality),
        _margin_section(quality),
        _pair_section(quality),
        _regression_section(quality),
    ]
    notes = [
        *quality.notes,
        *(f"{column} is left out: {why}." for column, why in quality.left_out.items()),
        "Numbers are compared on the policy's grid: clamped to its bounds, at its steps.",
    ]
    view = {"title": name, "caution": CAUTION, "why": WHY, "quality": quality, "notes": notes}
    return render("report/quality.html", {**view, "sections": [section for section in sections if section]})


def fragment(quality: Quality) -> str:
    """Return what a notebook shows: the caution, the findings, and how well the tables are distinguished."""
    rows = [
        (separation.kind, f"{separation.value:.3g}", f"{separation.null:.3g}", times(separation.ratio))
        for separation in quality.separations
    ]
    return render("report/quality_fragment.html", {"caution": CAUTION, "quality": quality, "rows": rows})


def _separation_section(quality: Quality) -> _Section | None:
    if not quality.separations:
        return None
    headers = (
        "distinguished by",
        "pMSE",
        "by chance (mean)",
        "by chance (s.d.)",
        "ratio",
        "largest possible",
        "how the null was computed",
    )
    rows = [
        (
            separation.kind,
            f"{separation.value:.3g}",
            f"{separation.null:.3g}",
            f"{separation.spread:.2g}",
            times(separation.ratio),
            f"{separation.most:.3g}",
            separation.how,
        )
        for separation in quality.separations
    ]
    return _Section(
        heading="Can they be distinguished?",
        charts=[charts.separations(quality)],
        terms={separation.kind: READS[separation.kind] for separation in quality.separations},
        table=(headers, rows),
    )


def _margin_section(quality: Quality) -> _Section:
    order = quality.worst_margins
    rows = [
        (margin.column if not index else "", label, percent(original), percent(synthetic))
        for margin in order
        for index, (label, original, synthetic) in enumerate(
            zip(margin.labels, margin.original, margin.synthetic, strict=True)
        )
        if original or synthetic
    ]
    more = f"The {MOST_CHARTS} columns that differ most of {len(order)}; the others are in the table."
    return _Section(
        heading="Columns one by one",
        charts=[charts.distances(quality)],
        texts=[READS["margin"]],
        small_charts=[charts.margin(margin, height=120) for margin in order[:MOST_CHARTS]],
        after=more if len(order) > MOST_CHARTS else "",
        table=(("column", "value", "original", "synthetic"), rows),
    )


def _pair_section(quality: Quality) -> _Section | None:
    if not quality.pairs:
        return None
    names = charts.most_changed(quality.pairs, quality.columns)
    headers = ("columns", "total variation", "by chance", "V original", "V synthetic", "correlation")
    rows = [
        (
            " and ".join(pair.columns),
            percent(pair.distance),
            percent(pair.expected),
            f"{pair.association[0]:.2f}",
            f"{pair.association[1]:.2f}",
            "" if pair.correlation is None else f"{pair.correlation[0]:.2f} → {pair.correlation[1]:.2f}",
        )
        for pair in quality.worst_pairs
    ]
    few = f"The {len(names)} of {len(quality.columns)} columns whose associations changed most."
    return _Section(
        heading="Columns in pairs",
        finding=_association_finding(quality),
        small_charts=[charts.associations(quality.pairs, names, part) for part in charts.PARTS],
        texts=[few if len(names) < len(quality.columns) else "", READS["pair"], READS["association"]],
        after_heading="The ten pairs that differ most",
        after_table=(headers, rows[:10]),
        table=(headers, rows) if len(rows) > 10 else None,
    )


def _association_finding(quality: Quality) -> str:
    pair = max(quality.pairs, key=lambda pair: abs(pair.change))
    original, synthetic = pair.association
    if abs(pair.change) < 0.02:
        return "No association changes by more than 0.02"
    names = " and ".join(pair.columns)
    return f"{names} changed most: Cramér's V {original:.2f} in the original, {synthetic:.2f} in the synthetic"


def _regression_section(quality: Quality) -> _Section | None:
    fit = quality.regression
    if fit is None:
        return None
    rows = [
        (
            coefficient.name,
            *_estimate(coefficient.original),
            *_estimate(coefficient.synthetic),
            times(coefficient.overlap),
        )
        for coefficient in fit.coefficients
    ]
    return _Section(
        heading="One regression",
        charts=[charts.coefficients(fit)],
        texts=[
            f"{fit.kind} regression: {fit.formula}, {fit.rows[0]:,} original and {fit.rows[1]:,} synthetic rows.",
            f"{READS['regression']} {READS[fit.rule]}",
        ],
        table=(("coefficient", "original", "95% interval", "synthetic", "95% interval", "overlap"), rows),
    )


def _estimate(estimate: Estimate | None) -> tuple[str, str]:
    if estimate is None:
        return "–", ""
    low, high = estimate.interval()
    return f"{estimate.value:.4g}", f"{low:.3g} to {high:.3g}"


def describe(quality: Quality) -> str:
    """Return the report for a terminal: a caution, the findings, and the largest differences."""
    parts = [CAUTION.upper(), "", _title(quality), *quality.findings, ""]
    parts += _separations(quality) + _margins(quality) + _pairs(quality) + _regression(quality)
    return "\n".join([*parts, *quality.notes]).rstrip()


def _reads(*texts: str) -> list[str]:
    return textwrap.wrap(" ".join(texts), 110, initial_indent="  ", subsequent_indent="  ")


def _title(quality: Quality) -> str:
    tables = (
        f"{len(quality.synthetic_rows)} synthetic tables of {quality.synthetic_rows[0]:,}"
        if len(quality.synthetic_rows) > 1
        else f"{quality.synthetic_rows[0]:,} synthetic"
    )
    return f"{quality.name or 'Quality'}: {tables} rows beside {quality.rows:,} original rows, {len(quality.columns)} columns"


def _separations(quality: Quality) -> list[str]:
    lines = [
        f"  {separation.kind:<20} pMSE {separation.value:<10.3g} by chance {separation.null:<10.3g} ratio {times(separation.ratio)}"
        for separation in quality.separations
    ]
    return ["Distinguished by", *lines, *_reads(READS["tree"]), ""] if lines else []


def _margins(quality: Quality) -> list[str]:
    lines = [
        f"  {margin.column:<20} {percent(margin.distance):>6}   by chance {percent(margin.expected)}"
        for margin in quality.worst_margins[:SHOWN]
    ]
    return ["Columns that differ most", *lines, *_reads(READS["margin"].partition(" The tick")[0]), ""]


def _pairs(quality: Quality) -> list[str]:
    lines = [
        f"  {' and '.join(pair.columns):<34} {percent(pair.distance):>6}   Cramér's V {pair.association[0]:.2f} -> {pair.association[1]:.2f}"
        for pair in quality.worst_pairs[:SHOWN]
    ]
    return ["Pairs that differ most", *lines, *_reads(READS["pair"], READS["association"]), ""] if lines else []


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
        *_reads(READS["regression"], READS[fit.rule]),
        "",
    ]
