"""Charts of answers: the numbers with their intervals, and the error to expect of a query."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tidegate.accounting.budget import SHORT
from tidegate.answer.comparison import label_text, number
from tidegate.charts import Axis, Band, Cell, Chart, Interval, Line, Table, numbers
from tidegate.html import render
from tidegate.html.notebook import Cell as TextCell
from tidegate.html.notebook import budget_bar, show, table_of
from tidegate.html.render import sentence

if TYPE_CHECKING:
    from tidegate.answer.derive import Derived
    from tidegate.answer.result import Answer, Answers, Preview

MOST_DOTS, MOST_ROWS = 60, 60  # above, a line with a band; of a table in a notebook
MOST_CELLS, MOST_BLOCKS = 200, 100  # above, blocks of numbers
MOST_LINES, LINE = 30, 26  # groups below each other, and their height in pixels
SHADES = 8  # of a heat map whose intervals are not known
INTERVAL = "95% interval of the noise"
NUMBERS = ("low", "high", "noisy")
Order = Literal["policy", "label", "largest", "smallest"]
SHARES = (0.5, 0.8, 0.9, 0.95, 0.99)


def chart(answer: Answer) -> Chart:
    """Return dots with their 95% intervals; a heat map for two columns; a line with a band for many numbers."""
    compared = answer.comparison
    question = sentence(answer.query.says())
    title = f"{question}. {compared.says()}" if compared else question
    unit = "rows" if answer.query.statistic in ("count", "histogram") else answer.query.column or ""
    equal = compared is not None and not compared.differences
    return rows_chart(answer.rows(), answer.query.statistic, title=title, unit=unit, equal=equal)


def page_chart(part: Mapping[str, Any], *, order: Order = "policy") -> Chart:
    """Return the chart of an answer or a derivation in its JSON form. The title is the comparison, where there is one."""
    rows, statistic, compared = part["rows"], part["statistic"], part.get("comparison")
    if compared:
        title = compared["says"]
    elif statistic == "regression":
        title = "Intercept and slopes with their 95% intervals"
    else:
        title = f"{len(rows):,} numbers{' with their 95% intervals' if 'low' in rows[0] else ''}"
    unit = "rows" if statistic in ("count", "histogram") else statistic
    equal = compared is not None and not compared["differing"]
    return rows_chart(rows, statistic, title=title, unit=unit, order=order, equal=equal)


def rows_chart(
    rows: Sequence[Mapping[str, Any]],
    statistic: str,
    *,
    title: str,
    unit: str,
    order: Order = "policy",
    equal: bool = False,
) -> Chart:
    """Return the chart of rows. An answer's numbers are compared by its title alone.

    Dots with intervals; a heat map for two columns; above 60 numbers a line with a band, above 200 of their blocks.

    Args:
        equal: Whether the comparison found no difference. Then all cells of a heat map have the same shade.
    """
    rows = ordered_rows(rows, statistic, order)
    labels = labels_of(rows, statistic)
    if len(rows) > MOST_CELLS:
        return _block_chart(rows, statistic, title=title)
    if len(labels) == 2 and order in ("policy", "label"):
        return _heat_map(rows, statistic, title=title, equal=equal)
    scale = _Scale(rows, statistic, unit)
    positions, names = numbers(range(len(rows))), scale.names()
    if len(rows) > MOST_DOTS:
        marks: tuple[Any, ...] = (Line(statistic, positions, scale.values),)
        marks = (Band(INTERVAL, positions, scale.low, scale.high), *marks) if scale.low else marks
    elif scale.low:
        marks = (Interval(INTERVAL, positions, scale.low, scale.high, scale.values, "accent", tips=scale.tips()),)
    else:
        marks = (Line(statistic, positions, scale.values, dots=True, joined=False, tips=scale.tips()),)
    is_horizontal = len(rows) <= MOST_LINES and statistic != "histogram"
    return Chart(
        title,
        marks,
        Axis(" x ".join(labels), "category", names),
        Axis(scale.title, low=0.0 if statistic in ("count", "histogram") else None),
        _table(rows, (*labels, statistic, *(name for name in NUMBERS if name in rows[0]))),
        horizontal=is_horizontal,
        height=max(60, LINE * len(rows)) if is_horizontal else 240,
    )


def ordered_rows(rows: Sequence[Mapping[str, Any]], statistic: str, order: Order) -> list[Mapping[str, Any]]:
    """Return rows in the reader's order. The default is that of the policy: any other one can suggest a ranking."""
    first = _first(rows, statistic)
    if order == "label":
        return sorted(rows, key=lambda row: [label_text(row[name]).casefold() for name in labels_of(rows, statistic)])
    if order in ("largest", "smallest"):
        return sorted(rows, key=lambda row: _height(row[statistic], first), reverse=order == "largest")
    return list(rows)


