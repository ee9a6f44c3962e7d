"""The form of a poll against the real service: label and odds first, one Send button, and a confirmation instead of the form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from support.browser import accessibility_faults, open_tab
from support.form_service import Fault, FormService
from web.polls import (
    DISHES,
    HEAD,
    HOLDER,
    LONG,
    MINUTES,
    OFTEN,
    SHORT,
    answer,
    answer_all,
    field,
    open_poll,
    press_send,
    read_poll,
)

from tidegate.collect.polls.respondent_texts import form_texts, respondent_texts
from tidegate.policy import Collection

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request, Route

PHONE = {"viewport": {"width": 390, "height": 844}, "locale": "en-US"}
TEXTS, GERMAN = form_texts("en"), form_texts("de")


@pytest.fixture
def phone(browser: Browser) -> Any:
    with open_tab(browser, **PHONE) as tab:
        yield tab


def watch_requests(page: Page) -> list[Request]:
    seen: list[Request] = []
    page.context.on("request", lambda request: seen.append(request))
    return seen


def posted(requests: list[Request], end: str = "/reports") -> list[str]:
    return [request.post_data or "" for request in requests if request.method == "POST" and request.url.endswith(end)]


def stored_keys(page: Page) -> set[str]:
    keys: list[str] = page.evaluate("Object.keys(localStorage)")
    return {key.removeprefix("tidegate:").partition("/")[0] for key in keys}


# The page


def test_label_and_odds_come_before_the_questions(phone: Page, service: FormService) -> None:
    open_poll(phone, service.form(service.fresh(LONG)))
    assert phone.locator("h1").inner_text() == "Canteen"
    expect(phone.get_by_text("Plan the menu for spring")).to_be_visible()
    expect(phone.get_by_text(f"Asked by {HOLDER}")).to_be_visible()
    rows = phone.get_by_role("table").first.get_by_role("row").all_inner_texts()
    assert len(rows) == 6
    assert f"A hacker of {HOLDER}" in rows[2]
    order = "all => all.map((one) => one.id || one.dataset.question || one.className)"
    assert phone.locator("#label, [data-question], #preview").evaluate_all(order) == [
        "label", "often", "dishes", "minutes", "preview",
    ]  # fmt: skip
    for name, sentences in respondent_texts(LONG, "en").items():
        assert phone.locator(f"[data-question={name}] .odds p").all_inner_texts() == sentences
    assert not phone.locator("#preview pre").is_visible()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("locale", "query", "language"), [("de-AT", "", "de"), ("de-AT", "?lang=en", "en"), ("it", "", "en")]
)
def test_language_is_that_of_the_link_or_the_browser(
    locale: str, query: str, language: str, browser: Browser, service: FormService
) -> None:
    with open_tab(browser, locale=locale, timezone_id="Europe/Berlin") as page:
        open_poll(page, service.form(SHORT) + query, button=form_texts(language)["send.button"])
        assert page.locator("html").get_attribute("lang") == language
        assert page.locator("h1").inner_text() == {"en": "Canteen", "de": "Kantine"}[language]
        day = {"en": "December 1, 2030", "de": "1. Dezember 2030"}[language]
        assert day in page.locator("#closes").inner_text()
        other = page.get_by_role("navigation").locator("a:not([aria-current])")
        other.click()
        page.wait_for_url("**?lang=*")
        assert page.locator("html").get_attribute("lang") != language


def test_form_without_scripts_shows_the_label_and_no_questions(browser: Browser, service: FormService) -> None:
    with open_tab(browser, java_script_enabled=False, locale="de") as page:
        page.goto(service.form(SHORT))
        expect(page.locator("noscript p")).to_have_text(GERMAN["page.noscript"])
        expect(page.get_by_text(GERMAN["label.title"])).to_be_visible()
        assert page.locator("input, select, button").count() == 0


def test_page_is_small(phone: Page, service: FormService) -> None:
    sizes: list[int] = []
    phone.on("response", lambda response: sizes.append(len(response.body())))
    open_poll(phone, service.form(SHORT))
    assert sum(sizes) < 250_000  # uncompressed


# Answering


def test_journey_on_a_phone(phone: Page, service: FormService) -> None:
    requests = watch_requests(phone)
    collection = service.fresh(LONG)
    open_poll(phone, service.form(collection))
    phone.get_by_role("button", name="Send").click()
    problems = [TEXTS["field.required"], TEXTS["field.number.required"]]
    expect(phone.locator(".problem:visible")).to_have_text(problems)
    expect(field(phone, "often").get_by_label("Never")).to_be_focused()
    answer_all(phone)
    field(phone, "minutes").get_by_label("How many minutes").press("Enter")
    expect(phone.locator(".problem:visible")).to_have_count(0)
    phone.locator("#preview summary").click()
    shown = phone.locator("#preview pre").inner_text()
    assert posted(requests) == []
    assert "Received" in press_send(phone)
    assert posted(requests) == [shown]
    [report] = json.loads(shown)["reports"]
    assert set(report["answers"]) == set(collection.questions)
    expect(phone.locator("#questions, #label, #status, #preview")).to_have_count(
        3
    )  # the preview was part of the questions
    expect(phone.locator("#questions:visible, #label:visible, #status:visible")).to_have_count(0)
    expect(phone.locator("#sent h2")).to_be_focused()
    expect(phone.locator("#sent")).to_contain_text(
        re.compile("counted at the close on December 1, 2030 .*, mixed with all others.")
    )
    expect(phone.locator("#sent pre")).to_have_text(shown)
    assert phone.evaluate("document.documentElement.scrollWidth") == 390
    texts = [f"{request.url} {json.dumps(request.all_headers())} {request.post_data or ''}" for request in requests]
    assert [word for word in ("Weekly", "weekly", "Sushi") if any(word in text for text in texts)] == []


def test_forget_keeps_the_limit_and_forget_everything_does_not(phone: Page, service: FormService) -> None:
    open_poll(phone, service.form(service.fresh(SHORT)))
    answer(phone)
    press_send(phone)
    expect(phone.locator("#memory")).to_contain_text(re.compile(rf"Your answers to {HOLDER} have used [\d.]+ of 10"))
    phone.get_by_role("button", name="Forget", exact=True).click()
    phone.get_by_text(TEXTS["forget.done"]).wait_for()
    assert stored_keys(phone) == {"holder"}
    phone.locator("#memory summary").click()
    expect(phone.locator(".warning")).to_have_text(TEXTS["forget.all.about"])
    phone.get_by_role("button", name="Forget everything").click()
    phone.get_by_text(TEXTS["forget.all.done"]).wait_for()
    assert stored_keys(phone) == set()


def test_answers_can_be_forgotten_without_sending_again(phone: Page, service: FormService) -> None:
    address = service.form(service.fresh(SHORT))
    open_poll(phone, address)
    assert phone.locator("#memory").is_hidden()
    answer(phone)
    press_send(phone)
    open_poll(phone, address)
    phone.get_by_text(TEXTS["page.before"]).wait_for()
    phone.get_by_role("button", name="Forget", exact=True).click()
    expect(phone.get_by_text(TEXTS["forget.done"])).to_be_focused()
    assert stored_keys(phone) == {"holder"}
    phone.locator("#memory summary").click()
    phone.get_by_role("button", name="Forget everything").click()
    phone.get_by_text(TEXTS["page.reload"]).wait_for()
    assert phone.locator("#questions").is_hidden()


def test_drawn_questions_are_shown_alone_and_stay_the_same(phone: Page, service: FormService) -> None:
    requests = watch_requests(phone)
    collection = service.fresh(replace(LONG, ask=1))
    address = service.form(collection)
    names = []
    for _ in range(3):
        open_poll(phone, address)
        [name] = phone.locator("[data-question]").evaluate_all("all => all.map((one) => one.dataset.question)")
        names.append(name)
        phone.get_by_text("This poll has 3 questions. Your device drew one of them").wait_for()
    assert len(set(names)) == 1
    if names[0] == "often":
        answer(phone)
    elif names[0] == "minutes":
        field(phone, "minutes").get_by_label("How many minutes").fill("17")
    assert "Received" in press_send(phone)
    [body] = posted(requests)
    assert set(json.loads(body)["reports"][0]["answers"]) == {names[0]}


def test_report_that_was_sent_before_is_known(phone: Page, service: FormService) -> None:
    address = service.form(service.fresh(SHORT))
    open_poll(phone, address)
    answer(phone)
    press_send(phone)
    open_poll(phone, address)
    phone.get_by_text(TEXTS["page.before"]).wait_for()
    answer(phone)
    assert TEXTS["sent.known"] in press_send(phone)


def test_form_works_by_keyboard_alone(phone: Page, service: FormService) -> None:
    requests = watch_requests(phone)
    open_poll(phone, service.form(service.fresh(SHORT)))
    tab_to(phone, "question-often-0")
    phone.keyboard.press("ArrowDown")
    tab_to(phone, "simulator-often")
    phone.keyboard.press("Tab")
    phone.keyboard.press("Enter")
    phone.locator(".concluded:not(:empty)").wait_for()
    assert posted(requests) == []
    for _ in range(10):
        phone.keyboard.press("Tab")
        if phone.evaluate("document.activeElement.textContent") == "Send":
            break
    phone.keyboard.press("Enter")
    phone.get_by_role("heading", name="Received").wait_for()
    assert len(posted(requests)) == 1


def tab_to(page: Page, name: str) -> None:
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == name:
            return
    pytest.fail(f"{name} cannot be reached by the tabulator")


# The simulator


def test_simulator_rolls_the_real_operator_and_sends_nothing(phone: Page, service: FormService) -> None:
    certain = OFTEN.replace('random = "1/3"', "epsilon = 18")
    open_poll(
        phone, service.form(service.fresh(read_poll(certain, DISHES, MINUTES, head=HEAD.replace("= 10", "= 40"))))
    )
    requests = watch_requests(phone)
    for name in ("often", "dishes", "minutes"):
        simulator = phone.locator(f"[data-question={name}] .simulator")
        simulator.locator("summary").click()
        if name == "often":
            simulator.get_by_label(TEXTS["simulator.answer"]).select_option("Daily")
        simulator.get_by_role("button", name="Roll").click()
        simulator.locator(".concluded:not(:empty)").wait_for()
        simulator.get_by_role("img").wait_for()
    assert (
        phone.locator("[data-question=often] .dots .filled").count() == 100
    )  # epsilon 18: another option once in 10**7
    assert "Daily: 100" in (phone.locator("[data-question=often] .dots").get_attribute("aria-label") or "")
    dishes = phone.locator("[data-question=dishes] tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in dishes] == ["Curry", "Pasta", "Sushi", "Pizza", "Tofu"]
    assert phone.locator("[data-question=minutes] circle").count() == 100
    counts = phone.locator("[data-question=minutes] td").all_inner_texts()
    assert sum(map(int, counts)) == 100
    assert requests == []


def test_simulator_does_not_move_if_the_reader_prefers_less_motion(browser: Browser, service: FormService) -> None:
    with open_tab(browser, **PHONE, reduced_motion="reduce") as page:
        open_poll(page, service.form(SHORT))
        page.get_by_role("button", name="Roll").click()
        assert page.locator(".dots").evaluate("(one) => getComputedStyle(one).animationName") == "none"


# Accessibility


@pytest.mark.parametrize("scheme", ["dark", pytest.param("light", marks=pytest.mark.long)])
def test_no_state_has_an_accessibility_fault(scheme: Any, browser: Browser, service: FormService) -> None:
    with open_tab(browser, **PHONE, color_scheme=scheme) as page:
        open_poll(page, service.form(service.fresh(LONG)))
        assert accessibility_faults(page) == []
        page.get_by_role("button", name="Send").click()
        for simulator in page.locator(".simulator").all():
            simulator.locator("summary").click()
            simulator.get_by_role("button").click()
        page.locator(".rolled:visible").last.wait_for()
        assert accessibility_faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        answer_all(page)
        page.locator("#preview summary").click()
        page.locator("#preview pre").wait_for()
        small = "all => all.filter((one) => one.offsetHeight < 44).map((one) => one.outerHTML)"
        assert (
            page.locator("button:visible, .choice:visible, input[type=text]:visible, nav a").evaluate_all(small) == []
        )
        press_send(page)
        page.locator("#sent summary").last.click()
        assert accessibility_faults(page) == []


def test_accessibility_fault_is_detected(phone: Page, service: FormService) -> None:
    Fault("poll_fields.js", 'asked({ name, words }, "legend")', 'asked({ name, words }, "h6")', count=2).plant(phone)
    Fault("simulator.js", '"aria-label": label }, ...dots)', '"data-label": label }, ...dots)').plant(phone)
    open_poll(phone, service.form(service.fresh(SHORT)))
    phone.get_by_role("button", name="Roll").click()
    assert [fault for fault in accessibility_faults(phone) if fault.startswith("role-img-alt")]


# What the service answers


VERDICT = {"place": 0, "verdict": "accepted", "reason": None}
MALFORMED = [
    "",
    "<html>",
    "null",
    "[]",
    json.dumps({"verdicts": []}),
    json.dumps({"verdicts": [{**VERDICT, "verdict": "taken"}]}),
]
CHANGED: dict[str, Callable[[Any], Any]] = {
    "verdicts under another name": lambda answer: {"outcomes": answer["verdicts"]},
    "verdicts as texts": lambda answer: {**answer, "verdicts": [verdict["verdict"] for verdict in answer["verdicts"]]},
    "an index instead of a place": lambda answer: {
        **answer,
        "verdicts": [{"index": verdict["place"], "verdict": verdict["verdict"]} for verdict in answer["verdicts"]],
    },
}


def fulfilled(body: str) -> Callable[[Route], None]:
    return lambda route: route.fulfill(status=200, body=body)


def reshaped(change: Callable[[Any], Any]) -> Callable[[Route], None]:
    """Pass the report to the service, and its answer on in another shape."""

    def forward(route: Route) -> None:
        real = route.fetch()
        route.fulfill(response=real, body=json.dumps(change(real.json())))

    return forward


def test_only_a_confirmed_report_is_shown_as_received(phone: Page, service: FormService) -> None:
    """Malformed answers, and the service's real answer in another shape."""
    open_poll(phone, service.form(service.fresh(SHORT)))
    answer(phone)

    handlers = [*map(fulfilled, MALFORMED), *map(reshaped, CHANGED.values())]
    for handler in handlers:
        phone.route("**/reports", handler)
        assert press_send(phone) == TEXTS["outcome.unconfirmed"]
        phone.unroute("**/reports")
        phone.evaluate("document.querySelector('#status').replaceChildren()")
    assert TEXTS["sent.known"] in press_send(phone)


