"""Figures 12 to 15: exposure against its critical value while the records of one sequence go out."""

from __future__ import annotations

from functools import cache

import numpy as np

from tidegate.release.plan import TARGET, TOTAL
from tidegate.release.tracking import Track, counts_after, tracks
from tidegate.reproduce.item import Found
from tidegate.reproduce.release.examples import plan_of
from tidegate.reproduce.release.paper import EXPECTED, printed
from tidegate.reproduce.release.sequences import Integers, order
from tidegate.risk.exposure import dixon_coefficient, kullback_leibler

LEVEL, STREAM, FIRST = "0.2", 16, 20
FIGURES = {"12": "MIS", "13": "KLD", "14": "CST", "15": "DQT"}
SEEN = 0.05  # a smaller step cannot be seen on an axis of two decades


@cache
def followed(test: str) -> tuple[Track, ...]:
    """The first of the sequences of Figure 16 under one test, at 20%."""
    plan = plan_of(test, LEVEL)
    return tuple(tracks(plan, released(test)))


@cache
def released(test: str) -> Integers:
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
        "fig14_first": _first(followed("CST")),
        "fig14_steps": _climbs(followed("CST")),
        "fig15_first": _before_dixon(),
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


def _first(followed_: tuple[Track, ...]) -> Found:
    """Records of a location that went out before its test began. A location whose records all fall into one bin or into
    sparse ones is never tested."""
    starts = [np.flatnonzero(np.isfinite(track.critical)) for track in followed_]
    first = [int(track.records[start[0]]) if start.size else 0 for track, start in zip(followed_, starts, strict=True)]
    tested = [number for number in first if number]
    words = ", ".join(str(number) if number else "never" for number in first)
    return Found(min(tested), f"by location {words}", agrees=min(tested) >= 10)


def _climbs(followed_: tuple[Track, ...]) -> Found:
    levels = [len(set(_tested(track).tolist())) for track in followed_]
    return Found(max(levels) > 1, f"{', '.join(map(str, levels))} levels by location")


@cache
def _beginnings() -> list[tuple[int, int]]:
    """Of the first sequences: records until there are three distances, and how many distances there are at the end."""
    plan = plan_of("DQT", LEVEL)
    ordered = [order(plan, stream=STREAM, place=place) for place in range(FIRST)]
    return [(_records_without_test(cells), _distances(cells)) for cells in ordered]


def _before_dixon() -> Found:
    firsts = sorted(first for first, _ in _beginnings())
    note = f"{firsts[0]} to {firsts[-1]} in {FIRST} sequences"
    return Found(firsts[FIRST // 2], note, agrees=firsts[0] <= printed("fig15_first") <= firsts[-1])


def _dixon_steps() -> Found:
    """From three distances on each one more is a step."""
    steps = [distances - 2 for _, distances in _beginnings()]
    usual = max(steps, key=steps.count)
    note = f"in {steps.count(usual)} of {FIRST} sequences; in the others not one record of some location left"
    return Found(usual, note)


def _records_without_test(cells: Integers) -> int:
    return next(out for out in range(cells.size) if _distances(cells[: out + 1]) >= 3)


def _distances(cells: Integers) -> int:
    counts = counts_after(plan_of("DQT", LEVEL), cells)
    return dixon_coefficient(kullback_leibler(counts, EXPECTED))[1]
