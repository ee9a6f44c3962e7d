"""python -m benchmarks.synthesis FOLDER: create the missing tables of the peers, one after the other.

FOLDER has adult.csv. This takes hours: MST and PrivBayes a few minutes each, DataSynthesizer
longer, AIM an hour and more.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from benchmarks.synthesis import adult, generated, simulated
from benchmarks.synthesis.exchange import Case
from benchmarks.synthesis.runs import Work, make_table

EPSILONS = (1.0, 4.0, 0.25)


def queue(adults: Case, other: Case) -> Iterator[tuple[Case, Work]]:
    """Yield the work, the most important first."""
    yield adults, Work("dpmm", "MST", "native", 1.0)
    yield adults, Work("dpmm", "PrivBayes", "native", 1.0)
    yield adults, Work("datasynthesizer", "DataSynthesizer", "native", 1.0)
    for epsilon in EPSILONS[1:]:
        yield adults, Work("dpmm", "PrivBayes", "native", epsilon)
        yield adults, Work("dpmm", "MST", "native", epsilon)
    yield adults, Work("dpmm", "AIM1MB", "native", 1.0)
    for epsilon in EPSILONS:
        yield adults, Work("dpmm", "MST", "ours", epsilon)
    for epsilon in EPSILONS[1:]:
        yield adults, Work("datasynthesizer", "DataSynthesizer", "native", epsilon)
    for model in ("MST", "PrivBayes"):
        for epsilon in EPSILONS:
            yield other, Work("dpmm", model, "native", epsilon)
    for epsilon in EPSILONS:
        yield adults, Work("dpmm", "AIM", "native", epsilon)


def small() -> Iterator[tuple[Case, Work]]:
    """Yield two draws of each simulation: less than a second each."""
    for seed in (1, 2):
        for case in (simulated.paper(seed), simulated.misspecified(seed)):
            for epsilon in EPSILONS:
                yield case, Work("datasynthesizer", "DataSynthesizer", "native", epsilon)


def main() -> None:
    for case, work in chain(small(), queue(adult.exam(Path(sys.argv[1])).case, generated.exam().case)):
        print(make_table(case, work), flush=True)


if __name__ == "__main__":
    main()
