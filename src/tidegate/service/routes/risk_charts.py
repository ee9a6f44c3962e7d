"""The charts of the risk lab: identification, errors of several answers, comparison of operators, randomized baskets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.accounting.budget import SHORT
from tidegate.charts import Axis, Bar, Chart, Line, Rule, Table, numbers
from tidegate.charts.chart import Tone
from tidegate.exact import exact
from tidegate.html.render import amount, chance
from tidegate.policy.promises import Guarantee
from tidegate.service.routes.risk_meaning import curve
from tidegate.service.routes.risk_readings import UNITS, possibilities

ROW = 54  # pixels per operator
WHOLE = Axis("share or probability", low=0, high=1.03)
SERIES: tuple[tuple[str, str, Tone], ...] = (
    ("before", "before", "quiet"),
    ("visible", "all reported", "accent"),
    ("absent", "none reported", "ink"),
    ("mixed", "some reported", "limit"),
)


def curve_chart(conversion: Mapping[str, Any]) -> Chart:
    """Return the probability of identification for each loss, with the converted pair marked."""
    guarantee: Guarantee = conversion["guarantee"]
    unit, average = UNITS[guarantee], guarantee == "average"
    worlds = possibilities(exact(conversion["worlds"]), conversion["within"])
    points = curve(worlds, most=None, points=101, guarantee=guarantee)
    loss, rho = float(conversion[unit]), float(conversion["rho"])
    losses = numbers(point[unit] for point in points["points"])
    listed = points["points"][::10]
    certainty = "yes/no certainty" if average else "worst yes/no certainty"
    return Chart(
        f"Among {amount(worlds)} possible values, a loss of {'Z ' if average else ''}{amount(loss, 3)} limits a correct guess to {chance(rho)}"
        f"{' on average' if average else ''}",
        (
            Line("at most", losses, numbers(point["rho"] for point in points["points"])),
            Line(certainty, losses, numbers(point["yes_no"] for point in points["points"]), "quiet", "dashed"),
            Rule("a random guess", (points["blind_guess"],), tone="ink", dash="dotted"),
            Line("here", (loss,), (rho,), "limit", dots=True, joined=False),
        ),
        Axis(f"total loss, {SHORT[unit]}", low=0),
        Axis("identification, rho", low=0, high=1.03),
        Table(
            (SHORT[unit], "rho at most", "yes/no certainty at most"),
            tuple((amount(point[unit], 3), chance(point["rho"]), chance(point["yes_no"])) for point in listed),
        ),
    )


def errors_chart(conversion: Mapping[str, Any]) -> Chart:
    """Return the error of each of several equal answers that use the whole budget, under both guarantees."""
    worst, average = (
        numbers(point["error"] for point in conversion["readings"][guarantee]["errors"]) for guarantee in UNITS
    )
    counts = [point["answers"] for point in conversion["readings"]["worst-case"]["errors"]]
    crossing = (average[0] / worst[0]) ** 2  # K answers: worst[0] * K against average[0] * sqrt(K)
    start = "for any number of answers" if crossing <= 1 else f"from {math.floor(crossing) + 1:,} answers on"
    least = worst[counts.index(100)] / average[counts.index(100)]
    gain = f"; with 100 answers, {amount(least, 2)} times less" if least > 1 else ""
    return Chart(
        f"The average guarantee needs less noise {start}{gain}",
        (
            Line("worst case", numbers(counts), worst, "quiet", "dashed", dots=True),
            Line("on average", numbers(counts), average, dots=True),
        ),
        Axis("number of equal answers", "log"),
        Axis("standard deviation of each, in ranges", "log"),
        Table(
            ("answers", "worst case", "on average"),
            tuple((f"{count:,}", amount(w), amount(a)) for count, w, a in zip(counts, worst, average, strict=True)),
        ),
    )


def operators_chart(operators: Sequence[Mapping[str, Any]]) -> Chart:
    """Return the three main measures of each operator: 0 reveals nothing, 1 everything."""
    rows = numbers(range(len(operators)))
    least = min(operators, key=lambda operator: float(operator["entropy"]["loss"]))
    bars: tuple[tuple[str, Tone, list[float]], ...] = (
        ("entropy loss (on average)", "accent", [operator["entropy"]["loss"] for operator in operators]),
        (
            "what 5% can become (worst case)",
            "quiet",
            [operator["breach"]["to_for_any_prior"] for operator in operators],
        ),
        ("most revealing report", "soft", [operator["most_revealing"]["after"] for operator in operators]),
    )
    return Chart(
        f"{least['operator']} reveals least on average: an entropy loss of {amount(least['entropy']['loss'], 2)}",
        tuple(
            Bar(name, rows, numbers(values), tone, 0.26, 0.28 * (index - 1))
            for index, (name, tone, values) in enumerate(bars)
        ),
        Axis(kind="category", categories=tuple(operator["operator"] for operator in operators)),
        WHOLE,
        Table(
            ("operator", "measure", "value", "what it means"),
            tuple(
                (operator["operator"], row["measure"], row["value"], row["says"])
                for operator in operators
                for row in operator["rows"]
            ),
        ),
        horizontal=True,
        height=ROW * len(operators),
    )


def breaches_chart(measures: Mapping[str, Any]) -> Chart:
    """Return the probability of an item by what a report shows of an itemset that contains it."""
    rows = measures["breaches"]
    sizes = numbers(row["items"] for row in rows)
    table = tuple(
        (str(row["items"]), *("–" if row[key] is None else chance(row[key]) for key, _, _ in SERIES)) for row in rows
    )
    return Chart(
        f"No report gives an item a probability above {chance(measures['worst_breach'])}",
        tuple(Line(name, sizes, numbers(row[key] for row in rows), tone, dots=True) for key, name, tone in SERIES),
        Axis("items in the itemset", format="whole"),
        Axis("probability of an item", low=0, high=1.03),
        Table(("items", *(name for _, name, _ in SERIES)), table),
    )
