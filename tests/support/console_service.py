"""The whole service with its console on loopback, and a token for each role."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import support.declared  # noqa: F401  compares every response with its model
import uvicorn
from console.samples import write_average_sample, write_samples
from playwright.sync_api import Page
from support.browser import Visit

from tidegate.ledger.tokens import Tokens
from tidegate.service.access.permissions import ANALYST, OWNER, RESPONDENT
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app
from tidegate.service.datasets import ServedDatasets
from tidegate.service.settings import Settings

OPEN: dict[str, Any] = {
    "caller_rate": 1e6,
    "caller_burst": 1e6,
    "address_rate": 1e6,
    "address_burst": 1e6,
    "sign_in_rate": 1e6,
    "sign_in_burst": 1e6,
}
RECORD = "s007"


@dataclass
class Console:
    """A running service. `tokens` are by role; `folder` has policies, data and ledger; `visits` are of those who signed in."""

    address: str
    folder: Path
    app: Any
    datasets: ServedDatasets
    tokens: dict[str, str]
    visits: dict[str, Visit] = field(default_factory=dict)
    upstream: str = ""  # the service itself, behind a proxy

    def sign_in_link(self, role: str) -> str:
        return f"{self.address}/console/sign-in#{self.tokens[role]}"


@contextmanager
def console_in(folder: Path, *, average: bool = False, public_url: str = "") -> Iterator[Console]:
    """Write the samples, serve them, make the tokens. With `average`, also serve a data set under the average guarantee.

    The analyst is then one of that data set. With `public_url`, the address is the one of a proxy that the caller runs.
    """
    policies = [*write_samples(folder), *(write_average_sample(folder) if average else [])]
    settings = Settings(tuple(policies), str(folder / "all.ledger"), public_url=public_url, **OPEN)
    datasets = ServedDatasets.from_files(settings.policies, ledger=settings.ledger)
    token_store = Tokens(datasets.ledger.store)
    theirs = {"dataset": "incomes", "share": "0.05"} if average else {"dataset": "people", "share": "1.5"}
    tokens = {
        OWNER: make_token(token_store, role=OWNER, name="olga")[0],
        ANALYST: make_token(token_store, role=ANALYST, name="ana", **theirs)[0],
        RESPONDENT: make_token(token_store, role=RESPONDENT, name="rosa", dataset="soldiers", record=RECORD)[0],
    }
    app = create_app(settings, datasets)
    with on_loopback(app) as address:
        console = Console(public_url or address, folder, app, datasets, tokens, upstream=address)
        yield console
        for visit in console.visits.values():
            visit.context.close()


@contextmanager
def on_loopback(app: Any, *, port: int = 0) -> Iterator[str]:
    """An application behind a real socket."""
    server = uvicorn.Server(
        uvicorn.Config(app, port=port, log_config=None, access_log=False, timeout_graceful_shutdown=2)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the service did not start"
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(20)


def wait_until(tab: Page, expression: str, *, seconds: float = 30) -> None:
    """Wait until an expression is true in a page, which forbids the waiting functions of the browser driver to evaluate it."""
    end = time.monotonic() + seconds
    while not tab.evaluate(expression):
        assert time.monotonic() < end, f"not true within {seconds:g} s: {expression}"
        tab.wait_for_timeout(50)
