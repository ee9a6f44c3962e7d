"""The stored results as a section of docs/figures.md: a table, and every comparison that Tidegate loses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import HERE
from benchmarks.synthesis.evaluation import MEASURES
from benchmarks.synthesis.results import COSTS, load, mean, text
from benchmarks.synthesis.tables import HELD_OUT

PAGE = HERE.parent / "docs" / "figures.md"
BEGIN, END = "<!-- synthesis: begin -->", "<!-- synthesis: end -->"
OURS = ("forest/2 pure", "forest/2 z")
COMPARED = ("gb", "tv2", "q")  # where less is better
PURE_MARGIN = 1.1
LABELS = {
    "adult": "Adult",
    "adult-bounds": "Adult, bounds only",
    "spending": "medical spending",
    "columns45": "45 columns",
    "bank": "bank (held out)",
}
HEAD = """\
### Whole tables (`bench_synthesis`)

`python -m benchmarks.synthesis evaluate`, `peers` and `bootstrap` measure, `report` writes this section from
`benchmarks/synthesis/results.json`, which has every run with its date, machine, versions and command. 80% of the rows are synthesized;
the other 20% test the classifier. Less is better, except auc. The size of the boosted trees and the sample of CART were fixed before
any table of forest/2 was measured. Bounds come from documentation; those of x, y and z of diamonds were lowered once, after a run of
forest/1. The table of 45 columns is simulated (`benchmarks/synthesis/generated.py`). *bootstrap* is the score of a bootstrap of the true rows.
*MST (ours)* is `benchmarks/synthesis/mst.py`, an implementation with exact inference on its tree, because
the library's needs minutes for each table; the other methods are libraries. CPU seconds; the number of runs is in the second column.

| measure (`benchmarks/synthesis/evaluation.py`) | meaning |
|---|---|
| gb | pMSE of boosted trees that distinguish true from synthetic rows: 0 is best, .25 worst |
| CART | the same for the leaves of one tree, with at least 100 rows in a leaf |
| tv1, tv2, tv3 | mean total variation of the tables of one, two and three columns, on 16 bins of equal true mass |
| corr | mean absolute error of the correlations of numbers |
| q | mean absolute error of the share of rows in 500 random ranges of one to three columns |
| auc | area under the curve of boosted trees that are trained on synthetic rows and tested on held-out true rows |
| fd | share of rows that break a functional dependency of the true table |

**The promises differ.** {promises} A row replaced is a row removed and a row added, so the same epsilon promises less where one
row is added or removed.
"""


def write(page: Path = PAGE) -> Path:
    """Replace the section between the two marks."""
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{section(load())}\n{END}{after}", "utf-8")
    return page


def section(rows: list[dict[str, Any]]) -> str:
    promises = {row["promise"]: row["method"] for row in rows if row["epsilon"]}
    methods = {promise: sorted({row["method"] for row in rows if row["promise"] == promise}) for promise in promises}
    says = " ".join(f"{', '.join(names)}: {promise}." for promise, names in sorted(methods.items()))
    lines = [HEAD.format(promises=says), *table(rows), "", "#### Where Tidegate loses\n", *losses(rows)]
    return "\n".join(lines)


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each table, epsilon and method; ours in bold; a method that did not finish with the reason."""
    yield f"| table | runs | epsilon | method | {' | '.join((*MEASURES, 'CPU s', 'MB'))} |"
    yield "|---|--:|--:|---|" + "--:|" * (len(MEASURES) + len(COSTS))
    for row in sorted(rows, key=_order):
        method = f"**{row['method']}**" if row["method"] in OURS else row["method"]
        first = f"| {_label(row)} | {len(row['runs'])} | {row['epsilon'] or '':{'' if not row['epsilon'] else 'g'}} | {method} |"
        if not row["runs"]:
            yield f"{first} {row['problem']} |" + " |" * (len(MEASURES) + len(COSTS) - 1)
            continue
        yield f"{first} {' | '.join(text(mean(row['runs'], name), name) for name in (*MEASURES, *COSTS))} |"


def losses(rows: list[dict[str, Any]]) -> list[str]:
    """Return a sentence for each measure in which another method is better: in mode z at all, in pure mode by 1.1 times."""
    sentences = []
    for row in sorted(rows, key=_order):
        if row["method"] not in OURS or not row["runs"]:
            continue
        margin = PURE_MARGIN if row["method"].endswith("pure") else 1.0
        for other in rows:
            if not _is_peer(other, row) or not other["runs"]:
                continue
            pairs = [(name, mean(row["runs"], name), mean(other["runs"], name)) for name in COMPARED]
            worse = [
                f"{name} {text(a, name)} against {text(b, name)}" for name, a, b in pairs if a and b and a > margin * b
            ]
            if worse:
                where = f"{_label(row)}, epsilon {row['epsilon']:g}, {row['method']}"
                sentences.append(f"- {where}: {other['method']} is better ({', '.join(worse)}).")
    return sentences or [_nothing(rows, "Nowhere among the stored rows.")]


def _nothing(rows: list[dict[str, Any]], otherwise: str) -> str:
    is_measured = any(row["method"] in OURS and row["runs"] for row in rows)
    return otherwise if is_measured else "Not known: no row of forest/2 is stored."


def _is_peer(other: dict[str, Any], row: dict[str, Any]) -> bool:
    is_own = other["method"].startswith("forest/") or other["method"] == "bootstrap"
    return not is_own and (other["table"], other["epsilon"]) == (row["table"], row["epsilon"])


def _label(row: dict[str, Any]) -> str:
    return LABELS.get(row["table"], str(row["table"]))


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["table"] == HELD_OUT, row["table"], row["epsilon"], row["method"] not in OURS, row["method"]
