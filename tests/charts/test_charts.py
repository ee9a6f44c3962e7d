"""Charts: structure, escaping, axes, the limit on points, files, and constructs that a Content Security Policy refuses."""

from __future__ import annotations

import math
import re
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tidegate.charts import Axis, Band, Bar, Cell, Chart, Interval, Line, Mark, Rule, Step, Table, numbers
from tidegate.charts.chart import NARROW, WIDE
from tidegate.charts.png import COVERED
from tidegate.charts.scale import MOST_POINTS, ticks
from tidegate.errors import TidegateError, Unsupported

SVG = "{http://www.w3.org/2000/svg}"
TOWNS = Axis("town", "category", ("Aby", "Bo", "Cefn"))
THREE = (0.0, 1.0, 2.0)
MARKS: dict[str, Mark] = {
    "bar": Bar("rows", THREE, (3.0, 1.0, 2.0)),
    "line": Line("mean", THREE, (3.0, math.nan, 2.0), dash="dashed"),
    "step": Step("share", (-0.5, 0.5, 1.5, 2.5), (3.0, 1.0, 2.0)),
    "band": Band("95% band", THREE, (2.0, 0.5, 1.0), (4.0, 1.5, 3.0)),
    "interval": Interval("95% interval", THREE, (2.0, 0.5, 1.0), (4.0, 1.5, 3.0), (3.0, 1.0, 2.0)),
    "rule": Rule("critical value", (2.5,)),
    "cell": Cell("association", (0.0, 1.0), (1.0, 2.0), (0.5, -0.5)),
}


def parse(svg: str) -> ET.Element:
    return ET.fromstring(svg if "xmlns" in svg else svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1))


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in parse(svg).iter(f"{SVG}text")]


def tips(svg: str) -> list[str]:
    return [element.text or "" for element in parse(svg).iter(f"{SVG}title")]


def paths(svg: str, kind: str) -> list[str]:
    groups = [group for group in parse(svg).iter(f"{SVG}g") if kind in group.get("class", "").split()]
    return [path.get("d", "") for group in groups for path in group.iter(f"{SVG}path")]


def heights(svg: str) -> list[float]:
    return [
        float(rect.get("height", "0")) for rect in parse(svg).iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None
    ]


@pytest.mark.parametrize("horizontal", [False, True])
@pytest.mark.parametrize("kind", MARKS)
def test_every_mark_is_drawn_inside_the_chart(kind: str, horizontal: bool) -> None:
    values = TOWNS if kind == "cell" else Axis("value")
    chart = Chart("Finding", (MARKS[kind],), TOWNS, values, horizontal=horizontal)
    for width in (WIDE, NARROW):
        svg = chart.svg(width)
        assert f'class="{kind} ' in svg
        assert "nan" not in svg
        coordinates = [float(number) for number in re.findall(r' (?:x|cx)="([\d.-]+)"', svg)]
        assert all(-0.5 <= x <= width + 0.5 for x in coordinates)


def test_gap_interrupts_line() -> None:
    (path,) = paths(Chart("", (MARKS["line"],), TOWNS).svg(), "line")
    assert path.count("M") == 2
    assert "L" not in path


def test_bar_heights_are_proportional_to_values() -> None:
    svg = Chart("", (MARKS["bar"],), TOWNS).svg()
    tallest, lowest, middle = heights(svg)
    assert tallest / lowest == pytest.approx(3, abs=0.01)
    assert middle / lowest == pytest.approx(2, abs=0.01)
    assert tips(svg) == ["Aby: rows 3", "Bo: rows 1", "Cefn: rows 2"]


def test_all_text_is_escaped() -> None:
    evil = '<script>alert("1")</script>&'
    marks = (Bar(evil, (0.0,), (1.0,), tips=(evil,)), Rule(evil + "2", (0.5,)))
    chart = Chart(evil, marks, Axis(evil, "category", (evil[:20],)), Axis(evil), notes=(evil,))
    for svg in (chart.svg(), chart.svg(standalone=True)):
        assert "<script" not in svg
        assert evil in tips(svg)
        assert parse(svg).get("aria-label") == evil


