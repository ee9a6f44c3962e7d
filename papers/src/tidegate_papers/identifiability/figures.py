"""Figures 1 to 4 as pictures: one accent color, titles that state the finding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate_papers.identifiability.boxes import Panel
from tidegate_papers.identifiability.examples import curves

ACCENT, QUIET, INK = "#1f6f8b", "#b9c4c9", "#333333"
SMALL: Any = {"fontsize": 8, "color": "#777777"}
RANDOM_GUESS = 1 / 8  # of Figure 1


@dataclass(frozen=True)
class Picture:
    """A figure with its file name and its caption."""

    name: str
    figure: Any
    words: str


def pictures(panels: Sequence[Panel]) -> list[Picture]:
    """Return all four figures."""
    return [
        Picture(
            "figure-1.png",
            _figure_1(),
            "Figure 1. The risk that an adversary identifies the missing 2 after the worst response, with the noise of "
            "equation (15).",
        ),
        Picture(
            "figure-2.png",
            _noise(
                panels,
                "fig2_",
                "A mean over 48,842 rows stays close to the truth until rho comes near a random guess",
                columns=2,
            ),
            "Figure 2. Noise ratio of 1,000 answers by rho. Box: middle half; line: median; cross: mean; whiskers: 1.5 times the box. The farthest dots are cut off.",
        ),
        Picture(
            "figure-3.png",
            _noise(
                panels,
                "fig3_",
                "At the same epsilon both means get the same noise ratio, whatever their range",
                columns=2,
            ),
            "Figure 3. Size of the noise ratio of 1,000 answers by epsilon (differential privacy), on a logarithmic axis; whiskers: 5% to 95%.",
        ),
        Picture(
            "figure-4.png",
            _noise(
                panels,
                "fig4_",
                "Ten times the rows: a tenth of the noise for a mean, the same noise for a sum",
                columns=2,
            ),
            "Figure 4. Noise ratio of 1,000 answers for 1,000 and 10,000 rows. The farthest dots are cut off.",
        ),
    ]


def _canvas(rows: int, columns: int, title: str, *, height: float = 2.7) -> tuple[Any, list[Any]]:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(10, height * rows + 0.6), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))
    figure.suptitle(title, x=0.01, ha="left", fontsize=12.5, color=INK)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(QUIET)
        axes.tick_params(colors=INK, labelsize=8.5)
    return figure, list(grid.flat)


def _figure_1() -> Any:
    figure, (left, right) = _canvas(
        1, 2, "The noise of equation (15) is more than a mean needs, and exactly what a median needs", height=3.4
    )
    for axes, (name, (rhos, risks)) in zip((left, right), curves().items(), strict=True):
        axes.plot([0, 1], [0, 1], color=QUIET, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.plot(rhos, risks, color=ACCENT, linewidth=2)
        axes.axhline(RANDOM_GUESS, color=QUIET, linewidth=0.8)
        axes.text(0.98, RANDOM_GUESS - 0.015, "random guess 1/8", ha="right", va="top", **SMALL)
        axes.text(0.4, 0.425, "allowed: rho", rotation=45, rotation_mode="anchor", transform_rotates_text=True, **SMALL)
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="rho (probability)", ylabel="risk of identifying the 2 (probability)")
        axes.set_title(name, loc="left", fontsize=10, color=INK)
    return figure


def _noise(panels: Sequence[Panel], figure: str, title: str, *, columns: int) -> Any:
    chosen = [panel for panel in panels if panel.id.startswith(figure)]
    rows = -(-len(chosen) // columns)
    drawn, axes = _canvas(rows, columns, title)
    for axis, panel in zip(axes, chosen, strict=False):
        _boxes(axis, panel)
    for empty in axes[len(chosen) :]:
        _legend(empty)
    return drawn


def _boxes(axes: Any, panel: Panel) -> None:
    sizes = sorted({box.rows for box in panel.boxes})
    ticks = list(dict.fromkeys(box.tick for box in panel.boxes))
    whiskers: Any = 1.5 if panel.by == "rho" else (5, 95)  # sizes reach down to zero, which a logarithm cannot show
    for index, rows in enumerate(sizes):
        shift = 0.0 if len(sizes) == 1 else (index - 0.5) * 0.4
        color = ACCENT if rows == sizes[-1] else QUIET
        boxes = [box for box in panel.boxes if box.rows == rows and box.ratios is not None]
        ratios = [box.drawn if panel.by == "rho" else np.abs(box.drawn) for box in boxes]
        drawn = _draw(
            axes,
            ratios,
            [ticks.index(box.tick) + shift for box in boxes],
            color,
            wide=len(sizes) == 1,
            whiskers=whiskers,
        )
        drawn.set_label(f"{rows:,} rows")
    axes.axhline(0, color=QUIET, linewidth=0.8, zorder=0)
    _leave_out(axes, panel, ticks)
    axes.set_xlim(-0.6, len(ticks) - 0.4)
    axes.set_xticks(range(len(ticks)), ticks, rotation=45 if len(ticks) > 9 else 0)
    guess = f"  (random guess: 1 in {panel.attribute.worlds:,})" if panel.by == "rho" else ""
    axes.set_title(f"{panel.statistic} of {panel.attribute.name}{guess}", loc="left", fontsize=10, color=INK)
    axes.set_xlabel("rho (probability)" if panel.by == "rho" else "epsilon", fontsize=9, color=INK)
    if panel.by == "rho":
        _linear(axes, panel)
    else:
        _logarithmic(axes)
    if len(sizes) > 1:
        axes.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)


def _draw(axes: Any, ratios: list[Any], positions: list[float], color: str, *, wide: bool, whiskers: Any) -> Any:
    """Draw boxes of one color; the first of them represents all in a legend."""
    drawn = axes.boxplot(
        ratios,
        positions=positions,
        widths=0.55 if wide else 0.34,
        whis=whiskers,
        manage_ticks=False,
        patch_artist=True,
        showmeans=True,
        boxprops={"facecolor": color, "edgecolor": color, "alpha": 0.8},
        medianprops={"color": INK, "linewidth": 1},
        meanprops={"marker": "x", "markeredgecolor": INK, "markersize": 3.5, "markeredgewidth": 0.8},
        whiskerprops={"color": color},
        capprops={"color": color},
        flierprops={"marker": ".", "markersize": 2, "markerfacecolor": color, "markeredgecolor": "none", "alpha": 0.5},
    )
    return drawn["boxes"][0]


def _linear(axes: Any, panel: Panel) -> None:
    """Use an axis that contains the whiskers of the largest box; the farthest dots are cut off."""
    reach = 1.5 * 4 * math.log(2) * max(box.scale for box in panel.boxes if box.ratios is not None)
    axes.set_ylim(-reach, reach)
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2), useMathText=True)
    axes.yaxis.get_offset_text().set(fontsize=8, color=INK)
    axes.set_ylabel("noise ratio (share of range)", fontsize=9, color=INK)


def _logarithmic(axes: Any) -> None:
    """Use an axis for sizes that differ by powers of ten, without the sign of the noise."""
    axes.set_yscale("log")
    axes.set_ylim(1e-7, 1)
    axes.minorticks_off()
    axes.set_ylabel("size of the noise ratio\n(share of range)", fontsize=9, color=INK)


def _leave_out(axes: Any, panel: Panel, ticks: list[str]) -> None:
    """Shade the values of rho that no noise keeps."""
    positions = [ticks.index(box.tick) for box in panel.boxes if box.ratios is None]
    if not positions:
        return
    axes.axvspan(min(positions) - 0.5, max(positions) + 0.6, color="#f3f5f6", zorder=0, linewidth=0)
    axes.text(
        (min(positions) + max(positions)) / 2,
        0.94,
        "no noise keeps such a rho" if len(positions) > 3 else "none\nkeeps\nsuch a rho",
        transform=axes.get_xaxis_transform(),
        ha="center",
        va="top",
        **SMALL,
    )


def _legend(axes: Any) -> None:
    axes.axis("off")
    words = "Box: the middle half of 1,000 answers\nLine: median.  Cross: mean\nWhiskers: 1.5 times the box; dots beyond, the farthest cut off\nNoise ratio: (answer - truth) / (max - min)"
    axes.text(0.02, 0.9, words, va="top", fontsize=9.5, color=INK, linespacing=1.7)
