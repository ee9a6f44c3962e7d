"""The figures as pictures; titles state the finding."""

from __future__ import annotations

import numpy as np

from tidegate_papers.identifiability.figures import Picture
from tidegate_papers.panels import ACCENT, INK, LIMIT, QUIET, canvas
from tidegate_papers.pmse import coefficients
from tidegate_papers.pmse.paper import DEPTHS, EPSILONS, ITEMS
from tidegate_papers.pmse.run import Reproduction

LOOKS = {  # method: color, line, name
    "exact": (ACCENT, "-", "ours, one table"),
    "published": (LIMIT, "-", "as published, ten tables"),
    "bayes": (QUIET, "--", "noisy Bayes"),
    "histogram": (QUIET, "-", "smooth histogram"),
    "plug-in": (INK, ":", "without privacy"),
}


def pictures(done: Reproduction) -> list[Picture]:
    """Return Figures 1 to 4."""
    return [_figure_1(done), _figure_2(done), _figure_3(done), _figure_4(done)]


def _figure_1(done: Reproduction) -> Picture:
    worst = max(float(c.max()) for (cp, _), c in done.failures.changes.items() if cp == 0.01)
    title = f"One row moves a greedy tree's pMSE by up to {worst:.0f} times the bound that was proved for optimal trees"
    figure, (axes,) = canvas(1, 1, title, height=3.4)
    random = np.random.default_rng(1)
    for index, depth in enumerate(DEPTHS):
        changes = np.maximum(done.failures.changes[0.01, depth], 1e-3)
        across = index + random.uniform(-0.35, 0.35, changes.size)
        for above, color in ((changes <= 1, QUIET), (changes > 1, LIMIT)):
            axes.scatter(across[above], changes[above], s=7, color=color, linewidths=0)
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.axhline(0.5, color=ACCENT, linewidth=0.8, linestyle="--")
    axes.set_yscale("log")
    axes.set_xticks(range(len(DEPTHS)), [f"depth {depth}" for depth in DEPTHS])
    axes.set_ylabel("change of pMSE, times n", fontsize=9, color=INK)
    words = f"Figure 1. {done.failures.simulations:,} simulations, cp = 0.01. Line: 1/n; dashed: the exact sensitivity 1/(2(n+1))."
    return Picture("figure-1.png", figure, words)


def _figure_2(done: Reproduction) -> Picture:
    figure, panels = canvas(1, 2, "A whole table beside mechanisms that give a regression and nothing else", height=3.3)
    epsilons = coefficients.EPSILONS
    for axes, part, name in zip(panels, (0, 1), ("intercept", "slope"), strict=True):
        for method, color, line in (("functional", QUIET, "-"), ("k-norm", LIMIT, "-")):
            errors = [done.direct.samples[method, "4", e][:, part].mean() for e in epsilons]
            axes.plot(
                epsilons, errors, color=color, linestyle=line, marker="o", label=f"{method}, bounds of 4 deviations"
            )
        own = [done.similarity.samples["exact", e][:, 1 + part].mean() for e in epsilons]
        axes.plot(epsilons, own, color=ACCENT, marker="o", label="ours: a table, no bounds")
        for depth, rows in ((key[1], rows) for key, rows in done.depths.samples.items()):
            axes.scatter([1], [rows[:, part].mean()], marker="x", color=INK, s=24)
            axes.annotate(
                f"depth {depth}", (1, rows[:, part].mean()), textcoords="offset points", xytext=(-62, -3), fontsize=7
            )
        axes.set_yscale("log")
        axes.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
        axes.set_xlabel("epsilon", fontsize=9, color=INK)
        axes.set_ylabel(f"mean error of the {name}", fontsize=9, color=INK)
    panels[0].legend(frameon=False, fontsize=8)
    return Picture(
        "figure-2.png", figure, "Figure 2. Crosses: the published mechanism by depth of its trees, at epsilon 1."
    )


def _figure_3(done: Reproduction) -> Picture:
    figure, (axes,) = canvas(1, 1, "One exact table is at the floor of the family at every epsilon", height=3.6)
    for method, (color, line, name) in LOOKS.items():
        means = [done.similarity.mean(method, e) for e in EPSILONS]
        axes.plot(EPSILONS, means, color=color, linestyle=line, linewidth=1.8, marker="o", markersize=3, label=name)
    printed = [float(ITEMS[f"t2_pmse_{e:g}"].published) for e in EPSILONS]
    axes.plot(EPSILONS, printed, color=LIMIT, linestyle=":", linewidth=1.2, label="as printed in Table 2")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    axes.set_xlabel("epsilon", fontsize=9, color=INK)
    axes.set_ylabel("mean pMSE", fontsize=9, color=INK)
    axes.legend(frameon=False, fontsize=8, ncols=2)
    words = "Figure 3. Mean pMSE of 5,000 rows against their original. Ours and the published method are given the true family of distributions."
    return Picture("figure-3.png", figure, words)


def _figure_4(done: Reproduction) -> Picture:
    title = "Wide bounds cost the mechanisms that need bounds; ours needs none"
    figure, panels = canvas(1, 3, title, height=3.2, width=11)
    for axes, epsilon in zip(panels, coefficients.EPSILONS, strict=True):
        own = done.similarity.samples["exact", epsilon][:, 2]
        groups = [(m, str(b)) for m in coefficients.METHODS for b in coefficients.BOUNDS]
        drawn = axes.boxplot(
            [*(done.direct.samples[m, b, epsilon][:, 1] for m, b in groups), own],
            showfliers=False,
            patch_artist=True,
            medianprops={"color": INK},
        )
        for box, (method, _) in zip(drawn["boxes"], [*groups, ("exact", "")], strict=True):
            box.set_facecolor({"functional": QUIET, "k-norm": LIMIT, "exact": ACCENT}[method])
        axes.set_yscale("log")
        axes.set_xticks(range(1, len(groups) + 2), [*(b for _, b in groups), "ours"], fontsize=8)
        axes.set_title(f"epsilon {epsilon:g}", loc="left", fontsize=9.5, color=INK)
        axes.set_ylabel("error of the slope", fontsize=8.5, color=INK)
    words = "Figure 4. By bound in standard deviations. Grey: functional mechanism; orange: K-norm; blue: our mechanism, without bounds."
    return Picture("figure-4.png", figure, words)
