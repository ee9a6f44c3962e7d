"""The figures as pictures; titles state the finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tidegate_papers.identifiability.figures import Picture
from tidegate_papers.panels import ACCENT, INK, LIMIT, QUIET, canvas
from tidegate_papers.randomization.classification import NOISES, Accuracies
from tidegate_papers.randomization.curves import AT, Curve
from tidegate_papers.randomization.itemsets import LEAST, OPERATORS, Recovery
from tidegate_papers.randomization.run import Reproduction

LOOKS: dict[str, tuple[str, str, str]] = {  # color, line, name
    "original": (INK, ":", "true records"),
    "randomized": (QUIET, "-", "reports as values"),
    "by-class": (LIMIT, "--", "ByClass"),
    "local": (LIMIT, "-", "Local"),
    "best": (ACCENT, "-", "ours"),
}


def pictures(done: Reproduction) -> list[Picture]:
    """Return curves at 100% privacy, accuracies, and itemsets, as far as they were computed."""
    drawn = []
    if done.curves:
        has_levels = len({accuracies.level for accuracies in done.accuracies}) > 1
        drawn += [
            _curves([curve for curve in done.curves if curve.level == 1]),
            (_levels if has_levels else _gaps)(done.accuracies),
        ]
    return [*drawn, recovery_picture(done.recoveries)] if done.recoveries else drawn


def _curves(drawn: Sequence[Curve]) -> Picture:
    figure, panels = canvas(2, 3, "The distribution comes back from reports that hide it", height=2.5)
    for axes, curve in zip(panels, sorted(drawn, key=lambda curve: curve.noise), strict=True):
        axes.fill_between(AT, 100 * curve.truth, color="#e6eaec", linewidth=0, label="true values")
        axes.plot(AT, 100 * curve.seen, color=QUIET, linewidth=1.2, label="reports")
        axes.plot(AT, 100 * curve.estimates["em"], color=LIMIT, linewidth=1.2, label="EM, as published")
        axes.plot(AT, 100 * curve.estimates["bank"], color=ACCENT, linewidth=1.8, label="default")
        axes.set_title(f"{curve.shape}, {curve.noise} noise", loc="left", fontsize=9.5, color=INK)
        axes.set_ylabel("% in each hundredth", fontsize=8.5, color=INK)
        axes.set_ylim(0, 3.4)
    panels[1].legend(frameon=False, fontsize=8, loc="upper left")
    words = "Section 2. Distributions of 100,000 values, of their reports at 100% privacy, and reconstructed."
    return Picture("curves.png", figure, words)


def _gaps(measured: Sequence[Accuracies]) -> Picture:
    worst = max(accuracies.own_gap for accuracies in measured)
    figure, panels = canvas(1, 2, f"At 100% privacy the default is at most {worst:.0f} points behind", height=3.2)
    names = [name for name in LOOKS if name != "original"]
    for axes, noise in zip(panels, NOISES, strict=True):
        rows = [accuracies for accuracies in measured if accuracies.noise == noise]
        positions = np.arange(len(rows))
        for index, name in enumerate(names):
            color, line, words = LOOKS[name]
            bars = [accuracies.percent["original"] - accuracies.percent[name] for accuracies in rows]
            hatch = "//" if line == "--" else ""
            axes.bar(positions + 0.2 * (index - 1.5), bars, 0.18, color=color, hatch=hatch, label=words)
        axes.axhline(15, color=INK, linewidth=0.8, linestyle=":")
        axes.set_xticks(positions, [f"Fn{accuracies.function}" for accuracies in rows])
        axes.set_title(f"{noise} noise", loc="left", fontsize=9.5, color=INK)
        axes.set_ylabel("points behind true records", fontsize=8.5, color=INK)
        axes.set_ylim(0, 50)
    panels[0].legend(frameon=False, fontsize=8)
    words = "Section 2. How far trees of randomized records stay behind those of true ones; dotted: the published 15 points."
    return Picture("accuracies.png", figure, words)


def _levels(measured: Sequence[Accuracies]) -> Picture:
    title = "Accuracy falls slowly with privacy where attributes are reconstructed together"
    figure, panels = canvas(2, 5, title, height=2.6, width=12)
    keys = [(noise, function) for noise in NOISES for function in range(1, 6)]
    for axes, (noise, function) in zip(panels, keys, strict=True):
        _level(
            axes,
            [accuracies for accuracies in measured if (accuracies.noise, accuracies.function) == (noise, function)],
        )
        axes.set_title(f"Fn{function}, {noise}", loc="left", fontsize=9.5, color=INK)
    panels[0].legend(frameon=False, fontsize=7.5, loc="lower left")
    words = "Section 2. Accuracy by privacy (95% interval as a share of the range), 100,000 training records."
    return Picture("accuracies.png", figure, words)


def _level(axes: Any, rows: Sequence[Accuracies]) -> None:
    for name, (color, line, words) in LOOKS.items():
        x = [100 * accuracies.level for accuracies in rows]
        axes.plot(
            x,
            [accuracies.percent[name] for accuracies in rows],
            color=color,
            linestyle=line,
            linewidth=1.6,
            label=words,
        )
    axes.set_ylim(35, 101)
    axes.set_xlabel("privacy (%)", fontsize=8.5, color=INK)
    axes.set_ylabel("accuracy (%)", fontsize=8.5, color=INK)


OPERATOR_COLORS = {"cut-and-paste": LIMIT, "designed": ACCENT, "both": INK}


def recovery_picture(done: Sequence[Recovery]) -> Picture:
    """Plot for each sample how many 1-, 2- and 3-itemsets are recovered, and how many come by chance."""
    title = "At a breach level of 50% most frequent itemsets come back"
    figure, panels = canvas(2, len(done), title, height=2.7, width=3.4 * len(done) + 0.6)
    for index, recovery in enumerate(done):
        _counts(panels[index], recovery)
        _deviations(panels[index + len(done)], recovery)
    panels[0].legend(frameon=False, fontsize=8)
    words = (
        f"Section 3. Above: itemsets of {100 * float(LEAST):g}% recovered, in percent of the truly frequent; hatched: added by chance. "
        "Below: the deviation of a support in percent of 5,000,000 baskets; dotted: the published 0.07%."
    )
    return Picture("itemsets.png", figure, words)


def _counts(axes: Any, recovery: Recovery) -> None:
    wide = 0.8 / len(recovery.comparisons)
    for index, (name, rows) in enumerate(recovery.comparisons.items()):
        at = np.array([row.size for row in rows]) + wide * (index - (len(recovery.comparisons) - 1) / 2)
        true = np.array([max(row.true, 1) for row in rows])
        back, chance = (
            100 * np.array([getattr(row, kind) for row in rows]) / true for kind in ("recovered", "by_chance")
        )
        axes.bar(at, back, 0.9 * wide, color=OPERATOR_COLORS[name], label=OPERATORS[name])
        axes.bar(
            at,
            chance,
            0.9 * wide,
            bottom=back,
            color="white",
            edgecolor=OPERATOR_COLORS[name],
            hatch="///",
            linewidth=0.6,
        )
    axes.axhline(100, color=QUIET, linewidth=0.8)
    axes.set_ylim(0, 160)
    axes.set_xticks([1, 2, 3])
    axes.set_title(recovery.sample.name, loc="left", fontsize=9.5, color=INK)
    axes.set_ylabel("% of the frequent ones", fontsize=8.5, color=INK)


def _deviations(axes: Any, recovery: Recovery) -> None:
    for name in recovery.comparisons:
        sigma = recovery.sigma(name)
        axes.plot(
            [int(size) for size in sigma],
            list(sigma.values()),
            "o-",
            color=OPERATOR_COLORS[name],
            linewidth=1.6,
            markersize=4,
        )
    axes.axhline(0.07, color=INK, linewidth=0.8, linestyle=":")
    axes.set_ylim(0, 0.1)
    axes.set_xticks([1, 2, 3])
    axes.set_xlabel("items", fontsize=8.5, color=INK)
    axes.set_ylabel("deviation (%)", fontsize=8.5, color=INK)