def test_form_that_trusts_every_answer_is_detected(phone: Page, service: FormService) -> None:
    trusting = '{ outcome: "accepted", received: answer.ok }'
    Fault("form_sending.js", "answer.ok ? verdictIn(text) : errorIn(answer.status, text)", trusting).plant(phone)
    open_poll(phone, service.form(service.fresh(SHORT)))
    answer(phone)
    phone.route("**/reports", reshaped(CHANGED["verdicts under another name"]))
    assert "Received" in press_send(phone)


def new_version(phone: Page, service: FormService, collection: Collection) -> None:
    service.form(replace(collection, version=2))


def closing(phone: Page, service: FormService, collection: Collection) -> None:
    service.survey(collection).close()


def out_of_range(phone: Page, service: FormService, collection: Collection) -> None:
    change_body(phone, lambda report: report["answers"].update(often=99))


def change_body(phone: Page, change: Callable[[Any], None]) -> None:
    """Change the report on its way to the service."""

    def forward(route: Route) -> None:
        body = json.loads(route.request.post_data or "")
        change(body["reports"][0])
        route.continue_(post_data=json.dumps(body))

    phone.route("**/reports", forward)


REFUSALS = {"version": new_version, "closed": closing, "malformed": out_of_range}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("key", REFUSALS)
def test_refused_report_is_refused_in_the_readers_language(key: str, phone: Page, service: FormService) -> None:
    collection = service.fresh(SHORT)
    open_poll(phone, service.form(collection) + "?lang=de", button="Senden")
    answer(phone, "Jede Woche")
    REFUSALS[key](phone, service, collection)
    outcome = press_send(phone, button="Senden")
    assert outcome.startswith(GERMAN[f"outcome.refused.{key}"])
    assert "Grund des Dienstes" in outcome
    assert phone.locator("#questions").is_visible()


