"""One line of the table for each way to synthesize: means over the runs, and the spread of pMSE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import fmean, stdev
from typing import Any, NamedTuple

from rich.table import Table

from benchmarks.synthesis.evaluation import MEASURES

COSTS = ("seconds", "cpu", "peak_mb")


class Line(NamedTuple):
    """A program at one epsilon, its promise, and the measures of each run."""

    who: str
    epsilon: float
    promise: str
    runs: list[dict[str, float]]
    remark: str = ""

    def mean(self, measure: str) -> float:
        return fmean(run[measure] for run in self.runs)

    def spread(self, measure: str) -> float:
        return stdev(run[measure] for run in self.runs) if len(self.runs) > 1 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the means and the measures of every run, for the record."""
        measures = sorted({measure for run in self.runs for measure in run})
        means = {measure: self.mean(measure) for measure in measures}
        plain = {"who": self.who, "epsilon": self.epsilon, "promise": self.promise, "remark": self.remark}
        return {**plain, "mean": means, "sd_pmse": self.spread("pmse") if self.runs else 0.0, "runs": self.runs}


def table(title: str, lines: Iterable[Line]) -> Table:
    """Return the lines as a table; the headings are those of `evaluation`."""
    grid = Table(title=title, title_justify="left")
    for heading in ("epsilon", "who", "promise", "runs", *MEASURES, "s", "cpu s", "MB"):
        grid.add_column(heading, justify="left" if heading in ("who", "promise") else "right", no_wrap=heading != "who")
    for line in lines:
        grid.add_row(f"{line.epsilon:g}", line.who, line.promise, *_numbers(line))
    return grid


def _numbers(line: Line) -> Iterator[str]:
    yield str(len(line.runs)) if line.runs else line.remark
    if not line.runs:
        return
    for measure in MEASURES:
        if measure not in line.runs[0]:
            yield ""
            continue
        digits = 3 if measure in ("auc", "acc", "dlog", "dlin") else 4
        deviation = f" ({line.spread(measure):.4f})" if measure == "pmse" and len(line.runs) > 1 else ""
        yield f"{line.mean(measure):.{digits}f}{deviation}"
    yield from (f"{line.mean(cost):.{0 if cost == 'peak_mb' else 1}f}" for cost in COSTS)
