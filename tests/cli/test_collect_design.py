"""`tidegate collect design`: the operator, the itemsets that it recovers, and the comparison with cut-and-paste."""

from __future__ import annotations

import json

import pytest
from cli.conftest import Run

SMALL = ("collect", "design", "--items", 50, "--clients", 100_000, "--min-support", "0.01", "--sizes", "1:0.6,2:0.4")


def test_design_respects_its_limits_and_reports_recoverable_itemsets(run: Run) -> None:
    code, out, error = run(*SMALL, "--breach", "0.5", "--epsilon", "4", "--json")
    assert code == 0, error
    content = json.loads(out)
    assert [plan["size"] for plan in content["plans"]] == [1, 2]
    for plan in content["plans"]:
        assert plan["epsilon"] <= 4
        assert plan["breach"] <= 0.5
    shown = run(*SMALL, "--breach", "0.5", "--epsilon", "4")[1]
    assert "cut-and-paste" in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [((), "breach"), (("--epsilon", "no"), "epsilon"), (("--epsilon", "4", "--sizes", "1"), "sizes")],
)
def test_mistakes_are_reported_in_one_sentence(run: Run, arguments: tuple[str, ...], says: str) -> None:
    code, _, error = run(*SMALL, *arguments)
    assert code == 2
    assert says in error
