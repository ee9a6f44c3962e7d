"""The charts of the risk lab: identification against loss, comparison of operators, breaches of randomized baskets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.charts import Axis, Bar, Chart, Line, Rule, Table, numbers
from tidegate.charts.chart import Tone
from tidegate.exact import exact
from tidegate.html.render import amount, chance
from tidegate.service.routes.risk_meaning import curve

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
    points = curve(exact(conversion["worlds"]), most=None, points=101)
    epsilon, rho = float(conversion["epsilon"]), float(conversion["rho"])
    losses = numbers(point["epsilon"] for point in points["points"])
    listed = points["points"][::10]
    return Chart(
        f"Among {amount(conversion['worlds'])} possible values, a loss of {amount(epsilon, 3)} limits a correct guess to {chance(rho)}",
        (
            Line("at most", losses, numbers(point["rho"] for point in points["points"])),
            Line(
                "worst yes/no certainty",
                losses,
                numbers(point["yes_no"] for point in points["points"]),
                "quiet",
                "dashed",
            ),
            Rule("a random guess", (points["blind_guess"],), tone="ink", dash="dotted"),
            Line("here", (epsilon,), (rho,), "limit", dots=True, joined=False),
        ),
        Axis("total loss, epsilon", low=0),
        Axis("identification, rho", low=0, high=1.03),
        Table(
            ("epsilon", "rho at most", "yes/no certainty at most"),
            tuple((amount(point["epsilon"], 3), chance(point["rho"]), chance(point["yes_no"])) for point in listed),
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
