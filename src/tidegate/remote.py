"""A served data set with the same verbs as a local session.

    with tg.connect("http://127.0.0.1:8480", "tg_...", dataset="people") as remote:
        remote.answer(tg.mean("age"), rho=0.02).value

Refusals come back as the exceptions that a local session raises. What is collected is randomized here, on this side.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from tidegate import errors
from tidegate.answer.request import Query
from tidegate.answer.written import query_to_dict
from tidegate.errors import TidegateError, Unreachable, Unsupported

if TYPE_CHECKING:
    from tidegate.collect.client import Client
    from tidegate.collect.memory import Memory

Asked = Query | Sequence[Query] | str
POLL, TIMEOUT = 0.3, 600.0  # seconds
BATCH = 10_000  # reports sent at once


def connect(url: str, token: str = "", *, dataset: str = "", transport: Any = None) -> RemoteSession:
    """A session with a served data set. `dataset` may be left out where the token, or the service, has one."""
    return RemoteSession(Line(url, token, transport=transport), dataset)


class Line:
    """Requests to a service, and errors as exceptions."""

    def __init__(self, url: str, token: str, *, transport: Any = None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT, transport=transport)

    def call(self, method: str, path: str, **sent: Any) -> httpx.Response:
        """The response, where it is none of an error."""
        problem: str = ""
        try:
            response = self._client.request(method, path, **sent)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            problem = type(error).__name__
        if problem:
            raise Unreachable(
                f"the service does not answer ({problem}).", "Check its address; a question is charged once."
            )
        if response.status_code >= 400:
            raise error_from(response)
        return response

    def get(self, path: str, **params: Any) -> Any:
        given = {name: value for name, value in params.items() if value not in (None, "", [])}
        return self.call("GET", path, params=given).json()

    def post(self, path: str, content: Mapping[str, Any], *, key: str = "") -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        sent = {name: value for name, value in content.items() if value is not None}
        return self.call("POST", path, json=sent, headers=headers).json()

    def close(self) -> None:
        self._client.close()


class RemoteSession:
    """One served data set. Nothing is asked until something is asked."""

    def __init__(self, line: Line, dataset: str = "") -> None:
        self._line, self._dataset = line, dataset

    @property
    def dataset(self) -> str:
        """The name of the data set."""
        if not self._dataset:
            found = [one["name"] for one in self._line.get("/data")["datasets"]]
            if len(found) != 1:
                raise Unsupported("several data sets are served.", f"Name one: dataset=... of {', '.join(found)}.")
            self._dataset = found[0]
        return self._dataset

    def describe(self) -> dict[str, Any]:
        """What is publicly known and promised, what was spent and what is left."""
        return dict(self._line.get(self._at()))

    def answer(self, asked: Asked, *, key: str = "", **wanted: Any) -> RemoteAnswer | RemoteAnswers:
        """Ask one question, or several under one charge, as values or as SQL; see `Session.answer`."""
        told = self._line.post(self._at("answers"), {**_asked(asked), **_numbers(wanted)}, key=key)
        return RemoteAnswers(told) if "answers" in told else RemoteAnswer(told)

    def preview(self, asked: Asked, **wanted: Any) -> dict[str, Any]:
        """What asking would cost and how wrong the answer may be. Free."""
        return dict(self._line.post(self._at("previews"), {**_asked(asked), **_numbers(wanted)}))

    def release(self, promise: str = "") -> RemoteDesk:
        """The desk of a concealment promise (which may be left out where there is one)."""
        return RemoteDesk(self._line, self._at("desks", promise or self._only("desks")))

    def collect(self, name: str = "") -> RemoteSurvey:
        """A collection (which may be left out where there is one)."""
        return RemoteSurvey(self._line, self._at("collections", name or self._only("collections")))

    def synthesize(
        self, epsilon: Any = None, *, key: str = "", progress: Any = None, **wanted: Any
    ) -> list[RemoteTable]:
        """Artificial tables: starts the job and waits until it is done. `progress` is called with (stage, done, of)."""
        asked = _numbers({"epsilon": epsilon, **wanted})
        job = self._line.post(self._at("syntheses"), asked, key=key)
        place = self._at("syntheses", job["id"])
        while job["state"] in ("waiting", "running"):
            if progress:
                progress(*job["progress"].values())
            time.sleep(POLL)
            job = self._line.get(place)
        if job["state"] != "done":
            raise error_of(job["problem"])
        return [RemoteTable(self._line, f"{place}/tables/{n + 1}") for n in range(job["wanted"]["tables"])]

    def preview_synthesis(self, epsilon: Any = None, **wanted: Any) -> dict[str, Any]:
        """What `synthesize` would cost, by which model and why. Free."""
        asked = _numbers({"epsilon": epsilon, **wanted})
        return dict(self._line.post(self._at("syntheses", "previews"), asked))

    def close(self) -> None:
        self._line.close()

    def __enter__(self) -> RemoteSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _at(self, *parts: str) -> str:
        return "/".join(["/data", self.dataset, *parts])

    def _only(self, kind: str) -> str:
        found = list(self.describe()[kind])
        if len(found) != 1:
            raise Unsupported(f"there are {len(found)} {kind} here.", f"Name one of: {', '.join(found) or 'none'}.")
        return str(found[0])


@dataclass(frozen=True)
class RemoteAnswer:
    """An answer as it came: `told` holds all of it."""

    told: dict[str, Any]

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per number: its labels, its value, its 95% interval."""
        return list(self.told["rows"])

    @property
    def value(self) -> Any:
        """The one number, where there is one; else all in order."""
        found = [row[self.told["statistic"]] for row in self.rows()]
        return found[0] if len(found) == 1 else found

    @property
    def cost(self) -> str:
        return str(self.told["cost"])

    @property
    def entry(self) -> str:
        return str(self.told["entry"])