def labels_of(rows: Sequence[Mapping[str, Any]], statistic: str) -> list[str]:
    """Return the columns that name a row."""
    return [name for name in rows[0] if name != statistic and name not in NUMBERS]


class _Scale:
    """Values and intervals of rows as heights: numbers, or days and hours after the first date or time."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], statistic: str, unit: str) -> None:
        self.rows, self.statistic, first = rows, statistic, _first(rows, statistic)
        known = "low" in rows[0]
        self.values = numbers(_height(row[statistic], first) for row in rows)
        self.low = numbers(_height(row["low"], first) for row in rows) if known else ()
        self.high = numbers(_height(row["high"], first) for row in rows) if known else ()
        unit = f"{'hours' if ':' in first[:3] else 'days'} after {first}" if first else unit
        self.title = f"{unit}, with 95% intervals" if known and len(rows) <= MOST_DOTS else unit

    def names(self) -> tuple[str, ...]:
        labels = labels_of(self.rows, self.statistic)
        return tuple(", ".join(label_text(row[label]) for label in labels) or self.statistic for row in self.rows)

    def tips(self) -> tuple[str, ...]:
        """Return name, value and interval of each row."""
        pairs = zip(self.names(), self.rows, strict=True)
        return tuple(f"{name}: {_estimate(row, self.statistic)}" for name, row in pairs)


def _estimate(row: Mapping[str, Any], statistic: str) -> str:
    between = f", 95% interval {_shown(row['low'])} to {_shown(row['high'])}" if "low" in row else ""
    return f"{statistic} {_shown(row[statistic])}{between}"


def _heat_map(rows: Sequence[Mapping[str, Any]], statistic: str, *, title: str, equal: bool) -> Chart:
    """Return cells of two columns. Their shades have steps of a typical interval, so that noise alone shows no pattern."""
    down, across = labels_of(rows, statistic)
    lines, columns = ([*dict.fromkeys(label_text(row[name]) for row in rows)] for name in (down, across))
    scale = _Scale(rows, statistic, "")
    least, most = min(scale.values), max(scale.values)
    step = float(np.median(np.subtract(scale.high, scale.low))) if scale.low else (most - least) / SHADES
    steps = [0.0 if equal or step <= 0 else float(round((value - least) / step)) for value in scale.values]
    darkest = max(steps)
    shades = numbers(0.15 if not darkest else 0.02 + 0.98 * level / darkest for level in steps)
    x = numbers(columns.index(label_text(row[across])) for row in rows)
    y = numbers(lines.index(label_text(row[down])) for row in rows)
    shown = {end: _shown(pick(rows, key=lambda row: _height(row[statistic], _first(rows, statistic)))[statistic])
             for end, pick in (("light", min), ("dark", max))}  # fmt: skip
    about = "equal within the noise" if not darkest else f"{shown['light']} (light) to {shown['dark']} (dark)"
    return Chart(
        title,
        (Cell(statistic, x, y, shades, scale.tips()),),
        Axis(across, "category", tuple(columns)),
        Axis(f"{down}; {statistic}: {about}", "category", tuple(lines)),
        _table(rows, (down, across, statistic, *(name for name in NUMBERS if name in rows[0]))),
        height=max(60, LINE * len(lines)),
    )


def _block_chart(rows: Sequence[Mapping[str, Any]], statistic: str, *, title: str) -> Chart:
    """Return blocks of neighboring numbers: their mean, and the range of their intervals. The numbers are paged elsewhere."""
    scale, size = _Scale(rows, statistic, statistic), math.ceil(len(rows) / MOST_BLOCKS)
    starts, names = range(0, len(rows), size), scale.names()
    spans = [f"{names[start]} to {names[min(start + size, len(rows)) - 1]}" for start in starts]
    means = numbers(float(np.mean(scale.values[start : start + size])) for start in starts)
    low = numbers(min((scale.low or scale.values)[start : start + size]) for start in starts)
    high = numbers(max((scale.high or scale.values)[start : start + size]) for start in starts)
    positions, band = numbers(range(len(starts))), "range of the 95% intervals" if scale.low else "range"
    tips = tuple(f"{span}: mean {_shown(mean)}" for span, mean in zip(spans, means, strict=True))
    return Chart(
        f"{title}, in blocks of {size:,}",
        (Band(band, positions, low, high), Line(f"mean of {size:,} numbers", positions, means, tips=tips)),
        Axis(" x ".join(labels_of(rows, statistic)), "category", tuple(names[start] for start in starts)),
        Axis(scale.title),
        Table(("numbers", "mean", "lowest", "highest"), tuple(zip(spans, means, low, high, strict=True))),
    )


def _table(rows: Sequence[Mapping[str, Any]], columns: tuple[str, ...]) -> Table:
    return Table(
        columns, tuple(tuple("(missing)" if row[name] is None else row[name] for name in columns) for row in rows)
    )


def _first(rows: Sequence[Mapping[str, Any]], statistic: str) -> str:
    """Return the earliest of the values that are dates or times in ISO 8601; empty if they are numbers."""
    texts = [row[name] for row in rows for name in (statistic, "low") if isinstance(row.get(name), str)]
    return min(texts, default="")


def _height(value: Any, first: str) -> float:
    """Return a number, or the days from a first date to another one (the hours, for times of day)."""
    if not isinstance(value, str):
        return float(value)
    if ":" in first[:3]:
        clocks = [dt.datetime.combine(dt.date.min, dt.time.fromisoformat(clock)) for clock in (first, value)]
        return (clocks[1] - clocks[0]) / dt.timedelta(hours=1)
    return (dt.datetime.fromisoformat(value) - dt.datetime.fromisoformat(first)) / dt.timedelta(days=1)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,.0f}" if abs(value) >= 1e6 else f"{value:,.6g}"


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


def html(*answers: Answer) -> str:
    """Return small tables with bars, for notebooks, and the charge of all of them."""
    shown = []
    for answer in answers:
        compared = answer.comparison
        finding = compared.says() if compared else ""
        view = {"title": sentence(answer.query.says()), "finding": finding, "caution": answer.caution}
        shown.append({**view, **_rows_view(answer.rows(), answer.query.statistic)})
    return render("report/answer.html", {"answers": shown, "charge": answers[0].charge.says()})


def tables_html(answers: Answers) -> str:
    """Return the tables of SQL statements, for notebooks, with their notes and the charge."""
    shown = [(table.texts(MOST_ROWS), table.rows()) for table in answers.tables]
    tables = [
        ([name.replace("_", " ") for name in headers], [_cells(*line) for line in zip(texts, rows, strict=False)])
        for (headers, texts), rows in shown
    ]
    more = sum(max(table.to_arrow().num_rows - MOST_ROWS, 0) for table in answers.tables)
    notes = [
        *answers.notes,
        *([f"and {more:,} more rows"] if more else []),
        answers.charge.says().replace("     ", " · "),
    ]
    intervals = any(table.intervals for table in answers.tables)
    caption = (
        "low and high are the 95% interval of the true number, accounting for the noise only." if intervals else ""
    )
    return show({"title": "Result", "caption": caption, "tables": tables, "notes": notes})


def _cells(texts: Sequence[str], row: Mapping[str, Any]) -> list[TextCell]:
    """Return a row of text; numbers are aligned to the right."""
    values = zip(texts, row.values(), strict=True)
    return [TextCell(text, isinstance(value, int | float) and not isinstance(value, bool)) for text, value in values]


def derived_html(derived: Derived) -> str:
    """Return a small table with bars, for notebooks, and the entries that the answer follows from."""
    title = sentence(derived.query.says())
    shown = {"title": title, "finding": "", "caution": "", **_rows_view(derived.rows(), "value")}
    return render("report/answer.html", {"answers": [shown], "charge": f"{sentence(derived.says())}. Cost 0."})


def preview_html(preview: Preview) -> str:
    """Return the cost, the remaining budget, the expected errors and the identification, for notebooks."""
    account, cost = preview.account, preview.cost
    caption = f"Would cost {SHORT[account.unit]} {cost.say()}{'' if preview.fits else ', which exceeds the budget'}."
    text = f"{SHORT[account.unit]} {account.spent.say()} spent, "
    if preview.fits:
        text += f"{cost.say()} for this request, {account.left.minus(cost).say()} left of {account.ceiling.say()}"
    else:
        text += f"{account.left.say()} left of {account.ceiling.say()}; this request needs {cost.say()}"
    limit = float(account.ceiling)
    bar = budget_bar(text, spent=float(account.spent), limit=limit, planned=float(cost))
    errors = [_error_row(row) for row in preview.rows()]
    within = f"expected error ({100 * preview.confidence:g}% confidence)"
    notes = {"note": "note"} if any(row["note"] for row in errors) else {}
    tables = [table_of(errors, {"question": "query", "error": within, **notes})]
    risks = {f"identification of {name}": of for name, of in preview.identification().items()}
    risks |= {"yes/no certainty": preview.yes_no()} if risks else {}
    if risks:
        rows = [{"risk": name, **of} for name, of in risks.items()]
        tables.append(table_of(rows, {"risk": "at most", "now": "now", "after": "after", "ceiling": "limit"}))
    return show({"title": "Preview: nothing was charged", "caption": caption, "bars": [bar], "tables": tables})


def _error_row(row: Mapping[str, Any]) -> dict[str, Any]:
    free = f"free: {row['free']}" if row["free"] else ""
    error = "depends on the data" if row["error"] is None else number(row["error"])
    return {
        "question": sentence(row["question"]),
        "error": error,
        "note": "; ".join(filter(None, (row["caution"], free))),
    }


def _rows_view(rows: Sequence[Mapping[str, Any]], statistic: str) -> dict[str, Any]:
    """Return the first rows of an answer, each with the length of its bar, and the number of other rows."""
    names, first = _Scale(rows, statistic, "").names(), _first(rows, statistic)
    largest = max((abs(_height(row.get("high", row[statistic]), first)) for row in rows), default=0.0) or 1.0
    shown = [
        {
            "name": name,
            "value": _shown(row[statistic]),
            "interval": f"{_shown(row['low'])} to {_shown(row['high'])}" if "low" in row else "",
            "share": max(0.0, _height(row[statistic], first) / largest),
        }
        for name, row in zip(names, rows[:MOST_DOTS], strict=False)
    ]
    bars = (
        len(rows) > 1 and statistic != "regression"
    )  # one number, and coefficients of different units, compare with nothing
    return {"rows": shown, "bars": bars, "more": len(rows) - len(shown)}
