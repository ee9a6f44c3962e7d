"""The paper on differential identifiability, item by item."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from golden.papers import golden
from hypothesis import given
from hypothesis import strategies as st
from reproduce.runs import run_identifiability
from tidegate_papers import compare, summary
from tidegate_papers.identifiability import Reproduction, reproduce
from tidegate_papers.identifiability.boxes import figures_2_to_4, panels
from tidegate_papers.identifiability.figures import pictures
from tidegate_papers.identifiability.paper import ATTRIBUTES, FACTS, PUBLISHED, ROWS
from tidegate_papers.identifiability.tables import deviation_range
from tidegate_papers.item import WORDS
from tidegate_papers.report import page, picture_bytes

from tidegate.errors import SourceUnreadable

ERRATA = {"t2_w3_mean", "t2_w6_mean", "s5_statistics", *(f"t4_sd_{code}_S" for code in ATTRIBUTES)}
DIFFER = {"s5_universe", "t4_responses_infinite"}
SAMPLED = {"t4_responses", *(item.id for item in PUBLISHED if item.printing == "boxes")}
WITH_DATA = {"s5_rows", "s5_numerical", "s5_categorical"}
WITH_DATA |= {f"t3_{code}_{end}" for code in ATTRIBUTES for end in ("min", "max")}
WITH_DATA |= {f"t4_{statistic}_{code}_f" for code in ATTRIBUTES for statistic in ("mean", "sd")}


@pytest.fixture(scope="module")
def without_data() -> Reproduction:
    return run_identifiability()


@pytest.fixture(scope="module")
def with_data(public_data: Path) -> Reproduction:
    return reproduce(public_data / "adult.csv")


def statuses(done: Reproduction) -> dict[str, set[str]]:
    ids: dict[str, set[str]] = {status: set() for status in WORDS}
    for item in done.items:
        ids[item.status].add(item.id)
    return ids


def test_items_without_data_are_reproduced(without_data: Reproduction) -> None:
    ids = statuses(without_data)
    assert ids["erratum"] == ERRATA
    assert ids["differs"] == DIFFER
    assert ids["within noise"] == SAMPLED
    assert ids["reproduced"] == {item.id for item in PUBLISHED} - ERRATA - DIFFER - SAMPLED - WITH_DATA
    assert without_data.left_out == len(WITH_DATA)
    assert summary(without_data.items) == "60 reproduced, 12 within noise, 8 errata, 2 differ"


def test_no_item_is_left_out_with_data(with_data: Reproduction) -> None:
    ids = statuses(with_data)
    assert ids["erratum"] == ERRATA | {"s5_numerical"}
    assert ids["differs"] == DIFFER
    assert [item.id for item in with_data.items] == [item.id for item in PUBLISHED]
    assert with_data.left_out == 0
    assert summary(with_data.items) == "82 reproduced, 12 within noise, 9 errata, 2 differ"


def test_every_difference_has_a_reason(without_data: Reproduction) -> None:
    assert all(len(item.note) > 20 for item in without_data.items if item.status != "reproduced")


def test_shipped_numbers_equal_the_golden_ones() -> None:
    shipped = {item.id: item.published for item in PUBLISHED}
    for entry in golden("identifiability")["published"]:
        value = shipped[entry["id"]]
        ours = float(Fraction(value)) if isinstance(value, str) and value != "inf" else value
        assert ours == pytest.approx(entry["printed"], abs=5e-5), entry["id"]
    for box in golden("identifiability")["figures"]:
        panel = f"fig{box['figure']}_" + (f"{box['statistic']}_" if box["figure"] == "4" else "") + box["attribute"]
        tick = f"{box.get('rho', box.get('epsilon')):f}".rstrip("0").rstrip(".")
        key = f"{tick} of {box['rows']}" if box["figure"] == "4" else tick
        value = shipped[panel][key]
        assert value == (pytest.approx(box["quartile"], rel=1e-5) if "scale" in box else "no box")


def test_the_policy_has_the_bounds_of_table_3() -> None:
    shipped = {item.id: item.published for item in PUBLISHED}
    for code, attribute in ATTRIBUTES.items():
        assert (attribute.lowest, attribute.highest) == (shipped[f"t3_{code}_min"], shipped[f"t3_{code}_max"])
        assert attribute.worlds == attribute.highest - attribute.lowest + 1


def test_every_id_is_used_once() -> None:
    assert len({item.id for item in PUBLISHED}) == len(PUBLISHED)


def test_same_answers_are_drawn_every_time() -> None:
    for first, again in zip(panels(), panels(), strict=True):
        for box, other in zip(first.boxes, again.boxes, strict=True):
            assert (box.ratios is None) == (other.ratios is None)
            assert box.ratios is None or np.array_equal(box.drawn, other.drawn)


@pytest.mark.parametrize("factor", [0.7, 1.35])
def test_a_third_more_or_less_noise_is_not_reproduced(factor: float) -> None:
    wrong = [
        replace(panel, boxes=tuple(b if b.ratios is None else replace(b, ratios=b.drawn * factor) for b in panel.boxes))
        for panel in panels()
    ]
    results = figures_2_to_4(wrong)
    published = {item.id: item for item in PUBLISHED}
    assert {compare(published[panel.id], results[panel.id]).status for panel in wrong} == {"differs"}


def test_box_at_an_infeasible_rho_is_not_reproduced() -> None:
    drawn = panels()
    empty = next(panel for panel in drawn if panel.id == "fig2_EN")
    filled = replace(empty, boxes=tuple(replace(box, ratios=np.zeros(1000)) for box in empty.boxes))
    assert figures_2_to_4([filled if panel is empty else panel for panel in drawn])["fig2_EN"].z == math.inf


@given(st.lists(st.integers(0, 20), min_size=1, max_size=8), st.integers(0, 20), st.integers(0, 20))
def test_one_row_changes_a_deviation_by_at_most_its_range_over_root_n(
    others: list[int], before: int, after: int
) -> None:
    rows = len(others) + 1
    moved = abs(float(np.std([*others, before], ddof=1)) - float(np.std([*others, after], ddof=1)))
    assert moved <= abs(before - after) / math.sqrt(rows) + 1e-9


def test_range_is_reached_if_all_other_rows_are_equal() -> None:
    age = ATTRIBUTES["AG"]
    rows = np.full(ROWS, age.lowest)
    rows[0] = age.highest
    assert float(np.std(rows, ddof=1)) == pytest.approx(deviation_range(age), rel=1e-12)


def test_table_of_another_size_is_refused(tmp_path: Path) -> None:
    names = [attribute.name for attribute in ATTRIBUTES.values()]
    path = tmp_path / "adult.csv"
    path.write_text(",".join(names) + "\n" + ",".join("20" for _ in names) + "\n")
    with pytest.raises(SourceUnreadable, match="has 1 rows; the paper's table has 48,842"):
        reproduce(path)


@pytest.mark.long
def test_page_contains_every_item_and_picture_and_loads_nothing(without_data: Reproduction) -> None:
    drawn = [(picture_bytes(picture.figure), picture.words) for picture in pictures(without_data.panels)]
    assert len(drawn) == 4
    assert all(content.startswith(b"\x89PNG") for content, _ in drawn)
    text = page("Title & all", FACTS["paper"], without_data.items, drawn, missing="23 items < all")
    assert all(f"<td>{item.id}</td>" in text for item in without_data.items)
    assert "Title &amp; all" in text
    assert "23 items &lt; all" in text
    assert text.count("data:image/png;base64,") == 4
    assert "http" not in text
    assert "<script" not in text


def test_shipped_file_is_strict_json() -> None:
    json.dumps(FACTS, allow_nan=False)
