"""The results of `make bench` as docs/benchmarks.md: tables, growth curves, and cases where Tidegate is slower."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.curves import draw_growth
from benchmarks.measure import HERE, commit, machine
from benchmarks.peers import REQUIRED

DOCS = HERE.parent / "docs"
PICTURE = "pictures/growth.svg"
PACKAGES = ("duckdb", "ibis-framework", "numpy", "numba", "pyarrow", "scikit-learn", "sqlalchemy", "fastapi", "uvicorn")
NEAR = 1.05  # the machines are noisy: a smaller ratio is a tie
OWN = {  # parts and variants of our own work: shown in the tables, but not baselines
    "the same question again",
    "charge, noise, record alone",
    "charge, record alone",
    "its table alone",
    "its noise alone",
    "dyadic",
    "depth 2",
    "greedy",
    "EM",
    "EM smoothed",
    "band",
    "strict band",
    "one core",
    "turn on their side",
    "check one by one",
}
Record = dict[str, Any]

HEAD = """\
# Benchmarks

Written by `make bench`, which runs every benchmark of `benchmarks/` at a small size, on {date}. It took {minutes:.0f} minutes.
Machine: {machine}. Commit {commit}. {versions}.

Each file in `benchmarks/` is one question. Compared programs take turns within one run. Look at the ratio, because the machines are
noisy. *times as long* is ours divided by theirs, by the clock and (in brackets) in processor time of this
process; below 1 we are faster. Other libraries are installed by name into their own environments, pinned ({peers}); one
that could not be installed is named with the reason. At full size, with explanations: [figures.md](figures.md).
"""


def write(records: list[Record], *, seconds: float, docs: Path = DOCS) -> Path:
    """Write the page and its chart; return the path of the page."""
    path = docs / "benchmarks.md"
    draw_growth(records, docs / PICTURE)
    path.write_text(page(records, seconds=seconds), "utf-8")
    return path


def page(records: list[Record], *, seconds: float) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    peers = ", ".join(needs[0].replace("==", " ") for needs in REQUIRED.values() if needs)
    about = {
        "peers": peers,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "minutes": seconds / 60,
        "versions": versions,
    }
    parts = [HEAD.format(machine=machine(), commit=commit(), **about), losses(records), growth(records)]
    for name, group in groupby(records, key=lambda record: record["bench"]):
        if name != "growth":
            parts.append(section(name, list(group)))
    return "\n".join(parts)


def section(name: str, records: list[Record]) -> str:
    """Return the section of one bench: a table for each question."""
    lines = [f"## `bench_{name}`\n"]
    questions = list(dict.fromkeys(record["question"] for record in records))
    by_question = sorted(records, key=lambda record: questions.index(record["question"]))
    for question, group in groupby(by_question, key=lambda record: record["question"]):
        lines += [f"{question}\n", "| case | size | ours | times as long as | found |", "|---|--:|--:|---|---|"]
        lines += [row(record) for record in group]
        lines.append("")
    return "\n".join(lines)


def row(record: Record) -> str:
    ours = next(iter(record["median_s"].values()), None)
    cells = (record["case"], f"{record['size']:,}", seconds_of(ours), ratios(record), record.get("found", ""))
    return "| " + " | ".join(str(cell).replace("|", "/") for cell in cells) + " |"


def ratios(record: Record) -> str:
    cpu_ratios = record.get("cpu_ratio", {})
    return "; ".join(
        f"{name} {number(ratio)}{_in_brackets(cpu_ratios.get(name))}" for name, ratio in record["ratio"].items()
    )


def losses(records: Iterable[Record]) -> str:
    """Return a table of every case in which a baseline was faster, the worst first."""
    slower = [
        (ratio, record, name)
        for record in records
        if record["bench"] != "growth"
        for name, ratio in record["ratio"].items()
        if ratio > NEAR and name not in OWN
    ]
    lines = ["## Where Tidegate takes longer\n"]
    lines += ["Bare queries and loops written by hand, which promise nothing, included.\n"]
    lines += ["| times as long | than | case | bench |", "|--:|---|---|---|"]
    for ratio, record, name in sorted(slower, key=lambda case: -case[0]):
        lines.append(f"| {number(ratio)} | {name} | {record['case']}, {record['size']:,} | {record['bench']} |")
    return "\n".join(lines) + "\n"


def growth(records: Iterable[Record]) -> str:
    """Return the section of the growth curves, with a table of their points."""
    points = [record for record in records if "axis" in record]
    if not points:
        return ""
    lines = [
        "## How it grows (`bench_growth`)\n",
        f"![time by rows, cells, columns, items, those who wait, clients]({PICTURE})\n",
    ]
    lines += ["| by | size | what | seconds |", "|---|--:|---|---|"]
    for point in points:
        times = "; ".join(f"{name} {seconds_of(seconds)}" for name, seconds in point["seconds"].items())
        lines.append(f"| {point['axis']} | {point['size']:,} | {point['what']} | {times} |")
    return "\n".join(lines) + "\n"


def seconds_of(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def number(ratio: float) -> str:
    return f"{ratio:.3g}" if ratio < 100 else f"{ratio:,.0f}"


def _in_brackets(ratio: float | None) -> str:
    return "" if ratio is None else f" ({number(ratio)})"
