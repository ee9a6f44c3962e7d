"""Saved questions, dashboards and stored answers: free to read, whatever is in the table, and visible as they are shared."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.service import RunningService, policy, run_service, table

import tidegate as tg
from tidegate.ledger import Ledger
from tidegate.policy import Category
from tidegate.service.access.permissions import ANALYST, OWNER, RESPONDENT
from tidegate.session import Session

AT = "/v1/data/people"
BY_TOWN: dict[str, Any] = {"sql": "SELECT town, COUNT(*) FROM people GROUP BY town", "epsilon": "1"}
MEAN: dict[str, Any] = {"questions": [{"ask": "mean", "column": "age"}], "epsilon": "2"}
RATIO: dict[str, Any] = {"sql": "SELECT town, SUM(age) / COUNT(*) AS ratio FROM people GROUP BY town", "epsilon": "4"}


def save(service: RunningService, request: Any = BY_TOWN, name: str = "towns", role: str = OWNER, **more: Any) -> Any:
    return service.post(f"{AT}/questions", {"name": name, "request": request, **more}, role).json()


def ask(service: RunningService, request: Any = BY_TOWN) -> str:
    """Buy a question and return the address of its answer."""
    quote = service.post(f"{AT}/quotes", request).json()
    assert service.post(f"{AT}/answers", {"quote": quote["quote"]}).status_code == 200
    return str(quote["link"])


def spent(service: RunningService) -> Fraction:
    return service.datasets["people"].session.account.spent.value


@contextmanager
def without_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail if a table is opened, or anything is charged or recorded."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("reading must neither open a table nor charge")

    with monkeypatch.context() as patch:
        for target, name in ((Session, "open_named"), (Session, "answer"), (Ledger, "charge"), (Ledger, "_record")):
            patch.setattr(target, name, refuse)
        yield


def test_dashboard_shows_stored_answers_and_never_charges_or_runs_the_engine(
    fresh_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(fresh_service)
    questions = [save(fresh_service)["id"], save(fresh_service, MEAN, "mean")["id"]]
    board = fresh_service.post(f"{AT}/dashboards", {"name": "Both", "questions": questions}).json()
    before = (spent(fresh_service), sum(1 for _ in fresh_service.datasets.ledger.entries()))
    with without_engine(monkeypatch):
        content = fresh_service.get(f"{AT}/dashboards/{board['id']}").json()
        page = fresh_service.get(f"/console/data/people/dashboards/{board['id']}", headers={"accept": "text/html"})
    answered, unasked = content["items"]
    assert [row["town"] for row in answered["answer"]["rows"]] == ["Aby", "Berg", "Ceder"]
    assert (answered["price"], unasked["answer"], unasked["price"]) == ("0", None, "2")
    assert page.status_code == 200
    assert "Not asked yet" in page.text
    assert "It would cost epsilon 2" in page.text
    assert f"/ask?saved={questions[1]}" in page.text
    assert (spent(fresh_service), sum(1 for _ in fresh_service.datasets.ledger.entries())) == before
    quote = fresh_service.post(f"{AT}/quotes", MEAN).json()["quote"]
    with without_engine(monkeypatch):  # it detects a charge
        assert fresh_service.post(f"{AT}/answers", {"quote": quote}).status_code == 500


def test_saved_question_with_sql_that_computes_shows_its_table(fresh_service: RunningService) -> None:
    ask(fresh_service, RATIO)
    content = fresh_service.get(f"{AT}/questions/{save(fresh_service, RATIO)['id']}").json()
    assert [column["name"] for column in content["answer"]["tables"][0]["columns"]] == ["town", "ratio"]
    address = f"{AT}/questions/{content['id']}?format="
    assert fresh_service.get(f"{address}csv").text.splitlines()[0] == '"town","ratio","ratio_low","ratio_high"'
    unasked = save(fresh_service, MEAN, "mean")["id"]
    assert fresh_service.get(f"{AT}/questions/{unasked}?format=csv").status_code == 404


def test_question_that_the_policy_no_longer_allows_says_why(fresh_service: RunningService, tmp_path: Path) -> None:
    saved = save(fresh_service, {"questions": [{"ask": "count", "by": ["town"]}], "epsilon": 1})
    board = fresh_service.post(f"{AT}/dashboards", {"name": "One", "questions": [saved["id"]]}).json()
    served = fresh_service.datasets["people"]
    attributes = {name: value for name, value in served.policy.attributes.items() if name != "town"}
    served.policy = tg.Policy(served.policy.dataset, attributes, loss=tg.Loss("1000"))  # type: ignore[misc]
    (item,) = fresh_service.get(f"{AT}/dashboards/{board['id']}").json()["items"]
    assert (item["answer"], item["price"]) == (None, None)
    assert "town" in item["problem"]["what"]
    page = fresh_service.get(f"/console/data/people/dashboards/{board['id']}", headers={"accept": "text/html"})
    assert page.status_code == 200


def test_items_are_private_until_they_are_shared(fresh_service: RunningService) -> None:
    service, saved = fresh_service, save(fresh_service)
    address = f"{AT}/questions/{saved['id']}"
    assert service.get(address, ANALYST).status_code == 404
    assert service.get(f"{AT}/questions", ANALYST).json() == {"questions": []}
    assert (
        service.call("PATCH", address, OWNER, json={"shared": True, "name": "All towns"}).json()["name"] == "All towns"
    )
    shared = service.get(address, ANALYST).json()
    assert (shared["name"], shared["own"], shared["owner"]) == ("All towns", False, "olga")
    for method, body in (("PATCH", {"name": "mine"}), ("DELETE", None)):
        assert service.call(method, address, ANALYST, json=body).status_code == 403
    assert service.get(address, RESPONDENT).status_code == 403
    mine = save(service, MEAN, "mean", ANALYST)
    assert service.call("DELETE", f"{AT}/questions/{mine['id']}", OWNER).status_code == 404, "it is not shared"
    service.call("PATCH", f"{AT}/questions/{mine['id']}", ANALYST, json={"shared": True})
    assert service.call("DELETE", f"{AT}/questions/{mine['id']}", OWNER).json() == {"removed": mine["id"]}
    assert service.get(f"{AT}/questions/{mine['id']}", ANALYST).status_code == 404


def test_shared_dashboard_shows_the_questions_of_its_owner_but_not_those_that_others_withdrew(
    fresh_service: RunningService,
) -> None:
    own, other = save(fresh_service), save(fresh_service, MEAN, "mean", ANALYST, shared=True)
    body = {"name": "Both", "shared": True, "questions": [own["id"], other["id"]]}
    board = fresh_service.post(f"{AT}/dashboards", body).json()
    assert [item["name"] for item in fresh_service.get(f"{AT}/dashboards/{board['id']}", ANALYST).json()["items"]] == [
        "towns",
        "mean",
    ]
    fresh_service.call("PATCH", f"{AT}/questions/{other['id']}", ANALYST, json={"shared": False})
    assert fresh_service.get(f"{AT}/dashboards/{board['id']}").json()["items"][1] is None
    fresh_service.call("DELETE", f"{AT}/questions/{own['id']}", OWNER)
    items = fresh_service.get(f"{AT}/dashboards/{board['id']}", ANALYST).json()["items"]
    assert [item and item["name"] for item in items] == [None, "mean"]
    rearranged = fresh_service.call("PATCH", f"{AT}/dashboards/{board['id']}", OWNER, json={"questions": []}).json()
    assert (rearranged["questions"], rearranged["name"]) == ([], "Both")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("questions", {"name": "", "request": BY_TOWN}, 422),
        ("questions", {"name": " padded", "request": BY_TOWN}, 422),
        ("questions", {"name": "x" * 101, "request": BY_TOWN}, 422),
        ("questions", {"name": "no loss", "request": {"sql": "SELECT AVG(age) FROM people"}}, 422),
        ("questions", {"name": "no column", "request": {"sql": "SELECT AVG(pay) FROM people", "epsilon": 1}}, 422),
        ("questions", {"name": "taken", "request": BY_TOWN}, 409),
        ("dashboards", {"name": "unknown", "questions": ["0" * 20]}, 404),
        ("dashboards", {"name": "long", "questions": ["0" * 20] * 21}, 422),
    ],
)
def test_item_that_cannot_be_saved_is_refused(
    shared_service: RunningService, path: str, body: Any, status: int
) -> None:
    if status == 409:
        shared_service.post(f"{AT}/questions", {"name": "taken", "request": BY_TOWN})
    response = shared_service.post(f"{AT}/{path}", body)
    assert response.status_code == status, response.text
    assert response.json()["do"] or status == 422


def test_answer_is_downloaded_in_every_format(fresh_service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    link = ask(fresh_service)
    rows = fresh_service.get(link).json()["rows"]
    with without_engine(monkeypatch):
        files = {kind: fresh_service.get(f"{link}?format={kind}") for kind in ("csv", "parquet", "svg", "png")}
    for kind, file in files.items():
        assert file.status_code == 200
        assert file.headers["content-disposition"].endswith(f'.{kind}"')
    assert pq.read_table(io.BytesIO(files["parquet"].content)).to_pylist() == rows
    lines = list(csv.DictReader(io.StringIO(files["csv"].text)))
    assert [{name: line[name] for name in ("town", "count")} for line in lines] == [
        {"town": row["town"], "count": str(row["count"])} for row in rows
    ]
    assert ElementTree.fromstring(files["svg"].text).tag.endswith("svg")
    assert files["png"].content.startswith(b"\x89PNG")
    drawn = fresh_service.get(f"{link}?charts=true&order=largest").json()["charts"]["answer"]["table"]["rows"]
    assert [row[1] for row in drawn] == sorted((row["count"] for row in rows), reverse=True)


def test_csv_of_an_answer_runs_no_formula(tmp_path: Path) -> None:
    labels = ("=1+1", "@x", "plain")
    people = policy()
    attributes = {**people.attributes, "town": Category(labels)}
    risky = tg.Policy(people.dataset, attributes, loss=tg.Loss("100"))
    data = table().set_column(2, "town", pa.array([labels[number % 3] for number in range(400)]))
    with run_service(str(tmp_path / "l"), policies=(risky,), data=data) as service:
        text = service.get(f"{ask(service)}?format=csv").text
    assert [line["town"] for line in csv.DictReader(io.StringIO(text))] == ["'=1+1", "'@x", "plain"]


def test_single_number_has_a_chart_and_a_table(fresh_service: RunningService) -> None:
    link = ask(fresh_service, MEAN)
    assert fresh_service.get(f"{link}?format=png").content.startswith(b"\x89PNG")
    page = fresh_service.get(f"/console{link[3:]}", headers={"accept": "text/html"}).text
    assert "95% interval" in page
    assert ">noisy<" in page, "the unbiased number is in the table"


def test_permanent_address_is_that_of_the_history_and_survives_a_repeated_purchase(
    fresh_service: RunningService,
) -> None:
    link = ask(fresh_service)
    first = fresh_service.get(link).json()
    assert ask(fresh_service) == link
    assert fresh_service.get(link).json()["rows"] == first["rows"]
    assert fresh_service.get(f"{AT}/history").json()["questions"][0]["link"] == link
    assert fresh_service.get(f"{AT}/stored-answers/{'0' * 64}").status_code == 404
    assert fresh_service.get(link.replace("people", "others")).status_code == 404


def test_workload_answer_is_read_again(fresh_service: RunningService) -> None:
    request = {
        "questions": [{"ask": "count", "by": ["town"]}, {"ask": "histogram", "column": "age"}],
        "epsilon": "2",
        "plan": "auto",
    }
    link = ask(fresh_service, request)
    again = fresh_service.post(f"{AT}/answers", {**request, "anyway": True}).json()
    assert [part["rows"] for part in fresh_service.get(link).json()["answers"]] == [
        part["rows"] for part in again["answers"]
    ]


def test_large_answer_is_paged_with_the_download_first(tmp_path: Path) -> None:
    ages = tg.Policy(tg.Dataset("people", rows=400), {"age": tg.Integer(0, 999)}, loss=tg.Loss("100"))
    data = pa.table({"age": [number % 1000 for number in range(400)]})
    with run_service(str(tmp_path / "l"), policies=(ages,), data=data) as service:
        link = ask(service, {"questions": [{"ask": "count", "by": ["age"]}], "epsilon": "9", "anyway": True})
        page = service.get(f"/console{link[3:]}?page=2", headers={"accept": "text/html"}).text
        beyond = service.get(f"/console{link[3:]}?page=99", headers={"accept": "text/html"}).text
        assert len(service.get(f"{link}?format=csv").text.splitlines()) == 1001
    assert "Rows 101 to 200 of 1,000" in page
    assert "in blocks of 10" in page
    assert page.index("format=csv") < page.index("<figure") < page.index("<table")
    assert "Page 10 of 10" in beyond
    assert len(page) < 150_000


@pytest.mark.parametrize("request_body", [{"questions": [{"ask": "count"}]}, {"sql": "SELECT COUNT(*) FROM people"}])
def test_public_number_of_rows_is_shown_and_not_sold(shared_service: RunningService, request_body: Any) -> None:
    response = shared_service.post(f"{AT}/quotes", {**request_body, "epsilon": "1"})
    assert (response.status_code, response.json()["detail"]) == (422, "The number of rows is public: 400.")


def test_useless_question_is_refused_in_the_quote_with_the_loss_that_would_do(fresh_service: RunningService) -> None:
    body = {"questions": [{"ask": "mean", "column": "age"}], "epsilon": "0.01"}
    refused = fresh_service.post(f"{AT}/quotes", body).json()
    assert "would be useless" in refused["detail"]
    better = refused["do"].split("Request epsilon ")[1].split(" ")[0]
    assert fresh_service.post(f"{AT}/quotes", {**body, "epsilon": better}).status_code == 200
    assert fresh_service.post(f"{AT}/quotes", {**body, "anyway": True}).status_code == 200, "scripts can insist"
