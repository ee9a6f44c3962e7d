"""Figures 12 to 15: exposure against its critical value while the records of one sequence are released."""

from __future__ import annotations

from functools import cache

import numpy as np

from tidegate.arrays import Ints
from tidegate.release.plan import TARGET, TOTAL
from tidegate.release.tracks import Track, counts_after, tracks
from tidegate.risk.exposure import dixon_coefficient, kullback_leibler
from tidegate_papers.item import Result
from tidegate_papers.release.examples import plan_of
from tidegate_papers.release.paper import EXPECTED
from tidegate_papers.release.sequences import order

LEVEL, STREAM, FIRST = "0.2", 16, 20
FIGURES = {"12": "MIS", "13": "KLD", "14": "CST", "15": "DQT"}
VISIBLE = 0.05  # a smaller step is not visible on an axis of two decades


@cache
def tracks_of(test: str) -> tuple[Track, ...]:
    """Return the tracks of the first sequence of Figure 16 under one test, at 20%."""
    plan = plan_of(test, LEVEL)
    return tuple(tracks(plan, released(test)))


@cache
def released(test: str) -> Ints:
    """Return the cells of that sequence in the order of their release."""
    return order(plan_of(test, LEVEL), stream=STREAM)


def figures_12_to_15() -> dict[str, Result]:
    """Return the statements about the four figures."""
    results = {f"fig{number}_below": _below(tracks_of(test)) for number, test in FIGURES.items()}
    return {
        **results,
        "fig12_step": _step("MIS", TOTAL),
        "fig12_gap": _gap(tracks_of("MIS")[0]),
        "fig13_step": _step("KLD", TARGET),
        "fig14_first": _before_test(_first_tests()),
        "fig14_steps": _climbs(tracks_of("CST")),
        "fig15_first": _before_test([first for first, _ in _beginnings()]),
        "fig15_steps": _dixon_steps(),
    }


def _tested(track: Track) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return track.critical[np.isfinite(track.critical)]


def _below(followed_: tuple[Track, ...]) -> Result:
    most = max(track.closest for track in followed_)
    return Result(most < 1, f"it came to {100 * most:.3f}% of it")


def _step(test: str, table: str) -> Result:
    simulated = plan_of(test, LEVEL).tables[table]
    step = simulated.beyond / float(simulated.values[-1]) - 1
    words = "cannot be noticed" if abs(step) < VISIBLE else "can be noticed"
    return Result(words, f"{step:+.1%} after {int(simulated.sizes[-1])} records")


def _gap(track: Track) -> Result:
    """Compare the gaps at ten, a hundred, a thousand records and at the end, in bits."""
    indexes = np.searchsorted(track.records, [10, 100, 1000, track.records[-1]])
    gaps = (track.critical - track.values)[indexes]
    return Result(bool((np.diff(gaps) < 0).all()), ", ".join(f"{gap:.2g}" for gap in gaps) + " bits")


@cache
def _first_tests() -> list[int]:
    """Return for each of the first sequences the records of a location before its test began, for the earliest test.

    A location whose records all are in one bin or in sparse ones is never tested.
    """
    plan = plan_of("CST", LEVEL)
    firsts = []
    for index in range(FIRST):
        followed_ = tracks(plan, order(plan, stream=STREAM, index=index))
        starts = [np.flatnonzero(np.isfinite(track.critical)) for track in followed_]
        firsts.append(min(int(t.records[start[0]]) for t, start in zip(followed_, starts, strict=True) if start.size))
    return firsts


def _before_test(firsts: list[int]) -> Result:
    """Return the mean over our sequences. The authors report one: its deviation is that of a single sequence."""
    mean, deviation = float(np.mean(firsts)), float(np.std(firsts, ddof=1))
    error = deviation * (1 + 1 / len(firsts)) ** 0.5
    return Result(round(mean, 2), f"{min(firsts)} to {max(firsts)} in {FIRST} sequences", error=error, size=FIRST)


def _climbs(followed_: tuple[Track, ...]) -> Result:
    levels = [len(set(_tested(track).tolist())) for track in followed_]
    return Result(max(levels) > 1, f"{', '.join(map(str, levels))} levels by location")


@cache
def _beginnings() -> list[tuple[int, int]]:
    """Return for each of the first sequences the records until there are three distances, and the distances at the end."""
    plan = plan_of("DQT", LEVEL)
    ordered = [order(plan, stream=STREAM, index=index) for index in range(FIRST)]
    return [(_records_without_test(cells), _distances(cells)) for cells in ordered]


def _dixon_steps() -> Result:
    """Return the number of steps: from three distances on, each additional one is a step."""
    steps = [distances - 2 for _, distances in _beginnings()]
    usual = max(steps, key=steps.count)
    note = f"in {steps.count(usual)} of {FIRST} sequences; in the others not one record of some location left"
    return Result(usual, note)


def _records_without_test(cells: Ints) -> int:
    return next(out for out in range(cells.size) if _distances(cells[: out + 1]) >= 3)


def _distances(cells: Ints) -> int:
    counts = counts_after(plan_of("DQT", LEVEL), cells)
    return dixon_coefficient(kullback_leibler(counts, EXPECTED))[1]
