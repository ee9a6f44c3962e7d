"""Synthesize page: cost, progress by stage, tables, and quality for the data holder."""

from __future__ import annotations

import io
import re
import shlex
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pyarrow.csv as pa_csv
import pytest
from playwright.sync_api import expect
from support.console_service import Console
from support.service import quiet_settings, run_service
from typer.testing import CliRunner

from tidegate.cli.app import app
from tidegate.ledger.jobs import DONE, FAILED, Jobs
from tidegate.ledger.tokens import Tokens
from tidegate.service.access.permissions import ANALYST, OWNER
from tidegate.service.access.tokens import make_token
from tidegate.synthesize.diary import Diary
from tidegate.web.snippets.synthesize import STAGES, describe_request, describe_stage, quality_code, synthesis_code

if TYPE_CHECKING:
    from playwright.sync_api import Page

SignIn = Callable[..., "Page"]
PAGE, JOBS = "/console/data/people/syntheses", "/v1/data/people/syntheses"
LOOK = re.compile(r"/syntheses/[0-9a-f]{20}$")
WORKING = quiet_settings(run_jobs=True, job_beat=0.05, job_patience=0.2)
PATIENCE = 60.0


def spent(console: Console) -> Fraction:
    return console.datasets["people"].session.account.spent.value


def call(console: Console, method: str, path: str, role: str = OWNER, **more: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {console.tokens[role]}"}
    return httpx.request(method, console.address + path, headers=headers, timeout=60, **more)


def finished_synthesis(console: Console, **options: Any) -> dict[str, Any]:
    """Return a finished synthesis."""
    job = call(console, "POST", JOBS, json=options).json()["id"]
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        content: dict[str, Any] = call(console, "GET", f"{JOBS}/{job}").json()
        if content["state"] in (DONE, FAILED):
            return content
        time.sleep(0.1)
    raise AssertionError("the job does not end")


def wish(tab: Page, epsilon: str) -> None:
    tab.locator("#budget").fill(epsilon)
    tab.locator("#preview strong", has_text=f"epsilon {epsilon}").wait_for()


def test_table_is_previewed_created_and_downloaded(fresh_console: Console, sign_in: SignIn) -> None:
    tab, looks, streams = sign_in(fresh_console, OWNER, PAGE), [], []
    tab.on("request", lambda request: looks.append(request.url) if LOOK.search(request.url) else None)
    tab.on("request", lambda request: streams.append(request.url) if request.url.endswith("/events") else None)
    tab.get_by_text("No synthetic tables yet").wait_for()
    wish(tab, "0.5")
    assert spent(fresh_console) == 0, "a preview is free"
    shown = tab.locator("#preview").inner_text()
    assert "forest/2" in shown
    assert "margins: count every column" in shown
    assert "loses at most epsilon 0.5 about one row" in shown
    assert "0.5 → 0.622" in tab.locator("#preview [data-figure=yes-no]").inner_text()
    now, _, after = tab.locator("#preview .meter .reading").inner_text().partition(" → ")
    assert float(after.split(",")[0]) > float(now)
    tab.locator("#budget").press("Enter")
    assert tab.evaluate("document.activeElement.id") == "preview"
    tab.wait_for_timeout(300)
    assert call(fresh_console, "GET", JOBS).json()["syntheses"] == [], "Enter starts nothing"
    tab.get_by_role("button", name="Create the table for epsilon 0.5").click()
    stage = tab.locator("#running [data-part=stage]")
    stage.wait_for()
    assert "so far" in tab.locator("#running [data-part=time]").inner_text()
    tab.locator("#earlier li[data-state=done]").wait_for(timeout=PATIENCE * 1000)
    assert "Download the tables" in stage.inner_text()
    assert spent(fresh_console) == Fraction(1, 2)
    with tab.expect_download() as coming:
        tab.locator("#earlier").get_by_role("link", name="CSV").click()
    table = pa_csv.read_csv(Path(coming.value.path()))
    assert (coming.value.suggested_filename, table.num_rows) == ("people-1.csv", 600)
    assert table.column_names == ["age", "sex", "town"]
    tab.wait_for_timeout(1500)
    assert (len(looks), len(streams)) == (0, 1), "one stream, which ended with the job"
    assert spent(fresh_console) == Fraction(1, 2)


@pytest.mark.long  # service/test_answers.py keeps the claim
def test_synthesis_above_the_budget_cannot_be_started(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, PAGE)
    before = spent(console)
    wish(tab, "500")
    assert "exceeds the remaining budget" in tab.locator("#preview").inner_text()
    assert tab.locator("#start").is_disabled()
    for wrong in ("half", "", "0", "-1"):
        tab.locator("#budget").fill(wrong)
        tab.locator("#wanted").get_by_text("Enter a number above 0.").wait_for()
        assert tab.locator("#start").is_disabled()
    assert spent(console) == before


def test_synthesis_needs_the_price_that_was_shown(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, PAGE)
    wish(tab, "0.2")
    jobs = len(call(console, "GET", JOBS).json()["syntheses"])
    tab.route("**/previews", lambda route: None)
    tab.locator("#budget").fill("3")
    assert tab.locator("#start").is_disabled(), "its price is not there yet"
    tab.locator("#preview.stale").wait_for()
    tab.locator("#more summary").click()
    tab.locator("#tables").fill("")
    tab.get_by_text("Enter a whole number, at least 1.").wait_for()
    tab.locator("#start").click(force=True)
    other = call(console, "POST", JOBS, json={"epsilon": "0.2", "price": "0.1"})
    assert (other.status_code, other.json()["code"]) == (409, "stale-quote")
    assert len(call(console, "GET", JOBS).json()["syntheses"]) == jobs


@pytest.mark.long  # test_purchase.py has the same test
def test_large_charge_needs_confirmation(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, PAGE)
    wish(tab, "2.5")
    before = len(call(console, "GET", JOBS).json()["syntheses"])
    tab.get_by_role("button", name="Create the table for epsilon 2.5").click()
    tab.get_by_role("dialog").get_by_text("This costs epsilon 2.5.").wait_for()
    tab.get_by_role("button", name="Cancel").click()
    tab.wait_for_timeout(200)
    assert len(call(console, "GET", JOBS).json()["syntheses"]) == before


def test_rho_is_shown_with_its_epsilon(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, PAGE)
    tab.get_by_label("rho: the probability").check()
    tab.locator("#budget").fill("0.001")
    content = call(console, "POST", f"{JOBS}/previews", json={"rho": "0.001"}).json()
    tab.locator("#preview strong", has_text=f"{float(content['cost']):.4g}").wait_for()
    assert "a random guess" in tab.locator("#budget-ends").inner_text()
    assert "--rho 0.001" in tab.locator("#code").inner_text()


def test_failed_job_shows_the_reason_and_a_next_step(console: Console, sign_in: SignIn) -> None:
    assert finished_synthesis(console, epsilon=5000)["state"] == FAILED
    tab = sign_in(console, OWNER, PAGE)
    failed = tab.locator("#earlier li[data-state=failed]").first
    assert "The request costs epsilon 5000" in failed.inner_text().replace(",", "")
    assert "Request at most" in failed.inner_text()
    assert failed.get_by_role("link").count() == 0, "there is nothing to download"


def test_page_without_a_promise_explains_how_to_add_one(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, "/console/data/soldiers/syntheses")
    assert "[promise.identification]" in tab.locator(".empty").inner_text()
    assert tab.locator("form").count() == 0


def test_analyst_can_download_and_measure_but_not_start(console: Console, sign_in: SignIn) -> None:
    job = finished_synthesis(console, epsilon=0.4, tables=2, rows=50)
    before = spent(console)
    tab = sign_in(console, ANALYST, PAGE)
    assert tab.locator("#start").count() == 0
    mine = tab.locator(f"#job-{job['id']}")
    assert mine.get_by_role("link").all_inner_texts() == ["table 1: Parquet", "CSV", "table 2: Parquet", "CSV"]
    tab.wait_for_load_state(
        "networkidle"
    )  # the list is drawn again once its jobs are loaded, which closes what was open
    for _ in range(20):
        if mine.get_by_label("epsilon to spend").is_visible():
            break
        mine.get_by_text("Measure the distance to the original").click()
        tab.wait_for_timeout(100)
    mine.get_by_label("epsilon to spend").fill("0.2")
    mine.get_by_label("epsilon to spend").press("Enter")
    assert spent(console) == before, "Enter never pays"
    mine.get_by_role("button", name="Spend epsilon 0.2 and measure").click()
    tab.get_by_role("button", name="Spend", exact=True).click()  # more than a tenth of the analyst's share
    mine.locator("[data-part=told]", has_text="Single columns differ by").wait_for()
    assert spent(console) == before + Fraction(1, 5)
    own = call(console, "GET", "/v1/data/people", ANALYST).json()["account"]["own"]
    assert own["spent"] == "0.2", "it is the analyst's"
    tab.goto(f"{console.address}{PAGE}/{job['id']}/quality")
    assert "Access denied" in tab.locator("h1").inner_text()


def test_paid_comparison_is_charged_once_within_the_share(console: Console) -> None:
    job = finished_synthesis(console, epsilon=0.3, rows=80)
    small, _ = make_token(
        Tokens(console.datasets.ledger.store), role=ANALYST, name="sam", dataset="people", share="0.1"
    )
    console.tokens["sam"] = small
    path, before = f"{JOBS}/{job['id']}/paid-quality", spent(console)
    refused = call(console, "POST", path, "sam", json={"epsilon": 0.2})
    assert (refused.status_code, refused.json()["code"]) == (409, "budget-exceeded")
    assert spent(console) == before
    first = call(console, "POST", path, "sam", json={"epsilon": 0.1}).json()
    again = call(console, "POST", path, "sam", json={"epsilon": 0.1}).json()
    assert (first["cost"], first["entry"]) == ("0.1", again["entry"])
    assert first["distances"] == again["distances"], "the same noise reveals nothing more"
    assert spent(console) == before + Fraction(1, 10)
    assert [distance["columns"] for distance in first["distances"]] == [1, 2]
    for wrong in ({}, {"epsilon": 0}, {"epsilon": "x"}, {"rho": 0.1}):
        assert call(console, "POST", path, json=wrong).status_code == 422
    assert call(console, "POST", f"{JOBS}/{'0' * 20}/paid-quality", json={"epsilon": 0.1}).status_code == 404


def test_quality_page_shows_a_warning_and_charts(console: Console, sign_in: SignIn) -> None:
    job, before = finished_synthesis(console, epsilon=0.4, tables=2, rows=50), spent(console)
    tab = sign_in(console, OWNER, f"{PAGE}/{job['id']}/quality")
    assert "not charged" in tab.locator(".notice .what").inner_text()
    tab.locator("#found").wait_for(timeout=PATIENCE * 1000)
    content = call(console, "GET", f"{JOBS}/{job['id']}/quality").json()
    assert tab.locator("#findings li").all_inner_texts() == content["findings"]
    tab.locator("#margin svg:visible .bar rect").first.wait_for()
    expect(tab.locator("#distances svg:visible .bar [data-tip]")).to_have_count(len(content["columns"]))
    tab.get_by_label("Column", exact=True).select_option("sex")
    tab.locator("#margin h3", has_text="sex:").wait_for()
    with tab.expect_download() as coming:
        tab.get_by_role("link", name="Download report").click()
    assert coming.value.suggested_filename == "people-quality.html"
    assert "Not for analysts" in Path(coming.value.path()).read_text("utf-8")
    report = call(console, "GET", f"{JOBS}/{job['id']}/quality?format=html")
    assert report.headers["content-disposition"].startswith("attachment"), "it must not be shown by this origin"
    assert spent(console) == before


def test_quality_of_an_unfinished_job_is_an_error_page(console: Console, sign_in: SignIn) -> None:
    failed = finished_synthesis(console, epsilon=5000)
    tab = sign_in(console, OWNER, f"{PAGE}/{failed['id']}/quality")
    assert "nothing to compare yet" in tab.locator("main").inner_text()


SUMMARY = {
    "banner": "this budget supports margins and 1 association only",
    "pairs": [{"left": "age", "right": "sex", "groups": [5, 2], "deviation": 12.5, "phase": "tree"}],
    "maps": [{"column": "town", "by": "age", "error": 0.02}],
    "independent": ["town"],
}


@pytest.mark.long
@pytest.mark.one_in(2)
@pytest.mark.parametrize("summary", [SUMMARY, None], ids=["summary", "no summary"])
def test_page_shows_what_was_learned(console: Console, sign_in: SignIn, summary: dict[str, Any] | None) -> None:
    """Banner, pairs, maps and independent columns as the service sends them; a description without them does no harm."""
    finished_synthesis(console, epsilon=0.3, rows=80)

    def send(route: Any) -> None:
        content = route.fetch().json()
        content.pop("summary", None)
        route.fulfill(json={**content, **({"summary": [summary]} if summary else {})})

    tab = sign_in(console, ANALYST)
    tab.route(re.compile(r"/syntheses/[0-9a-f]{20}/tables$"), send)
    tab.goto(console.address + PAGE)
    newest = tab.locator("#earlier li[data-state=done]").first
    learned, banner = newest.locator("[data-part=learned]"), newest.locator("[data-part=banner]")
    newest.get_by_text("What was learned (public)").click()
    learned.get_by_text("Promise: each table, and anything ever drawn from it, loses at most epsilon").wait_for()
    if summary is None:
        assert banner.is_hidden()
        assert learned.locator("li").count() == 0
        return
    assert banner.inner_text() == "This budget supports margins and 1 association only."
    assert learned.locator("li").all_inner_texts() == [
        "1 pair of columns was counted.",
        "Columns that another column determines: town by age (except in about 2% of the rows).",
        "Drawn independently of all other columns: town.",
    ]
    assert learned.locator("tbody td").all_inner_texts() == ["age and sex", "5 x 2", "12.5"]


def test_resumed_job_is_marked(tmp_path: Path) -> None:
    address = str(tmp_path / "all.ledger")
    with run_service(address) as idle:
        begun = idle.post(JOBS, {"epsilon": 1}).json()["id"]
        jobs = Jobs(idle.datasets.ledger.store)
        dead = jobs.take("gone", datasets=["people"], patience=1)
        assert dead is not None
        jobs.tell(dead, stage="margins", done=1, of=3)
        content = idle.get(f"{JOBS}/{begun}").json()
        assert (content["says"], content["resumed"]) == (STAGES["margins"], False)
        time.sleep(0.3)
        fresh = idle.post(JOBS, {"epsilon": 2}).json()["id"]
        with run_service(address, settings=WORKING) as later:
            until = time.monotonic() + PATIENCE
            while later.get(f"{JOBS}/{fresh}").json()["state"] != DONE and time.monotonic() < until:
                time.sleep(0.05)
            ended = {job["id"]: job for job in later.get(JOBS).json()["syntheses"]}
    assert [ended[item]["state"] for item in (begun, fresh)] == [DONE, DONE]
    assert [ended[item]["resumed"] for item in (begun, fresh)] == [True, False]
    assert ended[begun]["progress"] == {"stage": "done", "done": 1, "of": 1}


def test_finished_job_has_a_fixed_duration(console: Console) -> None:
    job = finished_synthesis(console, epsilon=0.3, rows=80)
    time.sleep(0.3)
    assert call(console, "GET", f"{JOBS}/{job['id']}").json()["seconds"] == job["seconds"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": "1.0"}, "1 table, epsilon 1"),
        ({"share": "0.5", "tables": 2}, "2 tables, 0.5 of the total budget"),
        ({"z": "0.010", "tables": 2}, "2 tables, Z 0.010 each"),
        ({"epsilon": "1", "delta": "0.00001"}, "1 table, epsilon 1 at delta 0.00001"),
        ({"rho": "0.01", "tables": 1}, "1 table, identification by it alone at most 0.01"),
        (
            {"epsilon": "1/3", "tables": 2, "rows": 5000, "model": "forest/1", "columns": ["age", "sex"], "seed": 0},
            "2 tables of 5,000 rows, epsilon 1/3 each, model forest/1, columns age, sex, seed 0",
        ),
    ],
)
def test_request_has_a_description(options: dict[str, Any], said: str) -> None:
    assert describe_request(options) == said