@dataclass(frozen=True)
class RemoteAnswers:
    """Several answers under one charge."""

    told: dict[str, Any]

    def __iter__(self) -> Iterator[RemoteAnswer]:
        about = {name: value for name, value in self.told.items() if name != "answers"}
        return (RemoteAnswer({**one, **about}) for one in self.told["answers"])

    def __len__(self) -> int:
        return len(self.told["answers"])

    def __getitem__(self, number: int) -> RemoteAnswer:
        return list(self)[number]

    @property
    def cost(self) -> str:
        return str(self.told["cost"])


@dataclass(frozen=True)
class RemoteDesk:
    """A release desk. Outcomes are dictionaries: released (with the record), deferred (with the place), or refused."""

    _line: Line
    _place: str

    def request(self, key: str | int) -> dict[str, Any]:
        """Ask for the record of a key."""
        return self.request_many([key])[str(key)]

    def request_many(self, keys: Iterable[str | int]) -> dict[str, dict[str, Any]]:
        """Ask for many records in order."""
        wanted = list(dict.fromkeys(str(key) for key in keys))
        told: dict[str, dict[str, Any]] = {}
        for start in range(0, len(wanted), 1000):
            part = wanted[start : start + 1000]
            found = self._line.post(f"{self._place}/requests", {"keys": part})["outcomes"]
            told |= dict(zip(part, found, strict=True))
        return told

    def status(self, key: str | int) -> dict[str, Any]:
        """Where a request stands."""
        return dict(self._line.post(f"{self._place}/status", {"key": str(key)}))

    def withdraw(self, key: str | int) -> None:
        """Take a waiting request back."""
        self._line.post(f"{self._place}/withdrawals", {"key": str(key)})

    def released(self, since: int = 0) -> tuple[list[dict[str, Any]], int]:
        """The records that left after a cursor, and the next cursor."""
        records: list[dict[str, Any]] = []
        after: int | None = since
        cursor = since
        while after is not None:
            page = self._line.get(f"{self._place}/released", after=after, limit=1000)
            records, cursor, after = records + page["records"], page["cursor"], page["next"]
        return records, cursor

    def state(self) -> dict[str, Any]:
        """Exposure against its critical values, shares and queue: for an owner."""
        return dict(self._line.get(self._place))


