"""A service for tests: two small data sets in one ledger, a token for each role, in-process or on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import support.declared  # noqa: F401  compares every response with its model
from starlette.testclient import TestClient

from tidegate.ledger.tokens import Tokens
from tidegate.policy import Category, Collection, Concealment, Dataset, Integer, Items, Key, Loss, Policy, Question
from tidegate.service.access.permissions import ANALYST, OWNER, PUBLIC, RESPONDENT
from tidegate.service.access.tokens import COST, make_token
from tidegate.service.app import create_app
from tidegate.service.datasets import ServedDatasets
from tidegate.service.settings import Settings
from tidegate.session import Session

PEOPLE = 400
PROBLEM = {"type", "title", "status", "detail", "instance", "code", "do", "facts"}  # the members of an error
FULL_COST = dict(COST)  # as it is before tests make it less
TOWNS = ("Aby", "Berg", "Ceder")
SECRET = "MARKER-7f31-"  # starts every key: it must never be in a log, an error or a trace
AGE, TOWN, BASKET = Integer(18, 57, bins=(28, 38, 48)), Category(TOWNS), Items(("milk", "bread", "tea"))
SHOPPERS = Collection(
    "shoppers",
    {"age": Question("age", AGE, "square-wave", epsilon=2), "town": Question("town", TOWN, "unary", epsilon=2)},
)
OPEN: dict[str, Any] = {"caller_rate": 1e6, "caller_burst": 1e6, "address_rate": 1e6, "address_burst": 1e6}
QUIET = Settings(**OPEN, wrong_rate=1e6, wrong_burst=1e6, run_jobs=False)


def table(people: int = PEOPLE) -> pa.Table:
    return pa.table(
        {
            "person": [f"{SECRET}{n:04d}" for n in range(people)],
            "age": [18 + n * 7 % 40 for n in range(people)],
            "town": [TOWNS[n * n % 3] for n in range(people)],
        }
    )


def policy(name: str = "people", *, epsilon: str = "1000", **dataset: Any) -> Policy:
    return Policy(
        Dataset(name, rows=PEOPLE, source=f"{SECRET}place.csv", **dataset),
        {"person": Key(), "age": AGE, "town": TOWN},
        loss=Loss(epsilon),
        concealments={
            "hq": Concealment(
                reveals="age",
                about="town",
                tests="chi-square",
                significance="0.2",
                baseline=(1, 1, 1, 1),
                shares=(1, 1, 1),
                releases=("person", "age", "town"),
            )
        },
        collections={"shoppers": SHOPPERS},
    )


@dataclass
class RunningService:
    """A service with its tokens, by role."""

    client: TestClient
    app: Any
    datasets: ServedDatasets
    tokens: dict[str, str] = field(default_factory=dict)

    def as_role(self, role: str) -> dict[str, str]:
        return {} if role == PUBLIC else {"Authorization": f"Bearer {self.tokens[role]}"}

    def get(self, path: str, role: str = OWNER, **more: Any) -> Any:
        return self.call("GET", path, role, **more)

    def post(self, path: str, json: Any = None, role: str = OWNER, **more: Any) -> Any:
        return self.call("POST", path, role, json=json, **more)

    def call(self, method: str, path: str, role: str, **more: Any) -> Any:
        headers = {**self.as_role(role), **more.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **more)


@contextmanager
def run_service(
    ledger: str, *, settings: Settings = QUIET, policies: tuple[Policy, ...] = (), data: Any = None, share: str = ""
) -> Iterator[RunningService]:
    """Run a service over a ledger. Its client raises the errors that a server would log."""
    served = policies or (policy(), policy("others"))
    folder = Path(ledger).parent if "://" not in ledger else Path()
    sessions = [
        Session(served_policy, table=table() if data is None else data, ledger=ledger, folder=folder)
        for served_policy in served
    ]
    datasets = ServedDatasets(sessions)
    app = create_app(settings, datasets)
    tokens = Tokens(datasets.ledger.store)
    name = served[0].dataset.name
    role_tokens = {
        OWNER: make_token(tokens, role=OWNER, name="olga")[0],
        ANALYST: make_token(tokens, role=ANALYST, name="ana", dataset=name, share=share)[0],
        RESPONDENT: make_token(tokens, role=RESPONDENT, name="rosa", dataset=name, record=f"{SECRET}0007")[0],
    }
    with TestClient(app, raise_server_exceptions=True, base_url="http://127.0.0.1") as client:
        yield RunningService(client, app, datasets, role_tokens)


def quiet_settings(**other: Any) -> Settings:
    return replace(QUIET, **other)
