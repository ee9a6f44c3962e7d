"""The figures as pictures; titles state the finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import NullLocator

from tidegate.demo.soldiers import AGES, LOCATIONS, SHARES
from tidegate.release.tracks import counts_after
from tidegate_papers.identifiability.figures import Picture
from tidegate_papers.panels import ACCENT, INK, LIMIT, QUIET, canvas, distributions, exposure, fitting, shares
from tidegate_papers.release.approximations import Sample
from tidegate_papers.release.evolution import FIGURES, LEVEL, released, tracks_of
from tidegate_papers.release.examples import WHOLE, plan_of
from tidegate_papers.release.figure_16 import Means
from tidegate_papers.release.figure_19 import Safe
from tidegate_papers.release.paper import TESTS, printed
from tidegate_papers.release.run import Reproduction

NAMES = {"MIS": "mutual information", "KLD": "Kullback-Leibler", "CST": "chi-square", "DQT": "Dixon"}


def pictures(done: Reproduction) -> list[Picture]:
    """Return every figure that shows something, in the paper's order."""
    return [
        _figure_3(),
        _figure_5(done.samples),
        _figure_7(done.samples),
        *(_figure_12_to_15(number) for number in FIGURES),
        _released_ages(),
        _shares(),
        _figure_16(done.means),
        _figure_16_errors(done.means),
        _figure_18(),
        _figure_19(done.safe),
    ]


def _figure_3() -> Picture:
    drawn = distributions(
        plan_of("KLD", LEVEL),
        WHOLE,
        values=AGES,
        targets=LOCATIONS,
        bars="the location",
        title="Only the headquarters, L2, looks unlike the baseline",
    )
    return Picture("figure-3.png", drawn, "Figure 3. Ages of the soldiers of each location, and of all (the baseline).")


def _figure_5(samples: Sequence[Sample]) -> Picture:
    above = samples[0].above(0.2)
    title = f"The information of independent records is nearly chi-square: {above:.1%} lie above the 20% point"
    figure, (axes,) = canvas(1, 1, title, height=3.2)
    _histogram(axes, samples[0], "2 N ln 2 I(age, location), N = 5,000")
    words = "Figure 5. Mutual information of 10,000 samples of independent records, and chi-square with 45 degrees of freedom."
    return Picture("figure-5.png", figure, words)


def _figure_7(samples: Sequence[Sample]) -> Picture:
    high = max(sample.above(0.2) for sample in samples[1:])
    title = f"So are the distances of single locations: up to {high:.1%} lie above the 20% point"
    figure, panels = canvas(2, 3, title)
    for axes, sample in zip(panels, samples[1:], strict=False):
        _histogram(axes, sample, f"2 n ln 2 KL({sample.name}), n = {sample.records:,}")
    handles = panels[0].get_legend_handles_labels()
    for axes in panels[:5]:
        axes.get_legend().remove()
    panels[5].axis("off")
    panels[5].legend(*handles, frameon=False, fontsize=9, loc="upper left")
    words = "Figure 7. Distances of 10,000 samples of independent records, and chi-square with 9 degrees of freedom."
    return Picture("figure-7.png", figure, words)


def _histogram(axes: Any, sample: Sample, label: str) -> None:
    from scipy.special import gammaln  # type: ignore[import-untyped] # here: it is slow to load

    axes.hist(sample.values, 60, density=True, color=QUIET, label="10,000 samples")
    low, high = np.quantile(sample.values, [0.0002, 0.9995])
    x = np.linspace(low, high, 300)
    half = sample.freedom / 2
    density = np.exp((half - 1) * np.log(x) - x / 2 - half * np.log(2) - gammaln(half))
    axes.plot(x, density, color=ACCENT, linewidth=1.8, label=f"chi-square, {sample.freedom} degrees of freedom")
    axes.set_xlim(0.6 * x[0], x[-1])
    axes.set_xlabel(label, fontsize=9, color=INK)
    axes.set_ylabel("density", fontsize=9, color=INK)
    axes.legend(frameon=False, fontsize=8.5, loc="upper right")


def _figure_12_to_15(number: str) -> Picture:
    test = FIGURES[number]
    drawn = exposure(tracks_of(test), targets=LOCATIONS)
    words = f"Figure {number}. Exposure and its critical value as the records of one sequence of 10,000 requests are released; {NAMES[test]} at 20%."
    left = counts_after(plan_of(test, LEVEL), released(test)).sum(axis=0)
    absent = [name for name, number in zip(LOCATIONS, left, strict=True) if not number]
    words += f" Not one record of {' and '.join(absent)} left in this sequence." if absent else ""
    return Picture(f"figure-{number}.png", drawn, words)


def _released_ages() -> Picture:
    plan = plan_of("KLD", LEVEL)
    drawn = distributions(
        plan, counts_after(plan, released("KLD")), before=WHOLE, values=AGES, targets=LOCATIONS, bars="released"
    )
    words = "Figure 3, after a release: ages of the released soldiers of one sequence under the Kullback-Leibler test at 20%."
    return Picture("figure-3-released.png", drawn, words)


