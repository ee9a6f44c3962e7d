"""A quality report as one page, and as what a notebook shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tidegate.charts import Chart
from tidegate.html import render
from tidegate.html.render import percent, times
from tidegate.synthesize.quality import charts
from tidegate.synthesize.quality.text import (
    CAUTION,
    LINES,
    MOST_PAIRS,
    READS,
    WHY,
    policy_lines,
    say_measured,
    say_size,
    two_digits,
)

if TYPE_CHECKING:
    from tidegate.synthesize.quality.columns import Margin
    from tidegate.synthesize.quality.combine import Estimate
    from tidegate.synthesize.quality.result import Quality

Table: TypeAlias = tuple[Sequence[str], Sequence[Sequence[str]]]  # headers and rows

MOST_CHARTS = 24  # of single columns in a page


@dataclass(frozen=True)
class Section:
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
    code: str = ""
    table: Table | None = None


def page(quality: Quality) -> str:
    """Return the report as one page that needs nothing else."""
    name = f"Quality of synthetic tables: {quality.name}" if quality.name else "Quality of synthetic tables"
    sections = [
        _margin_section(quality),
        _pair_section(quality),
        _dependency_section(quality),
        _separation_section(quality),
        _prediction_section(quality),
        _query_section(quality),
        _regression_section(quality),
    ]
    notes = [
        *quality.notes,
        *(f"{column} is left out: {why}." for column, why in quality.left_out.items()),
        "Numbers are compared on the policy's grid: clamped to its bounds, at its steps.",
    ]
    view: dict[str, Any] = {
        "title": name,
        "caution": CAUTION,
        "why": WHY,
        "banner": quality.banner,
        "size": say_size(quality),
    }
    view |= {"findings": quality.findings, "notes": notes, "notes_heading": "How this was computed"}
    return render("report/quality.html", {**view, "sections": [section for section in sections if section]})


def fragment(quality: Quality) -> str:
    """Return what a notebook shows: the caution, the findings, and how well the tables are distinguished."""
    rows = [
        (separation.kind, f"{separation.value:.3g}", f"{separation.bootstrap:.3g}", times(separation.ratio))
        for separation in quality.separations
    ]
    headers = ("distinguished by", "pMSE", "bootstrap of the original", "ratio")
    view = {"caution": CAUTION, "banner": quality.banner, "findings": quality.findings}
    return render("report/quality_fragment.html", {**view, "table_of": (headers, rows) if rows else None})


def _separation_section(quality: Quality) -> Section | None:
    if not quality.separations:
        return None
    headers = ("distinguished by", "pMSE", "bootstrap of the original", "ratio", "largest possible", "rows")
    rows = [
        (
            separation.kind,
            f"{separation.value:.3g}",
            f"{separation.bootstrap:.3g}",
            times(separation.ratio),
            f"{separation.most:.3g}",
            f"{separation.rows[0]:,} and {separation.rows[1]:,}",
        )
        for separation in quality.separations
    ]
    return Section(
        heading="Can they be distinguished?",
        charts=[charts.separations(quality)],
        terms={separation.kind: READS[separation.kind] for separation in quality.separations},
        after_table=(headers, rows),
    )


def _dependency_section(quality: Quality) -> Section | None:
    if not quality.dependencies:
        return None
    headers = ("column", "follows from", "holds in the original", "broken in the synthetic", "line for the policy")
    rows = [
        (of.column, of.by, percent(of.holds), percent(of.broken), of.why or ("below" if of.line else "–"))
        for of in quality.dependencies
    ]
    lines = [line for of in quality.dependencies for line in policy_lines(of)]
    return Section(
        heading="Dependencies",
        finding=_dependency_finding(quality),
        texts=[READS["dependency"], LINES if lines else ""],
        after_table=(headers, rows),
        code="\n".join(["[synthesis]", *lines]) if lines else "",
    )


def _dependency_finding(quality: Quality) -> str:
    worst = max(quality.dependencies, key=lambda of: of.broken or 0.0)
    if not worst.broken:
        return "No synthetic row breaks a dependency of the original"
    return f"{percent(worst.broken)} of the synthetic rows break the dependency of {worst.column} on {worst.by}"


def _prediction_section(quality: Quality) -> Section | None:
    task = quality.prediction
    if task is None:
        return None
    headers = ("trained on", "rows", f"{task.measure} for {task.target}")
    rows = [
        ("original", f"{task.rows[0]:,}", f"{task.original:.3f}"),
        ("synthetic", f"{task.rows[1]:,}", f"{task.synthetic:.3f}"),
    ]
    return Section(
        heading="Train on synthetic, test on original",
        finding=f"{task.target}: {task.measure} {task.synthetic:.3f} from synthetic rows, {task.original:.3f} from original rows",
        texts=[READS["prediction"], f"Tested on {task.rows[2]:,} original rows."],
        after_table=(headers, rows),
    )


def _query_section(quality: Quality) -> Section | None:
    queries = quality.queries
    if queries is None:
        return None
    return Section(
        heading="Random range queries",
        finding=f"{percent(queries.error)} mean error of {queries.count} queries, {percent(queries.sampling)} sampling error",
        texts=[READS["queries"]],
    )


def _margin_section(quality: Quality) -> Section:
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
    return Section(
        heading="Columns one by one",
        charts=[charts.distances(quality)],
        texts=[READS["margin"]],
        small_charts=[charts.margin(margin, height=120) for margin in order[:MOST_CHARTS]],
        after=more if len(order) > MOST_CHARTS else "",
        after_heading="Notable values and quartiles",
        after_table=_landmark_table(order),
        table=(("column", "value", "original", "synthetic"), rows),
    )


def _landmark_table(margins: Sequence[Margin]) -> Table | None:
    headers = (
        "column",
        "lowest value",
        "zero",
        "highest value",
        "quartiles of the original",
        "quartiles of the synthetic",
    )
    rows = []
    for margin in margins:
        by_kind = {
            value.kind: f"{value.value}: {percent(value.original)} → {percent(value.synthetic)}"
            for value in margin.values
        }
        if by_kind:
            ends = [" · ".join(quartile[side] for quartile in margin.quartiles) for side in range(2)]
            rows.append((margin.column, *(by_kind.get(kind, "") for kind in ("lowest", "zero", "highest")), *ends))
    return (headers, rows) if rows else None


def _pair_section(quality: Quality) -> Section | None:
    if not quality.pairs:
        return None
    names = charts.most_changed(quality.pairs, quality.columns)
    headers = ("columns", "measured", "total variation", "by chance", "Cramér's V", "rank correlation")
    rows = [
        (
            " and ".join(pair.columns),
            say_measured(pair),
            percent(pair.distance),
            percent(pair.expected),
            f"{pair.association[0]:.2f} → {pair.association[1]:.2f}",
            "" if pair.correlation is None else " → ".join(map(two_digits, pair.correlation)),
        )
        for pair in quality.worst_pairs
    ]
    few = f"The {len(names)} of {len(quality.columns)} columns whose associations changed most."
    return Section(
        heading="Columns in pairs",
        finding=_association_finding(quality),
        small_charts=[charts.associations(quality.pairs, names, part) for part in charts.PARTS],
        texts=[few if len(names) < len(quality.columns) else "", READS["pair"], READS["association"]],
        after_heading="The pairs that differ most",
        after_table=(headers, rows[:MOST_PAIRS]),
        table=(headers, rows) if len(rows) > MOST_PAIRS else None,
    )


def _association_finding(quality: Quality) -> str:
    pair = max(quality.pairs, key=lambda pair: abs(pair.change))
    original, synthetic = pair.association
    if abs(pair.change) < 0.02:
        return "No association changes by more than 0.02"
    names = " and ".join(pair.columns)
    return f"{names} changed most: Cramér's V {original:.2f} in the original, {synthetic:.2f} in the synthetic"


def _regression_section(quality: Quality) -> Section | None:
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
    return Section(
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
