"""The charts of the risk lab: identification against loss, operators side by side, breaches of randomized baskets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.charts import Axis, Bar, Chart, Line, Rule, Table, numbers
from tidegate.charts.chart import Tone
from tidegate.exact import exact
from tidegate.html.render import amount, chance
from tidegate.service.routes.risk_meaning import curve

ROW = 54  # pixels of an operator
WHOLE = Axis("share or probability", low=0, high=1.03)
LOOKS: tuple[tuple[str, str, Tone], ...] = (
    ("before", "before", "quiet"),
    ("visible", "all seen", "accent"),
    ("absent", "none seen", "ink"),
    ("mixed", "some seen", "limit"),
)


def curve_chart(conversion: Mapping[str, Any]) -> Chart:
    """Return the identification that each loss leaves, with the converted pair marked."""
    points = curve(exact(conversion["worlds"]), most=None, points=101)
    epsilon, rho = float(conversion["epsilon"]), float(conversion["rho"])
    losses = numbers(point["epsilon"] for point in points["points"])
    listed = points["points"][::10]
    return Chart(
        f"Among {amount(conversion['worlds'])} possibilities, a loss of {amount(epsilon, 3)} leaves a guess right with at most {chance(rho)}",
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


def operators_chart(found: Sequence[Mapping[str, Any]]) -> Chart:
    """Return the three main measures of each operator: 0 reveals nothing, 1 everything."""
    rows = numbers(range(len(found)))
    least = min(found, key=lambda one: float(one["entropy"]["loss"]))
    bars: tuple[tuple[str, Tone, list[float]], ...] = (
        ("entropy loss (on average)", "accent", [one["entropy"]["loss"] for one in found]),
        ("what 5% can become (at worst)", "quiet", [one["breach"]["to_for_any_prior"] for one in found]),
        ("most revealing report", "soft", [one["most_revealing"]["after"] for one in found]),
    )
    return Chart(
        f"{least['operator']} reveals least on average: an entropy loss of {amount(least['entropy']['loss'], 2)}",
        tuple(
            Bar(name, rows, numbers(values), tone, 0.26, 0.28 * (index - 1))
            for index, (name, tone, values) in enumerate(bars)
        ),
        Axis(kind="category", categories=tuple(one["operator"] for one in found)),
        WHOLE,
        Table(
            ("operator", "measure", "value", "what it means"),
            tuple((one["operator"], row["measure"], row["value"], row["says"]) for one in found for row in one["rows"]),
        ),
        horizontal=True,
        height=ROW * len(found),
    )


def breaches_chart(found: Mapping[str, Any]) -> Chart:
    """Return how likely an item becomes by what is seen of a set that contains it."""
    rows = found["breaches"]
    sizes = numbers(row["items"] for row in rows)
    table = tuple(
        (str(row["items"]), *("–" if row[key] is None else chance(row[key]) for key, _, _ in LOOKS)) for row in rows
    )
    return Chart(
        f"No look at a report makes an item likelier than {chance(found['worst_breach'])}",
        tuple(Line(name, sizes, numbers(row[key] for row in rows), tone, dots=True) for key, name, tone in LOOKS),
        Axis("items in the set that is looked for", format="whole"),
        Axis("probability of an item", low=0, high=1.03),
        Table(("items", *(name for _, name, _ in LOOKS)), table),
    )
