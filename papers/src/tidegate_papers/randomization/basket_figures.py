"""Section 3 as a picture: how many itemsets come back, and what an operator of a breach level costs by size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tidegate_papers.identifiability.figures import Picture
from tidegate_papers.panels import ACCENT, INK, LIMIT, QUIET, canvas
from tidegate_papers.randomization.itemsets import LEAST, OPERATORS, Recovery

LOOKS = {"cut-and-paste": LIMIT, "designed": ACCENT, "both": INK}


def recovery_picture(done: Sequence[Recovery]) -> Picture:
    """For each sample: of 1-, 2- and 3-itemsets how many of 100 come back, and how many come by chance."""
    title = "At a breach level of 50% most frequent itemsets come back"
    figure, panels = canvas(2, len(done), title, height=2.7, width=3.4 * len(done) + 0.6)
    for place, one in enumerate(done):
        _counts(panels[place], one)
        _deviations(panels[place + len(done)], one)
    panels[0].legend(frameon=False, fontsize=8)
    words = (
        f"Section 3. Above: itemsets of {100 * float(LEAST):g}% recovered, in percent of the truly frequent; hatched: added by chance. "
        "Below: the deviation of a support in percent of 5,000,000 baskets; dotted: the published 0.07%."
    )
    return Picture("itemsets.png", figure, words)


def _counts(axes: Any, one: Recovery) -> None:
    wide = 0.8 / len(one.found)
    for place, (name, rows) in enumerate(one.found.items()):
        at = np.array([row.size for row in rows]) + wide * (place - (len(one.found) - 1) / 2)
        true = np.array([max(row.true, 1) for row in rows])
        back, chance = (
            100 * np.array([getattr(row, kind) for row in rows]) / true for kind in ("recovered", "by_chance")
        )
        axes.bar(at, back, 0.9 * wide, color=LOOKS[name], label=OPERATORS[name])
        axes.bar(at, chance, 0.9 * wide, bottom=back, color="white", edgecolor=LOOKS[name], hatch="///", linewidth=0.6)
    axes.axhline(100, color=QUIET, linewidth=0.8)
    axes.set_ylim(0, 160)
    axes.set_xticks([1, 2, 3])
    axes.set_title(one.sample.name, loc="left", fontsize=9.5, color=INK)
    axes.set_ylabel("% of the frequent ones", fontsize=8.5, color=INK)


def _deviations(axes: Any, one: Recovery) -> None:
    for name in one.found:
        sigma = one.sigma(name)
        axes.plot(
            [int(size) for size in sigma], list(sigma.values()), "o-", color=LOOKS[name], linewidth=1.6, markersize=4
        )
    axes.axhline(0.07, color=INK, linewidth=0.8, linestyle=":")
    axes.set_ylim(0, 0.1)
    axes.set_xticks([1, 2, 3])
    axes.set_xlabel("items", fontsize=8.5, color=INK)
    axes.set_ylabel("deviation (%)", fontsize=8.5, color=INK)
