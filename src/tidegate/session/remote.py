"""The verbs of a served data set."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from tidegate.answer.query_json import query_to_dict
from tidegate.answer.request import Query
from tidegate.errors import Unsupported
from tidegate.session.http import TIMEOUT, ServiceClient
from tidegate.session.remote_answers import RemoteAnswer, RemoteAnswers, RemoteDerived, RemotePreview
from tidegate.session.remote_desks import RemoteDesk
from tidegate.session.remote_surveys import RemoteSurvey
from tidegate.session.remote_tables import (
    Progress,
    RemotePaidQuality,
    RemoteSynthesis,
    RemoteSynthesisPreview,
    RemoteTable,
)

PAGE = 1_000  # jobs of one response
Asked = Query | Sequence[Query] | str


def connect(
    url: str, token: str = "", *, dataset: str = "", timeout: float = TIMEOUT, transport: Any = None
) -> RemoteSession:
    """A session with a served data set. `dataset` may be left out where the token, or the service, has one; `timeout` is
    how many seconds an answer may take."""
    return RemoteSession(ServiceClient(url, token, transport=transport, timeout=timeout), dataset)


class RemoteSession:
    """One served data set. Nothing is asked until something is asked."""

    def __init__(self, client: ServiceClient, dataset: str = "") -> None:
        self._client, self._dataset = client, dataset

    @property
    def dataset(self) -> str:
        """The name of the data set."""
        if not self._dataset:
            self._dataset = self._found()
        return self._dataset

    def _found(self) -> str:
        """The data set of the token, or the only one that is served."""
        if not self._client.signed:
            raise Unsupported(
                "without a token it is not told which data sets are served.", 'Name it: connect(url, dataset="people").'
            )
        if own := self._client.get("/me")["dataset"]:
            return str(own)
        names = [one["name"] for one in self._client.get("/data")["datasets"]]
        if len(names) != 1:
            raise Unsupported("several data sets are served.", f"Name one: dataset=... of {', '.join(names)}.")
        return str(names[0])

    def describe(self) -> dict[str, Any]:
        """What is publicly known and promised, what was spent and what is left."""
        return dict(self._client.get(self._at()))

    def answer(self, asked: Asked, *, key: str = "", **wanted: Any) -> RemoteAnswer | RemoteAnswers:
        """Ask one question, or several under one charge, as values or as SQL; see `Session.answer`. A connection that
        breaks is tried again: the question is charged once."""
        content = {**_asked(asked), **_numbers(wanted)}
        told = self._client.post(self._at("answers"), content, key=key, again=True)
        return RemoteAnswers(told) if "answers" in told else RemoteAnswer(told)

    def preview(self, asked: Asked, **wanted: Any) -> RemotePreview:
        """What asking would cost and how wrong the answer may be. Free."""
        content = {**_asked(asked), **_numbers(wanted)}
        return RemotePreview(self._client.post(self._at("previews"), content, again=True))

    def fit(self, asked: Asked, **wanted: Any) -> RemotePreview:
        """How accurate these questions can be with all that is left, in equal parts. Free."""
        return self.preview(asked, fit=True, **wanted)

    def derive(self, asked: Query | str) -> RemoteDerived | None:
        """What follows from answers already given, at no cost; None where nothing does."""
        found = self._client.post(self._at("derivations"), _asked(asked), again=True)["derivations"]
        return RemoteDerived(found[0]["derived"]) if found[0]["derived"] else None

    def release(self, promise: str = "") -> RemoteDesk:
        """The desk of a concealment promise (which may be left out where there is one)."""
        return RemoteDesk(self._client, self._at("desks", promise or self._only("desks")))

    def collect(self, name: str = "") -> RemoteSurvey:
        """A collection (which may be left out where there is one)."""
        return RemoteSurvey(self._client, self._at("collections", name or self._only("collections")))

    def make_collection(self, name: str, questions: Mapping[str, Mapping[str, Any]], **wanted: Any) -> RemoteSurvey:
        """Add a collection to the policy's file, and open it: for an owner. `wanted`: repeats, version, clients."""
        asked = {word: _numbers(question) for word, question in questions.items()}
        self._client.post(self._at("collections"), {"collection": name, "questions": asked, **wanted})
        return self.collect(name)

    def synthesize(
        self, epsilon: Any = None, *, key: str = "", progress: Progress | bool | None = None, **wanted: Any
    ) -> list[RemoteTable]:
        """Artificial tables: starts the job and waits until it is done. `progress` is called with (stage, done, of);
        without it a terminal shows one line, and progress=False shows nothing."""
        asked = _numbers({"epsilon": epsilon, **wanted})
        job = self._client.post(self._at("syntheses"), asked, key=key or secrets.token_hex(16))
        return self._synthesis(job).tables(progress)

    def syntheses(self) -> list[RemoteSynthesis]:
        """Every synthesis that was asked for here, the first one first."""
        found: list[RemoteSynthesis] = []
        while True:
            after = found[-1].id if found else None
            told = self._client.get(self._at("syntheses"), limit=PAGE, after=after)["syntheses"]
            found += [self._synthesis(job) for job in told]
            if len(told) < PAGE:
                return found

    def synthesis(self, job: str) -> RemoteSynthesis:
        """One that was asked for earlier, by its id: `remote.synthesis(job).tables()` fetches its tables for nothing."""
        return self._synthesis(self._client.get(self._at("syntheses", job)))

    def paid_quality(self, job: str | RemoteSynthesis, *, epsilon: Any, key: str = "") -> RemotePaidQuality:
        """How far the tables of a synthesis are from the original, in two noisy numbers that an analyst may see: charged
        and recorded."""
        found = job if isinstance(job, RemoteSynthesis) else self.synthesis(job)
        return found.paid_quality(epsilon=epsilon, key=key)

    def _synthesis(self, told: dict[str, Any]) -> RemoteSynthesis:
        return RemoteSynthesis(told, self._client, self._at("syntheses", told["id"]))

    def preview_synthesis(self, epsilon: Any = None, **wanted: Any) -> RemoteSynthesisPreview:
        """What `synthesize` would cost, by which model and why. Free."""
        asked = _numbers({"epsilon": epsilon, **wanted})
        return RemoteSynthesisPreview(self._client.post(self._at("syntheses", "previews"), asked, again=True))

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> RemoteSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _at(self, *parts: str) -> str:
        return "/".join(["/data", *(quote(part, safe="") for part in (self.dataset, *parts))])

    def _only(self, kind: str) -> str:
        found = list(self.describe()[kind])
        if len(found) != 1:
            raise Unsupported(f"there are {len(found)} {kind} here.", f"Name one of: {', '.join(found) or 'none'}.")
        return str(found[0])


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
