"""All items of the paper, in its order."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_papers.item import Item, Result, compare
from tidegate_papers.release import approximations, evolution, examples, figure_16, figure_19, statements
from tidegate_papers.release.paper import PUBLISHED

FULL = 1_000  # sequences


@dataclass(frozen=True)
class Reproduction:
    """The items, and the data of the figures."""

    items: tuple[Item, ...]
    samples: tuple[approximations.Sample, ...]
    means: tuple[figure_16.Means, ...]
    safe: figure_19.Safe


def reproduce(*, full: bool = False) -> Reproduction:
    """Compute every number, table and figure; `full` simulates ten times as many sequences."""
    samples = approximations.samples()
    means = figure_16.simulate(FULL if full else figure_16.SEQUENCES)
    safe = figure_19.simulate(FULL if full else figure_19.SEQUENCES)
    results: dict[str, Result] = {
        **examples.example_3_2(),
        **examples.section_4(),
        **examples.example_5_4(),
        **examples.example_5_8(),
        **examples.example_5_11(),
        **examples.example_5_13(),
        **statements.figures(),
        **approximations.figures_5_and_7(samples),
        **approximations.figure_10(),
        **approximations.section_6(),
        **evolution.figures_12_to_15(),
        **figure_16.figure_16(means),
        **statements.figure_18(),
        **statements.section_7_2(),
        **figure_19.figure_19(safe),
    }
    items = tuple(compare(item, results[item.id]) for item in PUBLISHED)
    return Reproduction(items, tuple(samples), tuple(means), safe)
