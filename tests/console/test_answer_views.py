"""Stored answers, saved questions and dashboards in a browser: claims within the noise, links that last, pages for everybody."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from console.test_ask import ASK, buy, fill_form, spent, wait_for_preview
from playwright.sync_api import expect
from support.axe import assert_accessible
from support.console_service import Console, console_in

from tidegate.service.access.permissions import ANALYST, OWNER

if TYPE_CHECKING:
    from playwright.sync_api import Page

SignIn = Callable[..., "Page"]
AT = "/v1/data/people"
MOST_BYTES = 300_000
QUESTIONS: dict[str, dict[str, Any]] = {
    "Towns": {"questions": [{"ask": "count", "by": ["town"]}], "epsilon": "0.2"},
    "Sexes": {"questions": [{"ask": "count", "by": ["sex"]}], "epsilon": "0.05"},
    "Sexes and towns": {"questions": [{"ask": "count", "by": ["sex", "town"]}], "epsilon": "0.3"},
    "Ages and towns": {"questions": [{"ask": "count", "by": ["age", "town"]}], "epsilon": "0.5", "anyway": True},
    "Mean age": {"questions": [{"ask": "mean", "column": "age"}], "epsilon": "0.1"},
    "Older women": {
        "questions": [
            {"ask": "count", "where": {"and": [{"compare": ["sex", "=", "female"]}, {"compare": ["age", ">=", 60]}]}}
        ],
        "epsilon": "0.2",
    },
}
UNASKED = "Older women"


class Library:
    """A service with saved questions of its owner, all but one of them answered, and a dashboard of all."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.links: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        for name, request in QUESTIONS.items():
            self.ids[name] = self.post("questions", {"name": name, "request": request})["id"]
            if name != UNASKED:
                quote = self.post("quotes", request)
                self.post("answers", {"quote": quote["quote"]})
                self.links[name] = quote["link"]
        body = {"name": "People", "shared": True, "questions": list(self.ids.values())}
        self.board = f"/console/data/people/dashboards/{self.post('dashboards', body)['id']}"

    def post(self, path: str, body: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.console.tokens[OWNER]}"}
        response = httpx.post(f"{self.console.address}{AT}/{path}", json=body, headers=headers)
        assert response.status_code < 300, response.text
        return response.json()

    def answer(self, name: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.console.tokens[OWNER]}"}
        return dict(httpx.get(self.console.address + self.links[name], headers=headers).json())

    def rows(self, name: str) -> list[dict[str, Any]]:
        return list(self.answer(name)["rows"])

    def page(self, name: str) -> str:
        return f"/console{self.links[name][3:]}"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    with console_in(tmp_path_factory.mktemp("library")) as console:
        yield Library(console)


def tips(tab: Page, selector: str) -> list[str]:
    return list(tab.eval_on_selector_all(f".tg-wide {selector} [data-tip]", "all => all.map(x => x.dataset.tip)"))


def test_groups_stay_in_the_possible_range_and_are_sorted_by_choice(library: Library, sign_in: SignIn) -> None:
    """Two of four towns are empty, so their noisy counts are below 0 about half of the time."""
    tab = sign_in(library.console, OWNER, library.page("Towns"))
    rows = library.rows("Towns")
    assert all(0 <= row["low"] <= row["count"] <= row["high"] <= 600 for row in rows)
    shown = tips(tab, ".interval")
    assert [tip.partition(":")[0] for tip in shown] == ["Aby", "Berg", "Ceder", "Dal"], "the policy's order"
    for row, tip in zip(rows, shown, strict=True):
        assert tip == f"{row['town']}: count {row['count']:,.6g}, 95% interval {row['low']:,.6g} to {row['high']:,.6g}"
    axis = tab.locator(".tg-wide path.axis").bounding_box()
    whiskers = [box for whisker in tab.locator(".tg-wide .interval g").all() if (box := whisker.bounding_box())]
    assert axis is not None
    assert all(box["x"] >= axis["x"] - 4.5 for box in whiskers), "no whisker and no dot is below 0; a dot has a radius"
    tab.get_by_label("Order of the groups").select_option("largest first")
    tab.get_by_role("button", name="Sort").click()
    tab.wait_for_url("**order=largest**")
    largest = sorted(rows, key=lambda row: -row["count"])
    assert [tip.partition(":")[0] for tip in tips(tab, ".interval")] == [row["town"] for row in largest]


