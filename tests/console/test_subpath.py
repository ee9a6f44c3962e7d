"""The service below a path of another host's URL, behind a proxy with a certificate that removes the path or does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin

import httpx
import pytest
from playwright.sync_api import expect
from support.browser import errors_of
from support.console_service import Console, console_in
from support.poll_service import CANTEEN, closing_time
from support.proxy import Proxy, proxy_in

import tidegate as tg
import tidegate.web
from tidegate.service.access.permissions import ANALYST, OWNER
from tidegate.web.render import LINKS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BASE = "/privacy"
FOLLOWED = {"href", "src", "action", "formaction"}
STATIC = Path(tidegate.web.__file__).parent / "static"
REQUESTS = re.compile(r"\b(fetch|EventSource|location\.(assign|replace)|request\.open)\(|location\.href =")
LEAST_PAGES = 15  # that a crawl must reach


@pytest.fixture(scope="module", params=[True, False], ids=["the proxy strips the path", "the proxy keeps the path"])
def proxied(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Console, Proxy]]:
    folder = tmp_path_factory.mktemp("proxied")
    with proxy_in(folder, BASE, strips=request.param) as proxy, console_in(folder, public_url=proxy.url) as console:
        proxy.upstream = console.upstream
        with client_of(console) as client:
            for name, access in (("canteen", "invited"), ("street", "open")):
                body = {**CANTEEN, "poll": name, "access": access, "closes": closing_time()}
                assert client.post("/v1/data/people/polls", json=body).status_code == 201
        yield console, proxy


def client_of(console: Console, role: str = OWNER) -> httpx.Client:
    headers = {"Authorization": f"Bearer {console.tokens[role]}", "Accept": "text/html"}
    return httpx.Client(base_url=console.address, headers=headers, verify=False)


class Links(HTMLParser):
    """The addresses of a page that a browser follows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in FOLLOWED]


@pytest.mark.long  # the browser follows the most important links in every run
def test_every_link_of_every_page_stays_below_the_path(proxied: tuple[Console, Proxy]) -> None:
    console, proxy = proxied
    waiting, pages, outside = [f"{console.address}/console"], set[str](), []
    with client_of(console) as client:
        while waiting:
            address = waiting.pop()
            response = client.get(address)
            if response.is_redirect:
                waiting.append(urljoin(address, response.headers["location"]))
            assert response.status_code in (200, 303), address
            if not response.headers.get("content-type", "").startswith("text/html"):
                continue
            pages.add(address)
            for link in Links(response.text).addresses:
                target = urldefrag(urljoin(address, link))[0]
                if target != console.address and not target.startswith(f"{console.address}/"):
                    outside.append((address, link))
                elif target.partition("?")[0] not in {page.partition("?")[0] for page in (*pages, *waiting)}:
                    waiting.append(target)
    assert outside == []
    assert proxy.outside == []
    assert len(pages) >= LEAST_PAGES, sorted(pages)


def test_links_of_a_page_get_the_path_and_its_texts_do_not() -> None:
    page = """<meta http-equiv="refresh" content="0; url=/console"><a href="/a">href=&#34;/b</a><img src="//c/d"><p title="/e">"""
    assert LINKS.sub(rf"\g<1>{BASE}/", page) == page.replace("url=/", "url=/privacy/").replace(
        'href="/', 'href="/privacy/'
    )


@pytest.mark.parametrize("script", sorted(STATIC.glob("*.js")), ids=lambda script: script.name)
def test_script_requests_and_opens_addresses_below_the_path_only(script: Path) -> None:
    """One function adds the path. Here a script that does not call it is found without a page that runs it."""
    lines = [line for line in script.read_text("utf-8").splitlines() if REQUESTS.search(line)]
    assert [line for line in lines if not re.search(r"\b(url|pageOf)\(|location\.pathname", line)] == []
    assert not re.search(r'(from|import\() ?"/', script.read_text("utf-8")), "modules are imported by relative paths"


