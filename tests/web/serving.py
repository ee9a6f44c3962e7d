"""A small site on loopback: the modules as they are shipped, with faults planted in them, and a holder that takes reports."""

from __future__ import annotations

import json
import mimetypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jinja2

import tidegate
from tidegate.collect.mechanisms import operator_for
from tidegate.collect.report import refusal
from tidegate.policy import Collection
from tidegate.service.doorway import CONTENT as POLICY

WEB = Path(tidegate.__file__).parent / "web"
OWN = Path(__file__).parent


@dataclass(frozen=True)
class Fault:
    """A change of one line of a module that a test must notice."""

    file: str
    right: str
    wrong: str


@dataclass
class Site:
    """What is served. `received` has every body that came, `faults` the modules under /fault/NAME/."""

    address: str = ""
    collections: dict[str, Collection] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    received: list[dict[str, Any]] = field(default_factory=list)

    client: str = "/client"

    def form(self, collection: Collection, fault: Fault | None = None) -> str:
        """The address of a collection's form, with the modules as they are or with a fault."""
        self.collections[collection.name] = collection
        self.client = "/client"
        if fault is not None:
            self.faults["form"], self.client = fault, "/fault/form"
        return f"{self.address}/forms/{collection.name}"

    def page(self, name: str) -> bytes:
        loader = jinja2.Environment(loader=jinja2.FileSystemLoader(WEB / "templates"), autoescape=True)
        collection = self.collections[name]
        described = {**collection.public_dict(), "closed": collection.closed}
        view = {"description": described, "send_to": f"/collections/{name}/reports", "client": self.client}
        return loader.get_template("form.html").render(view).encode()

    def file(self, path: str) -> tuple[bytes, str] | None:
        """What lies under an address, and its kind."""
        top, _, rest = path.lstrip("/").partition("/")
        if top == "blank":
            return b"<!doctype html><title>blank</title>", "text/html"
        if top == "forms" and rest in self.collections:
            return self.page(rest), "text/html; charset=utf-8"
        if top == "fault":
            name, _, rest = rest.partition("/")  # the name is a part of the address: a browser keeps modules by it
            return self.faulty(self.faults[name], rest), "text/javascript"
        folder = {"client": WEB / "client", "static": WEB / "static", "tests": OWN}.get(top)
        found = folder / rest if folder else None
        if found is None or not found.is_file():
            return None
        return found.read_bytes(), mimetypes.guess_type(found.name)[0] or "text/plain"

    @staticmethod
    def faulty(fault: Fault, rest: str) -> bytes:
        text = (WEB / "client" / rest).read_text("utf-8")
        if rest == fault.file:
            assert text.count(fault.right) == 1, f"the fault in {rest} is not where it was"
            text = text.replace(fault.right, fault.wrong)
        return text.encode()

    def take(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """What a holder answers to reports."""
        self.received.append(body)
        collection = self.collections[path.split("/")[2]]
        operators = {name: operator_for(question) for name, question in collection.questions.items()}
        reasons = [refusal(report, collection, operators) for report in body["reports"]]
        refused = {reason: reasons.count(reason) for reason in reasons if reason is not None}
        return {"accepted": reasons.count(None), "refused": refused, "reasons": reasons}


@contextmanager
def served() -> Iterator[Site]:
    """The site, for as long as it is needed."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = site.file(self.path.partition("?")[0])
            self.answer(200 if found else 404, *(found or (b"", "text/plain")))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer(200, json.dumps(site.take(self.path, body)).encode(), "application/json")

        def answer(self, status: int, content: bytes, kind: str) -> None:
            self.send_response(status)
            headers = {"Content-Type": kind, "Content-Length": str(len(content)), "Content-Security-Policy": POLICY}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

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