def test_page_chart_has_no_style_script_or_link() -> None:
    chart = Chart("Finding", tuple(mark for kind, mark in MARKS.items() if kind != "cell"), TOWNS)
    html = chart.__html__()
    assert not re.search(r"<style|style=|<script|\son\w+=|href|url\(|\sid=", html)
    assert html.count("<svg") == 2
    assert f"0 0 {WIDE} " in html
    assert f"0 0 {NARROW} " in html
    assert "Finding" not in texts(chart.svg())  # the page shows the title itself
    assert chart._repr_svg_().count("<style>") == 1
    assert "Finding" in texts(chart._repr_svg_())


def test_standalone_chart_embeds_colors_and_dark_mode() -> None:
    chart = Chart("", (MARKS["bar"],), TOWNS)
    assert "var(" not in chart.svg(standalone=True)
    assert "prefers-color-scheme" in chart.svg(standalone=True)
    assert "prefers-color-scheme" not in chart.svg(standalone=True, dark=False)
    assert not re.search(r"#[0-9a-f]{3,6}", chart.svg())


@pytest.mark.parametrize("kind", ["line", "step", "band", "bar", "interval"])
def test_long_series_keeps_extremes_and_at_most_2000_points(kind: str) -> None:
    count = 50_000
    x, y = np.arange(count, dtype=float), np.random.default_rng(1).normal(size=count)
    y[12_345], y[23_456] = 40.0, -40.0
    values, edges = numbers(y), numbers(np.arange(count + 1))
    mark: dict[str, Mark] = {
        "line": Line("v", numbers(x), values),
        "step": Step("v", edges, values),
        "band": Band("v", numbers(x), values, values),
        "bar": Bar("v", numbers(x), values),
        "interval": Interval("v", numbers(x), values, values),
    }
    chart = Chart("", (mark[kind],), y=Axis(low=-40, high=40))
    svg = chart.svg()
    drawn = len(re.findall(r"[ML]", "".join(paths(svg, kind)))) or len(heights(svg))
    assert drawn <= MOST_POINTS * {"step": 2, "band": 2, "interval": 3}.get(kind, 1)
    if kind == "line":
        ys = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", paths(svg, kind)[0])]
        assert max(ys) - min(ys) == pytest.approx(chart.height, abs=0.2)


@pytest.mark.parametrize(
    ("axis", "ends", "labels"),
    [
        (Axis(), (0, 10), ["0", "2", "4", "6", "8", "10"]),
        (Axis(), (0, 0.06), ["0.00", "0.01", "0.02", "0.03", "0.04", "0.05", "0.06"]),
        (Axis(format="percent"), (0, 0.35), ["0%", "10%", "20%", "30%"]),
        (Axis(format="whole"), (0, 2), ["0", "1", "2"]),
        (Axis(kind="log"), (1, 10_000), ["1", "10", "100", "1,000", "10,000"]),
        (Axis(kind="log"), (3, 60), ["5", "10", "20", "50"]),
        (Axis(kind="category", categories=("a", "b" * 40)), (-0.5, 1.5), ["a", "b" * 25 + "…"]),
        (Axis(ticks=((0.0, "original"),)), (-8, 8), ["original"]),
    ],
)
def test_ticks_are_round_numbers_inside_the_axis(axis: Axis, ends: tuple[float, float], labels: list[str]) -> None:
    assert [label for _, label in ticks(axis, *ends, most=6)] == labels


@pytest.mark.parametrize("values", [(), (0.0,), (5.0,), (-2.0, -1.0), (1e-12,), (1e12, 2e12), (math.nan,)])
@pytest.mark.parametrize("kind", ["linear", "log"])
def test_unusual_values_give_a_valid_chart(values: tuple[float, ...], kind: str) -> None:
    positions = tuple(float(i) for i in range(len(values)))
    axis = Axis(kind="log") if kind == "log" else Axis()
    svg = Chart(
        "",
        (Bar("a", positions, values), Line("b", positions, values), Interval("c", positions, values, values)),
        y=axis,
    ).svg()
    assert "nan" not in svg
    assert parse(svg).tag == f"{SVG}svg"


