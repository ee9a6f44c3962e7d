"""Charts of a release: their numbers, and titles that state only the finding."""

from __future__ import annotations

import numpy as np
import pytest
from release.settings import random_plan, skewed_requests

from tidegate.charts import Bar, Line, Rule
from tidegate.demo.soldiers import AGES, BASELINE, COUNTS, LOCATIONS, SHARES, concealment
from tidegate.release.charts import distributions, exposure, overview, share_text, shares, single, track_name
from tidegate.release.gate import Gate
from tidegate.release.mechanisms import REGISTERED
from tidegate.release.plan import Plan, make_plan
from tidegate.release.tracks import Track, counts_after, tracks

WHOLE = np.array(COUNTS)
PER_TARGET = {"kullback-leibler", "chi-square", "posterior"}


def release_order(plan: Plan, cells: np.ndarray) -> np.ndarray:
    """Return the cells in the order in which a gate releases them."""
    return cells[Gate(plan).decide(cells, np.arange(cells.size)).released]


def soldiers(tests: tuple[str, ...]) -> tuple[Plan, np.ndarray]:
    plan = make_plan(concealment(tests=tests), BASELINE, SHARES)
    cells = np.random.default_rng(3).permutation(np.repeat(np.arange(50), WHOLE.T.ravel()))[:3000]
    return plan, release_order(plan, cells)


@pytest.mark.parametrize("name", sorted(REGISTERED))
@pytest.mark.parametrize("seed", range(3))
def test_track_holds_the_reading_after_each_record(name: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    plan = random_plan((name,), random)
    cells = np.array([y * plan.values + x for x, y in skewed_requests(plan, 60, random)])
    order = release_order(plan, cells)
    test = REGISTERED[name](plan)
    for track in tracks(plan, order):
        counts, number = np.zeros((plan.values, plan.targets), np.int64), 0
        for cell in order.tolist():
            y, x = divmod(cell, plan.values)
            counts[x, y] += 1
            if track.target in (None, y):
                (now,) = [reading for reading in test.readings(counts) if reading.target == track.target]
                assert track.records[number] == number + 1
                assert (track.values[number], track.critical[number]) == (now.value, now.critical)
                number += 1
        assert number == track.records.size


def test_tracks_follow_each_target_or_all_together() -> None:
    plan, order = soldiers(("mutual-information", "kullback-leibler"))
    first, *others = tracks(plan, order)
    assert first.target is None
    assert first.records[-1] == order.size
    assert [track.target for track in others] == [0, 1, 2, 3, 4]
    assert [track.records[-1] for track in others] == counts_after(plan, order).sum(axis=0).tolist()
    assert all(track.records[:100].tolist() == list(range(1, 101)) for track in (first, *others))


@pytest.mark.parametrize("name", sorted(REGISTERED))
def test_exposure_stays_below_its_critical_value(name: str) -> None:
    plan, order = soldiers((name,))
    result = tracks(plan, order)
    assert all(track.closest <= 1 for track in result)
    chart = exposure(result, targets=LOCATIONS)
    assert "stays below its critical value" in chart.title
    drawn = [panel for panel in chart.panels if panel.marks]
    assert len(drawn) == (5 if name in PER_TARGET else 1)
    assert all("released records" in panel.x.title for panel in drawn)
    whole = overview(result, targets=LOCATIONS)
    assert whole.title.startswith("Exposure stays below its critical value")
    (accented,) = [mark for mark in whole.marks if isinstance(mark, Line) and mark.tone == "accent"]
    nearest = max(result, key=lambda track: track.values[-1] / track.critical[-1])
    assert accented.label == track_name(nearest, LOCATIONS), "the group that is nearest to its limit now"
    assert single(result[0], targets=LOCATIONS).marks


def test_uncontrolled_release_exceeds_its_critical_value() -> None:
    plan, _ = soldiers(("kullback-leibler",))
    everything = np.random.default_rng(4).permutation(np.repeat(np.arange(50), WHOLE.T.ravel()))
    result = tracks(plan, everything)
    assert max(track.closest for track in result) > 1
    title = exposure(result, targets=LOCATIONS).title
    assert title == "Kullback-Leibler distance exceeded its critical value (L2)"
    assert overview(result, targets=LOCATIONS).title.startswith("A promise is broken: exposure reached ")


def test_axis_shows_the_units_of_the_measure() -> None:
    for name in ("mutual-information", "kullback-leibler"):
        plan, order = soldiers((name,))
        assert "(bits)" in exposure(tracks(plan, order), targets=LOCATIONS).panels[0].y.title


def test_panel_reports_too_few_records() -> None:
    track = Track("chi-square", "Pearson's", 0, np.array([1, 2]), np.zeros(2), np.full(2, np.inf))
    assert exposure([track], targets=["A"]).panels[0].empty == "2 records, too few to test"
    assert overview([track], targets=["A"]).title == "Too few records have been released to test"
    assert track.closest == 0


def test_empty_release_has_no_track() -> None:
    plan, _ = soldiers(("mutual-information", "chi-square"))
    assert tracks(plan, []) == []
    assert overview([], targets=[]).title == "No records released yet, so there is no exposure"


def test_share_below_the_critical_value_is_never_rounded_up() -> None:
    assert (share_text(0.9999), share_text(0.5), share_text(1.0)) == ("more than 99.9%", "50.0%", "100.0%")
    assert "99%" in shares([1000], [999], targets=["A"]).title


def test_shares_name_the_most_and_the_least_released_target() -> None:
    chart = shares([10, 200, 40], [5, 20, 40], targets=["A", "B", "C"], known=[0.2, 0.5, 0.3])
    assert chart.title == "Of B, 10% of the requested records are released, of C 100%"
    requested, released, known = chart.marks
    assert isinstance(requested, Bar)
    assert isinstance(released, Bar)
    assert isinstance(known, Rule)
    assert (requested.y, released.y, known.y) == ((10, 200, 40), (5, 20, 40), (50, 125, 75))
    assert chart.table is not None
    assert [row[3] for row in chart.table.rows] == ["50.0%", "10.0%", "100.0%"]
    assert shares([0, 0], [0, 0], targets=["A", "B"]).title == "No records requested yet"
    assert shares([3], [3], targets=["A"]).title == "All requested records are released"


def test_distributions_are_compared_with_the_baseline() -> None:
    plan, order = soldiers(("kullback-leibler",))
    left = counts_after(plan, order)
    chart = distributions(plan, left, before=WHOLE, values=AGES, targets=LOCATIONS)
    assert chart.title.startswith("L2 is 0.36 bits from the baseline; its released records, ")
    bars, baseline, before = chart.panels[1].marks
    assert isinstance(bars, Bar)
    assert isinstance(before, Line)
    np.testing.assert_allclose(bars.y, left[:, 1] / left[:, 1].sum())
    np.testing.assert_allclose(before.y, WHOLE[:, 1] / 1299)
    assert baseline.label == "baseline"
    title = distributions(plan, WHOLE, values=AGES, targets=LOCATIONS).title
    assert title == "L2 is farthest from the baseline: 0.36 bits"