def _shares() -> Picture:
    plan = plan_of("KLD", LEVEL)
    left = counts_after(plan, released("KLD")).sum(axis=0)
    drawn = shares(SHARES, left.tolist(), targets=LOCATIONS)
    return Picture(
        "shares.png", drawn, "Released shares of the same sequence: who knows the sizes of the groups sees them."
    )


def _figure_16(means: Sequence[Means]) -> Picture:
    title = "How much of each location leaves depends on the test more than on its level"
    figure, panels = canvas(2, 4, title, height=2.9, width=11)
    for axes, row in zip(panels, means, strict=True):
        _means(axes, row)
    panels[0].legend(frameon=False, fontsize=8, loc="upper left")
    words = (
        "Figure 16. Published means of 20 sequences (diamonds) and ours (bars), as a share of each location's records. "
        "Whiskers: two standard errors of the difference."
    )
    return Picture("figure-16.png", figure, words)


def _figure_16_errors(means: Sequence[Means]) -> Picture:
    far = [f"{NAMES[row.test]} at {float(row.level):.0%}" for row in means if (np.abs(row.z) > 2).any()]
    title = "Published and simulated means agree" + (f", but for {' and '.join(far)}" if far else "")
    figure, (axes,) = canvas(1, 1, title, height=3.4)
    axes.axhspan(-2, 2, color="#eef2f4", linewidth=0)
    axes.axhline(0, color=QUIET, linewidth=0.8)
    for index, row in enumerate(means):
        where = 6 * index + np.arange(len(LOCATIONS))
        inside = np.abs(row.z) <= 2
        axes.plot(where[inside], row.z[inside], "o", color=ACCENT, markersize=5)
        axes.plot(where[~inside], row.z[~inside], "D", color=LIMIT, markersize=5.5)
    axes.set_yscale("symlog", linthresh=4, linscale=2)
    axes.set_ylim(-6, 150)
    ticks = [-4, -2, 0, 2, 4, 10, 30, 100]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks([6 * index + 2 for index in range(len(means))], [f"{o.test} {float(o.level):.0%}" for o in means])
    axes.set_ylabel("ours less published\n(standard errors of the difference)", fontsize=9, color=INK)
    words = (
        "Figure 16 again. Each group of five: locations L1 to L5. Shaded: two standard errors; diamonds lie outside."
    )
    return Picture("figure-16-errors.png", figure, words)


def _means(axes: Any, row: Means) -> None:
    positions, whole = np.arange(len(LOCATIONS)), np.array(SHARES) / 100
    axes.bar(positions, row.mean / whole, 0.7, color=QUIET, label="ours")
    axes.errorbar(
        positions,
        row.mean / whole,
        row.allowed / whole,
        fmt="none",
        ecolor=INK,
        elinewidth=1.2,
        capsize=3,
        label="allowed",
    )
    axes.plot(positions, np.array(row.published) / whole, "D", color=LIMIT, markersize=4.5, label="published")
    axes.set_xticks(positions, LOCATIONS)
    axes.set_ylim(0, 125)
    axes.set_ylabel("released (% of requests)", fontsize=8.5, color=INK)
    axes.set_title(f"{NAMES[row.test]}, {float(row.level):.0%}", loc="left", fontsize=9.5, color=INK)


def _figure_18() -> Picture:
    plan = plan_of("KLD", LEVEL)
    drawn = fitting(plan, WHOLE, counts_after(plan, released("KLD")), target=1, values=AGES, targets=LOCATIONS)
    words = (
        "Figures 17 and 18. Left: the records of L2 and how many of them fit the baseline exactly. Right: all locations, "
        "beside one sequence under the Kullback-Leibler test at 20%."
    )
    return Picture("figure-18.png", drawn, words)


def _figure_19(safe: Safe) -> Picture:
    title = "What one test calls safe is seldom safe for another, except for Dixon's"
    figure, (axes,) = canvas(1, 1, title, height=4.2, width=7.0)
    percent = 100 * safe.counts / safe.sequences
    axes.imshow(percent, cmap="Blues", vmin=0, vmax=220)
    names = [NAMES[test].replace(" ", "\n").replace("-L", "-\nL") for test in TESTS]
    for row, under in enumerate(TESTS):
        for column, by in enumerate(TESTS):
            words = f"{percent[row, column]:.0f}\n({printed(f'fig19_{under}_{by}')})"
            axes.text(column, row, words, ha="center", va="center", fontsize=9, color=INK)
    axes.set_xticks(range(4), names)
    axes.set_yticks(range(4), names)
    axes.set_xlabel("safe for (ours of 100; published in brackets)", fontsize=9, color=INK)
    axes.set_ylabel("released under", fontsize=9, color=INK)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return Picture(
        "figure-19.png", figure, "Figure 19. Releases of 5,000 requests under one test that are safe for another."
    )
