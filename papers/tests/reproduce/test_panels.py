"""The matplotlib figures of a release: the numbers in them, their titles, their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tidegate_papers.panels import distributions, exposure, fitting, save, shares

from tidegate.demo.soldiers import AGES, BASELINE, COUNTS, LOCATIONS, SHARES, concealment
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


def titles(figure: Any) -> str:
    return str(figure.get_suptitle())


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", sorted(REGISTERED))
def test_released_records_stay_below_the_critical_value(name: str) -> None:
    plan, order = soldiers((name,))
    followed = tracks(plan, order)
    assert all(track.closest <= 1 for track in followed)
    figure = exposure(followed, targets=LOCATIONS)
    assert "stays below its critical value" in titles(figure)
    assert len([axes for axes in figure.axes if axes.lines]) == (5 if name in PER_TARGET else 1)
    assert all("released records" in axes.get_xlabel() for axes in figure.axes if axes.lines)


def test_release_without_control_exceeds_the_critical_value() -> None:
    plan, _ = soldiers(("kullback-leibler",))
    everything = np.random.default_rng(4).permutation(np.repeat(np.arange(50), WHOLE.T.ravel()))
    followed = tracks(plan, everything)
    assert max(track.closest for track in followed) > 1
    assert (
        titles(exposure(followed, targets=LOCATIONS)) == "Kullback-Leibler distance went beyond its critical value (L2)"
    )


def test_axis_shows_the_unit_of_its_measure() -> None:
    for name in ("mutual-information", "kullback-leibler"):
        plan, order = soldiers((name,))
        assert "(bits)" in exposure(tracks(plan, order), targets=LOCATIONS).axes[0].get_ylabel()


def test_target_with_too_few_records_is_labeled() -> None:
    track = Track("chi-square", "Pearson's", 0, np.array([1, 2]), np.zeros(2), np.full(2, np.inf))
    figure = exposure([track], targets=["A"])
    assert [text.get_text() for text in figure.axes[0].texts] == ["2 records,\ntoo few to be tested"]
    assert track.closest == 0


def test_title_of_shares_names_the_extremes() -> None:
    figure = shares([10, 200, 40], [5, 20, 40], targets=["A", "B", "C"])
    assert titles(figure) == "Of B 10% left, of C 100%"
    assert [text.get_text().strip() for text in figure.axes[0].texts] == ["50.0%", "10.0%", "100.0%"]


def test_distributions_are_plotted_in_percent_beside_the_baseline() -> None:
    plan, order = soldiers(("kullback-leibler",))
    counts = counts_after(plan, order)
    figure = distributions(plan, counts, before=WHOLE, values=AGES, targets=LOCATIONS)
    assert titles(figure).startswith("L2 is 0.36 bits from the baseline; what is released of it, ")
    bars = [patch.get_height() for patch in figure.axes[1].patches[: len(AGES)]]
    np.testing.assert_allclose(bars, 100 * counts[:, 1] / counts[:, 1].sum())
    np.testing.assert_allclose(figure.axes[1].lines[0].get_ydata(), 100 * WHOLE[:, 1] / 1299)
    assert titles(distributions(plan, WHOLE, values=AGES, targets=LOCATIONS)) == (
        "L2 is farthest from the baseline: 0.36 bits"
    )


def test_fitting_shows_whole_records_and_what_limits_them() -> None:
    plan, _ = soldiers(("kullback-leibler",))
    figure = fitting(plan, WHOLE, WHOLE, target=1, values=AGES, targets=LOCATIONS)
    assert titles(figure) == "Under kullback-leibler 2.5 times as many records leave as fit the baseline exactly"
    assert figure.axes[0].get_title(loc="left") == "L2: 579 of 1,299; 25-29 sets the limit"


@pytest.mark.parametrize(("suffix", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_figure_is_saved_in_the_format_of_its_suffix(tmp_path: Path, suffix: str, begins: bytes) -> None:
    figure = shares([10, 20], [5, 20], targets=["A", "B"])
    assert save(figure, tmp_path / f"shares.{suffix}").read_bytes().startswith(begins)
