"""The report: says whom it is for, needs nothing else, escapes every name, and survives odd tables."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.browser import open_tab
from synthesize.quality.tables import ATTRIBUTES, people, resample, unrelated

from tidegate.errors import TidegateError, Unsupported
from tidegate.policy import Attribute, Category, Integer, Key
from tidegate.synthesize.diary import Loss as LossSum
from tidegate.synthesize.model import CountedPair, FoundMap, Summary
from tidegate.synthesize.quality import Quality, public_report, quality_of
from tidegate.synthesize.quality.charts import merge_cells
from tidegate.synthesize.quality.columns import Margin
from tidegate.synthesize.quality.dependencies import Dependency
from tidegate.synthesize.quality.text import CAUTION

TABLE = people(400, 1)


def report(synthetic: Any = None, **changes: Any) -> Quality:
    options: dict[str, Any] = {"attributes": ATTRIBUTES, "name": "people", **changes}
    return quality_of(TABLE, resample(TABLE, 2) if synthetic is None else synthetic, **options)


@pytest.fixture(scope="module")
def quality() -> Quality:
    return report()


def test_every_format_starts_with_the_caution(quality: Quality) -> None:
    assert quality.says().startswith(CAUTION.upper())
    body = quality.to_html().partition("<body")[2]
    assert body.index(CAUTION) < body.index("<h1")
    assert quality.to_dict()["caution"] == CAUTION
    assert quality._repr_html_().index(CAUTION) < 60


def test_table_equals_itself() -> None:
    same = report(TABLE)
    assert [separation.value for separation in same.separations] == [0, 0]
    assert (same.margin_distance, same.pair_distance) == (0, 0)
    assert all(pair.change == 0 for pair in same.pairs)
    assert "agree to the row" in same.to_html()


def test_column_is_named_only_if_it_differs_by_more_than_chance(quality: Quality) -> None:
    within = [replace(margin, distance=0.01 * n, expected=0.5) for n, margin in enumerate(quality.margins)]
    calm = replace(quality, margins=tuple(within))
    assert calm.margin_finding == "No column differs by more than chance"
    assert calm.margin_finding in calm.to_html()
    assert calm.to_dict()["margins"]["finding"] == calm.margin_finding
    apart = replace(quality, margins=(*within[:-1], replace(within[0], distance=0.6, expected=0.5)))
    assert apart.margin_finding.startswith(f"{within[0].column} differs most: 60%")


class Strict(HTMLParser):
    """Checks that every opened tag is closed, in order."""

    alone = frozenset({"meta", "rect", "line", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def test_page_is_self_contained_and_well_formed(quality: Quality) -> None:
    page = Strict()
    page.feed(quality.to_html())
    assert page.stack == []
    assert not [tag for tag, _ in page.seen if tag in ("script", "link", "img", "iframe", "object", "use")]
    assert not [attrs for _, attrs in page.seen if {"src", "href", "srcset", "onclick"} & set(attrs)]
    assert not re.search(r"https?://|//[a-z]+\.|url\(|@import", quality.to_html())


def test_names_and_values_are_escaped() -> None:
    name = '<script>alert("1")</script>'
    attributes: dict[str, Attribute] = {name: Category(("<b>", "&amp;", 'x"y')), "n": Integer(0, 3)}
    table = pa.table({name: ["<b>", "&amp;", 'x"y'] * 20, "n": [0, 1, 2, 3] * 15})
    page = quality_of(table, table, attributes=attributes, name="<i>").to_html()
    assert "<script" not in page
    assert "<b>" not in page
    assert "<i>" not in page.replace('<i class="', "")
    checked = Strict()
    checked.feed(page)
    assert checked.stack == []


def test_json_has_fixed_keys_and_no_infinity(quality: Quality) -> None:
    content = json.loads(quality.to_json())
    assert list(content) == [
        "format", "caution", "why", "banner", "data_set", "rows", "columns", "left_out", "findings", "margins", "pairs",
        "dependencies", "separation", "prediction", "queries", "regression", "notes",
    ]  # fmt: skip
    assert content["format"] == "tidegate-quality/2"
    assert content["rows"] == {"original": 400, "synthetic": [400]}
    assert content["left_out"] == {"person": "a key or a set"}
    assert [separation["kind"] for separation in content["separation"]] == ["boosted trees", "CART"]
    assert all(
        part["reads"] for part in (*content["separation"], content["margins"], content["pairs"], content["regression"])
    )
    assert len(content["pairs"]["pairs"]) == 6
    assert report().to_json() == quality.to_json()


def test_report_contains_no_keys(quality: Quality) -> None:
    for text in (quality.to_html(), quality.to_json(), quality.says()):
        assert "p17" not in text


SUMMARY = Summary(
    cells={"age": (0, 12, 40), "pay": (0, 1)},
    deviations={"age": 1.0, "pay": 1.0},
    pairs=(CountedPair("pay", "age", (3, 2), 4.0, "tree"),),
    maps=(FoundMap("town", "sex", 0.0),),
    independent=(),
    misfit=1.0,
    banner="This budget supports margins and 1 association only.",
    spent=LossSum.of_pure(Fraction(1)),
)


def test_summary_of_the_model_gives_cells_measured_pairs_and_the_banner() -> None:
    learned = report(summary=SUMMARY, cells={"sex": (0, 1), "age": (0,)})
    assert [len(margin.labels) for margin in learned.margins] == [3, 3, 2, 4]  # pay and town have a cell for missing
    measured = {pair.columns for pair in learned.pairs if pair.measured}
    assert measured == {("age", "pay"), ("sex", "town")}
    for text in (learned.says(), learned.to_html(), learned._repr_html_(), learned.to_json()):
        assert SUMMARY.banner in text
    body = learned.to_html().partition("<body")[2]
    assert body.index(SUMMARY.banner) < body.index("<ul>")
    assert body.count("<td>measured</td>") == 2
    assert body.count("<td>not measured</td>") == 4


def test_planted_defects_are_visible_in_their_own_numbers() -> None:
    """Zeros lost, a dependency broken, an association lost: each changes its number, and the others stay."""
    draw = np.random.default_rng(1)
    code = draw.integers(0, 12, 4000)
    zeros = draw.random(4000) < 0.4
    true = {
        "code": code,
        "region": np.array(["a", "b", "c"])[code % 3],
        "pay": np.where(zeros, 0, 100 + 50 * code + draw.integers(0, 100, 4000)),
    }
    attributes: dict[str, Attribute] = {
        "code": Integer(0, 11),
        "region": Category(("a", "b", "c")),
        "pay": Integer(0, 10**6),
    }

    def numbers(**changes: Any) -> dict[str, float]:
        quality = quality_of(pa.table(true), pa.table({**true, **changes}), attributes=attributes)
        pay = quality.margins[2].values[1]
        pair = next(pair for pair in quality.pairs if pair.columns == ("code", "pay"))
        assert pay.kind == "zero"
        assert pair.correlation is not None
        assert quality.prediction is not None
        return {
            "zeros": pay.synthetic - pay.original,
            "broken": quality.dependencies[0].broken or 0.0,
            "correlation": pair.correlation[1] - pair.correlation[0],
            "boosted": quality.separations[0].ratio or 0.0,
            "CART": quality.separations[1].ratio or 0.0,
            "prediction": quality.prediction.synthetic - quality.prediction.original,
        }

    intact = numbers()
    assert all(abs(intact[name]) < 0.02 for name in ("zeros", "broken", "correlation", "boosted", "CART"))
    lost = numbers(pay=np.where(zeros & (draw.random(4000) < 0.5), 3, true["pay"]))
    assert lost["zeros"] == pytest.approx(-0.2, abs=0.03)
    assert lost["broken"] == 0
    assert min(lost["boosted"], lost["CART"]) > 3
    broken = numbers(region=np.where(draw.random(4000) < 0.3, "a", true["region"]))
    assert broken["broken"] == pytest.approx(0.2, abs=0.03)
    assert broken["zeros"] == 0
    assert min(broken["boosted"], broken["CART"]) > 3
    mixed = numbers(pay=draw.permutation(true["pay"]))
    assert (mixed["zeros"], mixed["broken"]) == (0, 0)
    assert mixed["correlation"] < -0.3
    assert mixed["prediction"] < -0.2


def test_pages_fit_a_phone_in_dark_mode(tmp_path: Path, browser: Any) -> None:
    learned = report(summary=SUMMARY)
    line = "follows.town = { column = " + "x" * 300 + " }"
    dependency = Dependency("town", "sex", 1.0, 0.1, line, "", ("y",))
    learned = replace(learned, dependencies=(dependency, replace(dependency, line="", why="No line. " * 9)))
    pages = [
        learned.save(tmp_path / "own.html")[0],
        public_report(SUMMARY, "A promise.").save(tmp_path / "all.html")[0],
    ]
    for page in pages:
        with open_tab(browser, viewport={"width": 390, "height": 800}, color_scheme="dark") as tab:
            tab.goto(page.as_uri())
            assert tab.evaluate("document.documentElement.scrollWidth") == 390
            assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 26)"
            assert SUMMARY.banner in tab.locator("main").inner_text()


def test_several_tables_are_combined_and_reported() -> None:
    several = report([resample(TABLE, 2), unrelated(TABLE, 3)], formula="pay ~ age + sex")
    assert len(several.separations[0].values) == 2
    assert several.regression is not None
    assert several.regression.rule == "between"
    assert "2 synthetic tables" in several.to_html()


def test_report_is_saved_as_page_or_json_or_both(quality: Quality, tmp_path: Path) -> None:
    assert quality.save(tmp_path / "report.html") == (tmp_path / "report.html",)
    assert quality.save(tmp_path / "report.json") == (tmp_path / "report.json",)
    assert [path.name for path in quality.save(tmp_path / "both")] == ["quality.html", "quality.json"]
    assert json.loads((tmp_path / "both" / "quality.json").read_text()) == quality.to_dict()
    with pytest.raises(Unsupported, match="html"):
        quality.save(tmp_path / "report.pdf")
    with pytest.raises(TidegateError, match="cannot be written"):
        quality.save(tmp_path / "report.html" / "inside.html")


ODD = {
    "one row": (TABLE.slice(0, 1), TABLE.slice(1, 1)),
    "one synthetic row": (TABLE, TABLE.slice(0, 1)),
    "disjoint": (people(60, 1, sex=["f"] * 60, age=[18] * 60), people(60, 1, sex=["m"] * 60, age=[80] * 60)),
    "constant": tuple(people(50, n, sex=["f"] * 50, age=[30] * 50, town=["Aby"] * 50, pay=[1.0] * 50) for n in (1, 2)),
    "all missing": (TABLE, people(50, 1, age=[None] * 50, pay=[None] * 50, sex=[None] * 50, town=[None] * 50)),
    "nothing listed": (TABLE, people(50, 1, sex=["?"] * 50, town=["?"] * 50)),
    "few columns": (TABLE, TABLE.select(["age"])),
    "other sizes": (TABLE, TABLE.slice(0, 37)),
}


@pytest.mark.one_in(2)
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", ODD)
def test_unusual_tables_give_a_report(name: str) -> None:
    odd = quality_of(*ODD[name], attributes=ATTRIBUTES)
    page = Strict()
    page.feed(odd.to_html())
    assert page.stack == []
    assert json.loads(odd.to_json())["format"]
    assert CAUTION.upper() in odd.says()
    assert "nan" not in odd.to_html().lower().replace("finance", "")


def test_pandas_tables_give_the_same_report(quality: Quality) -> None:
    assert (
        quality_of(TABLE.to_pandas(), resample(TABLE, 2).to_pandas(), attributes=ATTRIBUTES, name="people").to_json()
        == quality.to_json()
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"synthetic": []}, "no synthetic table"),
        ({"synthetic": pa.table({"other": [1]})}, "no column in common"),
        ({"synthetic": TABLE.slice(0, 0)}, "without rows"),
        ({"synthetic": 3}, "cannot be made from int"),
        ({"formula": "age + sex"}, "A formula needs"),
        ({"formula": "age ~ sexx"}, 'no column "sexx"'),
        ({"rule": "between"}, "at least two tables"),
        ({"attributes": {"person": Key()}}, "no column in common"),
    ],
)
def test_invalid_input_is_refused_with_a_message(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TidegateError, match=re.escape(message)):
        report(**options)


def test_many_rows_are_sampled_and_the_report_says_so() -> None:
    sampled = report(at_most=100)
    assert any("use 100 of the 400 rows of the original" in note for note in sampled.notes)
    assert "100 of the 400" in sampled.to_html()


def test_plots_of_unequal_cells_merge_neighbors() -> None:
    """A model's cells have very different widths; the numbers stay those of the cells."""
    labels = ("0", "1", *(f"{10 * n} to {10 * n + 9}" for n in range(1, 101)))
    shares = (0.3, 0.0, *([0.007] * 100))
    margin = Margin("cost", labels, shares, shares, 0.0, 0.0, (0.0, 0.0), ordered=True)
    merged = merge_cells(margin)
    assert len(merged.labels) < 42
    assert merged.labels[:2] == ("0", "1 to 49")
    assert sum(merged.original) == pytest.approx(sum(shares))
    assert max(merged.synthetic[1:]) < 0.05
    ages = replace(margin, labels=tuple(map(str, range(102))))
    assert merge_cells(ages) is ages
