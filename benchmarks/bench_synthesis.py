"""How similar are our synthetic tables to the true rows, compared with the peers'?

    TIDEGATE_DATA=... python -m benchmarks synthesis --full

Adult (adult.csv in the folder that TIDEGATE_DATA names) at epsilon 1/4, 1 and 4, a generated table of another shape, the
simulation of Snoke and Slavkovic, and a table that a line does not fit. Ours: fresh tables, all measures of
`benchmarks.synthesis.evaluation`. The peers' tables of Adult are created beforehand, because they take hours, by
`python -m benchmarks.synthesis`, and stored; a table that does not exist is reported as missing. At a small size they create the
simulation's tables in the same run.

Our epsilon is pure and for a replaced row. The peers' is for a row added or removed, dpmm's with delta = 1e-5: the same number
promises less. Replacing a row is removing one and adding one, so ours at 2 epsilon is the like-for-like row of theirs
at epsilon.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.measure import Run, run_in_child, write_record
from benchmarks.synthesis import adult, generated, simulated
from benchmarks.synthesis.evaluation import Exam, evaluate, misfit
from benchmarks.synthesis.exchange import Case
from benchmarks.synthesis.ours import synthesize
from benchmarks.synthesis.rows import COSTS, Line, table
from benchmarks.synthesis.runs import Work, make_table, stored_tables

QUESTION = "How similar are synthetic tables to the true rows?"
EPSILONS = (0.25, 1.0, 4.0)
SEEDS = 6
QUICK_SEEDS, QUICK_LIMIT = 2, 90.0
QUICK = (
    Work("datasynthesizer", "DataSynthesizer", "native", 1.0),
    Work("dpmm", "MST", "native", 1.0),
    Work("dpmm", "PrivBayes", "native", 1.0),
)
NONE_MISSING: Mapping[str, str] = {}
REPLACED, ADDED = "replace one, pure", "add or remove, delta 1e-5"
PROMISES = {"DataSynthesizer": "its own accounting"}


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    folder = os.environ.get("TIDEGATE_DATA", "")
    if not Path(folder, "adult.csv").exists():
        summary = "adult.csv is missing: TIDEGATE_DATA must name a folder with it"
        yield write_record("synthesis", QUESTION, "adult", size=0, runs={}, peak_mb=0, found=summary)
    else:
        yield from compare("adult", folder, EPSILONS if full else (1.0,), SEEDS if full else QUICK_SEEDS)
    if full:
        for name in ("generated", "simulation", "misspecified"):
            yield from compare(name, folder, EPSILONS, SEEDS)
    else:
        yield from compare("simulation", folder, (QUICK[0].epsilon,), QUICK_SEEDS, missing=make_missing_tables())


def make_missing_tables() -> dict[str, str]:
    """Create the peers' missing tables of the simulation; return the models that failed, with the reason."""
    lines = [
        make_table(simulated.paper(turn + 1), work, limit=QUICK_LIMIT) for turn in range(QUICK_SEEDS) for work in QUICK
    ]
    return {line["model"]: line["problem"] for line in lines if "problem" in line}


def compare(
    name: str, folder: str, epsilons: Iterable[float], seeds: int, *, missing: Mapping[str, str] = NONE_MISSING
) -> Iterator[dict[str, Any]]:
    """Print a table of lines, and yield one record for each epsilon."""
    lines, rows = [], len(case_of(exam_of(name, folder, 0)).rows)
    for epsilon in epsilons:
        ours = [
            measure_ours(name, folder, epsilon, seeds),
            measure_ours(name, folder, 2 * epsilon, seeds, compared_epsilon=epsilon),
        ]
        lines += [*ours, *measure_peers(name, folder, epsilon)]
    Console(width=200).print(table(f"{name}: {QUESTION}", lines))
    for line in lines:
        if line.runs and line.who == "tidegate":
            yield record(name, line, lines, rows, missing)


def measure_ours(name: str, folder: str, epsilon: float, seeds: int, *, compared_epsilon: float = 0) -> Line:
    """Create and measure new tables of ours, each in its own process, to measure its memory."""
    runs = [run_in_child(measure, name, folder, epsilon, turn)["value"] for turn in range(seeds)]
    return Line(
        "tidegate, like for like" if compared_epsilon else "tidegate",
        compared_epsilon or epsilon,
        f"{REPLACED}, {epsilon:g}",
        runs,
    )


def measure(name: str, folder: str, epsilon: float, turn: int) -> dict[str, float]:
    """Create and measure one table of ours. A simulation has new rows in every turn."""
    exam = exam_of(name, folder, turn)
    synthetic, cost = synthesize(case_of(exam), epsilon)
    return {**score(exam, synthetic), **cost}


def measure_peers(name: str, folder: str, epsilon: float) -> Iterator[Line]:
    """Measure the stored tables of the peers."""
    by_work: dict[tuple[str, str], Line] = {}
    for turn in range(SEEDS):
        exam = exam_of(name, folder, turn)
        for line, synthetic in stored_tables(case_of(exam).name, epsilon):
            model = (line["model"], line["cells"])
            new = Line(_label(*model), epsilon, PROMISES.get(model[0], ADDED), [], line.get("problem", ""))
            known = by_work.setdefault(model, new)
            if synthetic is not None:
                known.runs.append({**score(exam, synthetic), **{name: line[name] for name in COSTS}})
        if isinstance(exam, Exam):
            break  # its rows are the same in every turn
    yield from by_work.values()


def _label(model: str, cells: str) -> str:
    return model + (", our cells" if cells == "ours" else "")


def exam_of(name: str, folder: str, turn: int) -> Exam | Case:
    if name == "adult":
        return adult.exam(Path(folder))
    if name == "generated":
        return generated.exam()
    return (simulated.paper if name == "simulation" else simulated.misspecified)(turn + 1)


def case_of(exam: Exam | Case) -> Case:
    return exam.case if isinstance(exam, Exam) else exam


def score(exam: Exam | Case, synthetic: Any) -> dict[str, float]:
    return evaluate(exam, synthetic) if isinstance(exam, Exam) else misfit(exam, synthetic)


def record(name: str, ours: Line, lines: list[Line], rows: int, missing: Mapping[str, str]) -> dict[str, Any]:
    """Write and return the record of our tables at one epsilon, with the means of all lines."""
    others = [line for line in lines if line.epsilon == ours.epsilon and line is not ours]
    theirs = sorted((line for line in others if line.runs and "tidegate" not in line.who), key=_pmse)
    peers = [f"{line.who} {line.mean('pmse'):.4f} in {line.mean('seconds'):.3g} s" for line in theirs]
    peers += [f"missing: {label} ({why})" for label, why in missing.items()]
    comparison = (
        f"; {', '.join(peers)}" if peers else "; no peer's table is stored (`python -m benchmarks.synthesis`, hours)"
    )
    more = f", tv2 {ours.mean('tv2'):.4f}, auc {ours.mean('auc'):.3f}" if "tv2" in ours.runs[0] else ""
    return write_record(
        "synthesis",
        QUESTION,
        f"{name}, epsilon {ours.epsilon:g}",
        size=rows,
        runs={line.who: _times(line) for line in (ours, *theirs) if len(line.runs) == len(ours.runs)},
        peak_mb=max(run["peak_mb"] for run in ours.runs),
        found=f"pmse {ours.mean('pmse'):.4f}{more}{comparison}",
        lines=[line.to_dict() for line in (ours, *others)],
    )


def _times(line: Line) -> list[Run]:
    return [Run(run["seconds"], run["cpu"]) for run in line.runs]


def _pmse(line: Line) -> float:
    return line.mean("pmse")