@pytest.mark.long  # test_refused_report_is_refused_in_the_readers_language is cheaper
def test_full_poll_refuses_another_report(browser: Browser, service: FormService) -> None:
    assert SHORT.poll is not None
    address = service.form(service.fresh(replace(SHORT, poll=replace(SHORT.poll, at_most=1))))
    outcomes = []
    for _ in range(2):
        with open_tab(browser, **PHONE) as page:
            open_poll(page, address)
            answer(page)
            outcomes.append(press_send(page))
    assert "Received" in outcomes[0]
    assert outcomes[1].startswith(TEXTS["outcome.refused.full"])


FAILURES: dict[str, Callable[[Route], None]] = {
    "unreached": lambda route: route.abort(),
    "error": lambda route: route.fulfill(status=502, body="<html>Bad gateway</html>"),
}


def test_failure_is_explained_and_can_be_retried(phone: Page, service: FormService) -> None:
    requests = watch_requests(phone)
    open_poll(phone, service.form(service.fresh(SHORT)))
    answer(phone)
    for key, fail in FAILURES.items():
        phone.route("**/reports", fail)
        assert press_send(phone) == TEXTS[f"outcome.{key}"].format(holder=HOLDER, status=502)
        phone.unroute("**/reports")
        phone.evaluate("document.querySelector('#status').replaceChildren()")
    phone.context.set_offline(True)
    phone.get_by_text(TEXTS["page.offline"]).wait_for()
    assert press_send(phone) == TEXTS["outcome.offline"]
    phone.context.set_offline(False)
    phone.evaluate("document.querySelector('#status').replaceChildren()")
    assert "Received" in press_send(phone)
    assert len(posted(requests)) == 3
    assert len(set(posted(requests))) == 1


