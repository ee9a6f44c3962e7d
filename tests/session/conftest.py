"""One data set with all verbs, opened locally and served on loopback, over one ledger."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
import uvicorn
from support.hashes import quick_hashes  # noqa: F401  a fixture
from support.service import QUIET, SECRET, TOWNS, policy, table

import tidegate as tg
from tidegate.ledger.tokens import Tokens
from tidegate.policy import Collection, Items, Policy, Question
from tidegate.service.access.permissions import OWNER
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app
from tidegate.service.datasets import ServedDatasets
from tidegate.session import Session
from tidegate.session.remote import RemoteSession

NEARLY_ONE = f"0.{'9' * 90}"  # so that a loss of about 200 can be spent
WALK = 60  # ages of walkers, so that a distribution has more values than rows


@dataclass
class Pair:
    """The same data set twice: as a local session and through a service on loopback."""

    local: Session
    remote: RemoteSession
    datasets: ServedDatasets
    url: str
    token: str


def full_policy() -> Policy:
    """The policy of the service's tests with a basket, a long number and a protected attribute as well."""
    base = policy()
    basket = Items(("milk", "bread", "tea", "jam"))
    pay = tg.Integer(0, WALK - 1, missing="lowest")
    questions = {
        **base.collections["shoppers"].questions,
        "pay": Question("pay", pay, "laplace-noise", epsilon=3),
        "basket": Question("basket", basket, "mask", keep=0.9, insert=0.1),
    }
    return replace(
        base,
        attributes={**base.attributes, "pay": pay, "basket": basket},
        identification=tg.Identification(NEARLY_ONE, protect=["town"], worlds="values"),
        collections={"shoppers": Collection("shoppers", questions)},
    )


def full_table() -> pa.Table:
    rows = table()
    pay = [number * 7 % WALK for number in range(len(rows))]
    basket = [["milk", "bread"] if number % 2 else ["tea"] for number in range(len(rows))]
    return rows.append_column("pay", pa.array(pay)).append_column("basket", pa.array(basket))


@contextmanager
def serve(app: Any) -> Iterator[str]:
    """Run an application on loopback; yield its address."""
    config = uvicorn.Config(app, port=0, log_config=None, access_log=False, timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 60
    while not server.started and thread.is_alive() and time.monotonic() < until:
        time.sleep(0.02)
    assert server.started, "the service did not start"
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("session")
    ledger = str(folder / "all.ledger")
    source = str(folder / "people.parquet")
    pa.parquet.write_table(full_table(), source)
    sessions = [Session(full_policy(), table=source, ledger=ledger, folder=folder) for _ in range(2)]
    datasets = ServedDatasets([sessions[1]])
    token, _ = make_token(Tokens(datasets.ledger.store), role=OWNER, name="olga")
    app = create_app(replace(QUIET, run_jobs=True, job_beat=0.05), datasets)
    with serve(app) as url, sessions[0] as local, tg.connect(url, token, dataset="people") as remote:
        survey = local.collect()
        values = [
            {"age": 20 + n % 30, "town": TOWNS[n % 3], "pay": n * n % WALK, "basket": ["milk", "bread"][: 1 + n % 2]}
            for n in range(400)
        ]
        survey.submit([survey.client().randomize(value) for value in values])
        yield Pair(local, remote, datasets, url, token)


@pytest.fixture(params=["local", "remote"])
def session(request: pytest.FixtureRequest, pair: Pair) -> tg.DataSession:
    chosen: tg.DataSession = getattr(pair, request.param)
    return chosen


KEYS = [f"{SECRET}{number:04d}" for number in range(40)]
