"""The report as one HTML page that needs nothing else: no script, no address, pictures inside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from tidegate.synthesize.quality.pictures import bars, interval_axis, interval_row, matrix, steps, strongest
from tidegate.synthesize.quality.reading import CAUTION, READS, WHY
from tidegate.synthesize.quality.result import percent, times
from tidegate.synthesize.quality.style import STYLE

if TYPE_CHECKING:
    from tidegate.synthesize.quality.margins import Margin
    from tidegate.synthesize.quality.result import Quality

MOST_PICTURES = 24
KEY = '<p class="key"><span class="box truth"></span>original <span class="box fill"></span>synthetic</p>'


def page(found: Quality) -> str:
    """The whole page."""
    name = f"Quality of synthetic tables: {found.name}" if found.name else "Quality of synthetic tables"
    body = "".join((_separations(found), _margins(found), _pairs(found), _regression(found), _notes(found)))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(name)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f'<body class="quality">{_caution()}<h1>{escape(name)}</h1>{_sizes(found)}{_findings(found)}{body}</body></html>\n'
    )


def fragment(found: Quality) -> str:
    """What a notebook shows: the caution, the findings, and how well the tables are told apart."""
    rows = [[one.kind, f"{one.value:.3g}", f"{one.null:.3g}", times(one.ratio)] for one in found.separations]
    table = _table(["told apart by", "pMSE", "by chance", "ratio"], rows)
    return f'<div class="quality"><p><strong>{escape(CAUTION)}</strong></p>{_findings(found)}{table}</div>'


def _caution() -> str:
    return f'<div class="caution"><strong>{escape(CAUTION)}</strong><p>{escape(WHY)}</p></div>'


def _sizes(found: Quality) -> str:
    many = len(found.made)
    made = f"{many} synthetic tables of {found.made[0]:,} rows" if many > 1 else f"{found.made[0]:,} synthetic rows"
    return f'<p class="quiet">{made} beside {found.rows:,} original rows, {len(found.columns)} columns.</p>'


def _findings(found: Quality) -> str:
    return f'<ul class="findings">{"".join(f"<li>{escape(one)}</li>" for one in found.findings)}</ul>'


def _separations(found: Quality) -> str:
    if not found.separations:
        return ""
    rows = "".join(
        _bar_row(
            one.kind,
            one.value / one.most,
            one.null / one.most,
            f"{times(one.ratio)} × chance",
        )
        for one in found.separations
    )
    table = _table(
        [
            "told apart by",
            "pMSE",
            "by chance (mean)",
            "by chance (s.d.)",
            "ratio",
            "largest possible",
            "how the null was found",
        ],
        [
            [
                one.kind,
                f"{one.value:.3g}",
                f"{one.null:.3g}",
                f"{one.spread:.2g}",
                times(one.ratio),
                f"{one.most:.3g}",
                one.how,
            ]
            for one in found.separations
        ],
    )
    reads = "".join(f"<dt>{escape(one.kind)}</dt><dd>{escape(READS[one.kind])}</dd>" for one in found.separations)
    axis = f"pMSE, full width the largest possible ({found.separations[0].most:.2g}); the tick is chance"
    return _section(
        "Can they be told apart?",
        _told_apart(found),
        f'<div class="bars">{rows}</div><p class="axis">{axis}</p><dl>{reads}</dl>',
        table,
    )


def _told_apart(found: Quality) -> str:
    kinds = {"logistic": "shares and means", "logistic with pairs": "associations", "tree": "a tree's splits"}
    seen = [one for one in found.separations if one.ratio is not None]
    if not seen:
        return "Chance alone gives exactly 0 here: the tables are too small or constant for a ratio"
    worst = max(seen, key=lambda one: one.ratio or 0.0)
    if (worst.ratio or 0.0) < 2:
        return "No classifier tells them apart better than chance would"
    return f"They differ most by {kinds[worst.kind]}: {times(worst.ratio)} times what chance gives"


def _margins(found: Quality) -> str:
    order = found.worst_margins
    top = max([one.distance or 0.0 for one in order] + [one.expected or 0.0 for one in order] + [1e-9])
    rows = "".join(
        _bar_row(
            one.column,
            (one.distance or 0.0) / top,
            None if one.expected is None else one.expected / top,
            percent(one.distance),
        )
        for one in order
    )
    pictures = "".join(_margin(one) for one in order[:MOST_PICTURES])
    more = (
        f'<p class="quiet">The {MOST_PICTURES} columns that differ most of {len(order)}; the others are in the table.</p>'
        if len(order) > MOST_PICTURES
        else ""
    )
    table = _table(
        ["column", "value", "original", "synthetic"],
        [
            [one.column if not place else "", label, percent(a), percent(b)]
            for one in order
            for place, (label, a, b) in enumerate(zip(one.labels, one.original, one.synthetic, strict=True))
            if a or b
        ],
    )
    axis = f"share of rows that would have to change their value, full width {percent(top)}; the tick is chance"
    content = f'<div class="bars">{rows}</div><p class="axis">{axis}</p><p>{escape(READS["margin"])}</p>{KEY}<div class="many">{pictures}</div>{more}'
    return _section("Columns one by one", found.margin_finding, content, table)


def _margin(one: Margin) -> str:
    numbers = all(
        label.replace(",", "").replace(".", "").replace("-", "").replace(" to ", "").isdigit()
        for label in one.labels[:2]
    )
    drawn = steps(one) if numbers and len(one.labels) > 2 else bars(one)
    finding = "one table has no value" if one.distance is None else f"{percent(one.distance)} would change"
    missing = (
        f'<span class="quiet">missing {percent(one.missing[0])} → {percent(one.missing[1])}</span>'
        if any(one.missing)
        else ""
    )
    return f"<figure><figcaption><strong>{escape(one.column)}</strong> {finding} {missing}</figcaption>{drawn}</figure>"


def _pairs(found: Quality) -> str:
    if not found.pairs:
        return ""
    names = strongest(found.pairs, found.columns)
    titles = {
        "original": "in the original",
        "synthetic": "in the synthetic tables" if len(found.made) > 1 else "in the synthetic table",
        "difference": "difference: blue stronger, orange weaker",
    }
    panels = "".join(
        f"<figure><figcaption>{title}</figcaption>{matrix(found.pairs, names, what)}</figure>"
        for what, title in titles.items()
    )
    headers = ["columns", "total variation", "by chance", "V original", "V synthetic", "correlation"]
    rows = [
        [
            " and ".join(one.columns),
            percent(one.distance),
            percent(one.expected),
            f"{one.association[0]:.2f}",
            f"{one.association[1]:.2f}",
            "" if one.correlation is None else f"{one.correlation[0]:.2f} → {one.correlation[1]:.2f}",
        ]
        for one in found.worst_pairs
    ]
    few = (
        f'<p class="quiet">The {len(names)} of {len(found.columns)} columns whose associations changed most.</p>'
        if len(names) < len(found.columns)
        else ""
    )
    content = f'<div class="three">{panels}</div><p class="axis">Cramér\'s V, 0 to 1; the difference is drawn 2.5 times as strong</p>{few}<p>{escape(READS["pair"])} {escape(READS["association"])}</p><h3>The ten pairs that differ most</h3>{_table(headers, rows[:10])}'
    return _section("Columns in pairs", _associated(found), content, _table(headers, rows) if len(rows) > 10 else "")


def _associated(found: Quality) -> str:
    lost = max(found.pairs, key=lambda one: abs(one.change))
    a, b = lost.association
    if abs(lost.change) < 0.02:
        return "No association changes by more than 0.02"
    return f"{' and '.join(lost.columns)} changed most: Cramér's V {a:.2f} in the original, {b:.2f} in the synthetic"


def _regression(found: Quality) -> str:
    fit = found.regression
    if fit is None:
        return ""
    rows = "".join(
        f'<div class="row"><span class="name">{escape(one.name)}</span>{interval_row(one)}<span class="value">{times(one.overlap)}</span></div>'
        for one in fit.coefficients
    )
    axis = f'<div class="row"><span class="name"></span>{interval_axis()}<span class="value">overlap</span></div>'
    table = _table(
        ["coefficient", "original", "95% interval", "synthetic", "95% interval", "overlap"],
        [
            [one.name, *_estimate(one.original), *_estimate(one.synthetic), times(one.overlap)]
            for one in fit.coefficients
        ],
    )
    content = f'<p>{escape(fit.kind)} regression: <code>{escape(str(fit.formula))}</code>, {fit.rows[0]:,} original and {fit.rows[1]:,} synthetic rows.</p>{KEY}<div class="forest">{rows}{axis}</div><p class="axis">coefficient and its 95% interval, in standard errors of the original estimate</p><p>{escape(READS["regression"])} {escape(READS[fit.rule])}</p>'
    return _section("One regression", _concluded(found), content, table)


def _concluded(found: Quality) -> str:
    told = [
        one for one in (found.regression.coefficients[1:] if found.regression else ()) if one.difference is not None
    ]
    if not told:
        return "The coefficients cannot be told from these tables"
    same = sum(abs(one.difference or 0.0) < 2 for one in told)
    return f"{same} of {len(told)} coefficients are within two standard errors of the original"


def _notes(found: Quality) -> str:
    told = [f"{name} is left out: {why}." for name, why in found.left_out.items()]
    notes = [*found.notes, *told, "Numbers are compared on the policy's grid: clamped to its bounds, at its steps."]
    return f'<section class="notes"><h2>How this was computed</h2><ul>{"".join(f"<li>{escape(one)}</li>" for one in notes)}</ul></section>'


def _section(title: str, finding: str, content: str, table: str) -> str:
    behind = f"<details><summary>the numbers</summary>{table}</details>" if table else ""
    return f'<section><h2>{escape(title)}</h2><p class="finding">{escape(finding)}</p>{content}{behind}</section>'


def _bar_row(name: str, part: float, tick: float | None, value: str) -> str:
    mark = f'<i class="tick" style="left:{100 * min(tick, 1):.2f}%"></i>' if tick is not None else ""
    return (
        f'<div class="row"><span class="name">{escape(name)}</span><span class="track">'
        f'<i class="bar" style="width:{100 * min(part, 1):.2f}%"></i>{mark}</span><span class="value">{escape(value)}</span></div>'
    )


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(one)}</th>" for one in headers)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _estimate(one: object) -> tuple[str, str]:
    from tidegate.synthesize.quality.combine import Estimate

    if not isinstance(one, Estimate):
        return "–", ""
    low, high = one.interval()
    return f"{one.value:.4g}", f"{low:.3g} to {high:.3g}"