def test_stage_has_a_description() -> None:
    assert describe_stage("table 2 of 3, pairs") == f"table 2 of 3: {STAGES['pairs']}"
    assert describe_stage("a stage of my own") == "a stage of my own"


WISHES: list[dict[str, Any]] = [
    {"epsilon": "0.11"},
    {"rho": "0.0001"},
    {
        "epsilon": "1/8",
        "tables": 2,
        "rows": 7,
        "target": "sex",
        "columns": ["age", "sex"],
        "seed": 3,
    },
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("options", WISHES, ids=str)
def test_code_snippet_equals_the_form(console: Console, options: dict[str, Any]) -> None:
    code = call(console, "POST", f"{JOBS}/previews", json=options).json()["code"]
    python = code["Python"].replace("tg_...", console.tokens[OWNER])
    scope: dict[str, Any] = {}
    exec(python, scope)
    assert [table.to_arrow().num_rows for table in scope["tables"]] == [options.get("rows", 600)] * options.get(
        "tables", 1
    )
    latest = call(console, "GET", f"{JOBS}?limit=1000").json()["syntheses"][-1]["wanted"]
    assert {name: latest[name] for name in options} == options
    command = [*shlex.split(code["Command line"])[1:], "--preview", "--json"]
    command[1] = str(console.folder / command[1])
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert f'"tables": {options.get("tables", 1)}' in result.output


def test_code_snippet_for_an_analyst_previews_and_downloads(console: Console, sign_in: SignIn) -> None:
    job = finished_synthesis(console, epsilon=0.3, rows=80)
    content = call(console, "POST", f"{JOBS}/previews", ANALYST, json={"epsilon": 0.2}).json()["code"]
    assert content["Command line"] == "tidegate synthesize people.toml --epsilon 0.2 --preview"
    scope: dict[str, Any] = {}
    exec(content["Python"].replace("tg_...", console.tokens[ANALYST]), scope)
    tab = sign_in(console, ANALYST, PAGE)
    shown = tab.locator('[data-kind="Python: download the newest table"] code').inner_text()
    assert job["id"] in shown or "/tables/1" in shown
    exec(shown.replace("tg_...", console.tokens[ANALYST]), scope)
    assert len(scope["table"]) > 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["Python", "Command line"])
