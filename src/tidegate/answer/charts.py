"""Charts of answers: the numbers with their intervals, and the error to expect of a query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.answer.comparison import number
from tidegate.charts import Axis, Band, Bar, Chart, Interval, Line, Table, numbers
from tidegate.html.render import sentence

if TYPE_CHECKING:
    from tidegate.answer.result import Answer, Preview

MOST_BARS = 60  # above, a line with a band
INTERVAL = "95% interval of the noise"
NUMBERS = ("low", "high", "noisy")
SHARES = (0.5, 0.8, 0.9, 0.95, 0.99)


def chart(answer: Answer) -> Chart:
    """Return bars with their 95% intervals; a line with a band for many numbers."""
    compared = answer.comparison
    question = sentence(answer.query.says())
    title = f"{question}. {compared.says()}" if compared else question
    unit = "rows" if answer.query.statistic in ("count", "histogram") else answer.query.column or ""
    return rows_chart(answer.rows(), answer.query.statistic, title=title, unit=unit)


def page_chart(part: Mapping[str, Any]) -> Chart:
    """Return the chart of an answer or a derivation in its JSON form. The title is the comparison, where there is one."""
    rows, statistic = part["rows"], part["statistic"]
    if part.get("comparison"):
        title = part["comparison"]["says"]
    elif statistic == "regression":
        title = "Intercept and slopes with their 95% intervals"
    else:
        title = f"{len(rows):,} numbers{' with their 95% intervals' if 'low' in rows[0] else ''}"
    return rows_chart(rows, statistic, title=title, unit="rows" if statistic in ("count", "histogram") else statistic)


def rows_chart(rows: Sequence[Mapping[str, Any]], statistic: str, *, title: str, unit: str) -> Chart:
    """Return the chart of rows in the order of the policy. An answer's numbers are compared by its title alone."""
    labels = [name for name in rows[0] if name != statistic and name not in NUMBERS]
    names = tuple(
        ", ".join("(missing)" if row[label] is None else str(row[label]) for label in labels) or statistic
        for row in rows
    )
    places, values = numbers(range(len(rows))), numbers(row[statistic] for row in rows)
    known = "low" in rows[0]
    low, high = (numbers(row[end] for row in rows) if known else () for end in ("low", "high"))
    is_line = len(rows) > MOST_BARS
    marks: list[Any] = [Line(statistic, places, values) if is_line else Bar(statistic, places, values)]
    if known:
        marks.insert(0, Band(INTERVAL, places, low, high)) if is_line else marks.append(
            Interval(INTERVAL, places, low, high)
        )
    columns = (*labels, statistic, *(name for name in NUMBERS if name in rows[0]))
    table = Table(
        columns, tuple(tuple("(missing)" if row[name] is None else row[name] for name in columns) for row in rows)
    )
    return Chart(title, tuple(marks), Axis(" x ".join(labels), "category", names), Axis(unit), table)


def error_chart(preview: Preview) -> Chart | None:
    """Return the noise around the true value with its interval; None for several queries or an unknown error."""
    error = preview.error
    if not error:
        return None
    normal = preview.price.pure is None  # otherwise the noise of one number has a (discrete) Laplace distribution
    scale = error / _quantile(preview.confidence, normal=normal)
    reach = np.linspace(-1.7 * error, 1.7 * error, 121)
    inside = np.unique([*np.linspace(-error, error, 80), 0.0])
    query = preview.expected[0].query
    unit = " rows" if query.statistic in ("count", "histogram") else ""
    often = f"{round(100 * preview.confidence, 1):g}%"

    def density(at: Any) -> tuple[float, ...]:
        return numbers(np.exp(-((at / scale) ** 2) / 2 if normal else -np.abs(at) / scale))

    return Chart(
        f"{sentence(query.says())} is within {number(error)}{unit} of the true value with {often} confidence",
        (
            Band("noise", numbers(reach), (0.0,) * reach.size, density(reach), "quiet"),
            Band(f"{often} of the noise", numbers(inside), (0.0,) * inside.size, density(inside)),
        ),
        Axis(ticks=((-error, f"−{number(error)}"), (0.0, "true value"), (error, f"+{number(error)}"))),
        Axis(low=0, ticks=((0.0, ""),)),
        Table(
            ("confidence", "within"),
            tuple((f"{100 * share:g}%", scale * _quantile(share, normal=normal)) for share in SHARES),
        ),
        height=150,
    )


def _quantile(share: float, *, normal: bool) -> float:
    """Return how far a share of the noise reaches, in scales of a Laplace distribution or standard deviations of a normal one."""
    return NormalDist().inv_cdf((1 + share) / 2) if normal else -math.log(1 - share)


def html(answer: Answer) -> str:
    """Return a small table with bars, for notebooks."""
    from tidegate.html import render

    rows, statistic = answer.rows(), answer.query.statistic
    drawn = rows_chart(rows, statistic, title="", unit="")
    largest = max((abs(float(row.get("high", row[statistic]))) for row in rows), default=0.0) or 1.0
    shown = [
        {
            "name": name,
            "value": f"{row[statistic]:,.6g}",
            "interval": f"{row['low']:,.6g} to {row['high']:,.6g}" if "low" in row else "",
            "share": max(0.0, float(row[statistic]) / largest),
        }
        for name, row in zip(drawn.x.categories, rows[:MOST_BARS], strict=False)
    ]
    compared = answer.comparison
    view = {"title": sentence(answer.query.says()), "finding": compared.says() if compared else "", "rows": shown}
    more = len(rows) - len(shown)
    return render(
        "report/answer.html", {**view, "more": more, "caution": answer.caution, "charge": answer.charge.says()}
    )
