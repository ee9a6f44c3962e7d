"""Figures 2 to 4: boxplots of the noise ratio of 1,000 answers, drawn by the mechanism that a session uses.

The noise ratio is (R - f(D)) / range: the noise itself, so that no data is needed. Its quartiles are at -+ s ln 2 with
s = scale / range; 1,000 draws leave a standard error of 0.055 s at the quartiles and 0.032 s at the median.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

import tidegate.answer as ask
from tidegate.accounting import Moments, feasible, loss_for
from tidegate.answer.mechanisms import mechanism_for
from tidegate.noise import SeededBits, discrete_laplace
from tidegate_papers.identifiability.adult import adult_policy
from tidegate_papers.identifiability.paper import ATTRIBUTES, PUBLISHED, ROWS, Attribute
from tidegate_papers.item import Found, Published

DRAWS = 1000
NO_BOX = "no box"
CLOSE = 1e-3  # the unit of the figure's axis


@dataclass(frozen=True)
class Box:
    """1,000 noise ratios at one rho or epsilon for one number of rows; none where rho is no better than a guess."""

    tick: str
    rows: int
    scale: float
    ratios: NDArray[np.float64] | None

    @property
    def quartiles(self) -> list[float]:
        return [float(q) for q in np.quantile(self.drawn, (0.25, 0.5, 0.75))]

    @property
    def drawn(self) -> NDArray[np.float64]:
        if self.ratios is None:
            raise ValueError("there is no box")
        return self.ratios

    def errors(self, upper: float) -> float:
        """How many standard errors the quartiles are from where they must be, at most."""
        expected, far = [-upper, 0.0, upper], 0.0
        scale = upper / math.log(2)
        for place, (ours, other) in enumerate(zip(self.quartiles, expected, strict=True)):
            # sqrt(p (1 - p) / draws) / density: the density is 1 / (4 s) at the quartiles, 1 / (2 s) in the middle
            share, density = (0.5, 0.5) if place == 1 else (0.25, 0.25)
            error = math.sqrt(share * (1 - share) / DRAWS) * scale / density
            far = max(far, abs(ours - other) / error)
        return far


@dataclass(frozen=True)
class Panel:
    """One plot of a figure."""

    id: str
    where: str
    attribute: Attribute
    statistic: str
    by: str
    boxes: tuple[Box, ...]


def panels() -> list[Panel]:
    """Every plot of Figures 2, 3 and 4, simulated. The same draws each time."""
    return [_panel(item) for item in PUBLISHED if item.printing == "boxes"]


def _panel(item: Published) -> Panel:
    figure, *statistic, code = item.id.split("_")
    attribute = ATTRIBUTES[code]
    by = "epsilon" if figure == "fig3" else "rho"
    kind = statistic[0] if statistic else "mean"
    boxes = (_box(item.id, attribute, kind, by, key) for key in item.published)
    return Panel(item.id, item.where, attribute, kind, by, tuple(boxes))


def _box(name: str, attribute: Attribute, statistic: str, by: str, key: str) -> Box:
    tick, _, many = key.partition(" of ")
    rows = int(many or ROWS)
    if by == "rho" and not feasible(Fraction(tick), Fraction(attribute.worlds)):
        return Box(tick, rows, math.inf, None)
    epsilon = Fraction(tick) if by == "epsilon" else loss_for(Fraction(tick), Fraction(attribute.worlds)).value
    scale = sum_scale(attribute, statistic, rows=rows, epsilon=epsilon)
    noise = discrete_laplace(scale, size=DRAWS, bits=SeededBits(f"{name}/{key}"))
    divided = rows if statistic == "mean" else 1  # a mean is the noisy sum over the public number of rows
    unit = attribute.span * divided
    return Box(tick, rows, float(scale) / unit, noise / unit)


def sum_scale(attribute: Attribute, statistic: str, *, rows: int, epsilon: Fraction) -> Fraction:
    """The scale of the integer noise that the mechanism adds to the sum, for a loss of epsilon."""
    query = {"mean": ask.mean, "sum": ask.sum}[statistic](attribute.name)
    event = mechanism_for(query).event(query, adult_policy(rows=rows), epsilon=epsilon)
    if not isinstance(event, Moments) or event.scales[1] is None:
        raise TypeError("a mean and a sum come from a noisy sum")
    return event.scales[1]


def figures_2_to_4(drawn: list[Panel]) -> dict[str, Found]:
    """Every panel's quartiles beside those that must be there, and what the text says about the figures."""
    items = {item.id: item for item in PUBLISHED}
    found = {panel.id: _compared(panel, items[panel.id]) for panel in drawn}
    return {**found, **_said(drawn)}


def _compared(panel: Panel, item: Published) -> Found:
    expected: dict[str, list[float] | str] = {}
    ours: dict[str, list[float] | str] = {}
    far = 0.0
    for (key, upper), box in zip(item.published.items(), panel.boxes, strict=True):
        ours[key] = NO_BOX if box.ratios is None else box.quartiles
        expected[key] = [-upper, 0.0, upper] if isinstance(upper, float) else NO_BOX
        if isinstance(upper, float) and box.ratios is not None:
            far = max(far, box.errors(upper))
        elif expected[key] != ours[key]:
            far = math.inf  # a box where there is none, or none where there is one
    return Found(ours, published=expected, z=far, size=DRAWS)


def _said(drawn: list[Panel]) -> dict[str, Found]:
    second = [panel for panel in drawn if panel.id.startswith("fig2_")]
    close = [panel.attribute.code for panel in second if _close(panel, "0.015")]
    rising = all(one.scale <= two.scale for panel in second for one, two in _neighbours(panel))
    ratios = {kind: _size_ratio(drawn, kind) for kind in ("mean", "sum")}
    return {
        "fig2_more_noise": Found(
            "more noise for a smaller rho" if rising else "not always more noise for a smaller rho"
        ),
        "fig2_safe_harbor": Found(sorted(close)),
        "fig4_size_mean": _by_size(ratios["mean"]),
        "fig4_size_sum": _by_size(ratios["sum"]),
    }


def _close(panel: Panel, tick: str) -> bool:
    box = next(box for box in panel.boxes if box.tick == tick)
    return box.ratios is not None and float(np.quantile(np.abs(box.ratios), 0.95)) <= CLOSE


def _neighbours(panel: Panel) -> Iterator[tuple[Box, Box]]:
    return zip(panel.boxes, panel.boxes[1:], strict=False)


def _size_ratio(drawn: list[Panel], statistic: str) -> float:
    """The noise for 1,000 rows over that for 10,000."""
    boxes = [box for panel in drawn if panel.id.startswith(f"fig4_{statistic}_") for box in panel.boxes]
    small, large = (sum(box.scale for box in boxes if box.rows == rows) for rows in (1000, 10_000))
    return small / large


def _by_size(ratio: float) -> Found:
    same = math.isclose(ratio, 1, rel_tol=1e-9)
    words = "does not depend on the size" if same else "shrinks with the size" if ratio > 1 else "grows with the size"
    return Found(words, f"1,000 rows need {ratio:.4g} times the noise of 10,000")
