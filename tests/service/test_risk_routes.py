"""Risk routes: the meaning of rho, the curve between rho and epsilon, and basket measures equal to the command line."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest
from support.service import RunningService
from typer.testing import CliRunner

from tidegate.cli.app import app as commands
from tidegate.noise import noise_quantile

BASKETS = [
    (
        {"operator": "select-a-size", "keep": [0.1, 0.2, 0.7], "insert": 0.05},
        ["select-a-size", "--keep", "0.1,0.2,0.7", "--insert", "0.05"],
    ),
    (
        {"operator": "select-a-size", "size": 1, "keep": [0, 1], "insert": 0.25, "items": 40, "supports": [0.3]},
        ["select-a-size", "--keep", "0,1", "--insert", "0.25", "--items", "40", "--supports", "0.3"],
    ),
    (
        {"operator": "cut-and-paste", "size": 5, "cutoff": 3, "rho": 0.1},
        ["cut-and-paste", "--K", "3", "--rho", "0.1", "--size", "5"],
    ),
    ({"operator": "mask", "size": 5, "keep": 0.9}, ["mask", "--keep", "0.9", "--size", "5"]),
]


@pytest.mark.parametrize(("body", "words"), BASKETS, ids=lambda parameter: str(parameter)[:40])
def test_basket_measures_equal_the_command_line(shared_service: RunningService, body: Any, words: list[str]) -> None:
    result = CliRunner().invoke(commands, ["risk", "operator", *words, "--json"], catch_exceptions=False)
    assert shared_service.post("/v1/risk/baskets", body, "analyst").json() == json.loads(result.stdout)


@pytest.mark.parametrize(
    "body",
    [
        {"operator": "select-a-size", "keep": [0.1, 0.2], "insert": 0.05},
        {"operator": "select-a-size", "keep": [0.5, 0.5]},
        {"operator": "select-a-size", "keep": 0.5, "insert": 0.5},
        {"operator": "select-a-size", "keep": [0.5, 0.5], "insert": 0.1, "size": 3},
        {"operator": "select-a-size", "keep": [1.0], "insert": 0.1},
        {"operator": "select-a-size", "keep": [0.5, 0.5], "insert": 0.1, "supports": [0.1, 0.2]},
        {"operator": "select-a-size", "keep": [0.1, 0.2, 0.7], "insert": 0.1, "items": 1},
        {"operator": "mask", "keep": [0.5, 0.5], "size": 2},
        {"operator": "mask", "keep": 0.5},
        {"operator": "cut-and-paste", "size": 5, "rho": 0.1},
    ],
)
def test_invalid_basket_plan_is_refused(shared_service: RunningService, body: Any) -> None:
    response = shared_service.post("/v1/risk/baskets", body)
    assert (response.status_code, response.json()["code"]) == (422, "unsupported"), response.text


def test_rho_is_explained_with_known_values(shared_service: RunningService) -> None:
    content = shared_service.get("/v1/risk/meaning?rho=0.015&worlds=99", "analyst").json()
    assert "at most 0.015" in content["says"][0]
    assert "among at least 66 people" in content["says"][1]
    assert float(content["epsilon"]) == pytest.approx(math.log(98 * 0.015 / 0.985), abs=1e-12)
    assert content["odds"] == pytest.approx(98 * 0.015 / 0.985, rel=1e-12)
    (known,) = content["known"]
    assert "HIPAA" in known["what"]
    assert "HIPAA" in content["says"][-1]
    assert "Lee & Clifton 2012" in content["says"][-1]


def test_without_worlds_no_loss_is_reported(shared_service: RunningService) -> None:
    content = shared_service.get("/v1/risk/meaning?rho=0.6").json()
    assert (content["worlds"], content["epsilon"], content["odds"], content["known"]) == (None, None, None, [])
    assert "protects nobody" in content["says"][1]
    assert (
        shared_service.get("/v1/risk/meaning?rho=0.5")
        .json()["says"][1]
        .endswith("at least 2 people who are all equally likely.")
    )


@pytest.mark.parametrize("query", ["rho=0", "rho=1", "rho=x", "rho=0.01&worlds=99", "rho=0.1&worlds=1", "worlds=9"])
def test_impossible_rho_is_refused(shared_service: RunningService, query: str) -> None:
    assert shared_service.get(f"/v1/risk/meaning?{query}").status_code == 422


def test_curve_equals_the_conversion(shared_service: RunningService) -> None:
    content = shared_service.get("/v1/risk/curve?worlds=99&points=40", "analyst").json()
    points = content["points"]
    assert (len(points), points[0]["epsilon"]) == (40, 0)
    assert points[0]["rho"] == pytest.approx(1 / 99, rel=1e-9)
    assert [point["rho"] for point in points] == sorted(point["rho"] for point in points)
    for point in points:
        assert point["rho"] == pytest.approx(1 / (1 + 98 * math.exp(-point["epsilon"])), rel=1e-9)
    assert points[-1]["rho"] > 0.98, "it goes far enough to be seen whole"
    assert shared_service.get("/v1/risk/curve?worlds=99&most=2.5&points=2").json()["points"][1]["epsilon"] == 2.5
    for wrong in ("worlds=1", "worlds=99&points=1", "worlds=99&points=501", "worlds=99&most=0", "worlds=99&most=inf"):
        assert shared_service.get(f"/v1/risk/curve?{wrong}").status_code == 422


def test_yes_no_certainty_is_reported_with_rho(shared_service: RunningService) -> None:
    by_rho = shared_service.get("/v1/risk/conversion?worlds=99&rho=0.1", "analyst").json()
    by_loss = shared_service.get(f"/v1/risk/conversion?worlds=99&epsilon={by_rho['epsilon']}", "analyst").json()
    expected = 1 / (1 + math.exp(-float(by_rho["epsilon"])))
    for item in (by_rho, by_loss):
        assert float(item["yes_no"]) == pytest.approx(expected, abs=1e-9)
        assert f"up to {expected:.4g}" in item["says"]
    meaning = shared_service.get("/v1/risk/meaning?rho=0.1&worlds=99", "analyst").json()
    assert meaning["yes_no"] == pytest.approx(expected)
    assert any("a coin flip has 0.5" in line for line in meaning["says"])
    for point in shared_service.get("/v1/risk/curve?worlds=99", "analyst").json()["points"]:
        assert point["yes_no"] == pytest.approx(1 / (1 + math.exp(-point["epsilon"])))


def test_promise_is_described_in_practice(shared_service: RunningService) -> None:
    """Every number of counts is the largest whose 95% interval still fits, by the quantiles of the noise itself."""
    described = shared_service.get("/v1/risk/practice?one_in=20&worlds=99&people=10000").json()
    assert described["rho"] == "0.05"
    assert "1 chance in 20" in described["says"][0]
    assert "1 in 99" in described["says"][1]
    worst, average = described["readings"]
    limits = {
        name: shared_service.get(f"/v1/risk/conversion?worlds=99&rho=0.05&guarantee={name}").json()
        for name in ("worst-case", "average")
    }
    epsilon, z = float(limits["worst-case"]["epsilon"]), float(limits["average"]["z"])
    assert worst["loss"] == f"epsilon {epsilon:.3g}"
    assert average["loss"] == f"Z {z:.3g}"
    for off, counts in zip((1000, 100, 10), worst["counts"], strict=True):
        pairs = [(noise_quantile(Fraction(n / epsilon), 0.95), n) for n in (counts["most"], counts["most"] + 1) if n]
        assert all(quantile <= off + 1 if n == counts["most"] else quantile >= off - 1 for quantile, n in pairs)
    for off, counts in zip((1000, 100, 10), average["counts"], strict=True):
        spread = 1.959964 * math.sqrt(counts["most"] / (8 * z))
        assert spread <= off < 1.959964 * math.sqrt((counts["most"] + 1) / (8 * z))
    assert (worst["yes_no"], average["yes_no"]) == (
        math.ceil(100 * float(limits["worst-case"]["yes_no"])),
        math.ceil(100 * float(limits["average"]["yes_no"])),
    )
    assert described["windows"][0]["losses"] == {"worst-case": worst["loss"], "average": average["loss"]}
    assert described["windows"][-1] == {
        "within": 10,
        "by_chance": "1 in 4.71",
        "losses": {"worst-case": "cannot be promised", "average": "cannot be promised"},
    }


@pytest.mark.parametrize("query", ["one_in=1&worlds=99", "one_in=200&worlds=99", "one_in=20&worlds=99&within=50"])
def test_promise_that_cannot_be_kept_is_refused(shared_service: RunningService, query: str) -> None:
    response = shared_service.get(f"/v1/risk/practice?{query}")
    assert response.status_code == 422, response.text
    assert response.json()["code"] in ("infeasible", "unsupported")
