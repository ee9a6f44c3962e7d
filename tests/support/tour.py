"""A tour of every page of the console: what each loads, its picture for the docs, and a table of both.

    PYTHONPATH=src:papers/src:tests python -m support.tour

The list of pages is the table of permissions, so a new page is part of the tour by itself.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
from support.browser import launch_browser
from support.console_service import OPEN, Console, on_loopback
from support.poll_service import canteen

from tidegate.service.access.permissions import ANALYST, OWNER, PUBLIC, RESPONDENT, RULES, Rule

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

LARGEST = 300_000  # bytes of a page with everything that it loads, uncompressed
SIZES = {"": (1440, 1100), "-phone": (390, 844)}
ON_PHONES = ("overview", "ask", "record", "form", "poll-form", "desks", "polls-results")
COLORS = 48  # of a picture
PATIENCE = 90_000  # milliseconds: the first opening of a release desk compiles
ENDED = ("done", "failed", "cancelled")
STEPS = ("source", "people", "columns", "promise", "simulation", "publication")
MESSY = (
    "\ufeffPatient ID;Age (years);Wohnort;Betrag;Aufnahme\n"
    + "".join(
        f"p{n};{20 + n % 60};{('Köln', 'köln ', 'Bonn', '')[n % 4]};1.{n % 900:03d},50;{1 + n % 28:02d}.11.2024\n"
        for n in range(400)
    )
).encode()
DOCS = Path(__file__).parents[2] / "docs"


@dataclass(frozen=True)
class Stop:
    """A page: its name in file names, its address, and its rule."""

    name: str
    path: str
    rule: Rule
    shows: str = ""

    @property
    def role(self) -> str:
        """The role whose view is shown: without a sign-in where none is needed, or else the one that sees most."""
        return next(role for role in (PUBLIC, OWNER, ANALYST, RESPONDENT) if role in self.rule.roles)


@dataclass
class Load:
    """What a page loaded: requests, uncompressed bytes, addresses outside of the service, and console errors."""

    status: int
    requests: int
    size: int
    outside: list[str]
    errors: list[str]


def is_page(rule: Rule) -> bool:
    """Return whether a rule is that of a page, not of an action or a file."""
    is_redirect = "/oidc" in rule.path  # to the provider of an organization and back
    return rule.method == "GET" and rule.path.startswith(("/console", "/forms")) and not is_redirect


def stops(slots: dict[str, str]) -> list[Stop]:
    """Return every page with its slots filled in, and the pages that have several kinds."""
    result = []
    for rule in filter(is_page, RULES):
        result += [_stop(rule, slots, step) for step in (STEPS if "{step}" in rule.path else ("",))]
    rules = {rule.path: rule for rule in RULES if is_page(rule)}
    poll_form, desk = "/forms/{name}/{collection}", "/console/data/{name}/desks/{promise}"
    result.append(
        Stop("poll-form", f"/forms/shop/{slots['poll']}", rules[poll_form], "The form of a poll, in its own words")
    )
    if "hiding" in slots:
        path = f"/console/data/{slots['hiding']}/desks/headquarters"
        result.append(Stop("hiding-desk", path, rules[desk], "Release desk of a hiding promise: selection and quotas"))
    return result


def _stop(rule: Rule, slots: dict[str, str], step: str) -> Stop:
    path, is_poll = rule.path, "/polls" in rule.path
    owner = "soldiers" if "{promise}" in path else "shop" if "{collection}" in path or is_poll else "people"
    slots = {**slots, "job": slots["audit"]} if "/audits/" in path else slots
    values = {**slots, "name": owner, "step": step, "collection": slots["poll"] if is_poll else "shoppers"}
    filled = re.sub(r"{(\w+)}", lambda slot: values[slot[1]], path)
    parts = path.removeprefix("/console").removeprefix("/data/{name}").replace("/{collection}/", "/").split("/")
    name = "-".join(part.strip("{}") for part in parts if part) or "overview"
    name = "form" if path.startswith("/forms") else name.replace("desks-promise", "desks")
    return Stop(name.replace("drafts-draft-step", f"draft-{step}"), filled, rule)


def furnish(console: Console) -> dict[str, str]:
    """Add a poll, a draft, jobs and a dashboard, so that every page has something to show; return their names."""

    call = partial(_call, console)
    call("POST", "/v1/data/shop/polls", json=canteen(access="open", clients=400))
    draft = call("POST", "/v1/drafts", json={})["id"]
    query = {"name": "visits.csv", "comma": "true", "trim": "true"}
    call("PUT", f"/v1/drafts/{draft}/file", content=MESSY, params=query)
    for step, fields in DRAFT.items():
        call("POST", f"/v1/drafts/{draft}/steps/{step}", json={"fields": fields})
    request = {"sql": "SELECT town, COUNT(*) FROM people GROUP BY town", "epsilon": "0.1"}
    offer = call("POST", "/v1/data/people/quotes", json=request)
    call("POST", "/v1/data/people/answers", json={"quote": offer["quote"]})
    saved = call("POST", "/v1/data/people/questions", json={"name": "towns", "request": request, "shared": True})["id"]
    board = call("POST", "/v1/data/people/dashboards", json={"name": "Towns", "questions": [saved], "shared": True})[
        "id"
    ]
    orders = {"syntheses": {"epsilon": "0.3"}, "audits": {"seconds": 5, "verbs": ["ledger"]}}
    jobs = {kind: call("POST", f"/v1/data/people/{kind}", json=order)["id"] for kind, order in orders.items()}
    until = time.monotonic() + PATIENCE / 1000
    while any(call("GET", f"/v1/data/people/{kind}/{job}")["state"] not in ENDED for kind, job in jobs.items()):
        assert time.monotonic() < until, "a job does not end"
        time.sleep(0.2)
    return {
        "poll": "canteen",
        "draft": draft,
        "job": jobs["syntheses"],
        "audit": jobs["audits"],
        "promise": "headquarters",
        "item": board,
        "answer": offer["link"].rpartition("/")[2],
    }


def simulate(console: Console) -> None:
    """Simulate the observers of both release desks, so that their cards show a verdict."""
    for name in ("soldiers", "barracks"):
        path = f"/v1/data/{name}/desks/headquarters"
        weights = list(range(1, len(_call(console, "GET", path)["values"]) + 1))  # older people in the sensitive group
        _call(console, "POST", f"{path}/audits", json={"worlds": 20, "records": 400, "profile": weights})


def _call(console: Console, method: str, path: str, **more: Any) -> Any:
    headers = {"Authorization": f"Bearer {console.tokens[OWNER]}"}
    response = httpx.request(method, console.address + path, headers=headers, timeout=PATIENCE / 1000, **more)
    assert response.is_success, (path, response.text)
    return response.json()


DRAFT: dict[str, dict[str, list[str]]] = {
    "people": {"name": ["visits"], "unit": ["row"], "rows": ["400"]},
    "columns": {
        "kind-0": ["key"],
        "kind-1": ["integer"],
        "from-1": ["0"],
        "to-1": ["120"],
        "kind-2": ["category"],
        "values-2": ["Köln\nBonn"],
        "kind-3": ["number"],
        "from-3": ["0"],
        "to-3": ["2000"],
        "step-3": ["0.5"],
        "kind-4": ["date"],
        "from-4": ["2024-11-01"],
        "to-4": ["2024-11-30"],
    },
    "promise": {"promise": ["guess"], "protect": ["Age (years)"], "one_in": ["20"], "guarantee": ["average"]},
    "simulation": {"rows": ["400"]},
}


def context_for(browser: Browser, console: Console, role: str, **options: Any) -> BrowserContext:
    """Return a context without any cache, signed in as a role; axe needs `bypass_csp`."""
    context = browser.new_context(**options)
    if role != PUBLIC:
        assert context.request.post(f"{console.address}/v1/sign-in", data={"token": console.tokens[role]}).ok
    return context


def visit(tab: Page, console: Console, path: str) -> Load:
    """Open a page, wait until it is quiet, and return what it loaded."""
    responses: list[Any] = []
    errors: list[str] = []
    address = console.address + path
    tab.on("response", lambda response: responses.append(response))
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on(
        "console",
        lambda message: (
            errors.append(message.text)
            if message.type == "error" and message.location.get("url") != address  # that the page itself is refused
            else None
        ),
    )
    response = tab.goto(address)
    tab.wait_for_load_state("networkidle", timeout=PATIENCE)
    host = urlsplit(console.address).netloc
    outside = [each.url for each in responses if urlsplit(each.url).netloc not in ("", host)]
    size = sum(len(each.body()) for each in responses if each.status < 300 or each.status >= 400)
    assert response is not None
    return Load(response.status, len(responses), size, outside, errors)


@contextmanager
def demo_console(folder: Path) -> Iterator[Console]:
    """Serve the demo with its history, and a folder for drafts."""
    from tidegate import demo
    from tidegate.demo import history
    from tidegate.demo.soldiers import WAITS
    from tidegate.ledger.tokens import Tokens
    from tidegate.service.access.tokens import make_token
    from tidegate.service.app import create_app
    from tidegate.service.datasets import ServedDatasets
    from tidegate.service.settings import Settings

    demo.write(folder)
    for sentence in history.write(folder):
        print(sentence, flush=True)
    policies = tuple(str(path) for path in demo.policies(folder).values())
    settings = Settings(policies, str(folder / demo.LEDGER), folder=str(folder / "gate"), **OPEN)
    app = create_app(settings)
    datasets: ServedDatasets = app.state.datasets
    store = Tokens(datasets.ledger.store)
    tokens = {
        OWNER: make_token(store, role=OWNER, name="olga")[0],
        ANALYST: make_token(store, role=ANALYST, name="ana", share="0.5")[0],
        RESPONDENT: make_token(store, role=RESPONDENT, name="rosa", dataset="soldiers", record=WAITS)[0],
    }
    with on_loopback(app) as address:
        yield Console(address, folder, app, datasets, tokens)


def main() -> None:
    """Write the pictures and the table of all pages into the docs."""
    os.environ["TIDEGATE_REGISTRY"] = ""
    with tempfile.TemporaryDirectory() as folder, demo_console(Path(folder)) as console, launch_browser() as browser:
        slots = {**furnish(console), "hiding": "barracks"}
        simulate(console)
        tour = stops(slots)
        loads = {stop.name: _picture(browser, console, stop) for stop in tour}
    write_page(tour, loads)


def _picture(browser: Browser, console: Console, stop: Stop) -> Load:
    print(stop.name, stop.path, flush=True)
    load: Load | None = None
    for suffix, (width, height) in SIZES.items():
        if suffix and stop.name not in ON_PHONES:
            continue
        options = {"viewport": {"width": width, "height": height}, "color_scheme": "light"}
        context = context_for(browser, console, stop.role, **options)
        tab = context.new_page()
        tab.set_default_timeout(PATIENCE)
        latest = visit(tab, console, stop.path)
        load = load or latest
        if "/desks/" in stop.path:
            tab.locator("#released tbody tr, #not-open:visible").first.wait_for()
        tab.wait_for_timeout(300)  # transitions end
        _write_picture(tab.screenshot(), DOCS / "pictures" / f"console-{stop.name}{suffix}.png")
        context.close()
    assert load is not None
    return load


def _write_picture(content: bytes, path: Path) -> None:
    """Write a picture with few colors: a tenth of its size."""
    from PIL import Image

    image = Image.open(io.BytesIO(content)).convert("RGB")
    image.quantize(COLORS, dither=Image.Dither.NONE).save(path, optimize=True)


def write_page(tour: list[Stop], loads: dict[str, Load]) -> None:
    """Write the page with the table and the pictures."""
    rows = [
        f"| [{stop.name}](#{stop.name}) | {stop.role} | {loads[stop.name].requests} | {loads[stop.name].size / 1000:.0f} |"
        for stop in tour
    ]
    parts = [
        "# Pages of the console",
        "",
        "Every page of the [console](console.md) with what it loads. `make screenshots` writes this page and its pictures from",
        f"`tidegate demo`. A page loads at most {LARGEST // 1000} kB, uncompressed, with an empty cache, including scripts, styles and",
        "data; nothing comes from another host. A test checks both for every page and role.",
        "",
        "| page | shown as | requests | kB |",
        "|---|---|--:|--:|",
        *rows,
    ]
    for stop in tour:
        text = stop.shows or stop.rule.says
        parts += ["", f"## {stop.name}", "", f"{text}.", "", f"![{text}](pictures/console-{stop.name}.png)"]
        if stop.name in ON_PHONES:
            parts += ["", f"![{text}, on a phone](pictures/console-{stop.name}-phone.png)"]
    (DOCS / "console-pages.md").write_text("\n".join(parts) + "\n", "utf-8")


if __name__ == "__main__":
    main()
