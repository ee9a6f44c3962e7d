"""Figures 2 to 4: boxplots of the noise ratio of 1,000 answers, drawn by the mechanism that a session uses.

The noise ratio is (R - f(D)) / range: the noise itself, so no data is needed. Its quartiles are at -+ s ln 2 with
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
from tidegate_papers.item import Published, Result

DRAWS = 1000
NO_BOX = "no box"
CLOSE = 1e-3  # the unit of the figure's axis


@dataclass(frozen=True)
class Box:
    """1,000 noise ratios at one rho or epsilon for one number of rows; none if rho is no better than a guess."""

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
            raise ValueError("There is no box.")
        return self.ratios

    def errors(self, upper: float) -> float:
        """Return the largest distance of the quartiles from their expected values, in standard errors."""
        expected, far = [-upper, 0.0, upper], 0.0
        scale = upper / math.log(2)
        for index, (ours, other) in enumerate(zip(self.quartiles, expected, strict=True)):
            # sqrt(p (1 - p) / draws) / density: the density is 1 / (4 s) at the quartiles, 1 / (2 s) in the middle
            share, density = (0.5, 0.5) if index == 1 else (0.25, 0.25)
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
    """Simulate every plot of Figures 2, 3 and 4, with the same draws each time."""
    return [_panel(item) for item in PUBLISHED if item.printing == "boxes"]


def _panel(item: Published) -> Panel:
    figure, *statistic, code = item.id.split("_")
    attribute = ATTRIBUTES[code]
    by = "epsilon" if figure == "fig3" else "rho"
    kind = statistic[0] if statistic else "mean"
    boxes = (_box(item.id, attribute, kind, by, key) for key in item.published)
    return Panel(item.id, item.where, attribute, kind, by, tuple(boxes))


def _box(name: str, attribute: Attribute, statistic: str, by: str, key: str) -> Box:
    tick, _, row_text = key.partition(" of ")
    rows = int(row_text or ROWS)
    if by == "rho" and not feasible(Fraction(tick), Fraction(attribute.worlds)):
        return Box(tick, rows, math.inf, None)
    epsilon = Fraction(tick) if by == "epsilon" else loss_for(Fraction(tick), Fraction(attribute.worlds)).value
    scale = sum_scale(attribute, statistic, rows=rows, epsilon=epsilon)
    noise = discrete_laplace(scale, size=DRAWS, bits=SeededBits(f"{name}/{key}"))
    divided = rows if statistic == "mean" else 1  # a mean is the noisy sum over the public number of rows
    unit = attribute.span * divided
    return Box(tick, rows, float(scale) / unit, noise / unit)


def sum_scale(attribute: Attribute, statistic: str, *, rows: int, epsilon: Fraction) -> Fraction:
    """Return the scale of the integer noise that the mechanism adds to the sum, for a loss of epsilon."""
    query = {"mean": ask.mean, "sum": ask.sum}[statistic](attribute.name)
    event = mechanism_for(query).event(query, adult_policy(rows=rows), epsilon=epsilon)
    if not isinstance(event, Moments) or event.scales[1] is None:
        raise TypeError("A mean and a sum must come from a noisy sum.")
    return event.scales[1]


def figures_2_to_4(drawn: list[Panel]) -> dict[str, Result]:
    """Compare every panel's quartiles with the expected ones, and check the statements about the figures."""
    items = {item.id: item for item in PUBLISHED}
    results = {panel.id: _compared(panel, items[panel.id]) for panel in drawn}
    return {**results, **_statements(drawn)}


def _compared(panel: Panel, item: Published) -> Result:
    expected: dict[str, list[float] | str] = {}
    ours: dict[str, list[float] | str] = {}
    far, count = 0.0, 0
    for (key, upper), box in zip(item.published.items(), panel.boxes, strict=True):
        ours[key] = NO_BOX if box.ratios is None else box.quartiles
        expected[key] = [-upper, 0.0, upper] if isinstance(upper, float) else NO_BOX
        if isinstance(upper, float) and box.ratios is not None:
            far, count = max(far, box.errors(upper)), count + 3
        elif expected[key] != ours[key]:
            far = math.inf  # a box where none is expected, or the reverse
    return Result(ours, published=expected, z=far, count=count, size=DRAWS)


def _statements(drawn: list[Panel]) -> dict[str, Result]:
    second = [panel for panel in drawn if panel.id.startswith("fig2_")]
    close = [panel.attribute.code for panel in second if _close(panel, "0.015")]
    rising = all(left.scale <= right.scale for panel in second for left, right in _neighbors(panel))
    ratios = {kind: _size_ratio(drawn, kind) for kind in ("mean", "sum")}
    return {
        "fig2_more_noise": Result(
            "more noise for a smaller rho" if rising else "not always more noise for a smaller rho"
        ),
        "fig2_safe_harbor": Result(sorted(close)),
        "fig4_size_mean": _by_size(ratios["mean"]),
        "fig4_size_sum": _by_size(ratios["sum"]),
    }


def _close(panel: Panel, tick: str) -> bool:
    box = next(box for box in panel.boxes if box.tick == tick)
    return box.ratios is not None and float(np.quantile(np.abs(box.ratios), 0.95)) <= CLOSE


def _neighbors(panel: Panel) -> Iterator[tuple[Box, Box]]:
    return zip(panel.boxes, panel.boxes[1:], strict=False)


def _size_ratio(drawn: list[Panel], statistic: str) -> float:
    """Return the noise for 1,000 rows over that for 10,000."""
    boxes = [box for panel in drawn if panel.id.startswith(f"fig4_{statistic}_") for box in panel.boxes]
    small, large = (sum(box.scale for box in boxes if box.rows == rows) for rows in (1000, 10_000))
    return small / large


def _by_size(ratio: float) -> Result:
    same = math.isclose(ratio, 1, rel_tol=1e-9)
    words = "does not depend on the size" if same else "shrinks with the size" if ratio > 1 else "grows with the size"
    return Result(words, f"1,000 rows need {ratio:.4g} times the noise of 10,000")