@pytest.mark.long  # test_failure_is_explained_and_can_be_retried is cheaper
def test_silent_service_is_given_up(phone: Page, service: FormService) -> None:
    phone.clock.install()
    open_poll(phone, service.form(service.fresh(SHORT)))
    answer(phone)
    phone.route("**/reports", lambda route: None)
    with phone.expect_request("**/reports"):
        phone.get_by_role("button", name="Send").click()
    phone.clock.fast_forward(60_000)
    phone.get_by_text(TEXTS["outcome.late"].format(holder=HOLDER)).wait_for()
    phone.unroute("**/reports")
    assert "Received" in press_send(phone)


@pytest.mark.long  # the client's own refusals are tested in test_form.py
def test_exceeded_lifetime_is_refused_in_the_readers_language(phone: Page, service: FormService) -> None:
    limited = service.fresh(replace(SHORT, lifetime=Fraction(2), holder="Limited council"))
    open_poll(phone, service.form(limited) + "?lang=de", button="Senden")
    answer(phone, "Nie")
    assert "Eingegangen" in press_send(phone, button="Senden")
    open_poll(phone, service.form(limited) + "?lang=de", button="Senden")
    answer(phone, "Täglich")
    refused = press_send(phone, button="Senden")
    assert refused.startswith("Ihre Antworten an Limited council haben 1,9")
    assert "Es wurde nichts gesendet." in refused


