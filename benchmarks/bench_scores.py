"""How long does one score of a synthesis take, and how does that grow with rows and columns?

    python -m benchmarks [--full] scores

Ours: the total variation of residual cells (the default score), the best dyadic tree, and the best tree of depth two over
all pairs of columns, each with a bounded sensitivity, for one theta or one synthetic table at a time; rows are binned again
each time. Compared with scikit-learn's DecisionTreeClassifier of depth 5 on the same original rows and as many synthetic
ones, fitted and evaluated for its propensities (its score has no bounded sensitivity), and our own greedy tree, a measure
only. One thread each, in turns; reported and plotted in CPU time, which a busy machine disturbs less. The time to draw
synthetic rows is not included. `one of 200` scores 200 thetas in one call, as the exact sampler does; a single score of a
few thousand rows is mostly cold caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measure import HERE, SEED, Run, peak_memory, take_turns, write_record

QUESTION = "How long does one score of a synthesis take, and how does that grow with rows and columns?"
COLUMNS = (2, 5, 10)
CANDIDATES = 200
BINS = 16
CANDIDATE = "one of 200"
SLOW = ("greedy", "scikit-learn depth 5")
PICTURE = HERE.parent / "docs" / "pictures" / "scores-growth.png"
NAMES = {
    "tidegate": "total variation of residual cells",
    "one of 200": "the same, one of 200 candidates",
    "dyadic": "best dyadic tree",
    "depth 2": "best tree of depth 2, all pairs",
    "greedy": "greedy tree (measure only)",
    "scikit-learn depth 5": "scikit-learn's tree, depth 5",
}


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    grown = []
    for columns in COLUMNS:
        for rows in (5_000, 20_000, 50_000, 200_000) if full else (5_000, 20_000):
            grown.append(measure_case(rows, columns, peer=rows <= 50_000))
            yield grown[-1]
    if full:
        draw_growth(grown)


def measure_case(rows: int, columns: int, *, peer: bool) -> dict[str, Any]:
    original, synthetic, theta = simulate(rows, columns)
    every = tasks(original, synthetic, theta)
    chosen = {name: task for name, task in every.items() if peer or name not in SLOW}
    runs = take_turns(chosen)
    thetas = np.repeat(theta[None], CANDIDATES, axis=0)
    together = take_turns({CANDIDATE: lambda: scores(original, thetas)})
    each = {name: cpu_seconds(task_runs) for name, task_runs in runs.items()}
    each[CANDIDATE] = cpu_seconds(together[CANDIDATE]) / CANDIDATES
    summary = ", ".join(f"{name} {1000 * seconds:,.3g} ms" for name, seconds in each.items())
    if peer:
        ratios = [each["scikit-learn depth 5"] / each[name] for name in ("tidegate", CANDIDATE)]
        summary += f"; scikit-learn takes {ratios[0]:,.0f}x as long as one score, {ratios[1]:,.0f}x as one of 200"
    case = f"{columns} columns"
    return {
        **write_record(
            "scores", QUESTION, case, size=rows, runs=runs, peak_mb=peak_memory(), each_s=each, found=summary
        ),
        "columns": columns,
    }


def cpu_seconds(runs: list[Run]) -> float:
    """Return the median of CPU seconds."""
    return median(run.cpu for run in runs)


def simulate(rows: int, columns: int) -> tuple[Any, Any, Any]:
    """Return normal columns with a correlation of .5 between neighbors, rows of a slightly wrong model, and its parameters."""
    random = np.random.default_rng([SEED, rows, columns])

    def table(shift: float) -> np.ndarray:
        noise = random.normal(size=(rows, columns))
        rows_of_table = noise.copy()
        for j in range(1, columns):
            rows_of_table[:, j] = 0.5 * rows_of_table[:, j - 1] + np.sqrt(0.75) * noise[:, j]
        return rows_of_table + shift

    theta: list[float] = []
    for j in range(columns):
        theta += [0.05, *[0.0] * max(j - 1, 0), *([0.5] if j else []), float(np.log(np.sqrt(0.75)) if j else 0.0)]
    return table(0.0), table(0.05), np.array(theta)


def scores(original: np.ndarray, thetas: np.ndarray, kind: Any = "variation") -> Any:
    from tidegate_papers.baselines.scores import sequential_scores

    return sequential_scores(original, thetas, kind=kind)


def tasks(original: np.ndarray, synthetic: np.ndarray, theta: np.ndarray) -> dict[str, Callable[[], Any]]:
    from scipy.special import ndtri
    from sklearn.tree import DecisionTreeClassifier
    from tidegate_papers.baselines.trees import depth2_score, threshold_codes

    from tidegate.risk.cart import pmse_greedy

    cuts = [ndtri(np.arange(1, BINS) / BINS)] * original.shape[1]
    original_codes = threshold_codes(
        original, cuts
    )  # fixed thresholds: the original is binned once, every synthetic table again
    stacked = np.vstack([synthetic, original])
    label = np.repeat([1, 0], [len(synthetic), len(original)])

    def peer() -> float:
        shares = DecisionTreeClassifier(max_depth=5, random_state=0).fit(stacked, label).predict_proba(stacked)[:, 1]
        return float(np.mean((shares - 0.5) ** 2))

    return {
        "tidegate": lambda: scores(original, theta[None]),
        "dyadic": lambda: scores(original, theta[None], "dyadic"),
        "depth 2": lambda: depth2_score(original_codes, threshold_codes(synthetic, cuts), bins=BINS),
        "greedy": lambda: pmse_greedy(original, synthetic),
        "scikit-learn depth 5": peer,
    }


def draw_growth(records: list[dict[str, Any]]) -> None:
    """Draw the growth as a chart with one panel for each number of columns."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(COLUMNS), figsize=(10, 3.9), sharey=True, constrained_layout=True)
    styles = {
        "tidegate": ("#1f6f8b", "o-"),
        CANDIDATE: ("#1f6f8b", "o:"),
        "dyadic": ("#5aa9c0", "s-"),
        "depth 2": ("#7a9a3a", "^-"),
        "greedy": ("#b58a2a", "v--"),
        "scikit-learn depth 5": ("#a23b3b", "D--"),
    }
    for panel, columns in zip(panels, COLUMNS, strict=True):
        of_columns = [record for record in records if record["columns"] == columns]
        for name, (color, style) in styles.items():
            points = [(r["size"], 1000 * r["each_s"][name]) for r in of_columns if name in r["each_s"]]
            panel.loglog(*zip(*points, strict=True), style, color=color, label=NAMES[name], markersize=5)
        panel.set(xlabel="original rows", title=f"{columns} columns")
        panel.grid(alpha=0.25)
    panels[0].set_ylabel("milliseconds of CPU for one score")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=110)
