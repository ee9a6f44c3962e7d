"""Plant a sample of faults in a part and list those that no test detects.

python -m mutants ledger --sample 60 --seed 1
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from mutants.faults import Fault, faults
from mutants.judge import ALIVE, ENDLESS, START, Verdict, choose_tests, expected_seconds, judge
from mutants.reach import find_reach

PROJECT = Path(__file__).resolve().parents[2]
SOURCE = PROJECT / "src"
BUILD = PROJECT / "build" / "mutants"
BESIDE = {
    "ledger": ("tests/release/test_desk.py", "tests/collect/test_server.py")
}  # tests that write and read its books
LEFT_OUT = ("__init__.py", "migrations")  # re-exported names; released migrations are never edited


def possible(part: str, files: Collection[str] = ()) -> list[Fault]:
    """Return all faults of a part, file by file; `files` are the names of some of its files and folders."""
    paths = (path.relative_to(SOURCE) for path in (SOURCE / "tidegate" / part).rglob("*.py"))
    chosen = sorted(path for path in paths if not {*LEFT_OUT} & {*path.parts} and _is_chosen(path, files))
    return [fault for path in chosen for fault in faults((SOURCE / path).read_text("utf-8"), file=path.as_posix())]


def _is_chosen(path: Path, files: Collection[str]) -> bool:
    return not files or bool({*files} & {*path.parts, path.stem})


def sample_faults(every: Sequence[Fault], *, sample: int, seed: int) -> list[Fault]:
    """Return the first faults in an order that depends on the seed: a larger sample contains the smaller ones."""
    return random.Random(seed).sample(every, len(every))[:sample]


def read_verdicts(path: Path) -> dict[Fault, Verdict]:
    """Return earlier verdicts; the last verdict on a fault counts."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    verdicts = [Verdict(**{**row, "fault": Fault(**row["fault"])}) for row in rows]
    return {verdict.fault: verdict for verdict in verdicts}


def table(part: str, count: int, verdicts: Collection[Verdict]) -> str:
    """Return the figures of a part as a Markdown table, and a line for each fault that survived."""
    verdict_names = [verdict.verdict for verdict in verdicts]
    alive = sum(verdict in ALIVE for verdict in verdict_names)
    return "\n".join(
        [
            "| part | possible | judged | caught | of these out of time | survived |",
            "|---|---:|---:|---:|---:|---:|",
            f"| {part} | {count:,} | {len(verdict_names)} | {len(verdict_names) - alive} | {verdict_names.count(ENDLESS)} | {alive} |",
            *(f"survived: {verdict.fault}" for verdict in verdicts if verdict.verdict in ALIVE),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    options = _arguments(arguments)
    path = BUILD / f"{options.part}.jsonl"
    every = possible(options.part, options.files)
    known = {fault: verdict for fault, verdict in read_verdicts(path).items() if fault in set(every)}
    lived = [fault for fault, verdict in known.items() if verdict.verdict in ALIVE]
    new = [fault for fault in sample_faults(every, sample=options.sample, seed=options.seed) if fault not in known]
    for verdict in _judge_all(lived if options.again else new, options.part):
        known[verdict.fault] = verdict
        print(f"{verdict.verdict:11} {verdict.seconds:6.1f} s  {verdict.fault}", flush=True)
        with path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(asdict(verdict)) + "\n")
    print(table(options.part, len(every), known.values()))
    return 0


def _judge_all(due: Sequence[Fault], part: str) -> Iterator[Verdict]:
    """Judge one fault after the other, after printing how long it will take."""
    if not due:
        return
    tests = [PROJECT / "tests" / part, *(PROJECT / path for path in BESIDE.get(part, ()))]
    reach = find_reach(SOURCE, PROJECT, tests, record_path=BUILD / f"{part}-reach.json")
    most = sum(START + expected_seconds(choose_tests(fault, reach), reach) for fault in due) / 60
    print(f"{len(due)} faults to judge: {most:.0f} minutes if none is caught, less for each that is.", flush=True)
    yield from (judge(fault, reach, PROJECT) for fault in due)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parts = sorted(path.name for path in (SOURCE / "tidegate").iterdir() if (PROJECT / "tests" / path.name).is_dir())
    parser.add_argument(
        "part", choices=parts, metavar="part", help=f"the folder of source and tests: {', '.join(parts)}"
    )
    parser.add_argument("--sample", type=int, default=20, help="the number of faults; earlier verdicts are reused")
    parser.add_argument("--seed", type=int, default=1, help="another seed draws other faults")
    parser.add_argument("--files", nargs="*", default=(), help="only these files and folders of the part, by name")
    parser.add_argument("--again", action="store_true", help="judge only those that survived again")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
