"""A session over HTTP: the methods, results and exceptions of a session on this machine.

with tg.connect("http://127.0.0.1:8480", "tg_...", dataset="people") as remote:
    remote.answer(tg.mean("age"), rho=0.02).value

Reports of a collection are randomized here, before they are sent.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Self, overload
from urllib.parse import quote

from tidegate.accounting.amount import ZERO
from tidegate.answer import Answer, Answers, Preview, Query
from tidegate.answer.derive import Derived
from tidegate.answer.pages import join_pages
from tidegate.answer.query_json import query_to_dict
from tidegate.answer.spending import Calibration, Planning
from tidegate.answer.sql import SqlPlan
from tidegate.errors import StalePolicy, Unsupported
from tidegate.exact import Number
from tidegate.ledger import Account
from tidegate.ledger.charge import account_from_dict
from tidegate.policy import Policy
from tidegate.policy.tables import with_content
from tidegate.policy.toml import policy_from_dict
from tidegate.release.hiding import Selection
from tidegate.session.http import TIMEOUT, ServiceClient, read_response
from tidegate.session.jobs import SynthesisJob
from tidegate.session.protocol import Question, choose_poll
from tidegate.session.remote_desk import RemoteDesk
from tidegate.session.remote_survey import RemoteSurvey

if TYPE_CHECKING:
    from tidegate.synthesize.model import Progress
    from tidegate.synthesize.quality import PaidQuality
    from tidegate.synthesize.result import SynthesisPreview, SyntheticTables

PAGE = 1_000  # jobs of one response


def connect(
    url: str, token: str = "", *, dataset: str = "", timeout: float = TIMEOUT, transport: Any = None
) -> RemoteSession:
    """Connect to a served data set. `dataset` is optional if the token, or the service, has one; `timeout` is the number of
    seconds that a response may take."""
    return RemoteSession(ServiceClient(url, token, transport=transport, timeout=timeout), dataset)


class RemoteSession:
    """One served data set. Nothing is requested before the first call."""

    def __init__(self, client: ServiceClient, dataset: str = "") -> None:
        self._client, self._dataset = client, dataset
        self._policy: Policy | None = None

    @property
    def dataset(self) -> str:
        """The name of the data set."""
        if not self._dataset:
            self._dataset = self._find_dataset()
        return self._dataset

    def _find_dataset(self) -> str:
        """The data set of the token, or the only one that is served."""
        if not self._client.signed:
            raise Unsupported(
                "Without a token the names of the served data sets are not shown.",
                'Name it: connect(url, dataset="people").',
            )
        if own := self._client.get("/me")["dataset"]:
            return str(own)
        names = [dataset["name"] for dataset in self._client.get("/data")["datasets"]]
        if len(names) != 1:
            raise Unsupported("The service has several data sets.", f"Name one as `dataset`: {', '.join(names)}.")
        return str(names[0])

    def describe(self) -> dict[str, Any]:
        """Return the public description, the promises, and the spent and the remaining budget."""
        return dict(self._client.get(self._at()))

    @property
    def policy(self) -> Policy:
        """The public part of the policy, as of the first call, or of the latest result."""
        return self._policy or self.read_policy()

    def read_policy(self) -> Policy:
        """Read the public part of the policy from the service."""
        return self._policy_of_description(self.describe())

    @property
    def account(self) -> Account:
        """The spent and the remaining budget."""
        data = self.describe()
        if not data["account"]:
            return Account(data["name"], ZERO, ZERO, data["fingerprint"])
        return account_from_dict({**data["account"], "policy": data["fingerprint"]}, self._policy_of_description(data))

    def _policy_of_description(self, data: Mapping[str, Any]) -> Policy:
        self._policy = read_response(lambda: with_content(policy_from_dict(data["policy"]), data.get("references", {})))
        return self._policy

    @overload
    def answer(
        self,
        question: Query,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        share: Number | None = None,
        z: Number | None = None,
        confidence: float = 0.95,
        calibration: Calibration = "equation-15",
        window: int = 1,
        plan: Planning = "one-by-one",
        key: str = "",
        anyway: bool = False,
    ) -> Answer: ...
    @overload
    def answer(
        self,
        question: str | SqlPlan,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        share: Number | None = None,
        z: Number | None = None,
        confidence: float = 0.95,
        calibration: Calibration = "equation-15",
        window: int = 1,
        plan: Planning = "one-by-one",
        key: str = "",
        anyway: bool = False,
    ) -> Answer | Answers: ...
    @overload
    def answer(
        self,
        question: Sequence[Query] | list[str],
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        share: Number | None = None,
        z: Number | None = None,
        confidence: float = 0.95,
        calibration: Calibration = "equation-15",
        window: int = 1,
        plan: Planning = "one-by-one",
        key: str = "",
        anyway: bool = False,
    ) -> Answers: ...
    def answer(
        self,
        question: Question,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        share: Number | None = None,
        z: Number | None = None,
        confidence: float = 0.95,
        calibration: Calibration = "equation-15",
        window: int = 1,
        plan: Planning = "one-by-one",
        key: str = "",
        anyway: bool = False,
    ) -> Answer | Answers:
        """Answer one query, or several under one charge, as values or as SQL; see `Session.answer`. A request whose
        connection breaks is sent again and charged once."""
        content = _content(
            question,
            rho=rho,
            epsilon=epsilon,
            error=error,
            share=share,
            z=z,
            confidence=confidence,
            calibration=calibration,
            window=window,
            plan=plan,
        )
        if anyway:
            content["anyway"] = True
        pages = [self._client.post(self._at("answers"), content, key=key, again=True)]
        while cursor := pages[-1].get("next"):
            pages.append(self._client.post(self._at("answers"), content, again=True, cursor=cursor))
        policy = self._policy_of(pages[0])
        data = read_response(lambda: join_pages(pages, policy)) if len(pages) > 1 else pages[0]
        is_single = isinstance(question, Query) or (isinstance(question, str | SqlPlan) and "answers" not in data)
        return read_response(lambda: (Answer if is_single else Answers).from_dict(data, policy))

    def preview(
        self,
        question: Question,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        share: Number | None = None,
        z: Number | None = None,
        confidence: float = 0.95,
        calibration: Calibration = "equation-15",
        window: int = 1,
        plan: Planning = "one-by-one",
    ) -> Preview:
        """Return the cost and the expected error of an answer. Free."""
        content = _content(
            question,
            rho=rho,
            epsilon=epsilon,
            error=error,
            share=share,
            z=z,
            confidence=confidence,
            calibration=calibration,
            window=window,
            plan=plan,
        )
        return self._preview(content)

    def fit(self, question: Question, *, confidence: float = 0.95) -> Preview:
        """Return the accuracy of these queries if they share the remaining budget equally. Free."""
        return self._preview({**_content(question, confidence=confidence), "fit": True})

    def _preview(self, content: Mapping[str, Any]) -> Preview:
        data = self._client.post(self._at("previews"), content, again=True)
        policy = self._policy_of(data)
        return read_response(lambda: Preview.from_dict(data, policy))

    def derive(self, question: Query | str) -> Derived | None:
        """Return what follows from earlier answers at no cost, or None."""
        content = self._client.post(self._at("derivations"), _content(question), again=True)
        data = content["derivations"][0]["derived"]
        policy = self._policy_of(content)
        return read_response(lambda: Derived.from_dict(data, policy)) if data else None

    def release(self, promise: str = "") -> RemoteDesk:
        """Return the release desk of a concealment or hiding promise (optional if the policy has only one)."""
        return RemoteDesk(self._client, self._at("desks", promise or self._only("desks")))

    def open_release(self, *, sensitive: Sequence[Sequence[str] | str] | None = None, later: bool = False) -> Selection:
        """Choose the records that can be released under the hiding promises. For an owner; this is final.

        Args:
            sensitive: The groups to hide if the promise has `among` = k.
            later: Open the next selection, over the records that were added since the last one.
        """
        groups = None if sensitive is None else [[g] if isinstance(g, str) else list(g) for g in sensitive]
        data = self._client.post(self._at("selections"), {"sensitive": groups, "later": later})
        return read_response(lambda: Selection.from_dict(data))

    def collect(self, name: str = "") -> RemoteSurvey:
        """Return the survey of a collection (optional if the policy has only one)."""
        path = self._at("collections", name or self._only("collections"))
        return RemoteSurvey(self._client, path, self.read_policy)

    def poll(self, name: str = "") -> RemoteSurvey:
        """Return the survey of a poll (optional if the policy has only one)."""
        return self.collect(choose_poll(self.policy, name))

    def make_collection(
        self,
        name: str,
        questions: Mapping[str, Mapping[str, Any]],
        *,
        repeats: Literal["memoised", "once", "two-layers"] = "memoised",
        version: int = 1,
        clients: int | None = None,
    ) -> RemoteSurvey:
        """Add a collection to the policy's file, and open it: for an owner. `clients` are expected to answer."""
        described = {word: {part: _value(of) for part, of in parts.items()} for word, parts in questions.items()}
        content = {"collection": name, "questions": described, "repeats": repeats, "version": version}
        self._client.post(self._at("collections"), {**content, "clients": clients})
        return self.collect(name)

    def synthesize(
        self,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        z: Number | None = None,
        share: Number | None = None,
        delta: Number | None = None,
        tables: int = 1,
        rows: int | None = None,
        model: str = "forest/2",
        target: str = "",
        seed: int | None = None,
        columns: Iterable[str] = (),
        key: str = "",
        progress: Progress | bool | None = None,
    ) -> SyntheticTables:
        """Generate artificial tables: start the job and wait until it is done; see `Session.synthesize` for the parameters.

        `progress` is called with (stage, done, of); without it a terminal shows one line, and False shows nothing. The
        rows are downloaded when they are first read.
        """
        content = _synthesis(
            epsilon=epsilon,
            rho=rho,
            z=z,
            share=share,
            delta=delta,
            tables=tables,
            rows=rows,
            model=model,
            target=target,
            seed=seed,
            columns=columns,
        )
        job = self._client.post(self._at("syntheses"), content, key=key or secrets.token_hex(16))
        return self._job(job).bought_tables(progress)

    def preview_synthesis(
        self,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        z: Number | None = None,
        share: Number | None = None,
        delta: Number | None = None,
        tables: int = 1,
        rows: int | None = None,
        model: str = "forest/2",
        target: str = "",
        seed: int | None = None,
        columns: Iterable[str] = (),
    ) -> SynthesisPreview:
        """Return what `synthesize` would cost, by which model and why, and how the budget would be split. Free."""
        from tidegate.synthesize.result import SynthesisPreview  # here: models take long to load

        content = _synthesis(
            epsilon=epsilon,
            rho=rho,
            z=z,
            share=share,
            delta=delta,
            tables=tables,
            rows=rows,
            model=model,
            target=target,
            seed=seed,
            columns=columns,
        )
        data = self._client.post(self._at("syntheses", "previews"), content, again=True)
        policy = self._policy_of(data)
        return read_response(lambda: SynthesisPreview.from_dict(data, policy))

    def syntheses(self) -> list[SynthesisJob]:
        """Return every synthesis that was requested, in order."""
        jobs: list[SynthesisJob] = []
        cursor: str | None = ""
        while cursor is not None:
            page = self._client.get(self._at("syntheses"), limit=PAGE, cursor=cursor)
            jobs += [self._job(job) for job in page["syntheses"]]
            cursor = page["next"]
        return jobs

    def synthesis(self, job: str) -> SynthesisJob:
        """Return an earlier synthesis by its id: `remote.synthesis(job).tables()` returns its tables at no cost."""
        return self._job(self._client.get(self._at("syntheses", job)))

    def paid_quality(
        self, synthetic: SyntheticTables | SynthesisJob | str, *, epsilon: Number, key: str = ""
    ) -> PaidQuality:
        """Return how far the tables of a synthesis are from the original, as two noisy numbers that an analyst can see.

        They are charged and recorded. `synthetic` is what `synthesize` returned, a job, or the id of one.
        """
        from tidegate.synthesize.quality import PaidQuality  # here: its libraries take long to load

        job = synthetic if isinstance(synthetic, str) else _job_of(synthetic)
        path, content = self._at("syntheses", job, "paid-quality"), {"epsilon": _value(epsilon)}
        data = self._client.post(path, content, key=key, again=True)
        policy = self._policy_of(data)
        return read_response(lambda: PaidQuality.from_dict(data, policy))

    def __repr__(self) -> str:
        name = f'"{self._dataset}" at ' if self._dataset else ""
        return f"RemoteSession({name}{self._client.shown}): see its columns in `policy` and its budget in `account`"

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _policy_of(self, data: Mapping[str, Any]) -> Policy:
        """Return the policy that applied to a result. It is read again if the service has a newer one."""
        fingerprint = read_response(lambda: data["policy"])
        if self.policy.fingerprint != fingerprint and self.read_policy().fingerprint != fingerprint:
            raise StalePolicy(
                "The policy of this data set changed while the request was under way.",
                "Send the request again: what was charged is not charged twice.",
            )
        return self.policy

    def _job(self, data: Mapping[str, Any]) -> SynthesisJob:
        return SynthesisJob(data, self._client, self._at("syntheses", data["id"]), self._policy_of)

    def _at(self, *parts: str) -> str:
        return "/".join(["/data", *(quote(part, safe="") for part in (self.dataset, *parts))])

    def _only(self, kind: str) -> str:
        names = list(self.describe()[kind])
        if len(names) != 1:
            raise Unsupported(f"The data set has {len(names)} {kind}.", f"Name one of: {', '.join(names) or 'none'}.")
        return str(names[0])


