"""The risk lab shows what the API calculates, and every calculation has a code snippet that runs."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from playwright.sync_api import expect
from support.console_service import Console
from typer.testing import CliRunner

from tidegate.accounting import budget_of
from tidegate.cli.app import app
from tidegate.service.access.permissions import ANALYST, OWNER
from tidegate.service.pages.risk import START, universes_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

SignIn = Callable[..., "Page"]
PAGE = "/console/risk"
SLOW = 60_000


def ask(console: Console, method: str, path: str, **more: Any) -> Any:
    headers = {"Authorization": f"Bearer {console.tokens[ANALYST]}"}
    result = httpx.request(method, console.address + path, headers=headers, timeout=60, **more)
    assert result.status_code == 200, result.text
    return result.json()


def test_lab_opens_with_the_safe_harbor_value(console: Console, sign_in: SignIn) -> None:
    """Lee & Clifton 2012: HIPAA's safe harbor hides one of 68 people, about rho = 0.015; among 99 that is ln(98 rho / (1 - rho))."""
    tab = sign_in(console, ANALYST, PAGE)
    tab.locator("#meaning li", has_text="HIPAA").wait_for(timeout=SLOW)
    assert "among 68" in tab.locator("#promise .explain").first.inner_text()
    assert float(tab.locator("#loss").input_value()) == pytest.approx(math.log(98 * 0.015 / 0.985), rel=1e-3)
    result = ask(console, "GET", "/v1/risk/meaning?rho=0.015&worlds=99")
    assert tab.locator("#meaning li").all_inner_texts() == result["says"]


def test_promise_is_explained_in_plain_words_without_scripts(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, ANALYST, f"{PAGE}?one_in=50&values=1,000&people=2000", java_script_enabled=False)
    words = tab.locator("#words")
    expect(words.locator(".verdict")).to_have_text(re.compile(r"1 in 50\s+rho = 0.02"))
    described = ask(console, "GET", "/v1/risk/practice?one_in=50&worlds=1000&people=2000")
    for sentence in described["says"]:
        expect(words).to_contain_text(sentence)
    for reading in described["readings"]:
        expect(words.locator("#practice")).to_contain_text(f"in at most {reading['yes_no']} of 100 cases")
    words.locator("#one-in").fill("5000")
    words.get_by_role("button").click()
    expect(words.get_by_role("alert")).to_contain_text("random guess")
    expect(words.locator("#one-in")).to_have_value("5000")
    words.locator("#one-in").fill("many")
    words.get_by_role("button").click()
    expect(words.get_by_role("alert")).to_contain_text("number")


@pytest.mark.long
def test_rho_and_epsilon_update_each_other(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, PAGE)
    tab.locator("#meaning li").first.wait_for(timeout=SLOW)
    with tab.expect_response("**/risk/meaning?*"):
        tab.locator("#loss").fill("1")
    tab.locator("#verdict", has_text="A total loss of epsilon 1 limits").wait_for()
    result = ask(console, "GET", "/v1/risk/conversion?worlds=99&epsilon=1")
    assert float(tab.locator("#rho").input_value()) == pytest.approx(float(result["rho"]), rel=1e-3)
    tab.locator("#code-conversion code", has_text="--epsilon 1").wait_for(state="attached")
    lower = float(tab.locator("#rho").input_value())
    with tab.expect_response("**/risk/meaning?*"):
        tab.locator("#rho-slider").press("End")
    tab.locator("#verdict", has_text="allows a total loss").wait_for()
    assert float(tab.locator("#rho").input_value()) > lower
    assert float(tab.locator("#loss").input_value()) > 1


def test_impossible_promise_is_refused_with_a_reason(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, PAGE)
    tab.locator("#meaning li").first.wait_for(timeout=SLOW)
    assert "probability 0.0101" in tab.locator("#blind").inner_text()
    tab.locator("#rho").fill("0.01")
    tab.locator("#conversion-problem", has_text="right with probability 0.0101").wait_for()
    expect(tab.locator("#meaning li")).to_have_count(0)
    tab.locator("#rho").fill("0.02")
    tab.locator("#meaning li").first.wait_for()
    expect(tab.locator("#conversion-problem")).to_be_hidden()


@pytest.mark.long
def test_selected_attribute_sets_its_promised_rho(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, ANALYST, PAGE)
    tab.get_by_label("Attribute").select_option(label="people: person (promised)")
    tab.locator("#verdict", has_text="59,401").wait_for(timeout=SLOW)
    account = console.datasets["people"].session.account
    assert float(tab.locator("#loss").input_value()) == pytest.approx(float(account.ceiling.value), rel=1e-3)
    assert "soldiers" not in tab.locator("#universe").inner_text(), "an analyst of people sees people"


def test_attributes_match_the_budget_targets(console: Console) -> None:
    policy = console.datasets["people"].policy
    universes = {item["name"]: item for item in universes_of(policy)}
    (target,) = budget_of(policy).targets
    assert (universes["person"]["worlds"], universes["person"]["rho"]) == (str(target.worlds), "0.02")
    assert (universes["age"]["worlds"], universes["age"]["rho"], universes["sex"]["worlds"]) == ("73", None, "2")


@pytest.mark.long
def test_losses_of_several_answers_add_up(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, PAGE)
    tab.locator("#several tbody tr").first.wait_for(timeout=SLOW)
    cells = [row.split("\t") for row in tab.locator("#several tbody tr").all_inner_texts()]
    chances = [float(row[2]) for row in cells]
    assert chances == sorted(chances)
    ten = ask(console, "GET", "/v1/risk/conversion?worlds=99&epsilon=1")
    assert chances[[row[0] for row in cells].index("10")] == pytest.approx(float(ten["rho"]), rel=1e-2)