def test_title_claims_only_a_difference_whose_interval_excludes_zero(library: Library, sign_in: SignIn) -> None:
    """Both sexes have 300 rows, so that a claim is false; it is made in at most 5% of the runs."""
    compared = library.answer("Sexes")["comparison"]
    tab = sign_in(library.console, OWNER, library.page("Sexes"))
    title = tab.locator(".finding").inner_text()
    assert title == compared["says"]
    assert (title == "The noise could explain all differences between groups") == (compared["differing"] == 0)
    assert all(difference["low"] > 0 for difference in compared["differences"])


def test_two_columns_are_a_heat_map_whose_intervals_are_read_by_keyboard(library: Library, sign_in: SignIn) -> None:
    tab = sign_in(library.console, OWNER, library.page("Sexes and towns"))
    assert tab.locator(".tg-wide .cell rect").count() == 8
    tab.locator(".plot").focus()
    tab.keyboard.press("ArrowRight")
    row = library.rows("Sexes and towns")[0]
    expected = f"female, Aby: count {row['count']:,.6g}, 95% interval {row['low']:,.6g} to {row['high']:,.6g}"
    assert tab.locator(".tip").inner_text() == expected
    assert tab.locator("tbody tr").count() == 8


def test_many_cells_are_paged_without_scripts(library: Library, visitor: Callable[..., Page]) -> None:
    tab = visitor(java_script_enabled=False)
    tab.goto(f"{library.console.address}{library.page('Ages and towns')}?page=2")
    tab.get_by_label("Your token").fill(library.console.tokens[ANALYST])
    tab.get_by_role("button", name="Sign in").click()
    expect(tab.get_by_text("Page 2 of 3")).to_be_visible()  # the sign-in returns to the same URL
    assert tab.locator("tbody tr").count() == 100
    assert tab.locator("figure svg").count() == 2
    tab.get_by_role("link", name="Next page").click()
    expect(tab.get_by_text("Rows 201 to 292 of 292")).to_be_visible()
    tab.goto(library.console.address + library.board)
    assert tab.get_by_text("Not asked yet").is_visible()


def test_many_cells_are_paged_on_the_query_page(library: Library, sign_in: SignIn) -> None:
    tab = sign_in(library.console, OWNER, f"{ASK}?answer={library.links['Ages and towns'][-64:]}")
    wait_for_preview(tab)
    tab.get_by_role("button", name="Show answer", exact=True).click()
    expect(tab.get_by_text("Rows 1 to 100 of 292")).to_be_visible()
    tab.get_by_role("button", name="Next rows").click()
    expect(tab.get_by_text("Rows 101 to 200 of 292")).to_be_visible()
    expect(tab.locator("#told tbody tr")).to_have_count(100)
    files, table = tab.locator("#files").bounding_box(), tab.locator("#told table").bounding_box()
    assert files is not None
    assert table is not None
    assert files["y"] < table["y"], "the download comes first"