@dataclass(frozen=True)
class RemoteSurvey:
    """A collection. Its description is read once; true values are randomized by `client`, on this side."""

    _line: Line
    _place: str
    _kept: dict[str, Any] = field(default_factory=dict)

    @property
    def description(self) -> dict[str, Any]:
        """The public description."""
        if not self._kept:
            self._kept.update(self._line.get(self._place))
        return self._kept

    def client(self, *, memory: Memory | str | Path | None = None, fingerprint: str | None = None) -> Client:
        """The person's side. Give the `fingerprint` that the holder published elsewhere, and no other will do."""
        from tidegate.collect.client import Client

        return Client(self.description, memory=memory, fingerprint=fingerprint)

    def submit(self, reports: Iterable[Mapping[str, Any]], *, batch: str = "") -> dict[str, Any]:
        """Send randomized reports: how many were taken, and why others were not. A named batch is sent whole."""
        given = list(reports)
        if batch or len(given) <= BATCH:
            return dict(self._line.post(f"{self._place}/reports", {"reports": given}, key=batch))
        told: dict[str, Any] = {"accepted": 0, "reasons": []}
        for start in range(0, len(given), BATCH):
            part = self._line.post(f"{self._place}/reports", {"reports": given[start : start + BATCH]})
            told["accepted"] += part["accepted"]
            told["reasons"] += [[start + place, reason] for place, reason in part["reasons"]]
        return told

    def distribution(self, question: str, **wanted: Any) -> dict[str, Any]:
        """The distribution of the true values."""
        return dict(self._line.get(f"{self._place}/distributions/{question}", **wanted))

    def tree(self, label: str, *, by: Sequence[str] = (), strategy: str = "best") -> dict[str, Any]:
        """A decision tree."""
        return dict(self._line.get(f"{self._place}/tree", label=label, by=list(by), strategy=strategy))

    def rules(self, question: str = "", *, min_support: float, **wanted: Any) -> dict[str, Any]:
        """Frequent itemsets and association rules."""
        return dict(self._line.get(f"{self._place}/rules", question=question, min_support=min_support, **wanted))

    def state(self) -> dict[str, Any]:
        """How many reports came in, and what one person gives."""
        return dict(self._line.get(f"{self._place}/state"))


@dataclass(frozen=True)
class RemoteTable:
    """A synthetic table, downloaded when it is first looked at."""

    _line: Line
    _place: str
    _kept: dict[str, Any] = field(default_factory=dict)

    def to_arrow(self) -> Any:
        """The rows as an Arrow table."""
        import pyarrow.parquet as pq

        if "table" not in self._kept:
            content = self._line.call("GET", self._place, params={"kind": "parquet"}).content
            self._kept["table"] = pq.read_table(io.BytesIO(content))
        return self._kept["table"]

    def to_pandas(self) -> Any:
        """The rows as a pandas data frame."""
        return self.to_arrow().to_pandas()


def error_from(response: httpx.Response) -> TidegateError:
    """The exception that a response tells; Unreachable where it is not one of ours."""
    try:
        return error_of(response.json()["error"])
    except (ValueError, LookupError, TypeError):
        return Unreachable(
            f"the answer is not one of this service (status {response.status_code}).", "Check the address."
        )


def error_of(told: Mapping[str, Any]) -> TidegateError:
    """The exception of an error as it is told."""
    facts = {str(name): value for name, value in dict(told["facts"]).items()}
    return _kinds().get(told["code"], TidegateError)(told["what"], told["do"], **facts)


def _kinds() -> dict[str, type[TidegateError]]:
    """Every class of our tree by its code."""
    found = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TidegateError)]
    return {kind("").code: kind for kind in found}


def _asked(asked: Asked) -> dict[str, Any]:
    if isinstance(asked, str):
        return {"sql": asked}
    return {"questions": [query_to_dict(query) for query in ([asked] if isinstance(asked, Query) else asked)]}


def _numbers(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Wishes as JSON: exact numbers as text."""
    plain = (str, int, float, list, dict, bool)
    return {
        name: value if isinstance(value, plain) else list(value) if isinstance(value, tuple) else str(value)
        for name, value in wanted.items()
        if value is not None
    }