def test_code_snippet_of_the_quality_page_writes_the_report(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for name in ("people.toml", "people.csv"):
        (tmp_path / name).write_bytes((console.folder / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    code = quality_code({"epsilon": "0.5", "rows": 80}, dataset="people")[kind]
    if kind == "Python":
        exec(code, {})
    else:
        for line in code.splitlines():
            result = CliRunner().invoke(app, shlex.split(line)[1:])
            assert result.exit_code == 0, result.output
    assert "Not for analysts" in (tmp_path / "quality.html").read_text("utf-8")


def test_names_in_code_snippets_are_quoted() -> None:
    options = {"epsilon": "1", "columns": ['it\'s "x"; rm']}
    code = synthesis_code(options, address="http://127.0.0.1", dataset="people")
    assert shlex.split(code["Command line"])[-3] == options["columns"][0]
    assert compile(code["Python"], "code", "exec")


def test_table_is_the_same_in_both_formats(console: Console) -> None:
    job = finished_synthesis(console, epsilon=0.3, rows=80)
    csv = call(console, "GET", f"{JOBS}/{job['id']}/tables/1?kind=csv", ANALYST)
    assert pa_csv.read_csv(io.BytesIO(csv.content)).num_rows == 80


@pytest.fixture
def slow_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = Diary.step

    def step(self: Diary, *arguments: Any) -> Any:
        time.sleep(0.5)
        return quick(self, *arguments)

    monkeypatch.setattr(Diary, "step", step)


@pytest.mark.long_for("polls")
@pytest.mark.usefixtures("slow_steps")
@pytest.mark.parametrize("has_events", [True, False], ids=["events", "polls"])
def test_running_synthesis_is_cancelled_in_the_page(fresh_console: Console, sign_in: SignIn, has_events: bool) -> None:
    tab, looks = sign_in(fresh_console, OWNER, PAGE), []
    if not has_events:  # the service refuses the stream, and the page polls
        tab.route("**/events", lambda route: route.fulfill(status=204))
    tab.on("request", lambda request: looks.append(request.url) if LOOK.search(request.url) else None)
    wish(tab, "0.5")
    tab.get_by_role("button", name="Create the table for epsilon 0.5").click()
    tab.locator("#running [data-part=stage]", has_text="with noise").wait_for(timeout=PATIENCE * 1000)
    tab.get_by_role("button", name="Cancel the synthesis").click()
    tab.get_by_role("heading", name="The synthesis was cancelled").wait_for(timeout=PATIENCE * 1000)
    assert "The synthesis was cancelled by olga." in tab.locator("#running [data-part=stage]").inner_text()
    tab.locator("#earlier li[data-state=cancelled]").wait_for()
    assert bool(looks) != has_events