def test_second_answer_to_a_poll_of_one_report_is_refused(phone: Page, service: FormService) -> None:
    requests = watch_requests(phone)
    address = service.form(service.fresh(replace(SHORT, repeats="once")))
    open_poll(phone, address)
    phone.get_by_text(TEXTS["send.once"]).wait_for()
    answer(phone)
    press_send(phone)
    open_poll(phone, address)
    answer(phone, "Daily")
    assert press_send(phone) == TEXTS["refused.once"]
    assert len(posted(requests)) == 1


def test_closed_poll_and_another_fingerprint_show_no_questions(
    phone: Page, service: FormService, monkeypatch: pytest.MonkeyPatch
) -> None:
    phone.goto(f"{service.form(SHORT)}#fingerprint={'0' * 64}")
    phone.get_by_text(TEXTS["refused.fingerprint"].format(holder=HOLDER)).wait_for()
    assert phone.locator("input").count() == 0
    collection = service.fresh(SHORT)
    service.form(collection)
    service.survey(collection)
    phone.goto(service.form(replace(collection, closed=True)))
    phone.get_by_text(TEXTS["page.closed"]).wait_for()
    assert phone.locator("input").count() == 0
    assert SHORT.poll is not None
    monkeypatch.setattr("tidegate.service.pages.overview.current_time", lambda: SHORT.poll.closes)
    phone.goto(service.form(SHORT))
    phone.get_by_text(TEXTS["page.closed"]).wait_for()
    assert phone.locator("input").count() == 0