def test_addresses_in_headers_and_the_description_are_below_the_path(proxied: tuple[Console, Proxy]) -> None:
    console, _ = proxied
    with client_of(console) as client:
        assert client.get("/").headers["location"] == f"{BASE}/console"
        old = client.get("/data/people?x=1")
        assert old.headers["location"] == f"{BASE}/v1/data/people?x=1"
        assert old.headers["link"].startswith(f"<{BASE}/v1/data/people")
        assert client.get("/openapi.json").json()["servers"] == [{"url": console.address}]
        poll = client.get("/v1/data/people/polls/canteen").json()
        assert poll["form"] == f"{console.address}/forms/people/canteen"
        visitor = client.get("/console/ledger", headers={"Authorization": ""}, follow_redirects=False)
        assert "default-src 'none'" in visitor.headers["content-security-policy"]
        assert f"script-src {console.address}/;" in visitor.headers["content-security-policy"]
        assert "max-age" in visitor.headers["strict-transport-security"]
    with httpx.Client(base_url=console.address, verify=False, headers={"Accept": "text/html"}) as visitor_client:
        refused = visitor_client.get("/console/ledger")
        assert refused.headers["location"] == f"{BASE}/console/sign-in?next=/console/ledger"


def test_cookie_is_sent_to_this_path_only(proxied: tuple[Console, Proxy]) -> None:
    console, _ = proxied
    with httpx.Client(base_url=console.address, verify=False) as client:
        signed = client.post("/v1/sign-in", json={"token": console.tokens[OWNER]})
        cookie = signed.headers["set-cookie"]
        assert cookie.startswith("__Secure-tidegate=")
        assert f"Path={BASE};" in cookie
        assert "Secure" in cookie
        out = client.post("/v1/sign-out", headers={"X-CSRF-Token": signed.json()["csrf"]})
        assert f"Path={BASE};" in out.headers["set-cookie"], "the same path, or the cookie stays"


@pytest.mark.long_for("keeps the path")
def test_browser_signs_in_queries_downloads_and_answers_a_poll(
    proxied: tuple[Console, Proxy], browser: Browser
) -> None:
    console, proxy = proxied
    context = browser.new_context(ignore_https_errors=True, locale="en-US")
    tab = context.new_page()
    wrong, requested, failed = errors_of(tab), list[str](), list[str]()
    tab.on("request", lambda request: requested.append(request.url))
    tab.on("response", lambda response: failed.append(response.url) if response.status >= 400 else None)

    tab.goto(f"{console.address}/console/data/people/ask")
    tab.wait_for_url(f"{console.address}/console/sign-in?next=/console/data/people/ask")
    tab.get_by_label("Token").fill(console.tokens[OWNER])
    tab.get_by_role("button", name="Sign in").click()
    tab.wait_for_url(f"{console.address}/console/data/people/ask*")
    tab.locator("#preview:not(.stale)").wait_for()
    tab.get_by_role("button", name="Run query", exact=True).click()
    if tab.locator("#confirm").is_visible():
        tab.get_by_role("button", name="Spend", exact=True).click()
    expect(tab.get_by_role("status", name="Answer")).to_contain_text("95% interval")
    with tab.expect_download() as download:
        tab.get_by_role("link", name="Download all as a notebook").click()
    assert download.value.url.startswith(f"{console.address}/v1/data/people/notebook")

    tab.goto(f"{console.address}/forms/people/street")
    tab.locator("#questions").get_by_label("Yes", exact=True).first.check()
    tab.get_by_role("button", name="Send", exact=True).click()
    expect(tab.locator("#sent")).to_be_visible()

    tab.goto(f"{console.address}/console/access")
    tab.get_by_role("button", name="Sign out").click()
    tab.wait_for_url(f"{console.address}/console/sign-in")
    tab.goto(console.sign_in_link(ANALYST))
    tab.wait_for_url(f"{console.address}/console")
    assert [address for address in requested if not address.startswith((f"{console.address}/", "blob:"))] == []
    assert (wrong, failed, proxy.outside) == ([], [], [])
    context.close()


def test_python_client_connects_below_the_path(proxied: tuple[Console, Proxy]) -> None:
    console, _ = proxied
    remote = tg.connect(console.upstream + BASE, token=console.tokens[OWNER], dataset="people")
    assert remote.describe()
