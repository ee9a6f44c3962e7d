"""`tidegate.connect`: the same verbs, values and exceptions as a local session."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.service import SECRET, TOWNS, RunningService, policy, quiet_settings, run_service

import tidegate as tg
from tidegate import errors
from tidegate.errors import (
    BudgetExceeded,
    KeyReused,
    NotAllowed,
    NotSignedIn,
    NotThere,
    NotWaiting,
    TidegateError,
    UnknownColumn,
    Unreachable,
    Unsupported,
)
from tidegate.release.result import Released
from tidegate.session.http import error_of
from tidegate.session.remote import RemoteSession
from tidegate.web.snippets.synthesize import download_code


class Inside(httpx.BaseTransport):
    """A transport to a service in this process."""

    def __init__(self, service: RunningService) -> None:
        self._served, self.sent = service, []  # type: ignore[var-annotated]

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = request.read()
        self.sent.append(body)
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        result = self._served.client.request(request.method, str(request.url), content=body, headers=headers)
        return httpx.Response(
            result.status_code, content=result.content, headers={"content-type": result.headers.get("content-type", "")}
        )


@contextmanager
def connect_to(fresh_service: RunningService, role: str, dataset: str = "") -> Iterator[RemoteSession]:
    token = fresh_service.tokens.get(role, "")
    with tg.connect("http://127.0.0.1", token, dataset=dataset, transport=Inside(fresh_service)) as remote:
        yield remote


def test_remote_answer_equals_the_local_one(fresh_service: RunningService) -> None:
    with connect_to(fresh_service, "analyst") as remote:
        assert remote.dataset == "people"
        query = tg.count().by("town").where(tg.col("age") >= 30)
        before = remote.preview(query, epsilon=Fraction(1, 5))
        result = remote.answer(query, epsilon=Fraction(1, 5))
        local = fresh_service.datasets["people"].session.answer(query, epsilon="0.2")
        assert isinstance(result, tg.Answer)
        assert (result.rows(), result.entry, result.value.tolist()) == (
            local.rows(),
            local.entry,
            local.values.tolist(),
        )
        assert str(result.cost) == str(before.cost) == "0.2"
        both = remote.answer([tg.count(), tg.mean("age")], epsilon=1)
        assert (len(both), str(both.cost)) == (2, "1")
        assert remote.describe()["account"]["own"]["spent"] == "1.2"
        by_sql = remote.answer("SELECT COUNT(*) FROM people WHERE age >= 40", error=5)
        assert remote.preview("SELECT COUNT(*) FROM people WHERE age >= 40", error=5).cost == by_sql.cost


def test_remote_errors_are_the_exceptions_of_a_local_session(tmp_path: Path) -> None:
    with (
        run_service(str(tmp_path / "all.ledger"), share="0.5") as service,
        connect_to(service, "analyst") as remote,
    ):
        with pytest.raises(BudgetExceeded) as refused:
            remote.answer(tg.count(), epsilon=1)
        assert refused.value.facts["share"] == "0.5"
        with pytest.raises(UnknownColumn, match="salary"):
            remote.preview(tg.mean("salary"), epsilon=1)
        with pytest.raises(Unsupported):
            remote.answer("DROP TABLE people", epsilon=1)
        remote.answer(tg.count(), epsilon="0.1", key="k")
        with pytest.raises(KeyReused):
            remote.answer(tg.count(), epsilon="0.2", key="k")
        with pytest.raises(NotAllowed, match="Use a token with the role owner"):
            remote.synthesize(epsilon=1)
        with pytest.raises(NotAllowed, match="Use a token with the role owner or respondent"):
            remote.release("hq").request("7")
    with run_service(str(tmp_path / "other.ledger")) as service:
        service.tokens["eve"] = "tg_" + "0" * 16 + "_" + "a" * 43
        with connect_to(service, "eve") as remote, pytest.raises(NotSignedIn):
            remote.describe()


def test_every_error_class_survives_the_response() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TidegateError)]
    assert len(kinds) > 25
    for kind in kinds:
        again = error_of(kind("what.", "do.", left="1").to_dict()["error"])
        assert (type(again), again.what, again.do, again.facts) == (kind, "what.", "do.", {"left": "1"})
    assert type(error_of({"code": "from the future", "what": "w", "do": "d", "facts": {}})) is TidegateError


def test_remote_desk_releases_records(fresh_service: RunningService) -> None:
    with (
        connect_to(fresh_service, "owner", "people") as owner,
        connect_to(fresh_service, "respondent", "people") as rosa,
    ):
        outcomes = owner.release().request_many([f"{SECRET}{n:04d}" for n in range(150)])
        left = [outcome for outcome in outcomes.values() if isinstance(outcome, Released)]
        records, cursor = owner.release("hq").released()
        assert (len(records), cursor) == (len(left), len(left))
        assert owner.release("hq").released(since=cursor) == ([], cursor)
        assert rosa.release("hq").status(f"{SECRET}0007") == rosa.release("hq").request(f"{SECRET}0007")
        with pytest.raises(NotWaiting):
            owner.release("hq").withdraw("nobody")
        assert owner.release("hq").state()["waiting"] == len(outcomes) - len(left)


def test_true_values_stay_on_the_client(fresh_service: RunningService) -> None:
    transport, chance = Inside(fresh_service), random.Random(3)
    with tg.connect("http://127.0.0.1", transport=transport, dataset="people") as anybody:
        survey = anybody.collect("shoppers")
        reports = [survey.client().randomize({"age": 33, "town": chance.choice(TOWNS)}) for _ in range(100)]
        assert survey.submit(reports).accepted == 100
        with pytest.raises(Unsupported):
            survey.client(fingerprint="0" * 64)
    sent = b"".join(transport.sent)
    assert not any(town.encode() in sent for town in TOWNS)
    fresh_service.datasets["people"].survey("shoppers").flush()
    with connect_to(fresh_service, "analyst") as remote:
        result = remote.collect().distribution("town")
        assert (result.reports, remote.collect().reports) == (100, 100)
        assert remote.collect().tree("town", by=["age"], strategy="randomized").reports == 100


def test_reports_are_sent_in_parts_and_keep_their_order(
    fresh_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.session.remote_survey.BATCH", 4)
    with connect_to(fresh_service, "analyst") as remote:
        survey = remote.collect("shoppers")
        reports: list[Any] = [survey.client().randomize({"age": 20, "town": "Aby"}) for _ in range(10)]
        reports[7] = {"not": "a report"}
        output = survey.submit(reports).to_dict()
        assert (output["accepted"], [position for position, _ in output["reasons"]]) == (9, [7])
        assert [(verdict["place"], verdict["verdict"]) for verdict in output["verdicts"]] == [
            (index, "refused" if index == 7 else "accepted") for index in range(10)
        ]
        assert {verdict["verdict"] for verdict in survey.submit(reports[:3]).to_dict()["verdicts"]} == {"known"}


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"accepted": 1, "reasons": []},
        {"batch": "", "accepted": 1, "again": False, "verdicts": [], "refused": {}, "entry": "", "reasons": []},
    ],
)
def test_unconfirmed_reports_do_not_count_as_received(body: Any) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=body))
    with (
        tg.connect("http://127.0.0.1", transport=transport, dataset="people") as remote,
        pytest.raises(Unreachable, match="did not confirm which reports it received"),
    ):
        remote.collect("shoppers").submit([{"id": "0" * 32}])


def test_synthesize_waits_for_the_job(tmp_path: Path) -> None:
    settings = quiet_settings(run_jobs=True, job_beat=0.05)
    with (
        run_service(str(tmp_path / "all.ledger"), settings=settings) as service,
        connect_to(service, "owner", "people") as remote,
    ):
        stages: list[str] = []
        tables = remote.synthesize(
            epsilon=Fraction(3, 2), rows=40, progress=lambda stage, done, of: stages.append(stage)
        )
        assert len(tables) == 1
        assert tables[0].to_arrow().num_rows == len(tables[0].to_pandas()) == 40
        assert remote.describe()["account"]["spent"] == "1.5"
        with pytest.raises(BudgetExceeded):
            remote.synthesize(epsilon=5000)


def test_earlier_syntheses_are_listed_downloaded_free_and_compared_for_a_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.session.remote.PAGE", 2)  # so that three jobs are two pages
    settings = quiet_settings(run_jobs=True, job_beat=0.05)
    with (
        run_service(str(tmp_path / "all.ledger"), settings=settings) as service,
        connect_to(service, "owner", "people") as remote,
    ):
        assert remote.syntheses() == []
        first, *_ = [remote.synthesize(epsilon=epsilon, rows=30, progress=False) for epsilon in ("0.4", "0.3", "0.2")]
        jobs = remote.syntheses()
        assert [(job.state, job.request["epsilon"]) for job in jobs] == [
            ("done", "0.4"),
            ("done", "0.3"),
            ("done", "0.2"),
        ]
        before = remote.describe()["account"]["spent"]
        assert remote.synthesis(jobs[0].id).tables()[0].to_arrow() == first[0].to_arrow()
        *_, fetching = download_code(address="http://x", dataset="people", job=jobs[0].id)["Python"].splitlines()
        exec(fetching, names := {"remote": remote})  # as the console shows it
        assert names["table"].equals(first[0].to_pandas())
        assert remote.describe()["account"]["spent"] == before
        paid, again = remote.paid_quality(jobs[0].id, epsilon="0.25"), remote.paid_quality(jobs[0], epsilon="0.25")
        assert (str(paid.cost), str(again.cost)) == ("0.25", "0")
        assert [str(tables.cost) for tables in (first, jobs[0].tables())] == ["0.4", "0"]
        assert str(again) == str(paid).replace("cost 0.25", "cost 0")
        assert Fraction(remote.describe()["account"]["spent"]) == Fraction(before) + Fraction(1, 4)
        with pytest.raises(TidegateError, match="no synthesis"):
            remote.synthesis("0" * 20)


def test_silent_or_foreign_server_is_unreachable() -> None:
    with (
        tg.connect("http://someone:secret@127.0.0.1:9", "tg_x") as nowhere,
        pytest.raises(Unreachable, match=r"No service responds at http://127\.0\.0\.1:9\.") as refused,
    ):
        nowhere.describe()
    assert "tidegate serve" in refused.value.do
    other = httpx.MockTransport(lambda request: httpx.Response(502, text="<html>bad gateway</html>"))
    with tg.connect("http://127.0.0.1", "tg_x", transport=other) as strange, pytest.raises(Unreachable, match="502"):
        strange.describe()
    for wrong in ("tg_0123456789abcdef_secret", "127.0.0.1:8480", "ftp://127.0.0.1", "http://", ""):
        with pytest.raises(Unreachable, match="not the URL") as raised:
            tg.connect(wrong, "http://127.0.0.1:8480")
        assert "secret" not in str(raised.value)


def test_client_times_out_and_does_not_retry() -> None:
    tried: list[str] = []

    def slow(request: httpx.Request) -> httpx.Response:
        tried.append(request.url.path)
        raise httpx.ReadTimeout("slow", request=request)

    result = {"dataset": "people", "timeout": 2.5, "transport": httpx.MockTransport(slow)}
    with (
        tg.connect("http://127.0.0.1", "tg_x", **result) as remote,  # type: ignore[arg-type]
        pytest.raises(Unreachable, match=r"within 2\.5 seconds") as raised,
    ):
        remote.answer(tg.count(), epsilon=1, key="k")
    assert tried == ["/v1/data/people/answers"]
    assert "charged once" in raised.value.do


class Breaking(Inside):
    """A transport that fails the first times: before the service receives the request, or after it has responded."""

    def __init__(self, service: RunningService, *, times: int, heard: bool) -> None:
        super().__init__(service)
        self.left, self._heard, self.keys = times, heard, []  # type: ignore[var-annotated]

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            self.keys.append(request.headers.get("idempotency-key", ""))
        if self.left and not self._heard:
            self.left -= 1
            raise httpx.ConnectError("refused", request=request)
        response = super().handle_request(request)
        if self.left:
            self.left -= 1
            raise httpx.RemoteProtocolError("server disconnected", request=request)
        return response


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.session.http.PAUSES", (0.0, 0.0, 0.0))


def connect_breaking(service: RunningService, **how: Any) -> tuple[Breaking, RemoteSession]:
    way = Breaking(service, **how)
    return way, tg.connect("http://127.0.0.1", service.tokens["owner"], dataset="people", transport=way)


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.usefixtures("quick")
def test_broken_request_is_retried_with_the_same_key_and_charged_once(
    fresh_service: RunningService, heard: bool
) -> None:
    way, remote = connect_breaking(fresh_service, times=3, heard=heard)
    result = remote.answer(tg.count(), epsilon="0.5", key="k")
    assert way.keys == ["k"] * 4
    assert str(result.cost) == ("0" if heard else "0.5"), "the response that said so was lost"
    assert remote.describe()["account"]["spent"] == "0.5"
    remote.close()


@pytest.mark.usefixtures("quick")
def test_retries_are_limited(fresh_service: RunningService) -> None:
    way, remote = connect_breaking(fresh_service, times=99, heard=True)
    with pytest.raises(Unreachable, match="broke before the response arrived") as raised:
        remote.answer(tg.count(), epsilon="0.5", key="k")
    assert (len(way.keys), "same key" in raised.value.do) == (4, True)


@pytest.mark.usefixtures("quick")
def test_request_that_is_not_idempotent_is_not_retried(fresh_service: RunningService) -> None:
    way, remote = connect_breaking(fresh_service, times=1, heard=True)
    with pytest.raises(Unreachable):
        remote.release("hq").withdraw(f"{SECRET}0001")
    assert len(way.keys) == 1


@pytest.mark.usefixtures("quick")
def test_synthesis_whose_start_breaks_creates_one_job(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "all.ledger"), settings=quiet_settings(run_jobs=True, job_beat=0.05)) as service:
        way, remote = connect_breaking(service, times=2, heard=True)
        assert len(remote.synthesize(epsilon=1, rows=20)) == 1
        assert len(set(way.keys[:3])) == 1
        assert way.keys[0]
        assert len(service.get("/v1/data/people/syntheses").json()["syntheses"]) == 1


def test_terminal_shows_the_progress_of_a_synthesis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screens = [Screen(), Screen(), io.StringIO()]
    settings = quiet_settings(run_jobs=True, job_beat=0.05)
    with (
        run_service(str(tmp_path / "all.ledger"), settings=settings) as service,
        connect_to(service, "owner", "people") as remote,
    ):
        for epsilon, (screen, progress) in enumerate(zip(screens, (None, False, None), strict=True), start=1):
            monkeypatch.setattr("sys.stderr", screen)
            remote.synthesize(epsilon=epsilon, rows=20, progress=progress)
    monkeypatch.undo()
    shown, silent, file = (screen.getvalue() for screen in screens)
    assert shown.startswith("\rsynthesis: ")
    assert not shown.rpartition("\r")[2].strip(), "the line is taken away"
    assert (silent, file) == ("", "")


def test_data_set_is_optional_if_there_is_only_one(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "all.ledger"), policies=(policy(),)) as service:
        for role in ("owner", "analyst", "respondent"):
            with connect_to(service, role) as remote:
                assert remote.dataset == "people"
        way = Inside(service)
        with (
            tg.connect("http://127.0.0.1", transport=way) as anybody,
            pytest.raises(Unsupported, match="Without a token"),
        ):
            anybody.collect("shoppers")


def test_data_set_must_be_named_if_there_are_several(fresh_service: RunningService) -> None:
    with connect_to(fresh_service, "owner") as remote, pytest.raises(Unsupported, match="several"):
        remote.describe()


def test_unknown_data_set_is_refused_with_where_to_find_the_names(fresh_service: RunningService) -> None:
    with connect_to(fresh_service, "owner", "peple") as remote:
        assert repr(remote).startswith('RemoteSession("peple" at http://127.0.0.1)')
        assert fresh_service.tokens["owner"] not in repr(remote)
        with pytest.raises(NotThere, match="GET /v1/data lists the data sets"):
            remote.describe()
