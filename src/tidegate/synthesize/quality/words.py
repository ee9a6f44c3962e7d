"""The report for a terminal."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from tidegate.synthesize.quality.reading import CAUTION, READS
from tidegate.synthesize.quality.result import percent, times

if TYPE_CHECKING:
    from tidegate.synthesize.quality.result import Quality

SHOWN = 5


def told(found: Quality) -> str:
    """A caution, the findings, and the largest differences."""
    parts = [CAUTION.upper(), "", _title(found), *found.findings, ""]
    parts += _separations(found) + _margins(found) + _pairs(found) + _regression(found)
    return "\n".join([*parts, *found.notes]).rstrip()


def _reads(*texts: str) -> list[str]:
    return textwrap.wrap(" ".join(texts), 110, initial_indent="  ", subsequent_indent="  ")


def _title(found: Quality) -> str:
    many = (
        f"{len(found.made)} synthetic tables of {found.made[0]:,}"
        if len(found.made) > 1
        else f"{found.made[0]:,} synthetic"
    )
    return f"{found.name or 'Quality'}: {many} rows beside {found.rows:,} original rows, {len(found.columns)} columns"


def _separations(found: Quality) -> list[str]:
    lines = [
        f"  {one.kind:<20} pMSE {one.value:<10.3g} by chance {one.null:<10.3g} ratio {times(one.ratio)}"
        for one in found.separations
    ]
    return ["Told apart by", *lines, *_reads(READS["tree"]), ""] if lines else []


def _margins(found: Quality) -> list[str]:
    lines = [
        f"  {one.column:<20} {percent(one.distance):>6}   by chance {percent(one.expected)}"
        for one in found.worst_margins[:SHOWN]
    ]
    return ["Columns that differ most", *lines, *_reads(READS["margin"].partition(" The tick")[0]), ""]


def _pairs(found: Quality) -> list[str]:
    lines = [
        f"  {' and '.join(one.columns):<34} {percent(one.distance):>6}   Cramér's V {one.association[0]:.2f} -> {one.association[1]:.2f}"
        for one in found.worst_pairs[:SHOWN]
    ]
    return ["Pairs that differ most", *lines, *_reads(READS["pair"], READS["association"]), ""] if lines else []


def _regression(found: Quality) -> list[str]:
    fit = found.regression
    if fit is None:
        return []
    lines = []
    for one in fit.coefficients:
        here, there = (
            "–" if side is None else f"{side.value:.4g} ± {side.interval()[1] - side.value:.2g}"
            for side in (one.original, one.synthetic)
        )
        lines.append(f"  {one.name:<28} {here:>22}   {there:>22}   overlap {times(one.overlap)}")
    return [
        f"{fit.formula} ({fit.kind}), original beside synthetic",
        *lines,
        *_reads(READS["regression"], READS[fit.rule]),
        "",
    ]
