"""Both kinds of release promises on the soldiers: the share released, and how well the best observer names the group.

`python -m benchmarks.release_kinds` prints the table of docs/guides/which-release-promise.md and draws its picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from tidegate_papers.panels import ACCENT, INK

from tidegate.audit.releases.equal_composition import RULE_AWARE, EqualComposition
from tidegate.audit.releases.observers import OBSERVERS, observe
from tidegate.audit.releases.worlds import Everything
from tidegate.demo.soldiers import BASELINE, HEADQUARTERS, SHARES, concealment
from tidegate.policy import Hiding
from tidegate.policy.concealment import TESTS
from tidegate.release.plan import make_plan

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "release-kinds.svg"
WORLDS, RECORDS, SEED = 200, (2_000, 10_000), 11
CONCEALMENT = {
    "no control": (),
    "Kullback-Leibler": ("kullback-leibler",),
    "Kullback-Leibler and posterior": ("kullback-leibler", "posterior"),
    "all five tests": TESTS,
}
HIDING: dict[str, dict[str, Any]] = {
    'hiding, mix = "table"': {},
    'hiding, mix = "table", at_most = 0.9': {"at_most": "0.9"},
    "hiding, among = 4": {"among": 4},
    "hiding, among = 3": {"among": 3},
    "hiding, among = 2": {"among": 2},
}
GRAY = "#5a646b"
LABELS = {  # text, offset in points, alignment
    "no control": ("no control", (0, 8), "right"),
    "Kullback-Leibler": ("concealment: Kullback-Leibler", (-8, -3), "right"),
    "all five tests": ("concealment: all five tests", (-8, 4), "right"),
    'hiding, mix = "table"': ('hiding, among = "all"', (-8, -3), "right"),
    'hiding, mix = "table", at_most = 0.9': ("the same, at_most = 0.9", (8, -9), "left"),
    "hiding, among = 4": ("hiding, among = 4", (8, -3), "left"),
    "hiding, among = 3": ("hiding, among = 3", (8, -3), "left"),
    "hiding, among = 2": ("hiding, among = 2", (8, -3), "left"),
}
Point = tuple[str, float, float, float]  # control, share released, AUC, half of its 95% interval


def measure(records: int) -> Iterator[Point]:
    """Yield one row per control: the observer with the largest distance from a random guess."""
    weights = [[Fraction(number) for number in numbers] for numbers in (BASELINE, SHARES)]
    options: dict[str, Any] = {"worlds": WORLDS, "records": records, "seed": SEED, "same_data_set": True}
    for name, tests in CONCEALMENT.items():
        plan = make_plan(concealment(tests=tests or TESTS[1]), *weights)
        yield _strongest(name, observe(plan, HEADQUARTERS, **options, **({} if tests else {"control": Everything})))
    plan = make_plan(concealment(tests=TESTS[1]), *weights)
    for name, settings in HIDING.items():
        control = EqualComposition(Hiding(reveals="age", about="location", **{"mix": "table", **settings}), seed=SEED)
        yield _strongest(
            name, observe(plan, HEADQUARTERS, **options, control=control, observers=OBSERVERS | RULE_AWARE)
        )
        if not all(control.opened):
            print(f"{name}: {control.opened.count(False)} of {len(control.opened)} desks did not open")


def _strongest(name: str, observations: list[Any]) -> Point:
    best = max(observations, key=lambda observation: abs(observation.auc - 0.5))
    return name, best.released, 0.5 + abs(best.auc - 0.5), (best.high - best.low) / 2


def draw(rows: list[Point], path: Path) -> None:
    """Plot the share released against the AUC of the best observer; the bars are 95% intervals."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "tidegate"  # equal charts are equal files
    figure = Figure(figsize=(7.2, 4.6), layout="constrained", facecolor="white")
    panel = figure.add_subplot()
    panel.axhline(0.5, color=INK, linestyle="--", linewidth=1)
    panel.annotate("random guess", (1.0, 0.5), xytext=(0, 4), textcoords="offset points", fontsize=9, ha="right")
    for kind, color in ((CONCEALMENT, GRAY), (HIDING, ACCENT)):
        points = [row for row in rows if row[0] in kind]
        panel.errorbar(
            [row[1] for row in points],
            [row[2] for row in points],
            yerr=[row[3] for row in points],
            color=color,
            marker="o",
            linestyle="",
            elinewidth=1,
        )
        for name, released, auc, _ in points:
            if name in LABELS:
                text, offset, align = LABELS[name]
                panel.annotate(
                    text, (released, auc), xytext=offset, textcoords="offset points", color=color, fontsize=9, ha=align
                )
    panel.set_xlim(0, 1.04)
    panel.set_ylim(0.4, 1.06)
    panel.xaxis.set_major_formatter(mpl.ticker.PercentFormatter(1, decimals=0))
    panel.set_xlabel("share of records released")
    panel.set_ylabel("AUC of the best observer")
    panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    tables = {records: list(measure(records)) for records in RECORDS}
    for records, rows in tables.items():
        print(f"{records:,} records")
        for name, released, auc, half in rows:
            print(f"| {name} | {released:.0%} | {auc:.2f} (+-{half:.2f}) |")
    draw(tables[RECORDS[0]], PICTURE)


if __name__ == "__main__":
    main()
