"""Figures 12 to 15: exposure against its critical value while the records of one sequence go out."""

from __future__ import annotations

from functools import cache

import numpy as np

from tidegate.arrays import Ints
from tidegate.release.plan import TARGET, TOTAL
from tidegate.release.tracks import Track, counts_after, tracks
from tidegate.risk.exposure import dixon_coefficient, kullback_leibler
from tidegate_papers.item import Found, score
from tidegate_papers.release.examples import plan_of
from tidegate_papers.release.paper import EXPECTED, printed
from tidegate_papers.release.sequences import order

LEVEL, STREAM, FIRST = "0.2", 16, 20
FIGURES = {"12": "MIS", "13": "KLD", "14": "CST", "15": "DQT"}
SEEN = 0.05  # a smaller step cannot be seen on an axis of two decades


@cache
def followed(test: str) -> tuple[Track, ...]:
    """The first of the sequences of Figure 16 under one test, at 20%."""
    plan = plan_of(test, LEVEL)
    return tuple(tracks(plan, released(test)))


@cache
def released(test: str) -> Ints:
    """The cells of that sequence in the order of their release."""
    return order(plan_of(test, LEVEL), stream=STREAM)


def figures_12_to_15() -> dict[str, Found]:
    """What the text says of the four figures."""
    found = {f"fig{number}_below": _below(followed(test)) for number, test in FIGURES.items()}
    return {
        **found,
        "fig12_step": _step("MIS", TOTAL),
        "fig12_gap": _gap(followed("MIS")[0]),
        "fig13_step": _step("KLD", TARGET),
        "fig14_first": _before_test(_first_tests(), "fig14_first"),
        "fig14_steps": _climbs(followed("CST")),
        "fig15_first": _before_test([first for first, _ in _beginnings()], "fig15_first"),
        "fig15_steps": _dixon_steps(),
    }


def _tested(track: Track) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return track.critical[np.isfinite(track.critical)]


def _below(followed_: tuple[Track, ...]) -> Found:
    most = max(track.closest for track in followed_)
    return Found(most < 1, f"it came to {100 * most:.3f}% of it")


def _step(test: str, table: str) -> Found:
    simulated = plan_of(test, LEVEL).tables[table]
    step = simulated.beyond / float(simulated.values[-1]) - 1
    words = "cannot be noticed" if abs(step) < SEEN else "can be noticed"
    return Found(words, f"{step:+.1%} after {int(simulated.sizes[-1])} records")


def _gap(track: Track) -> Found:
    """At ten, a hundred, a thousand records and at the end; the numbers are the differences in bits."""
    places = np.searchsorted(track.records, [10, 100, 1000, track.records[-1]])
    gaps = (track.critical - track.values)[places]
    return Found(bool((np.diff(gaps) < 0).all()), ", ".join(f"{gap:.2g}" for gap in gaps) + " bits")


@cache
def _first_tests() -> list[int]:
    """Of the first sequences: records of a location before its test began, of the location whose test began first. A
    location whose records all fall into one bin or into sparse ones is never tested."""
    plan = plan_of("CST", LEVEL)
    found = []
    for place in range(FIRST):
        followed_ = tracks(plan, order(plan, stream=STREAM, place=place))
        starts = [np.flatnonzero(np.isfinite(track.critical)) for track in followed_]
        found.append(min(int(t.records[start[0]]) for t, start in zip(followed_, starts, strict=True) if start.size))
    return found


def _before_test(firsts: list[int], name: str) -> Found:
    """The mean over our sequences. The authors tell of one: its deviation is that of a single sequence."""
    mean, deviation = float(np.mean(firsts)), float(np.std(firsts, ddof=1))
    z = score(mean, printed(name), deviation * (1 + 1 / len(firsts)) ** 0.5)
    return Found(round(mean, 2), f"{min(firsts)} to {max(firsts)} in {FIRST} sequences", z=z, size=FIRST)


def _climbs(followed_: tuple[Track, ...]) -> Found:
    levels = [len(set(_tested(track).tolist())) for track in followed_]
    return Found(max(levels) > 1, f"{', '.join(map(str, levels))} levels by location")


@cache
def _beginnings() -> list[tuple[int, int]]:
    """Of the first sequences: records until there are three distances, and how many distances there are at the end."""
    plan = plan_of("DQT", LEVEL)
    ordered = [order(plan, stream=STREAM, place=place) for place in range(FIRST)]
    return [(_records_without_test(cells), _distances(cells)) for cells in ordered]


def _dixon_steps() -> Found:
    """From three distances on each one more is a step."""
    steps = [distances - 2 for _, distances in _beginnings()]
    usual = max(steps, key=steps.count)
    note = f"in {steps.count(usual)} of {FIRST} sequences; in the others not one record of some location left"
    return Found(usual, note)


def _records_without_test(cells: Ints) -> int:
    return next(out for out in range(cells.size) if _distances(cells[: out + 1]) >= 3)


def _distances(cells: Ints) -> int:
    counts = counts_after(plan_of("DQT", LEVEL), cells)
    return dixon_coefficient(kullback_leibler(counts, EXPECTED))[1]
