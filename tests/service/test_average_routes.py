"""Routes under the average guarantee: conversions of the risk lab, amounts in Z, and syntheses by share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from support.service import AGE, PEOPLE, SECRET, TOWN, RunningService, run_service

from tidegate.accounting import Amount
from tidegate.accounting.average import epsilon_at_delta
from tidegate.policy import Dataset, Identification, Key, Policy

SPEND = {"questions": [{"ask": "mean", "column": "age"}]}
AVERAGE = Policy(
    Dataset("people", rows=PEOPLE, source=f"{SECRET}place.csv"),
    {"person": Key(), "age": AGE, "town": TOWN},
    identification=Identification("0.1", protect=("age",), guarantee="average"),
)


@pytest.fixture
def average(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    path = tmp_path_factory.mktemp("average") / "all.ledger"
    with run_service(str(path), policies=(AVERAGE,), share="0.01") as running:
        yield running


# spec/average.md, section 8: standard deviations of each of one and of 100 equal answers, worst case and average
UTILITY = [
    ("2", "0.75", (1.287, 0.978, 128.7, 9.78)),
    ("7", "0.2", (3.488, 2.705, 348.8, 27.05)),
    ("73", "0.05", (1.062, 1.035, 106.2, 10.35)),
    ("99", "0.05", (0.862, 0.854, 86.2, 8.54)),
    ("1000", "0.05", (0.357, 0.394, 35.7, 3.94)),
]


@pytest.mark.parametrize(("worlds", "rho", "expected"), UTILITY)
def test_errors_of_several_answers_equal_the_table(
    shared_service: RunningService, worlds: str, rho: str, expected: tuple[float, ...]
) -> None:
    content = shared_service.get(f"/v1/risk/conversion?worlds={worlds}&rho={rho}&charts=true", "analyst").json()
    errors = [
        next(point["error"] for point in content["readings"][guarantee]["errors"] if point["answers"] == count)
        for count in (1, 100)
        for guarantee in ("worst-case", "average")
    ]
    for error, value in zip(errors, expected, strict=True):
        assert error == pytest.approx(value, abs=0.5 * 10 ** -len(str(value).partition(".")[2]) * 1.01)
    start = "from 2 answers on" if worlds == "1000" else "for any number of answers"
    assert content["charts"]["errors"]["title"].startswith(f"The average guarantee needs less noise {start}")


@pytest.mark.parametrize(("within", "epsilon", "z"), [(0, 10.87, 3.95), (5000, 1.65, 0.1734), (9000, 1.05, 0.0754)])
def test_window_lowers_both_limits(shared_service: RunningService, within: int, epsilon: float, z: float) -> None:
    """Income 0..1,000,000 in spec/average.md, section 4."""
    query = f"/v1/risk/conversion?worlds=1000001&rho=0.05&within={within}"
    worst, average = shared_service.get(query).json(), shared_service.get(f"{query}&guarantee=average").json()
    assert float(worst["epsilon"]) == pytest.approx(epsilon, abs=0.006)
    assert float(average["z"]) == pytest.approx(z, rel=2e-3)
    assert worst["readings"] == average["readings"], "both readings, whichever was chosen"
    assert "epsilon" not in average
    assert worst["blind_guess"] == pytest.approx((2 * within + 1) / 1000001)


def test_both_readings_have_a_yes_no_limit_and_an_epsilon(shared_service: RunningService) -> None:
    readings = shared_service.get("/v1/risk/conversion?worlds=99&rho=0.05").json()["readings"]
    assert readings["worst-case"]["yes_no"] == pytest.approx(0.838, abs=5e-4)
    assert readings["average"]["yes_no"] == pytest.approx(0.784, abs=5e-4)
    assert (readings["worst-case"]["delta"], readings["average"]["delta"]) == (0, 1e-6)
    assert readings["worst-case"]["epsilon_at_delta"] == pytest.approx(1.64, abs=5e-3)
    assert readings["average"]["epsilon_at_delta"] == pytest.approx(6.25, abs=5e-3)


def test_conversion_by_z_is_the_inverse(shared_service: RunningService) -> None:
    by_rho = shared_service.get("/v1/risk/conversion?worlds=99&rho=0.05&guarantee=average").json()
    back = shared_service.get(f"/v1/risk/conversion?worlds=99&z={by_rho['z']}").json()
    assert back["guarantee"] == "average"
    assert float(back["rho"]) == pytest.approx(0.05, rel=1e-9)
    assert back["yes_no"] == by_rho["yes_no"]
    nothing = shared_service.get("/v1/risk/conversion?worlds=99&z=0&charts=true").json()
    assert nothing["readings"] is None, "a random guess can be promised by neither guarantee"
    assert list(nothing["charts"]) == ["curve"]


@pytest.mark.parametrize(
    "query",
    [
        "worlds=99",
        "worlds=99&rho=0.1&z=1",
        "worlds=99&epsilon=1&guarantee=average",
        "worlds=99&z=1&guarantee=worst-case",
        "worlds=99&rho=0.1&guarantee=mean",
        "worlds=99&rho=0.5&within=49",
        "worlds=99&rho=0.5&within=-1",
        "worlds=99&rho=0.02&within=1",
    ],
)
def test_impossible_conversion_is_refused(shared_service: RunningService, query: str) -> None:
    assert shared_service.get(f"/v1/risk/conversion?{query}").status_code == 422


def test_refusal_never_advises_a_wider_universe(shared_service: RunningService) -> None:
    error = shared_service.get("/v1/risk/conversion?worlds=99&rho=0.02&within=1").json()
    assert "to within 1 steps" in error["detail"]
    assert "smaller `within`" in error["do"]


def test_meaning_of_an_average_rho_names_its_limits(shared_service: RunningService) -> None:
    content = shared_service.get("/v1/risk/meaning?rho=0.05&worlds=99&guarantee=average").json()
    text = " ".join(content["says"])
    assert "A single response can be more certain" in text
    assert "at most 0.082" in text, "rounded up"
    assert "at most epsilon 6.25 with delta = 1e-6" in text
    assert content["epsilon"] is None
    assert content["yes_no"] == pytest.approx(0.784, abs=5e-4)
    window = shared_service.get("/v1/risk/meaning?rho=0.05&worlds=1000001&within=5000&guarantee=average").json()
    assert float(window["z"]) == pytest.approx(0.1734, rel=1e-3)


def test_average_curve_rises_from_a_random_guess_to_one(shared_service: RunningService) -> None:
    points = shared_service.get("/v1/risk/curve?worlds=99&points=30&guarantee=average").json()["points"]
    assert (points[0]["z"], points[0]["rho"]) == (0, pytest.approx(1 / 99))
    assert [point["rho"] for point in points] == sorted(point["rho"] for point in points)
    assert points[-1]["rho"] == 1
    for point in points[1:-1]:
        assert point["rho"] <= math.exp(-((math.sqrt(math.log(99)) - math.sqrt(point["z"])) ** 2)) * (1 + 1e-9)


def test_account_reports_its_unit_and_epsilon(average: RunningService) -> None:
    before = average.get("/v1/data/people", "analyst").json()
    assert (before["account"]["unit"], before["account"]["guarantee"]) == ("z", "average")
    assert before["account"]["epsilon_at_delta"] == 0
    average.post("/v1/data/people/answers", {**SPEND, "share": 0.05}, "analyst")
    account = average.get("/v1/data/people", "analyst").json()["account"]
    assert 0 < account["epsilon_at_delta"] < account["epsilon_at_delta_limit"]
    assert float(account["own"]["spent"]) == pytest.approx(0.05 * float(account["ceiling"]), rel=1e-6)
    (listed,) = average.get("/v1/ledger").json()["accounts"]
    assert (listed["unit"], listed["spent"]) == ("z", account["spent"])
    (body,) = average.get("/v1/data/people/history").json()["questions"]
    assert (body["unit"], body["cost"]) == ("z", account["spent"])


def test_share_of_a_token_is_in_the_unit_of_the_account(average: RunningService) -> None:
    fits = average.post("/v1/data/people/answers", {**SPEND, "z": "0.0099"}, "analyst")
    assert fits.status_code == 200, fits.text
    refused = average.post("/v1/data/people/answers", {**SPEND, "z": "0.0002"}, "analyst")
    assert refused.json()["code"] == "budget-exceeded"
    assert "costs Z 0.0002" in refused.json()["detail"]


@pytest.mark.parametrize("ask", ["mean", "quantile"])
def test_price_of_a_quote_is_in_the_unit_of_the_account(average: RunningService, ask: str) -> None:
    """A quantile has a pure loss, and is still charged in Z."""
    question: dict[str, Any] = {"ask": ask, "column": "age"} | ({"share": 0.5} if ask == "quantile" else {})
    body = {"questions": [question], "z": "0.002"}
    first = average.post("/v1/data/people/quotes", body).json()
    assert (first["price"], first["unit"]) == (first["cost"], "z")
    assert float(first["price"]) == pytest.approx(0.002, rel=1e-2)
    bought = average.post("/v1/data/people/answers", {"quote": first["quote"]}).json()
    assert bought["cost"] == first["price"]
    again = average.post("/v1/data/people/quotes", body).json()
    assert (again["cost"], again["price"]) == ("0", first["price"])
    assert again["epsilon_at_delta"] == bought["epsilon_at_delta"]
    assert set(again["cost_by_unit"].values()) == {"0"}


def test_synthesis_by_share_uses_that_part_of_the_budget(
    average: RunningService, fresh_service: RunningService
) -> None:
    for running in (average, fresh_service):
        ceiling = float(running.get("/v1/data/people").json()["account"]["ceiling"])
        content = running.post("/v1/data/people/syntheses/previews", {"share": "0.25", "tables": 2}).json()
        assert float(content["cost"]) == pytest.approx(0.25 * ceiling, rel=1e-6)
        assert "share=0.25" in content["code"]["Python"]
        for wrong in ({"share": 2}, {"share": 0}, {"share": 0.5, "epsilon": 1}, {"share": 0.1, "rho": 0.1}, {}):
            assert running.post("/v1/data/people/syntheses/previews", wrong).status_code == 422
    job = average.post("/v1/data/people/syntheses", {"share": "0.25", "price": "1"})
    assert job.json()["code"] == "stale-quote"
    started = average.post("/v1/data/people/syntheses", {"share": "0.25"})
    assert (started.status_code, started.json()["asked"]) == (202, "1 table, 0.25 of the total budget")


@pytest.mark.parametrize(
    ("loss", "described", "code"),
    [
        ({"z": "0.002"}, "2 tables, Z 0.002 each", "z=0.002"),
        (
            {"epsilon": "0.5", "delta": "0.00001"},
            "2 tables, epsilon 0.5 at delta 0.00001 each",
            "epsilon=0.5, delta=0.00001",
        ),
    ],
    ids=["z", "epsilon and delta"],
)
def test_synthesis_by_z_or_by_epsilon_and_delta_is_priced_in_z(
    average: RunningService, loss: dict[str, str], described: str, code: str
) -> None:
    content = average.post("/v1/data/people/syntheses/previews", {**loss, "tables": 2}).json()
    z = Fraction(content["z"])
    assert float(content["cost"]) == pytest.approx(2 * float(z), rel=1e-6)
    assert (content["epsilon"], content["delta"]) == (None, loss.get("delta") and "1/100000")
    assert Fraction(content["zcdp"]) == (Fraction(12, 5) if "z" in loss else 2) * z
    if "delta" in loss:
        shown = epsilon_at_delta(Amount.down(2 * z), Fraction(1, 10**5))
        assert 0.499 < shown <= 0.5
    assert code in content["code"]["Python"]
    started = average.post("/v1/data/people/syntheses", {**loss, "tables": 2, "price": content["cost"]})
    assert (started.status_code, started.json()["asked"]) == (202, described)


def test_z_and_delta_are_refused_where_epsilon_is_limited(
    average: RunningService, fresh_service: RunningService
) -> None:
    for wrong in ({"z": "0.1"}, {"epsilon": "1", "delta": "0.00001"}):
        refused = fresh_service.post("/v1/data/people/syntheses/previews", wrong)
        assert refused.status_code == 422
        assert "requires a policy that limits the average loss alone" in refused.json()["detail"]
    for wrong in ({"z": "0.1", "epsilon": "1"}, {"delta": "0.1"}, {"z": "0"}, {"epsilon": "1", "delta": "2"}):
        assert average.post("/v1/data/people/syntheses/previews", wrong).status_code == 422


def test_warnings_appear_above_09_only(average: RunningService, fresh_service: RunningService) -> None:
    assert average.get("/v1/data").json()["datasets"][0]["warnings"] == []
    for dataset in fresh_service.get("/v1/data").json()["datasets"]:
        (warning,) = dataset["warnings"]
        assert (warning["about"], warning["warning"]) == ("yes/no certainty", True)
