"""The form: the true value leaves in no request, what is sent is said before, and the browser remembers what it answered."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from web.serving import Fault, Site

from tidegate.collect.aloud import read_aloud
from tidegate.collect.mechanisms import operator_for
from tidegate.policy import Category, Collection, Integer, Question
from tidegate.policy.attributes import Items

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

TOWNS = Category(("Xanthi", "Larisa", "Volos"), "value")
GOODS = Items(("quince", "medlar", "sorrel", "lovage"))
INCOME = Integer(40_000, 60_000)  # its reports are codes below 31,000: no true value looks like one
SURVEY = Collection(
    "survey",
    {
        "income": Question("income", INCOME, "square-wave", epsilon=2),
        "town": Question("town", TOWNS, "subset", epsilon=1),
        "bought": Question("bought", GOODS, "mask", keep="0.9"),
    },
)
TRUE = ["48813", "Larisa", "quince", "lovage"]
SHOW, SEND = "Show what would be sent", "Send"


@pytest.fixture
def form(page: Page, site: Site) -> Page:
    """The form of the survey, opened."""
    site.received.clear()
    page.goto(site.form(SURVEY))
    page.get_by_role("button", name=SHOW).wait_for()
    return page


def fill(page: Page, income: str = "48813", town: str = "Larisa") -> None:
    page.get_by_label("income", exact=True).fill(income)
    page.get_by_label(town).check()
    for item in ("quince", "lovage"):
        page.get_by_label(item).check()


def show(page: Page) -> str:
    """Press, and read what would be sent: the whole report as text."""
    page.get_by_role("button", name=SHOW).click()
    page.get_by_role("heading", name="This would be sent").wait_for()
    return page.locator("#preview pre").text_content() or ""


def send(page: Page) -> str:
    page.locator("#preview button").click()
    page.locator("#status .good, #status .what").wait_for()
    return page.locator("#status").inner_text()


def watched(page: Page) -> list[Request]:
    """Everything that leaves from now on, in any tab of this visitor."""
    seen: list[Request] = []
    page.context.on("request", lambda request: seen.append(request))
    return seen


def leaks(requests: list[Request], words: list[str]) -> list[str]:
    """True values in anything that leaves: addresses, headers, bodies."""
    told = [f"{one.url} {json.dumps(one.all_headers())} {one.post_data or ''}" for one in requests]
    return [word for word in words for text in told if re.search(rf"\b{word}\b", text)]


def test_the_true_value_is_in_no_request_that_leaves_the_page(form: Page, site: Site) -> None:
    requests = watched(form)
    form.context.add_cookies([{"name": "who", "value": "me", "url": site.address}])
    form.reload()
    fill(form)
    shown = show(form)
    assert site.received == []
    assert "was taken" in send(form)
    assert leaks(requests, TRUE) == []
    [post] = [one for one in requests if one.method == "POST"]
    assert post.post_data == shown
    assert not {"cookie", "referer"} & set(post.all_headers())
    assert {one.url.removeprefix(site.address).split("/")[1] for one in requests} == {
        "forms",
        "static",
        "client",
        "collections",
    }
    [report] = json.loads(shown)["reports"]
    assert set(report) == {"collection", "fingerprint", "version", "answers", "id"}
    assert set(report["answers"]) == set(SURVEY.questions)


LEAKY = {
    "in an address": Fault(
        "form.js",
        "const report = await client.randomize(answers);",
        "const report = await client.randomize(answers); await fetch('/blank?' + answers.income);",
    ),
    "in a body": Fault(
        "form_sending.js",
        "{ reports: [report] }",
        "{ reports: [report], town: document.querySelector(':checked + span').textContent }",
    ),
    "in a header": Fault(
        "form_sending.js",
        '"Content-Type": "application/json" }',
        '"Content-Type": "application/json", "X-Seen": document.querySelector("input").value }',
    ),
}


@pytest.mark.parametrize("case", LEAKY)
def test_a_form_that_leaks_is_caught(case: str, page: Page, site: Site) -> None:
    page.goto(site.form(SURVEY, LEAKY[case]))
    requests = watched(page)
    fill(page)
    show(page)
    send(page)
    assert leaks(requests, TRUE) != []


def test_what_is_shown_before_sending_is_what_is_sent_and_what_python_says_of_it(form: Page, site: Site) -> None:
    fill(form)
    show(form)
    told = {name: form.locator(f"[data-told={name}]").inner_text() for name in SURVEY.questions}
    assert "was taken" in send(form)
    [report] = site.received[-1]["reports"]
    for name, question in SURVEY.questions.items():
        assert told[name].split() == read_aloud(question, operator_for(question), report["answers"][name]).split()


def test_the_questions_come_in_the_holders_order(form: Page) -> None:
    asked = form.locator("[data-question]").evaluate_all("all => all.map(one => one.dataset.question)")
    assert asked == list(SURVEY.questions)


def test_offline_it_waits_and_sends_the_same_report_when_asked_again(form: Page, site: Site) -> None:
    form.context.set_offline(True)
    form.get_by_text("You are offline. You can fill in the form").wait_for()
    fill(form)
    shown = show(form)
    assert "You are offline. Nothing was sent." in send(form)
    assert site.received == []
    form.context.set_offline(False)
    assert "was taken" in send(form)
    assert site.received == [json.loads(shown)]


def test_a_holder_that_cannot_be_reached_is_tried_again_on_request(form: Page, site: Site) -> None:
    fill(form)
    show(form)
    form.route("**/reports", lambda route: route.abort())
    assert "could not be reached" in send(form)
    form.unroute("**/reports")
    assert "was taken" in send(form)
    assert len(site.received) == 1


def test_the_memory_outlives_the_page_and_gives_the_same_report_again(form: Page) -> None:
    fill(form)
    first = show(form)
    form.reload()
    assert "income: 1 different value answered so far" in form.locator("#given").inner_text()
    fill(form)
    assert show(form) == first
    fill(form, income="50001")
    form.get_by_role("heading", name="This would be sent").wait_for(
        state="hidden"
    )  # another answer: shown anew or not at all
    other = show(form)
    one, two = (json.loads(text)["reports"][0] for text in (first, other))
    assert one["id"] != two["id"]
    assert one["answers"]["town"] == two["answers"]["town"]
    assert "income: 2 different values" in form.locator("#given").inner_text()


def test_two_visitors_are_not_given_the_same_report(browser: Browser, site: Site) -> None:
    ids = set()
    for _ in range(2):
        context = browser.new_context()
        page = context.new_page()
        page.goto(site.form(SURVEY))
        fill(page)
        ids.add(json.loads(show(page))["reports"][0]["id"])
        context.close()
    assert len(ids) == 2


def test_tabs_that_share_a_memory_take_turns(form: Page, site: Site) -> None:
    assert waits_for_another_tab(form, site)


def test_a_form_that_does_not_wait_is_caught(page: Page, site: Site) -> None:
    page.goto(site.form(SURVEY, Fault("memory.js", "globalThis.navigator?.locks ?", "false ?")))
    assert not waits_for_another_tab(page, site)


def waits_for_another_tab(form: Page, site: Site) -> bool:
    """Whether nothing is drawn while another tab holds the memory."""
    other = form.context.new_page()
    other.goto(f"{site.address}/blank")
    other.evaluate(
        """() => new Promise(held => navigator.locks.request("tidegate:memory", () => new Promise(free => {
            window.free = free;
            held();
        })))"""
    )
    fill(form)
    form.get_by_role("button", name=SHOW).click()
    form.wait_for_timeout(500)
    waited: bool = form.evaluate("localStorage.length === 0")
    other.evaluate("window.free()")
    form.get_by_role("heading", name="This would be sent").wait_for()
    return waited


BROKEN = {
    "full": (
        "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };",
        "cannot be written",
    ),
    "forgetful": ("Storage.prototype.setItem = () => {};", "cannot be written"),
    "forbidden": (
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } });",
        "cannot be read",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_an_answer_that_cannot_be_kept_is_not_given(case: str, page: Page, site: Site) -> None:
    program, says = BROKEN[case]
    site.received.clear()
    page.add_init_script(program)
    page.goto(site.form(SURVEY))
    if case != "forbidden":
        fill(page)
        page.get_by_role("button", name=SHOW).click()
    page.locator("#problem").get_by_text(says).wait_for()
    assert page.get_by_role("button", name=SEND, exact=True).count() == 0
    assert site.received == []


def test_a_memory_that_is_gone_or_spoilt_is_refused_and_never_started_over(form: Page) -> None:
    fill(form)
    show(form)
    kept = form.evaluate("JSON.stringify(localStorage)")
    form.evaluate("localStorage.clear()")
    form.get_by_role("button", name=SHOW).click()
    form.locator("#problem").get_by_text("is gone").wait_for()
    assert form.evaluate("localStorage.length") == 0
    spoil = "kept => { for (const [key, text] of Object.entries(JSON.parse(kept))) localStorage.setItem(key, text.slice(1)); }"
    form.evaluate(spoil, kept)
    form.reload()
    form.locator("#problem").get_by_text("cannot be read").wait_for()


def test_once_means_one_report(page: Page, site: Site) -> None:
    page.goto(site.form(replace(SURVEY, name="once", repeats="once")))
    page.get_by_text("One report is taken of each person").wait_for()
    fill(page)
    first = show(page)
    fill(page, income="50001")
    page.get_by_role("button", name=SHOW).click()
    page.locator("#problem").get_by_text("yours was made already").wait_for()
    fill(page)
    assert show(page) == first


def test_two_layers_send_the_very_report_that_was_shown(page: Page, site: Site) -> None:
    town = Question("town", TOWNS, "randomized-response", epsilon=4, each=1)
    page.goto(site.form(Collection("layers", {"town": town}, repeats="two-layers")))
    page.get_by_label("Larisa").check()
    reports = []
    for _ in range(5):
        reports.append(show(page))
        send(page)
        assert site.received[-1] == json.loads(reports[-1])
        page.get_by_label("Larisa").dispatch_event("input")
    assert len(set(reports)) == 5


def test_a_refusal_and_an_error_of_the_holder_are_said(form: Page, site: Site) -> None:
    fill(form)
    show(form)
    site.collections["survey"] = replace(SURVEY, version=2)
    assert "The report was refused: it answers another version; this is version 2." in send(form)
    body = json.dumps({"error": {"kind": "busy", "what": "The ledger is locked.", "do": "Try later.", "facts": {}}})
    form.route("**/reports", lambda route: route.fulfill(status=503, body=body, content_type="application/json"))
    assert send(form).split("\n\n") == ["The ledger is locked.", "Try later."]
    form.unroute("**/reports")


def test_a_link_that_names_another_fingerprint_opens_nothing(page: Page, site: Site) -> None:
    page.goto(f"{site.form(SURVEY)}#fingerprint={'0' * 64}")
    page.locator("#problem").get_by_text("is not the one with the fingerprint you were given").wait_for()
    assert page.locator("input").count() == 0
    page.goto("about:blank")
    page.goto(f"{site.form(SURVEY)}#fingerprint={SURVEY.fingerprint}")
    page.get_by_role("button", name=SHOW).wait_for()


def test_a_closed_collection_asks_nothing(page: Page, site: Site) -> None:
    page.goto(site.form(replace(SURVEY, name="closed", closed=True)))
    page.get_by_text("This collection is closed").wait_for()
    assert page.locator("input, select, button").count() == 0


def test_answers_changed_while_a_report_is_drawn_are_not_sent_with_it(form: Page) -> None:
    fill(form)
    form.evaluate(
        """() => new Promise(held => navigator.locks.request("tidegate:memory", () => new Promise(free => {
            window.free = free;
            held();
        })))"""
    )
    form.get_by_role("button", name=SHOW).click()
    form.get_by_label("income", exact=True).fill("50001")
    form.evaluate("window.free()")
    form.wait_for_function("() => localStorage.length > 0")
    form.wait_for_timeout(200)
    assert form.locator("#preview").is_hidden()
    show(form)


def test_names_that_look_like_markup_are_shown_as_text(page: Page, site: Site) -> None:
    words = (
        "<img src=x onerror=document.title='hit'>",
        "</script><script>document.title='hit'</script>",
        "{{ 7 * 7 }}",
        "'\"&amp;",
    )
    hostile = Collection("hostile", {"items": Question(words[0], Category(words), "subset", epsilon=1)})
    page.goto(site.form(hostile))
    shown = page.locator(".choice").all_inner_texts()
    assert tuple(shown) == words
    page.get_by_label(words[1]).check()
    show(page)
    assert page.title() == "hostile: randomized on your device"
    assert page.locator("img").count() == 0


def test_every_kind_of_field_gives_the_code_of_what_was_entered(page: Page, site: Site) -> None:
    """Operators that all but never change a value: each of the three does so once in ten million times."""
    months = Category(tuple(f"month {i}" for i in range(12)), "value")
    herbs = Items(tuple(f"herb {i}" for i in range(30)))
    questions = {
        "month": Question("month", months, "randomized-response", epsilon=20),
        "smokes": Question("smokes", Category((True, False)), "randomized-response", epsilon=20),
        "age": Question("age", Integer(0, 99, (18, 65)), "randomized-response", epsilon=20),
        "debts": Question("debts", Integer(0, 9, (), "lowest"), "randomized-response", epsilon=20),
        "herbs": Question("herbs", herbs, "mask", keep=1, insert=0),
    }
    page.goto(site.form(Collection("kinds", questions)))
    page.get_by_label("month").select_option("month 7")
    page.get_by_label("False").check()
    page.get_by_label("age").fill("64.5")
    page.get_by_text("Only its range counts: 0 to 17, 18 to 64, 65 to 99.").wait_for()
    page.get_by_label("search in herbs").fill("HERB 2")
    page.get_by_label("herb 23").check()
    assert page.locator("[data-question=herbs] .choice:visible").count() == 11
    page.get_by_label("search in herbs").fill("")
    page.get_by_label("herb 5", exact=True).check()
    page.get_by_text("2 of 30 chosen.").wait_for()
    [report] = json.loads(show(page))["reports"]
    assert report["answers"] == {"month": 7, "smokes": 1, "age": 2, "debts": 0, "herbs": [5, 23]}
    page.get_by_label("month").select_option("no answer")
    assert json.loads(show(page))["reports"][0]["answers"]["month"] == 12


def test_what_is_wrong_is_said_at_its_field_and_nothing_is_drawn(form: Page) -> None:
    form.get_by_label("income", exact=True).fill("forty thousand")
    form.get_by_role("button", name=SHOW).click()
    assert form.locator(".problem:visible").all_inner_texts() == ['"income" needs a number.', "Choose one."]
    assert form.evaluate("document.activeElement.id") == "question-income"
    assert form.evaluate("localStorage.length") == 0


def test_the_whole_way_by_keyboard(form: Page, site: Site) -> None:
    form.get_by_label("income", exact=True).focus()
    form.keyboard.type("48813")
    tab_to(form, "question-town-0")
    form.keyboard.press("ArrowDown")
    tab_to(form, "question-bought-0")
    form.keyboard.press("Space")
    form.keyboard.press("Enter")
    form.get_by_role("heading", name="This would be sent").wait_for()
    for _ in range(2):
        form.keyboard.press("Tab")
    form.keyboard.press("Enter")
    form.get_by_text("Your report was taken.").wait_for()
    assert len(site.received) == 1


def tab_to(page: Page, name: str) -> None:
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == name:
            return
    pytest.fail(f"{name} cannot be reached by the tabulator")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_can_be_read_dark_and_light(scheme: Any, browser: Browser, site: Site) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    page = context.new_page()
    page.goto(site.form(SURVEY))
    fill(page)
    show(page)
    send(page)
    page.locator("#preview summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    small = page.locator("button, .choice, input[type=text]").evaluate_all(
        "all => all.filter(one => one.offsetHeight < 44).length"
    )
    assert small == 0
    pairs = page.evaluate("""() => [["h1", "body"], [".hint", "body"], ["button", "button"], [".sent", ".card"], [".good", ".notice"]].map(
        ([text, ground]) => [getComputedStyle(document.querySelector(text)).color, getComputedStyle(document.querySelector(ground)).backgroundColor])""")
    assert [pair for pair in pairs if contrast(*pair) < 4.5] == []
    context.close()


def contrast(one: str, other: str) -> float:
    """Of two colours, as WCAG 2 defines it."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_without_scripts_nothing_is_asked(browser: Browser, site: Site) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site.form(SURVEY))
    assert page.locator("noscript p").is_visible()
    assert page.locator("input, select, button").count() == 0
    context.close()