# Invitations


def test_invited_person_answers_once_and_the_code_leaves_the_address_bar(
    browser: Browser, service: FormService
) -> None:
    collection = service.invited(SHORT)
    address = service.form(collection)
    [code] = service.survey(collection).invite(1)
    with open_tab(browser, **PHONE) as page:
        link = f"{address}#fingerprint={collection.fingerprint}&code={code}"
        page.route("**/tokens", lambda route: route.abort())
        open_poll(page, link)
        page.get_by_text(TEXTS["code.unreached"].format(holder=HOLDER)).wait_for()
        assert page.url == link, "a code that was not used stays in the link"
        page.unroute("**/tokens")
        requests = watch_requests(page)
        page.reload()
        page.get_by_text(TEXTS["code.good"]).wait_for()
        assert page.url == f"{address}#fingerprint={collection.fingerprint}"
        assert len(posted(requests, "/tokens")) == 1, "the permit is requested before an answer exists"
        answer(page)
        page.locator("#preview summary").click()
        shown = page.locator("#preview pre").inner_text()
        assert "Received" in press_send(page)
        assert posted(requests) == [shown]
        assert set(json.loads(shown)["reports"][0]["invitation"]) == {"nonce", "signature"}
        assert not [request.url for request in requests if code in request.url.partition("#")[0]]
        change_body(page, lambda report: report.update(id="f" * 32))
        open_poll(page, address)
        answer(page, "Daily")
        assert press_send(page).startswith(TEXTS["outcome.refused.invitation"].format(holder=HOLDER))
    with open_tab(browser, **PHONE) as page:
        open_poll(page, f"{address}#code={code}")
        page.get_by_text(TEXTS["code.used"].format(holder=HOLDER)).wait_for()


def test_code_is_typed_checked_and_required(phone: Page, service: FormService) -> None:
    collection = service.invited(SHORT)
    open_poll(phone, service.form(collection))
    [code] = service.survey(collection).invite(1)
    answer(phone)
    assert press_send(phone) == TEXTS["code.required"]
    field_of_code = phone.get_by_label(TEXTS["code.label"], exact=True)
    expect(field_of_code).to_be_focused()
    for wrong in ("hello", "0" * 26):
        field_of_code.fill(wrong)
        field_of_code.press("Enter")
        phone.get_by_text(TEXTS["code.wrong"]).wait_for()
    assert accessibility_faults(phone) == []
    phone.route("**/tokens", lambda route: route.abort())
    field_of_code.fill(code.lower().replace("-", " "))
    phone.get_by_role("button", name=TEXTS["code.use"]).click()
    phone.get_by_text(TEXTS["code.unreached"].format(holder=HOLDER)).wait_for()
    phone.unroute("**/tokens")
    phone.get_by_role("button", name=TEXTS["code.use"]).click()
    phone.get_by_text(TEXTS["code.good"]).wait_for()
    assert "Received" in press_send(phone)
