"""What browser tests load: the real service with its forms, and a small site for the modules by themselves."""

from __future__ import annotations

import itertools
import mimetypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import support.declared  # noqa: F401  compares every response with its model
from support.console_service import OPEN, on_loopback

import tidegate
from tidegate.collect.invitations import create_key
from tidegate.collect.survey import Survey
from tidegate.policy import Collection, Dataset, Policy
from tidegate.policy.toml import write_policy
from tidegate.service.app import create_app
from tidegate.service.datasets import ServedDatasets
from tidegate.service.middleware import CONTENT as POLICY
from tidegate.service.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

CLIENT = Path(tidegate.__file__).parent / "web" / "client"
SCRIPTS = Path(__file__).parent.parent / "web"  # draws.js and seeded.js, which tests run in the page


@dataclass(frozen=True)
class Fault:
    """A change of one line of a module that a test must notice."""

    file: str
    right: str
    wrong: str
    count: int = 1

    def apply_to(self, text: str) -> str:
        assert text.count(self.right) == self.count, f"the fault in {self.file} is not where it was"
        return text.replace(self.right, self.wrong)

    def plant(self, page: Page) -> None:
        """Let the page load the module with the fault; everything else comes from the service as it is."""

        def answer(route: Route) -> None:
            shipped = route.fetch()
            route.fulfill(response=shipped, body=self.apply_to(shipped.text()))

        page.route(f"**/client/{self.file}", answer)


@dataclass
class FormService:
    """The real service on loopback, with one data set in a policy file to which collections are added."""

    address: str
    file: Path
    datasets: ServedDatasets
    collections: dict[str, Collection] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def form(self, collection: Collection) -> str:
        """Put a collection into the policy, as its owner would; the address of its form."""
        self.collections[collection.name] = collection
        self.file.write_text(policy_text(self.collections), "utf-8")
        return f"{self.address}/forms/asked/{collection.name}"

    def fresh(self, collection: Collection, **changes: Any) -> Collection:
        """The same collection under a name that was never used here."""
        return replace(collection, name=f"{collection.name}{next(self.numbers)}", **changes)

    def invited(self, collection: Collection) -> Collection:
        """The same poll under a new name, for invited people: with a key in the service's ledger."""
        fresh = self.fresh(collection)
        assert fresh.poll is not None
        key = create_key(self.datasets.ledger, dataset="asked", poll=fresh.name)
        return replace(fresh, poll=replace(fresh.poll, access="invited", invitation_key=key))

    def survey(self, collection: Collection) -> Survey:
        return self.datasets["asked"].survey(collection.name)


def policy_text(collections: dict[str, Collection]) -> str:
    plain = [collection for collection in collections.values() if collection.poll is None]
    questions = [question for collection in plain for question in collection.questions.values()]
    attributes = {question.attribute: question.universe for question in questions}
    return write_policy(Policy(Dataset("asked"), attributes, collections=collections))


@contextmanager
def form_service(folder: Path, first: Collection) -> Iterator[FormService]:
    """The service, for as long as it is needed."""
    file = folder / "asked.toml"
    file.write_text(policy_text({first.name: first}), "utf-8")
    settings = Settings((str(file),), str(folder / "asked.ledger"), **OPEN)
    datasets = ServedDatasets.from_files(settings.policies, ledger=settings.ledger)
    with on_loopback(create_app(settings, datasets)) as address:
        yield FormService(address, file, datasets, {first.name: first})


@dataclass
class Site:
    """The modules as they are shipped under /client/, and with planted faults under /fault/NAME/."""

    address: str = ""
    faults: dict[str, Fault] = field(default_factory=dict)

    def file(self, path: str) -> tuple[bytes, str] | None:
        """The content at a path, and its type."""
        top, _, rest = path.lstrip("/").partition("/")
        if top == "blank":
            return b"<!doctype html><title>blank</title>", "text/html"
        if top == "fault":
            name, _, rest = rest.partition("/")  # the name is a part of the address: a browser keeps modules by it
            text, fault = (CLIENT / rest).read_text("utf-8"), self.faults[name]
            return (fault.apply_to(text) if rest == fault.file else text).encode(), "text/javascript"
        folder = {"client": CLIENT, "tests": SCRIPTS}.get(top)
        if folder is None or not (folder / rest).is_file():
            return None
        return (folder / rest).read_bytes(), mimetypes.guess_type(rest)[0] or "text/plain"


@contextmanager
def serve_site() -> Iterator[Site]:
    """The site, for as long as it is needed. It answers no report: only the service does."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = site.file(self.path.partition("?")[0])
            body, kind = content or (b"", "text/plain")
            self.send_response(200 if content else 404)
            headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Content-Security-Policy": POLICY}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *about: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    site.address = f"http://127.0.0.1:{server.server_port}"
    yield site
    server.shutdown()
    server.server_close()
    thread.join()