@pytest.mark.long
def test_operators_are_compared(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, PAGE)
    rows = tab.locator("#measured tbody tr")
    rows.first.wait_for(timeout=SLOW)
    shown = [operator["operator"] for operator in START["operators"] if operator["shown"]]
    assert [text.split("\t")[0] for text in rows.all_inner_texts()] == shown
    result = ask(
        console,
        "POST",
        "/v1/risk/operators",
        json={"operator": "square-wave", "values": 45, "parameters": {"epsilon": "2"}},
    )
    assert f"{result['entropy']['loss']:.3g}" in rows.first.inner_text()
    tab.locator("#compared .tg-wide .bar [data-tip]").nth(3 * len(shown) - 1).wait_for(state="attached", timeout=SLOW)
    tab.get_by_label("gaussian-noise", exact=True).first.check()
    rows.nth(len(shown)).wait_for()
    command = "risk operator gaussian-noise --values 45 --privacy 1"
    tab.locator("#code-operators code", has_text=command).wait_for(state="attached")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("operator", ["cut-and-paste", "mask", "select-a-size"])
def test_baskets_of_every_operator_are_measured(console: Console, sign_in: SignIn, operator: str) -> None:
    tab = sign_in(console, OWNER, PAGE)
    tab.locator("#basket-figures div").first.wait_for(timeout=SLOW)
    tab.get_by_label("Operator", exact=True).select_option(operator)
    tab.locator("#code-baskets code", has_text=f"risk operator {operator}").wait_for(state="attached")
    expect(tab.locator("#basket-figures")).to_contain_text("odds of a reported item")
    assert not tab.locator("#basket-problem").is_visible()


def test_adviser_recommends_an_operator(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, PAGE)
    tab.get_by_label("Privacy requirement").select_option("breach")
    assert tab.get_by_label("Value", exact=True).input_value() == "0.05, 0.5"
    tab.get_by_role("button", name="Compare operators").click()
    tab.locator("#options tbody tr").first.wait_for(timeout=SLOW)
    assert tab.locator("#advice-says").inner_text().startswith("Write operator = ")
    tab.locator("#code-advice code", has_text="--breach 0.05,0.5").wait_for(state="attached")


CALCULATIONS: list[dict[str, Any]] = [
    {"conversion": {"worlds": 99, "rho": 0.1}},
    {"conversion": {"worlds": "59401", "epsilon": "1"}},
    {"conversion": {"worlds": 99, "rho": 0.05, "guarantee": "average"}},
    {"conversion": {"worlds": "1000001", "z": "0.1734", "within": 5000}},
    {"operators": [{"operator": "square-wave", "values": 9, "parameters": {"epsilon": "2"}}]},
    {
        "operators": [
            {"operator": "uniform-noise", "values": 9, "parameters": {"half_width": 3}},
            {"operator": "subset", "values": 5, "parameters": {"epsilon": 1}},
        ]
    },
    {"baskets": {"operator": "cut-and-paste", "size": 5, "cutoff": 3, "rho": 0.1, "items": 100}},
    {"baskets": {"operator": "mask", "size": 3, "keep": 0.9}},
    {"baskets": {"operator": "select-a-size", "keep": [0.1, 0.2, 0.7], "insert": 0.05, "supports": [0.05, 0.02]}},
    {"advice": {"values": 9, "clients": 1000, "epsilon": 2}},
    {"advice": {"values": 5, "clients": 1000, "categories": True, "breach": ["0.05", "0.5"]}},
]


@pytest.mark.parametrize("calculation", CALCULATIONS, ids=str)
def test_code_snippet_of_a_calculation_runs(console: Console, calculation: dict[str, Any]) -> None:
    code = ask(console, "POST", "/v1/risk/code", json=calculation)
    exec(code["Python"], {})
    for line in code["Command line"].splitlines():
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    "conversion",
    [
        {"worlds": "99", "rho": "0.1"},
        {"worlds": "99", "rho": "0.1", "guarantee": "average"},
        {"worlds": "1000001", "rho": "0.05", "within": 5000},
        {"worlds": "1000001", "z": "0.1", "within": 9000},
    ],
    ids=str,
)
def test_command_line_equals_the_api(console: Console, conversion: dict[str, Any]) -> None:
    result = ask(console, "GET", "/v1/risk/conversion", params=conversion)
    command = ask(console, "POST", "/v1/risk/code", json={"conversion": conversion})["Command line"]
    assert result["says"] in " ".join(CliRunner().invoke(app, shlex.split(command)[1:]).output.split())


@pytest.mark.parametrize(
    "calculation",
    [
        {},
        {"conversion": {"worlds": 9}},
        {"conversion": {"worlds": 9, "epsilon": 1, "z": 1}},
        {"conversion": {"worlds": 9, "rho": 0.2}, "advice": {"values": 4, "clients": 9, "epsilon": 1}},
        {"baskets": {"operator": "mask", "size": 3}},
        {"baskets": {"operator": "select-a-size", "keep": 0.5, "insert": 0.1}},
        {"baskets": {"operator": "cut-and-paste", "cutoff": 3, "rho": 0.1}},
        {"advice": {"values": 4, "clients": 9}},
    ],
    ids=str,
)
def test_incomplete_calculation_has_no_code_snippet(console: Console, calculation: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {console.tokens[OWNER]}"}
    response = httpx.post(f"{console.address}/v1/risk/code", json=calculation, headers=headers)
    assert response.status_code == 422, response.text
