"""`tidegate.connect`: the same verbs, values and exceptions as a local session."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from service.serving import SECRET, TOWNS, House, faster, house

import tidegate as tg
from tidegate import errors
from tidegate.errors import (
    BudgetExceeded,
    KeyReused,
    NotAllowed,
    NotSignedIn,
    NotWaiting,
    TidegateError,
    UnknownColumn,
    Unreachable,
    Unsupported,
)
from tidegate.remote import RemoteAnswer, RemoteSession, error_of


class Inside(httpx.BaseTransport):
    """The way to a service in this process."""

    def __init__(self, served: House) -> None:
        self._served, self.sent = served, []  # type: ignore[var-annotated]

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = request.read()
        self.sent.append(body)
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        given = self._served.client.request(request.method, str(request.url), content=body, headers=headers)
        return httpx.Response(
            given.status_code, content=given.content, headers={"content-type": given.headers.get("content-type", "")}
        )


@contextmanager
def linked(served: House, role: str, dataset: str = "") -> Iterator[RemoteSession]:
    token = served.tokens.get(role, "")
    with tg.connect("http://127.0.0.1", token, dataset=dataset, transport=Inside(served)) as remote:
        yield remote


def test_an_answer_is_the_local_one(served: House) -> None:
    with linked(served, "analyst") as remote:
        assert remote.dataset == "people"
        asked = tg.count().by("town").where(tg.col("age") >= 30)
        before = remote.preview(asked, epsilon=Fraction(1, 5))
        given = remote.answer(asked, epsilon=Fraction(1, 5))
        local = served.holdings["people"].session.answer(asked, epsilon="0.2")
        assert isinstance(given, RemoteAnswer)
        assert (given.rows(), given.entry, given.value) == (local.rows(), local.entry, local.values.tolist())
        assert given.cost == before["cost"] == "0.2"
        both = remote.answer([tg.count(), tg.mean("age")], epsilon=1)
        assert (len(both), both.cost) == (2, "1")  # type: ignore[arg-type]
        assert remote.describe()["account"]["own"]["spent"] == "1.2"
        by_sql = remote.answer("SELECT COUNT(*) FROM people WHERE age >= 40", error=5)
        assert remote.preview("SELECT COUNT(*) FROM people WHERE age >= 40", error=5)["cost"] == by_sql.cost


def test_refusals_are_the_exceptions_of_a_local_session(tmp_path: Path) -> None:
    with house(str(tmp_path / "all.ledger"), share="0.5") as served, linked(served, "analyst") as remote:
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
        with pytest.raises(NotAllowed):
            remote.synthesize(epsilon=1)
        with pytest.raises(NotAllowed):
            remote.release("hq").request("7")
    with house(str(tmp_path / "other.ledger")) as served:
        served.tokens["eve"] = "tg_" + "0" * 16 + "_" + "a" * 43
        with linked(served, "eve") as remote, pytest.raises(NotSignedIn):
            remote.describe()


def test_every_class_of_error_makes_the_journey() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TidegateError)]
    assert len(kinds) > 25
    for kind in kinds:
        again = error_of(kind("what.", "do.", left="1").to_dict()["error"])
        assert (type(again), again.what, again.do, again.facts) == (kind, "what.", "do.", {"left": "1"})
    assert type(error_of({"code": "from the future", "what": "w", "do": "d", "facts": {}})) is TidegateError


def test_a_desk_is_asked_from_afar(served: House) -> None:
    with linked(served, "owner", "people") as owner, linked(served, "respondent", "people") as rosa:
        outcomes = owner.release().request_many([f"{SECRET}{n:04d}" for n in range(150)])
        left = [one for one in outcomes.values() if one["outcome"] == "released"]
        records, cursor = owner.release("hq").released()
        assert (len(records), cursor) == (len(left), len(left))
        assert owner.release("hq").released(since=cursor) == ([], cursor)
        assert rosa.release("hq").status(f"{SECRET}0007") == rosa.release("hq").request(f"{SECRET}0007")
        with pytest.raises(NotWaiting):
            owner.release("hq").withdraw("nobody")
        assert owner.release("hq").state()["waiting"] == len(outcomes) - len(left)


def test_true_values_stay_on_this_side(served: House) -> None:
    transport, chance = Inside(served), random.Random(3)
    with tg.connect("http://127.0.0.1", transport=transport, dataset="people") as anybody:
        survey = anybody.collect("shoppers")
        made = [survey.client().randomize({"age": 33, "town": chance.choice(TOWNS)}) for _ in range(50)]
        assert survey.submit(made)["accepted"] == 50
        with pytest.raises(Unsupported):
            survey.client(fingerprint="0" * 64)
    sent = b"".join(transport.sent)
    assert not any(town.encode() in sent for town in TOWNS)
    with linked(served, "analyst") as remote:
        found = remote.collect().distribution("town")
        assert (found["reports"], remote.collect().state()["reports"]) == (50, 50)
        assert remote.collect().tree("town", by=["age"], strategy="randomized")["reports"] == 50


def test_many_reports_go_in_parts_and_keep_their_places(served: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.remote.BATCH", 4)
    with linked(served, "analyst") as remote:
        survey = remote.collect("shoppers")
        given: list[Any] = [survey.client().randomize({"age": 20, "town": "Aby"}) for _ in range(10)]
        given[7] = {"not": "a report"}
        told = survey.submit(given)
        assert (told["accepted"], [place for place, _ in told["reasons"]]) == (9, [7])


def test_a_synthesis_is_waited_for(tmp_path: Path) -> None:
    settings = faster(run_jobs=True, job_beat=0.05)
    with house(str(tmp_path / "all.ledger"), settings=settings) as served, linked(served, "owner", "people") as remote:
        stages: list[str] = []
        tables = remote.synthesize(
            epsilon=Fraction(3, 2), rows=40, progress=lambda stage, done, of: stages.append(stage)
        )
        assert len(tables) == 1
        assert tables[0].to_arrow().num_rows == len(tables[0].to_pandas()) == 40
        assert remote.describe()["account"]["spent"] == "1.5"
        with pytest.raises(BudgetExceeded):
            remote.synthesize(epsilon=5000)


def test_what_does_not_answer_or_not_as_a_service_is_unreachable() -> None:
    with tg.connect("http://127.0.0.1:9", "tg_x") as nowhere, pytest.raises(Unreachable):
        nowhere.describe()
    other = httpx.MockTransport(lambda request: httpx.Response(502, text="<html>bad gateway</html>"))
    with tg.connect("http://127.0.0.1", "tg_x", transport=other) as strange, pytest.raises(Unreachable, match="502"):
        strange.describe()


def test_several_data_sets_need_a_name(served: House) -> None:
    with linked(served, "owner") as remote, pytest.raises(Unsupported, match="several"):
        remote.describe()