@pytest.mark.long  # tests/service/test_library_routes.py does the same without a browser in every run
def test_question_is_saved_shared_renamed_opened_and_put_on_a_dashboard(
    fresh_console: Console, sign_in: SignIn
) -> None:
    console = fresh_console
    tab = sign_in(console, ANALYST, ASK)
    fill_form(tab, what="count")
    tab.get_by_role("checkbox", name="town").check()
    tab.get_by_role("button", name="Add condition").click()
    tab.get_by_label("Column of the condition").select_option("sex")
    tab.get_by_label("Value to compare with").select_option("male")
    fill_form(tab, **{"epsilon-number": "0.12"})
    tab.get_by_text("Save this query").click()
    tab.get_by_role("button", name="Save query").click()
    tab.get_by_text("Enter a name.").wait_for()
    tab.locator("#save-name").fill("Men by town")
    tab.locator("#save-shared").check()
    tab.locator("#save-name").press("Enter")
    tab.get_by_role("link", name="Men by town").click()
    tab.get_by_text("Saved query: Men by town").wait_for()
    tab.get_by_text("The number of rows where sex = 'male' by town would cost 0.12").wait_for()
    assert tab.locator("#epsilon-number").input_value() == "0.12"
    tab.get_by_role("link", name="Saved", exact=True).click()
    tab.get_by_text("Change Men by town").click()
    tab.get_by_label("Name", exact=True).fill("Men")
    tab.get_by_role("button", name="Rename").click()
    tab.get_by_label("Name of the dashboard").fill("Board")
    tab.get_by_label("Men", exact=True).fill("1")
    tab.get_by_label("Share with everybody of this data set").check()
    tab.get_by_role("button", name="Create dashboard").click()
    tab.get_by_text("It would cost epsilon 0.12").wait_for()
    board = tab.url
    assert spent(console) == 0
    tab.get_by_role("link", name="Open the query").click()
    buy(tab)
    tab.locator("#told tbody tr").nth(3).wait_for()
    tab.locator("#order").select_option("largest")
    tab.locator("#answer-chart").wait_for()
    with tab.expect_download() as pending:
        tab.locator("#files").get_by_role("link", name="CSV").click()
    assert pending.value.suggested_filename.endswith(".csv")
    tab.locator("#files").get_by_role("link", name="Permanent link").click()
    tab.locator("h1", has_text="The number of rows where sex = 'male' by town").wait_for()
    other = sign_in(console, OWNER, board.removeprefix(console.address))
    before = spent(console)
    other.locator(".card", has_text="Men").locator("svg:visible").wait_for()
    assert other.get_by_text("Change this dashboard").count() == 0, "only its owner can change it"
    assert spent(console) == before


def test_refused_name_is_shown_with_what_was_typed(library: Library, sign_in: SignIn) -> None:
    tab = sign_in(library.console, OWNER, "/console/data/people/library")
    tab.get_by_label("Name of the dashboard").fill("People")
    tab.get_by_label("Towns", exact=True).fill("1")
    tab.get_by_role("button", name="Create dashboard").click()
    tab.get_by_role("alert").get_by_text("You already have a dashboard of this name.").wait_for()
    assert tab.get_by_label("Name of the dashboard").input_value() == "People"
    assert tab.get_by_label("Towns", exact=True).input_value() == "1"


def pages(library: Library) -> dict[str, str]:
    answers = {name: library.page(name) for name in ("Towns", "Sexes and towns", "Ages and towns", "Mean age")}
    saved = {"query": f"{ASK}?saved={library.ids[UNASKED]}", "library": "/console/data/people/library"}
    return {**answers, **saved, "dashboard": library.board}


@pytest.mark.one_in(7)
@pytest.mark.parametrize(
    "name", ["dashboard", "query", "Towns", "Sexes and towns", "Ages and towns", "Mean age", "library"]
)
def test_page_is_accessible_and_light(library: Library, sign_in: SignIn, name: str) -> None:
    tab = sign_in(library.console, OWNER, pages(library)[name])
    if name == "query":
        wait_for_preview(tab)
        tab.get_by_text("Save this query").click()
    for summary in tab.get_by_text(re.compile("^Change")).all():
        summary.click()
    assert_accessible(tab, every=name in ("dashboard", "library", "Sexes and towns"))
    loaded = tab.evaluate(
        "() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))"
        ".filter((x) => ['script', 'link', 'css', 'navigation', 'other'].includes(x.initiatorType))"
        ".reduce((sum, x) => sum + x.decodedBodySize, 0)"
    )
    assert 10_000 < loaded <= MOST_BYTES, (name, loaded)


def test_dashboard_prints_without_controls(library: Library, sign_in: SignIn) -> None:
    tab = sign_in(library.console, OWNER, library.board)
    tab.emulate_media(media="print")
    assert tab.locator("h1").is_visible()
    assert tab.locator(".card").count() == len(QUESTIONS)
    for hidden in ("nav.second", ".screen", "footer"):
        assert tab.locator(hidden).first.is_hidden()
    tab.emulate_media(media="screen")