def test_legend_is_below_the_plot_and_lists_each_series_once() -> None:
    panel = Chart("one", (MARKS["bar"], MARKS["interval"]), TOWNS, Axis("rows"))
    chart = Chart("Finding", panels=(panel, panel))
    svg = chart.svg()
    assert texts(svg)[-2:] == ["rows", "95% interval"]
    tops = {element.text: float(element.get("y", "0")) for element in parse(svg).iter(f"{SVG}text")}
    bottom = max(
        float(rect.get("y", "0")) + float(rect.get("height", "0"))
        for rect in parse(svg).iter(f"{SVG}rect")
        if rect.find(f"{SVG}title") is not None
    )
    assert tops["95% interval"] > tops["town"] > bottom
    assert "rows" not in texts(Chart("", (MARKS["bar"],), TOWNS).svg())  # one series needs no legend


def test_empty_panel_shows_the_reason() -> None:
    assert texts(Chart("", empty="2 records, too few to test").svg()) == ["2 records, too few to test"]


@pytest.mark.parametrize(("suffix", "begins"), [(".png", b"\x89PNG"), (".svg", b"<svg"), (".PNG", b"\x89PNG")])
def test_file_ending_selects_the_format(tmp_path: Path, suffix: str, begins: bytes) -> None:
    path = Chart("Finding", (MARKS["bar"],), TOWNS).save(tmp_path / f"chart{suffix}")
    assert path.read_bytes().startswith(begins)


def test_unwritable_file_is_reported(tmp_path: Path) -> None:
    chart = Chart("Finding", (MARKS["bar"],), TOWNS)
    with pytest.raises(Unsupported, match=r"\.svg or \.png"):
        chart.save(tmp_path / "chart.pdf")
    with pytest.raises(TidegateError, match="cannot be written"):
        chart.save(tmp_path / "missing" / "chart.png")


def test_text_is_drawn_without_system_fonts() -> None:
    def png(title: str) -> bytes:
        return Chart(title, (MARKS["bar"],), TOWNS).png()

    assert png("Größe, Ελλάδα, Москва, ≤ 5%") != png("")
    assert png("Finding") == png("Finding")
    assert len(png("Finding")) > len(png("")) + 300  # a title without a font would leave the picture as it is


def test_shipped_font_is_small_licensed_and_covers_its_characters() -> None:
    from fontTools.ttLib import TTFont  # type: ignore[import-untyped]

    folder = files("tidegate.charts")
    font = folder / "DejaVuSans.ttf"
    assert len(font.read_bytes()) < 150_000
    assert "Bitstream" in (folder / "DejaVuSans.LICENSE.txt").read_text("utf-8")
    assert "DejaVuSans.ttf" in (Path(__file__).parents[2] / "NOTICE").read_text("utf-8")
    with TTFont(Path(str(font))) as loaded_font:
        characters = {chr(code) for code in loaded_font.getBestCmap()}
    claimed = {chr(code) for code in range(0x20, 0xFFFF) if COVERED.fullmatch(chr(code)) and not chr(code).isspace()}
    assert claimed == {character for character in characters if not character.isspace()}


def test_chart_is_a_frozen_value_with_its_table() -> None:
    table = Table(("town", "rows"), (("Aby", 3.0),))
    chart = Chart("Finding", (MARKS["bar"],), TOWNS, table=table)
    assert chart == Chart("Finding", (MARKS["bar"],), TOWNS, table=table)
    content = chart.to_dict()
    assert list(content) == ["title", "svg", "table"]
    assert content["table"] == {"columns": ["town", "rows"], "rows": [["Aby", 3.0]]}
