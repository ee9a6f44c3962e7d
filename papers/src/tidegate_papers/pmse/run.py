"""All items of the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidegate_papers.item import Item, Result, compare
from tidegate_papers.pmse import coefficients, failures, similarity
from tidegate_papers.pmse.paper import PUBLISHED

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Scale:
    """How much is simulated."""

    simulations: int  # of Table 1; the paper ran 1,000,000
    data_sets: int  # of Table 2; the paper had 2,500
    chains: int  # data sets on which the published chain is run
    steps: int
    direct: int  # data sets of Figures 2 and 4


MINUTES = Scale(simulations=4_000, data_sets=12, chains=4, steps=500, direct=60)
FULL = Scale(simulations=20_000, data_sets=200, chains=10, steps=3_000, direct=500)


@dataclass(frozen=True)
class Reproduction:
    """The items, and the data of the figures."""

    items: tuple[Item, ...]
    failures: failures.Failures
    similarity: similarity.Measured
    direct: coefficients.Errors
    depths: coefficients.Errors


def reproduce(*, full: bool = False, scale: Scale | None = None, progress: Progress | None = None) -> Reproduction:
    """Compute Tables 1 and 2 and the statements about figures in minutes, or with `full` in hours."""
    size = scale or (FULL if full else MINUTES)
    part_progress = _parts(progress, 3)
    changes = failures.simulate(size.simulations, progress=part_progress(0))
    measured = similarity.simulate(size.data_sets, chains=size.chains, steps=size.steps, progress=part_progress(1))
    direct = coefficients.simulate(size.direct)
    depths = coefficients.by_depth(size.chains, steps=size.steps, progress=part_progress(2))
    results: dict[str, Result] = {
        **failures.section_5(changes),
        **coefficients.section_6(direct, depths, measured),
        **similarity.section_7(measured),
    }
    items = tuple(compare(item, results[item.id]) for item in PUBLISHED if item.id in results)
    return Reproduction(items, changes, measured, direct, depths)


def _parts(progress: Progress | None, parts: int) -> Callable[[int], Progress]:
    """Split progress into parts of equal length."""

    def part(number: int) -> Progress:
        def report(done: int, of: int) -> None:
            if progress is not None:
                progress(1_000 * number + 1_000 * done // of, 1_000 * parts)

        return report

    return part
