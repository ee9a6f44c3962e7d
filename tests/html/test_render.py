"""Templates: everything is escaped, a missing name is an error, and reports need no script and no network."""

from __future__ import annotations

import re

import jinja2
import pytest

from tidegate.charts import Axis, Bar, Chart
from tidegate.html import render
from tidegate.html.render import FOLDERS, amount, chance, percent, sentence, times, whole

SYNTHESIS = "report/synthesis.html"


def test_values_are_escaped_but_charts_are_not() -> None:
    evil = "<script>alert(1)</script>"
    chart = Chart("Finding", (Bar("rows", (0.0,), (1.0,)),), Axis(kind="category", categories=(evil[:20],)))
    page = render(SYNTHESIS, {"columns": [evil], "rows": [[chart]], "lines": [evil]})
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<svg") == 2


def test_missing_name_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="lines"):
        render(SYNTHESIS, {"columns": [], "rows": []})


def test_reports_and_pages_share_one_environment() -> None:
    import tidegate.web.render  # noqa: F401  (adds its folder)

    assert set(FOLDERS) == {"report", "console"}
    reports = set(FOLDERS["report"].list_templates())
    assert {"base.html", "audit.html", "quality.html", "synthesis.html", "paper.html", "report.css"} <= reports


def test_reports_have_no_script_no_link_and_one_style_sheet() -> None:
    loader, environment = FOLDERS["report"], jinja2.Environment(autoescape=True)
    for name in loader.list_templates():
        text = loader.get_source(environment, name)[0]
        assert not re.search(r"<script|\son\w+=|https?://|url\(|@import|<link", text), name
        assert "| safe" not in text, name
        assert ("<style>" in text) == (name in ("base.html", "notebook_parts.html")), name


def test_filters_format_numbers_for_people() -> None:
    assert (amount("0.31420"), amount(1234.5), amount(None), amount(12)) == ("0.3142", "1,234", "unlimited", "12")
    assert (chance(0.03124), whole(10_000), sentence("the mean")) == ("0.0312", "10,000", "The mean")
    assert (percent(0.0312), percent(0.25), percent(None)) == ("3.1%", "25%", "–")
    assert (times(1.25), times(1234), times(None)) == ("1.25", "1,234", "–")
