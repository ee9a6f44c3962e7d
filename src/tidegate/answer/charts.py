"""Answers as pictures: the number, and how wrong it may be."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tidegate.answer.result import Answer

ACCENT = "#1f6f8b"
MOST_SHOWN = 60
NEW_LINE = "\n"


def draw(answer: Answer) -> Any:
    """A matplotlib figure: one bar per number with its 95% interval; a line for long histograms."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    names, values, low, high = _flat(answer)
    if len(values) > MOST_SHOWN:
        axes.fill_between(
            range(len(values)), low, high, color=ACCENT, alpha=0.25, linewidth=0, label="95% interval of the noise"
        )
        axes.plot(range(len(values)), values, color=ACCENT, linewidth=1)
        ticks = np.linspace(0, len(values) - 1, 8).astype(int)
        axes.set_xticks(ticks, [names[tick] for tick in ticks])
    else:
        axes.bar(range(len(values)), values, color=ACCENT, alpha=0.85)
        axes.errorbar(
            range(len(values)),
            values,
            yerr=[values - low, high - values],
            fmt="none",
            ecolor="#333",
            capsize=3,
            label="95% interval of the noise",
        )
        long = max(map(len, names)) > 6 or len(names) > 12
        axes.set_xticks(range(len(values)), names, rotation=60 if long else 0, ha="right" if long else "center")
    axes.set_title(_title(answer), loc="left", fontsize=11)
    axes.set_ylabel("rows" if answer.query.statistic in ("count", "histogram") else answer.query.column)
    if answer.labels:
        axes.set_xlabel(" x ".join(answer.labels))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return figure


def html(answer: Answer) -> str:
    """A small table with bars, for notebooks: plain HTML, no script."""
    names, values, low, high = _flat(answer)
    top = max(float(np.max(np.abs(high))), 1e-300) if len(values) else 1.0
    rows = "".join(
        f'<tr><td style="text-align:left">{escape(name)}</td><td style="font-variant-numeric:tabular-nums">{value:,.6g}</td>'
        f'<td style="color:#666">{lo:,.6g} to {hi:,.6g}</td>'
        f'<td><div style="background:{ACCENT};height:.7em;width:{max(0.0, 10 * float(value) / top):.2f}em"></div></td></tr>'
        for name, value, lo, hi in list(zip(names, values, low, high, strict=True))[:MOST_SHOWN]
    )
    more = f"<p>and {len(values) - MOST_SHOWN:,} more</p>" if len(values) > MOST_SHOWN else ""
    head = "<tr><th></th><th>value</th><th>95% of the noise</th><th></th></tr>"
    caution = f"<p>{escape(answer.caution)}</p>" if answer.caution else ""
    return f"<div><b>{escape(_title(answer)).replace(NEW_LINE, '<br>')}</b><table>{head}{rows}</table>{more}{caution}<p>{escape(answer.charge.says())}</p></div>"


def _flat(answer: Answer) -> tuple[list[str], Any, Any, Any]:
    values = answer.values
    between = answer.interval() or (values, values)
    labels = list(answer.labels.values())
    names = [", ".join(str(labels[axis][i]) for axis, i in enumerate(place)) for place in np.ndindex(values.shape)]
    flat = [np.asarray(part, np.float64).reshape(-1) for part in (values, *between)]
    return names if labels else [answer.query.statistic], flat[0], flat[1], flat[2]


def _title(answer: Answer) -> str:
    said, compared = answer.query.says(), answer.comparison
    return said[0].upper() + said[1:] + (f"\n{compared.says()}" if compared else "")
