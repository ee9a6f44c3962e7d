"""The public report: a function of the summary alone, in every format, and never below the loss."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from synthesize.quality.test_report import Strict

from tidegate.accounting import Amount, epsilon_at_delta
from tidegate.synthesize.diary import Loss
from tidegate.synthesize.model import CountedPair, FoundMap, Summary
from tidegate.synthesize.quality import PublicReport, public_report

PROMISE = "No guess among 100 candidates is right more often than 2.7% on average."
SUMMARY = Summary(
    cells={"age": (0, 10, 50), "pay": (0, 1), "town": tuple(range(7)), "<b>": (0,)},
    deviations={"age": 12.5, "pay": 1234.5, "town": 3.0, "<b>": 0.5},
    pairs=(CountedPair("age", "pay", (12, 4), 33.25, "tree"), CountedPair("age", "<b>", (5, 6), 40.0, "residual")),
    maps=(FoundMap("town", "pay", 0.0125),),
    independent=("note",),
    misfit=1.75,
    banner="This budget supports margins and 2 associations only.",
    spent=Loss(None, Fraction(153, 10_000), Fraction(306, 10_000)),
)


@pytest.fixture(scope="module")
def report() -> PublicReport:
    return public_report(SUMMARY, PROMISE, name="people", delta=Fraction(1, 10**5))


def test_every_format_has_the_banner_the_promise_and_the_loss(report: PublicReport) -> None:
    for text in (report.says(), report.to_html(), report._repr_html_(), report.to_json()):
        assert SUMMARY.banner in text
        assert PROMISE in text
        assert "Z = 0.0153" in text
        assert "delta = 1e-05" in text
    assert str(report).startswith(SUMMARY.banner)
    assert report.epsilon == pytest.approx(1.0, abs=0.01)  # the golden conversion of z .0305566
    assert report.epsilon == epsilon_at_delta(Amount.up(SUMMARY.spent.zcdp), Fraction(1, 10**5))


def test_pairs_cells_maps_and_independent_columns_are_shown(report: PublicReport) -> None:
    for text in (report.says(), report.to_html()):
        for part in ("12 × 4", "33.2", "5 × 6", "1,234", "note"):
            assert part in text
    assert "follows from pay" in report.says()
    assert "1.2%" in report.to_html()
    content = json.loads(report.to_json())
    assert content["pairs"][0]["groups"] == [12, 4]
    assert content["independent"] == ["note"]
    assert content["loss"]["display"]["delta"] == 1e-5
    assert Summary.from_dict({**content, "spent": {"z": content["loss"]["z"], "zcdp": "153/5000"}}) == SUMMARY


def test_page_is_well_formed_and_escapes_names(report: PublicReport) -> None:
    page = Strict()
    page.feed(report.to_html())
    assert page.stack == []
    assert not [tag for tag, _ in page.seen if tag in ("script", "link", "img", "iframe", "b")]


def test_pure_loss_is_shown_as_epsilon_without_delta() -> None:
    pure = public_report(replace(SUMMARY, spent=Loss.of_pure(Fraction(1, 3)), banner=""), PROMISE)
    assert "epsilon = 0.3334 of pure differential privacy" in pure.says()  # rounded up
    assert pure.to_dict()["loss"]["display"] == {"epsilon": pytest.approx(1 / 3), "delta": 0.0}
    assert "delta" not in pure.says()
    assert pure.says().startswith("What the synthetic tables show")
    nothing = Summary({"a": (0,)}, {"a": 1.0}, (), (), ("a",), 0.0, "", Loss.of_pure(Fraction(0)))
    assert "0 pairs of columns were counted together" in str(public_report(nothing, ""))


def test_report_is_a_table_and_can_be_saved(report: PublicReport, tmp_path: Path) -> None:
    rows = report.to_arrow().to_pylist()
    assert rows[0] == {
        "column": "age", "cells": 3, "deviation": 12.5, "pairs": 2, "follows": None, "independent": False,
    }  # fmt: skip
    assert rows[2]["follows"] == "pay"
    assert [path.name for path in report.save(tmp_path)] == ["public-quality.html", "public-quality.json"]
