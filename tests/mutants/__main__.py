"""Plant a sample of faults in a part, tell which ones no test notices.

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
from mutants.judge import ALIVE, ENDLESS, START, Verdict, chosen, expected, judge
from mutants.reach import reached

PROJECT = Path(__file__).resolve().parents[2]
SOURCE = PROJECT / "src"
BUILD = PROJECT / "build" / "mutants"
BESIDE = {"ledger": ("tests/release/test_desk.py", "tests/collect/test_server.py")}  # who writes and reads its books
LEFT_OUT = ("__init__.py", "migrations")  # names passed on; what was released is never edited


def possible(part: str) -> list[Fault]:
    """All faults of a part, file by file."""
    files = sorted(path for path in (SOURCE / "tidegate" / part).rglob("*.py") if not {*LEFT_OUT} & {*path.parts})
    return [
        fault for path in files for fault in faults(path.read_text("utf-8"), file=path.relative_to(SOURCE).as_posix())
    ]


def drawn(every: Sequence[Fault], *, sample: int, seed: int) -> list[Fault]:
    """The first of all faults in an order that the seed makes: a larger sample holds the smaller ones."""
    return random.Random(seed).sample(every, len(every))[:sample]


def judged(path: Path) -> dict[Fault, Verdict]:
    """What was judged before; the last verdict on a fault counts."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    found = [Verdict(**{**row, "fault": Fault(**row["fault"])}) for row in rows]
    return {verdict.fault: verdict for verdict in found}


def table(part: str, many: int, verdicts: Collection[Verdict]) -> str:
    """The figures of a part as a Markdown table, and a line for each fault that lives."""
    said = [verdict.verdict for verdict in verdicts]
    alive = sum(verdict in ALIVE for verdict in said)
    return "\n".join(
        [
            "| part | possible | judged | caught | of these out of time | survived |",
            "|---|---:|---:|---:|---:|---:|",
            f"| {part} | {many:,} | {len(said)} | {len(said) - alive} | {said.count(ENDLESS)} | {alive} |",
            *(f"lives: {verdict.fault}" for verdict in verdicts if verdict.verdict in ALIVE),
        ]
    )


def main(given: Sequence[str] | None = None) -> int:
    asked = _arguments(given)
    kept = BUILD / f"{asked.part}.jsonl"
    every = possible(asked.part)
    known = {fault: verdict for fault, verdict in judged(kept).items() if fault in set(every)}
    lived = [fault for fault, verdict in known.items() if verdict.verdict in ALIVE]
    new = [fault for fault in drawn(every, sample=asked.sample, seed=asked.seed) if fault not in known]
    for verdict in _judge_all(lived if asked.again else new, asked.part):
        known[verdict.fault] = verdict
        print(f"{verdict.verdict:11} {verdict.seconds:6.1f} s  {verdict.fault}", flush=True)
        with kept.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(asdict(verdict)) + "\n")
    print(table(asked.part, len(every), known.values()))
    return 0


def _judge_all(due: Sequence[Fault], part: str) -> Iterator[Verdict]:
    """One after the other; says first how long it will take."""
    if not due:
        return
    tests = [PROJECT / "tests" / part, *(PROJECT / path for path in BESIDE.get(part, ()))]
    reach = reached(SOURCE, PROJECT, tests, kept=BUILD / f"{part}-reach.json")
    most = sum(START + expected(chosen(fault, reach), reach) for fault in due) / 60
    print(f"{len(due)} faults to judge: {most:.0f} minutes if none is caught, less for each that is.", flush=True)
    yield from (judge(fault, reach, PROJECT) for fault in due)


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parts = sorted(path.name for path in (SOURCE / "tidegate").iterdir() if (PROJECT / "tests" / path.name).is_dir())
    parser.add_argument(
        "part", choices=parts, metavar="part", help=f"whose source, and whose tests: {', '.join(parts)}"
    )
    parser.add_argument(
        "--sample", type=int, default=20, help="how many faults; those judged before are not judged again"
    )
    parser.add_argument("--seed", type=int, default=1, help="another seed draws other faults")
    parser.add_argument("--again", action="store_true", help="judge those that lived again, and nothing else")
    return parser.parse_args(given)


if __name__ == "__main__":
    raise SystemExit(main())
