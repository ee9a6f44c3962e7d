"""The form against the real service: the true value leaves in no request, what is sent is shown before, and only a
confirmed report is called received."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from support.browser import open_tab
from support.form_service import Fault, FormService

from tidegate.collect.encoding import code_of
from tidegate.collect.explain import read_aloud
from tidegate.policy import Boolean, Category, Collection, Date, Decimal, Integer, Question, Time, Timestamp
from tidegate.policy.attributes import Items
from tidegate.policy.collection import operator_for

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request, Route

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
SHOW, SEND = "Preview my report", "Send"
RECEIVED = "Your report was received."


@pytest.fixture
def form(page: Page, service: FormService) -> Page:
    """The form of the survey, opened."""
    return open_form(page, service, SURVEY)


def open_form(page: Page, service: FormService, collection: Collection) -> Page:
    page.goto(service.form(collection))
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
    page.get_by_role("heading", name="Your report").wait_for()
    return page.locator("#preview pre").text_content() or ""


def send(page: Page) -> str:
    page.locator("#preview button").click()
    page.locator("#status .good, #status .what").wait_for()
    return page.locator("#status").inner_text()


def watch_requests(page: Page) -> list[Request]:
    """Everything that leaves from now on, in any tab of this visitor."""
    seen: list[Request] = []
    page.context.on("request", lambda request: seen.append(request))
    return seen


def posted_bodies(requests: list[Request]) -> list[Any]:
    """The bodies that were sent to the holder."""
    return [json.loads(request.post_data or "") for request in requests if request.method == "POST"]


def leaks(requests: list[Request], words: list[str]) -> list[str]:
    """True values in anything that leaves: addresses, headers, bodies."""
    texts = [f"{request.url} {json.dumps(request.all_headers())} {request.post_data or ''}" for request in requests]
    return [word for word in words for text in texts if re.search(rf"\b{word}\b", text)]


def test_no_request_contains_a_true_value(form: Page, service: FormService) -> None:
    requests = watch_requests(form)
    form.context.add_cookies([{"name": "who", "value": "me", "url": service.address}])
    form.reload()
    fill(form)
    shown = show(form)
    assert posted_bodies(requests) == []
    assert RECEIVED in send(form)
    assert leaks(requests, TRUE) == []
    [post] = [request for request in requests if request.method == "POST"]
    assert post.post_data == shown
    assert not {"cookie", "referer"} & set(post.all_headers())
    assert {request.url.removeprefix(service.address).split("/")[1] for request in requests} == {
        "forms",
        "static",
        "client",
        "v1",
    }
    [report] = json.loads(shown)["reports"]
    assert set(report) == {"collection", "fingerprint", "version", "answers", "id"}
    assert set(report["answers"]) == set(SURVEY.questions)


VISIT = Collection(
    "visit",
    {
        "joined": Question(
            "joined", Date(dt.date(2015, 1, 1), dt.date(2024, 12, 31), "month"), "square-wave", epsilon=2
        ),
        "ordered": Question(
            "ordered",
            Timestamp(dt.date(2024, 1, 1), dt.date(2024, 12, 31), "hour", "Europe/Paris"),
            "square-wave",
            epsilon=2,
        ),
        "opened": Question("opened", Time(dt.time(8), dt.time(20), "15-minutes"), "square-wave", epsilon=2),
        "price": Question("price", Decimal("0.00", "500.00", "0.01"), "square-wave", epsilon=2),
        "married": Question("married", Boolean(), "randomized-response", epsilon=1),
    },
)
VISIT_ANSWERS = {"joined": "2020-02-29", "ordered": "2024-10-27T02:30", "opened": "14:37", "price": "19.999"}


@pytest.mark.long  # test_every_field_type_encodes_the_entered_value is cheaper
def test_dates_times_and_booleans_are_sent_at_the_grid(browser: Browser, service: FormService) -> None:
    """On a device in another time zone, with a date that is not accepted first."""
    collection = service.fresh(VISIT)
    with open_tab(browser, timezone_id="Pacific/Kiritimati") as page:
        open_form(page, service, collection)
        for name, answer in VISIT_ANSWERS.items():
            page.get_by_label(name, exact=True).fill(answer)
        page.get_by_label("true").check()
        page.get_by_label("joined", exact=True).fill("2025-01-01")
        page.get_by_role("button", name=SHOW).click()
        expect(page.locator("[data-question=joined] .problem")).to_have_text('"joined" is outside its range.')
        page.get_by_label("joined", exact=True).fill(VISIT_ANSWERS["joined"])
        requests = watch_requests(page)
        shown = show(page)
        conclusions = [text.partition("From it")[2] for text in page.locator("#preview dd").all_text_contents()]
        memory = page.evaluate("Object.keys(localStorage).filter((key) => key.includes('answer/'))")
        assert RECEIVED in send(page)
        assert leaks(requests, ["2020-02-29", "02:30", "14:37", "19.999"]) == []
    [report] = json.loads(shown)["reports"]
    true = {"joined": dt.date(2020, 2, 1), "ordered": dt.datetime(2024, 10, 27, 2), "opened": dt.time(14, 30)}
    answers = {**true, "price": 20, "married": True}
    codes = {name: code_of(question, answers[name]) for name, question in collection.questions.items()}
    assert codes == {"joined": 61, "ordered": 300 * 24 + 2 - 1, "opened": 26, "price": 2_000, "married": 1}
    assert sorted(key.rpartition("/")[2] for key in memory) == sorted(f"{code:x}" for code in codes.values())
    sent = [
        read_aloud(question, operator_for(question), report["answers"][name])
        for name, question in collection.questions.items()
    ]
    assert conclusions == [text.partition("From it")[2] for text in sent]


LEAKY = {
    "in an address": Fault(
        "form.js",
        "const report = await client.draft(answers);",
        "const report = await client.draft(answers); await fetch('/health?' + answers.income);",
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


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", LEAKY)
def test_leaking_form_is_detected(case: str, page: Page, service: FormService) -> None:
    LEAKY[case].plant(page)
    open_form(page, service, SURVEY)
    requests = watch_requests(page)
    fill(page)
    show(page)
    send(page)
    assert leaks(requests, TRUE) != []


def test_preview_equals_the_sent_report_and_the_python_description(form: Page) -> None:
    requests = watch_requests(form)
    fill(form)
    show(form)
    result = {name: form.locator(f"[data-told={name}]").inner_text() for name in SURVEY.questions}
    assert RECEIVED in send(form)
    [report] = posted_bodies(requests)[-1]["reports"]
    for name, question in SURVEY.questions.items():
        assert result[name].split() == read_aloud(question, operator_for(question), report["answers"][name]).split()


def test_questions_are_shown_in_the_defined_order(form: Page) -> None:
    shown = form.locator("[data-question]").evaluate_all("all => all.map(one => one.dataset.question)")
    assert shown == list(SURVEY.questions)


@pytest.mark.long  # test_unreachable_service_can_be_retried keeps the claim
def test_form_sends_the_same_report_after_being_offline(form: Page) -> None:
    requests = watch_requests(form)
    form.context.set_offline(True)
    form.get_by_text("You are offline. You can fill in the form").wait_for()
    fill(form)
    shown = show(form)
    assert "You are offline. Nothing was sent." in send(form)
    assert posted_bodies(requests) == []
    form.context.set_offline(False)
    assert RECEIVED in send(form)
    assert posted_bodies(requests) == [json.loads(shown)]


def test_unreachable_service_can_be_retried(form: Page) -> None:
    fill(form)
    shown = show(form)
    form.route("**/reports", lambda route: route.abort())
    assert "The holder's service could not be reached." in send(form)
    form.unroute("**/reports")
    requests = watch_requests(form)
    assert RECEIVED in send(form)
    assert posted_bodies(requests) == [json.loads(shown)]


def wait_for_loss(page: Page, text: str) -> None:
    """Wait until the page shows the loss of the answers."""
    page.locator("#given").get_by_text(text).wait_for()


def test_memory_survives_the_page_and_repeats_the_report(page: Page, service: FormService) -> None:
    open_form(page, service, service.fresh(SURVEY))
    fill(page)
    first = show(page)
    assert RECEIVED in send(page)
    page.reload()
    wait_for_loss(page, "income: 1 different value answered so far")
    fill(page)
    assert show(page) == first
    fill(page, income="50001")
    page.get_by_role("heading", name="Your report").wait_for(state="hidden")  # another answer is previewed again
    other = show(page)
    assert RECEIVED in send(page)
    report, other_report = (json.loads(text)["reports"][0] for text in (first, other))
    assert report["id"] != other_report["id"]
    assert report["answers"]["town"] == other_report["answers"]["town"]
    wait_for_loss(page, "income: 2 different values")


@pytest.mark.parametrize("versions", [2, pytest.param(6, marks=pytest.mark.long)])
def test_versions_of_one_question_have_one_answer(page: Page, service: FormService, versions: int) -> None:
    """A version with the same questions draws no new answers, and its report is received."""
    collection = service.fresh(SURVEY)
    answers, ids = [], []
    for version in range(1, versions + 1):
        open_form(page, service, replace(collection, version=version))
        fill(page)
        [report] = json.loads(show(page))["reports"]
        assert RECEIVED in send(page)
        answers.append(report["answers"])
        ids.append(report["id"])
    assert answers == [answers[0]] * versions
    assert len(set(ids)) == versions
    wait_for_loss(page, "income: 1 different value")


def test_exceeded_lifetime_loss_is_refused_and_not_sent(page: Page, service: FormService) -> None:
    """The holder asks the same again under another name, and states a higher lifetime."""
    towns = [Question(f"town{number}", TOWNS, "subset", epsilon=1) for number in range(3)]
    collection = service.fresh(Collection("limited", {"town": towns[0]}, holder="Works council", lifetime=Fraction(2)))
    requests = watch_requests(page)
    for version in (1, 2):
        open_form(page, service, replace(collection, version=version, questions={"town": towns[version - 1]}))
        page.get_by_label("Larisa").check()
        show(page)
        assert RECEIVED in send(page)
    wait_for_loss(page, "Your answers to Works council have used 2.0 of 2.0.")
    open_form(page, service, replace(collection, version=3, questions={"town": towns[2]}, lifetime=Fraction(9)))
    page.get_by_label("Larisa").check()
    page.get_by_role("button", name=SHOW).click()
    page.locator("#problem").get_by_text(
        "Your answers to Works council have used 2.0 of 2.0. This question would need 1.0 more. Nothing was sent."
    ).wait_for()
    assert len(posted_bodies(requests)) == 2


@pytest.mark.long
def test_two_visitors_have_different_reports(browser: Browser, service: FormService) -> None:
    ids = set()
    for _ in range(2):
        context = browser.new_context()
        page = context.new_page()
        open_form(page, service, SURVEY)
        fill(page)
        ids.add(json.loads(show(page))["reports"][0]["id"])
        context.close()
    assert len(ids) == 2


@pytest.mark.long  # test_report_forgotten_in_another_tab_is_not_sent and test_form_without_locking_is_detected use two tabs
def test_tabs_that_share_a_memory_take_turns(form: Page, service: FormService) -> None:
    assert waits_for_another_tab(form, service)


def test_form_without_locking_is_detected(page: Page, service: FormService) -> None:
    Fault("memory.js", "globalThis.navigator?.locks ?", "false ?").plant(page)
    assert not waits_for_another_tab(open_form(page, service, SURVEY), service)


def waits_for_another_tab(form: Page, service: FormService) -> bool:
    """Whether nothing is drawn while another tab holds the memory."""
    other = form.context.new_page()
    other.goto(f"{service.address}/health")
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
    form.get_by_role("heading", name="Your report").wait_for()
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


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", BROKEN)
def test_answer_that_cannot_be_stored_is_not_sent(case: str, page: Page, service: FormService) -> None:
    program, says = BROKEN[case]
    requests = watch_requests(page)
    page.add_init_script(program)
    page.goto(service.form(SURVEY))
    if case != "forbidden":
        fill(page)
        page.get_by_role("button", name=SHOW).click()
    page.locator("#problem").get_by_text(says).wait_for()
    assert page.get_by_role("button", name=SEND, exact=True).count() == 0
    assert posted_bodies(requests) == []


def test_lost_or_damaged_memory_is_refused_and_never_replaced(form: Page) -> None:
    fill(form)
    show(form)
    cached = form.evaluate("JSON.stringify(localStorage)")
    form.evaluate("localStorage.clear()")
    form.get_by_role("button", name=SHOW).click()
    form.locator("#problem").get_by_text("no longer exists").wait_for()
    assert form.evaluate("localStorage.length") == 0
    spoil = "kept => { for (const [key, text] of Object.entries(JSON.parse(kept))) localStorage.setItem(key, text.slice(1)); }"
    form.evaluate(spoil, cached)
    form.reload()
    form.locator("#problem").get_by_text("cannot be read").wait_for()


def stored_memory(page: Page) -> dict[str, Any]:
    """What the browser remembers."""
    content: dict[str, Any] = json.loads(page.evaluate("JSON.stringify({ ...localStorage })"))
    return {key.removeprefix("tidegate:"): json.loads(value) for key, value in content.items()}


def used_lifetime(page: Page, holder: str) -> str:
    spent: str = stored_memory(page)[f"holder/{holder}"]["spent"]
    return spent


def test_once_is_locked_by_sending_but_not_by_a_preview(page: Page, service: FormService) -> None:
    collection = service.fresh(
        Collection("once", {"town": Question("town", TOWNS, "subset", epsilon=1)}, repeats="once")
    )
    open_form(page, service, collection)
    page.get_by_text("Each person can send one report").wait_for()
    reports = {}
    for town in ("Larisa", "Volos", "Larisa"):
        page.get_by_label(town).check()
        report = show(page)
        assert reports.setdefault(town, report) == report, "a draft is permanent"
    assert used_lifetime(page, collection.name) == "0"
    assert RECEIVED in send(page)
    assert used_lifetime(page, collection.name) == "1"
    page.get_by_label("Volos").check()
    page.get_by_role("button", name=SHOW).click()
    page.locator("#problem").get_by_text("yours was already sent").wait_for()
    page.get_by_label("Larisa").check()
    assert show(page) == reports["Larisa"]
    page.locator("#preview button").click()
    page.get_by_text("counts only once").wait_for()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("repeats", ["once", "two-layers"])
def test_lost_response_locks_and_is_retried_with_the_same_bytes(repeats: Any, page: Page, service: FormService) -> None:
    """The service has the report, and its answer is lost; the page is left and comes back."""
    each: dict[str, Any] = {"each": "0.5"} if repeats == "two-layers" else {}
    town = Question("town", TOWNS, "unary", epsilon=2, **each)
    collection = service.fresh(Collection("lost", {"town": town}, repeats=repeats))
    open_form(page, service, collection)
    page.get_by_label("Larisa").check()
    shown = show(page)

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/reports", lose)
    assert "It is not certain that your report was received." in send(page)
    page.unroute("**/reports")
    assert used_lifetime(page, collection.name) == "2"
    page.reload()
    page.get_by_role("button", name=SHOW).wait_for()
    if repeats == "once":
        page.get_by_label("Volos").check()
        page.get_by_role("button", name=SHOW).click()
        page.locator("#problem").get_by_text("yours was already sent").wait_for()
    page.get_by_label("Larisa").check()
    assert show(page) == shown
    assert "counts only once" in send(page)
    assert used_lifetime(page, collection.name) == "2"


@pytest.mark.long  # test_unreachable_service_can_be_retried keeps the claim
def test_offline_nothing_is_charged(page: Page, service: FormService) -> None:
    collection = service.fresh(SURVEY, repeats="once")
    open_form(page, service, collection)
    fill(page)
    show(page)
    page.context.set_offline(True)
    assert "Nothing was sent." in send(page)
    assert used_lifetime(page, collection.name) == "0"
    page.context.set_offline(False)


def test_forgetting_removes_answers_but_not_the_used_loss(page: Page, service: FormService) -> None:
    collection = service.fresh(SURVEY)
    open_form(page, service, collection)
    fill(page)
    show(page)
    assert RECEIVED in send(page)
    before = used_lifetime(page, collection.name)
    page.get_by_role("button", name="Delete my answers").click()
    page.get_by_text("Your answers and drafts were deleted from this browser.").wait_for()
    assert set(stored_memory(page)) == {f"holder/{collection.name}"}
    assert page.locator("#preview").is_hidden()
    page.reload()
    wait_for_loss(page, f"Your answers to {collection.name} have used")
    assert used_lifetime(page, collection.name) == before != "0"
    fill(page)
    show(page)  # a forgotten memory can be begun again; the page does not take it for a lost one


def test_report_forgotten_in_another_tab_is_not_sent(page: Page, service: FormService) -> None:
    requests = watch_requests(page)
    open_form(page, service, service.fresh(SURVEY))
    fill(page)
    show(page)
    other = page.context.new_page()
    other.goto(page.url)
    other.get_by_role("button", name="Delete my answers").click()
    other.get_by_text("Your answers and drafts were deleted").wait_for()
    page.locator("#preview button").click()
    page.locator("#problem .what").wait_for()
    assert posted_bodies(requests) == []


@pytest.mark.long  # test_preview_equals_the_sent_report_and_the_python_description is cheaper
def test_two_layers_send_the_report_that_was_shown(page: Page, service: FormService) -> None:
    requests = watch_requests(page)
    town = Question("town", TOWNS, "randomized-response", epsilon=4, each=1)
    open_form(page, service, Collection("layers", {"town": town}, repeats="two-layers"))
    page.get_by_label("Larisa").check()
    reports = []
    for _ in range(5):
        reports.append(show(page))
        send(page)
        assert posted_bodies(requests)[-1] == json.loads(reports[-1])
        page.get_by_label("Larisa").dispatch_event("input")
    assert len(set(reports)) == 5


# What the service answers


def later_version(page: Page, service: FormService, collection: Collection) -> None:
    service.form(replace(collection, version=2))


def other_questions(page: Page, service: FormService, collection: Collection) -> None:
    """The page is changed on its way: it asks another epsilon, under a fingerprint that fits."""
    income = Question("income", INCOME, "square-wave", epsilon=3)
    changed = replace(collection, questions={**collection.questions, "income": income})
    description = json.dumps(changed.public_dict())
    pattern = re.compile(r'(id="description">).*?(</script>)', re.DOTALL)

    def answer(route: Route) -> None:
        shipped = route.fetch()
        route.fulfill(response=shipped, body=pattern.sub(lambda part: part[1] + description + part[2], shipped.text()))

    page.route("**/forms/**", answer)
    page.reload()


def answer_out_of_range(page: Page, service: FormService, collection: Collection) -> None:
    Fault("form_sending.js", "JSON.stringify({ reports: [report] })", OUTSIDE).plant(page)
    page.reload()


def closing(page: Page, service: FormService, collection: Collection) -> None:
    service.survey(collection).close()


OUTSIDE = "JSON.stringify({ reports: [{ ...report, answers: { ...report.answers, income: 1000000 } }] })"
REFUSALS: dict[str, tuple[Callable[[Page, FormService, Collection], None], str]] = {
    "another version": (later_version, "it answers another version; this is version 2"),
    "another fingerprint": (other_questions, "its fingerprint is not that of this collection"),
    "an answer out of range": (answer_out_of_range, 'the answer to "income" is outside of what square-wave can report'),
    "a closed collection": (closing, "is closed"),
}
LATE = {later_version, closing}  # happen after the form was filled in


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", REFUSALS)
def test_refused_report_is_not_shown_as_received(case: str, page: Page, service: FormService) -> None:
    change, reason = REFUSALS[case]
    collection = service.fresh(SURVEY)
    open_form(page, service, collection)
    if change not in LATE:
        change(page, service, collection)
        page.get_by_role("button", name=SHOW).wait_for()
    fill(page)
    show(page)
    if change in LATE:
        change(page, service, collection)
    outcome = send(page)
    assert "Your report was refused" in outcome
    assert reason in outcome
    assert page.locator("#status .good").count() == 0
    assert page.get_by_text("This report was received.").count() == 0


@pytest.mark.long  # test_lost_response_locks_and_is_retried_with_the_same_bytes keeps the claim
def test_report_sent_twice_counts_once(page: Page, service: FormService) -> None:
    open_form(page, service, service.fresh(SURVEY))
    fill(page)
    shown = show(page)
    requests = watch_requests(page)
    assert RECEIVED in send(page)
    page.locator("#preview button").click()
    page.get_by_text(re.compile("counts only once")).wait_for()
    assert posted_bodies(requests) == [json.loads(shown)] * 2
    page.reload()
    page.get_by_role("button", name=SHOW).wait_for()
    fill(page)
    assert show(page) == shown


VERDICT = {"place": 0, "verdict": "accepted", "reason": None}
MALFORMED = {
    "nothing": "",
    "no JSON": "<html>Welcome to the hotel network</html>",
    "cut short": '{"batch": "", "accepted": 1, "verdicts": [{"place": 0, "verd',
    "null": "null",
    "a list": "[]",
    "a text": '"ok"',
    "no verdicts": json.dumps({"batch": "", "accepted": 1, "again": False, "reasons": []}),
    "verdicts of nothing": json.dumps({"verdicts": []}),
    "verdicts of two": json.dumps({"verdicts": [VERDICT, {**VERDICT, "place": 1}]}),
    "a verdict for another place": json.dumps({"verdicts": [{**VERDICT, "place": 1}]}),
    "a verdict as text": json.dumps({"verdicts": ["accepted"]}),
    "a verdict nobody knows": json.dumps({"verdicts": [{**VERDICT, "verdict": "taken"}]}),
    "verdicts under another name": json.dumps({"outcomes": [VERDICT]}),
    "reasons as a stand-in once sent them": json.dumps({"accepted": 1, "refused": {}, "reasons": [None]}),
}


@pytest.mark.parametrize("statuses", [(200,), pytest.param((201, 204), marks=pytest.mark.long)], ids=str)
def test_only_an_accepted_report_is_shown_as_received(form: Page, statuses: tuple[int, ...]) -> None:
    """Whatever else comes with a status of success is not confirmed, and the same report can be sent again."""
    fill(form)
    shown = show(form)
    for status in statuses:
        for body in MALFORMED.values():
            form.route("**/reports", lambda route: route.fulfill(status=status, body=body))  # noqa: B023
            outcome = send(form)
            assert "It is not certain that your report was received." in outcome, (status, body)
            assert "Press Send again" in outcome
            form.unroute("**/reports")
            form.evaluate("document.querySelector('#status').replaceChildren()")
    requests = watch_requests(form)
    assert RECEIVED in send(form)
    assert posted_bodies(requests) == [json.loads(shown)]


@pytest.mark.long  # test_unreachable_service_can_be_retried is cheaper
def test_form_times_out_on_a_silent_service_and_can_retry(page: Page, service: FormService) -> None:
    page.clock.install()
    open_form(page, service, service.fresh(SURVEY))
    fill(page)
    shown = show(page)
    page.route("**/reports", lambda route: None)
    with page.expect_request("**/reports"):  # it is on its way, and the page waits for the answer
        page.locator("#preview button").click()
    page.clock.fast_forward(60_000)
    page.get_by_text("The holder's service did not respond in time.").wait_for()
    assert page.get_by_text("It is not certain that your report was received.").is_visible()
    page.unroute("**/reports")
    requests = watch_requests(page)
    assert RECEIVED in send(page)
    assert posted_bodies(requests) == [json.loads(shown)]


ERRORS = {
    "an error of the service": (503, {"code": "busy", "detail": "The ledger is locked.", "do": "Try later."}),
    "an error of something between": (502, "<html>Bad gateway</html>"),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", ERRORS)
def test_error_is_not_shown_as_received(case: str, form: Page) -> None:
    status, body = ERRORS[case]
    fill(form)
    show(form)
    text = body if isinstance(body, str) else json.dumps(body)
    form.route("**/reports", lambda route: route.fulfill(status=status, body=text, content_type="application/json"))
    outcome = send(form).split("\n\n")
    form.unroute("**/reports")
    assert form.locator("#status .good").count() == 0
    if status == 503:
        assert outcome == ["The ledger is locked.", "Try later."]
    else:
        assert "(502)" in outcome[0]


def test_link_with_another_fingerprint_shows_no_form(page: Page, service: FormService) -> None:
    page.goto(f"{service.form(SURVEY)}#fingerprint={'0' * 64}")
    page.locator("#problem").get_by_text("does not have the fingerprint that you were given").wait_for()
    assert page.locator("input").count() == 0
    page.goto("about:blank")
    page.goto(f"{service.form(SURVEY)}#fingerprint={SURVEY.fingerprint}")
    page.get_by_role("button", name=SHOW).wait_for()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("by", ["policy", "ledger"])
def test_closed_collection_shows_no_questions(by: str, page: Page, service: FormService) -> None:
    collection = service.fresh(SURVEY)
    service.form(collection)
    service.survey(collection)  # it is opened first
    if by == "ledger":
        service.survey(collection).close()
    page.goto(service.form(replace(collection, closed=by == "policy")))
    page.get_by_text("This collection is closed").wait_for()
    assert page.locator("input, select, button").count() == 0


@pytest.mark.long
def test_answers_changed_during_randomization_are_not_sent(form: Page) -> None:
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


def test_names_that_look_like_markup_are_shown_as_text(page: Page, service: FormService) -> None:
    words = (
        "<img src=x onerror=document.title='hit'>",
        "</script><script>document.title='hit'</script>",
        "{{ 7 * 7 }}",
        "'\"&amp;",
    )
    hostile = Collection("hostile", {"items": Question(words[0], Category(words), "subset", epsilon=1)})
    open_form(page, service, hostile)
    expect(page.locator(".choice")).to_have_text(list(words))
    page.get_by_label(words[1]).check()
    show(page)
    assert page.title() == "hostile: randomized on your device"
    assert page.locator("img").count() == 0


def test_every_field_type_encodes_the_entered_value(page: Page, service: FormService) -> None:
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
    open_form(page, service, Collection("kinds", questions))
    page.get_by_label("month").select_option("month 7")
    page.get_by_label("False").check()
    page.get_by_label("age").fill("64.5")
    page.get_by_text("Only the range of your number counts: 0 to 17, 18 to 64, 65 to 99.").wait_for()
    page.get_by_label("search in herbs").fill("HERB 2")
    page.get_by_label("herb 23").check()
    expect(page.locator("[data-question=herbs] .choice:visible")).to_have_count(11)
    page.get_by_label("search in herbs").fill("")
    page.get_by_label("herb 5", exact=True).check()
    page.get_by_text("2 of 30 items selected.").wait_for()
    [report] = json.loads(show(page))["reports"]
    assert report["answers"] == {"month": 7, "smokes": 1, "age": 2, "debts": 0, "herbs": [5, 23]}
    page.get_by_label("month").select_option("no answer")
    assert json.loads(show(page))["reports"][0]["answers"]["month"] == 12


def test_invalid_answer_is_reported_at_its_field(form: Page) -> None:
    form.get_by_label("income", exact=True).fill("forty thousand")
    form.get_by_role("button", name=SHOW).click()
    expect(form.locator(".problem:visible")).to_have_text(['"income" needs a number.', "Choose an answer."])
    expect(form.locator("#question-income")).to_be_focused()
    assert form.evaluate("localStorage.length") == 0


def test_form_works_by_keyboard_alone(form: Page) -> None:
    requests = watch_requests(form)
    form.get_by_label("income", exact=True).focus()
    form.keyboard.type("48813")
    tab_to(form, "question-town-0")
    form.keyboard.press("ArrowDown")
    tab_to(form, "question-bought-0")
    form.keyboard.press("Space")
    form.keyboard.press("Enter")
    form.get_by_role("heading", name="Your report").wait_for()
    for _ in range(2):
        form.keyboard.press("Tab")
    form.keyboard.press("Enter")
    form.get_by_text(RECEIVED).wait_for()
    assert len(posted_bodies(requests)) == 1


def tab_to(page: Page, name: str) -> None:
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == name:
            return
    pytest.fail(f"{name} cannot be reached by the tabulator")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_form_fits_a_phone_and_both_themes(scheme: Any, browser: Browser, service: FormService) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    page = context.new_page()
    open_form(page, service, SURVEY)
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


def contrast(color: str, other: str) -> float:
    """Of two colors, as WCAG 2 defines it."""
    high, low = sorted((luminance(color), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(color: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_form_without_scripts_shows_no_questions(browser: Browser, service: FormService) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(service.form(SURVEY))
    assert page.locator("noscript p").is_visible()
    assert page.locator("input, select, button").count() == 0
    context.close()
