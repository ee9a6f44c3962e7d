"""python -m benchmarks [--full] [--report] [--keep] [ledger group_by ... | compare]: run benchmarks, or compare figures."""

from __future__ import annotations

import argparse
import sys
import traceback
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import figures
from benchmarks.measure import HERE, commit, failed_record, machine, records_of, run_in_child
from benchmarks.report import write

NAMES = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def table(records: list[dict[str, Any]]) -> Table:
    """Return a table with one line per case."""
    grid = Table(title=f"{machine()}; commit {commit()}", title_justify="left")
    for heading in ("bench", "case", "size", "found", "median", "longer than", "more cpu", "peak"):
        grid.add_column(heading, justify="right" if heading in ("size", "median", "peak") else "left")
    for record in records:
        longer = ", ".join(f"{name} {ratio:.2f}x" for name, ratio in record["ratio"].items())
        more_cpu = ", ".join(f"{ratio:.2f}x" for ratio in record["cpu_ratio"].values())
        seconds = next(iter(record["median_s"].values()), 0.0)
        cells = (record["case"], f"{record['size']:,}", record["found"], _seconds(seconds), longer, more_cpu)
        grid.add_row(record["bench"], *cells, f"{record['peak_mb']:,.0f} MB")
    return grid


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.2f} ms"


def print_slower() -> None:
    """Print which ratios of the latest results are worse than the stored figures; exit with 1 if there are any."""
    slower, count = figures.compare(figures.latest(), figures.load())
    print(*slower, f"{count} ratios compared with {figures.FIGURES.name}: {len(slower)} slower.", sep="\n")
    if slower:
        sys.exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure against floors written by hand.")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"one of {', '.join(NAMES)} (default: all); or compare: print what became slower",
    )
    parser.add_argument("--full", action="store_true", help="at full size")
    parser.add_argument("--report", action="store_true", help="write docs/benchmarks.md from the results")
    parser.add_argument("--keep", action="store_true", help="store the figures, for later comparisons")
    options = parser.parse_args()
    if options.names == ["compare"]:
        print_slower()
        return
    if unknown := [name for name in options.names if name not in NAMES]:
        parser.error(f'no bench is called "{unknown[0]}"; there are {", ".join(NAMES)}')
    began, records, failed = perf_counter(), list[dict[str, Any]](), list[str]()
    for name in options.names or NAMES:
        try:
            records += run_in_child(records_of, name, options.full)["value"]
        except Exception as error:  # the other benches still run; this one is reported, and the command fails
            traceback.print_exc()
            failed.append(name)
            records.append(failed_record(name, error))
        print(f"{name}: done after {perf_counter() - began:,.0f} s", flush=True)
    Console(width=None if Console().is_terminal else 160).print(table(records))
    if options.keep:
        figures.keep(records)
    if options.report:
        print(f"written: {write(records, seconds=perf_counter() - began)}")
    if failed:
        sys.exit(f"did not run to their end: {', '.join(failed)}")


if __name__ == "__main__":
    main()