def _content(question: Question, **numbers: Number | None) -> dict[str, Any]:
    """Return queries and their budget as JSON values."""
    content: dict[str, Any] = {name: _value(number) for name, number in numbers.items()}
    if isinstance(question, str | SqlPlan):
        return {"sql": question if isinstance(question, str) else question.text, **content}
    if isinstance(question, Query):
        return {"questions": [query_to_dict(question)], **content}
    if question and all(isinstance(part, str) for part in question):
        return {"sql": ";\n".join(str(part) for part in question), **content}
    queries = [query for query in question if isinstance(query, Query)]
    return {"questions": [query_to_dict(query) for query in queries], **content}


def _synthesis(*, columns: Iterable[str], **parameters: Number | None) -> dict[str, Any]:
    """Return a request for synthetic tables as JSON values."""
    content: dict[str, Any] = {name: _value(value) for name, value in parameters.items()}
    return {**content, "columns": [columns] if isinstance(columns, str) else list(columns)}


def _value(value: Any) -> Any:
    """Return a number as exact JSON text; other values unchanged."""
    return f"{value:f}" if isinstance(value, Decimal) else str(value) if isinstance(value, Fraction) else value


def _job_of(synthetic: SyntheticTables | SynthesisJob) -> str:
    job = synthetic.id if isinstance(synthetic, SynthesisJob) else synthetic.job
    if job:
        return job
    raise Unsupported(
        "These tables are not from this service.", "Pass what `synthesize` of this session returned, or a job."
    )
