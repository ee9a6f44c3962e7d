"""Reproductions that several tests use; each is run once."""

from __future__ import annotations

from functools import cache

from tidegate_papers import Item, Published, compare, identifiability, pmse, release
from tidegate_papers.identifiability.paper import PUBLISHED as OF_IDENTIFIABILITY
from tidegate_papers.pmse.paper import PUBLISHED as OF_PMSE
from tidegate_papers.pmse.run import Scale
from tidegate_papers.randomization import breaches, curves
from tidegate_papers.randomization.paper import PUBLISHED as OF_RANDOMIZATION
from tidegate_papers.release.paper import PUBLISHED as OF_RELEASE

PAPERS: dict[str, list[Published]] = {
    "identifiability": OF_IDENTIFIABILITY,
    "release": OF_RELEASE,
    "randomization": OF_RANDOMIZATION,
    "pmse": OF_PMSE,
}


@cache
def run_identifiability() -> identifiability.Reproduction:
    return identifiability.reproduce(None)


@cache
def run_release() -> release.Reproduction:
    return release.reproduce()


@cache
def run_pmse() -> pmse.Reproduction:
    return pmse.reproduce(scale=Scale(simulations=6, data_sets=4, chains=1, steps=30, direct=3))


@cache
def randomization_items() -> tuple[Item, ...]:
    """Return what takes seconds: curves, the worked example, privacy numbers."""
    results = {**curves.section_2(curves.curves()), **breaches.example(), **breaches.section_4()}
    return tuple(compare(item, results[item.id]) for item in OF_RANDOMIZATION if item.id in results)


def items_of(paper: str) -> tuple[Item, ...]:
    """Return the items of a paper, from a run of seconds."""
    if paper == "randomization":
        return randomization_items()
    return {"identifiability": run_identifiability, "release": run_release, "pmse": run_pmse}[paper]().items
