"""New collections in the policy file: added completely or not at all, by one process at a time, visible to all processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from service.test_remote import connect_to
from starlette.testclient import TestClient
from support.service import PROBLEM, QUIET, RunningService, run_service

import tidegate as tg
from tidegate.errors import PolicyLoosened, StalePolicy, Unsupported
from tidegate.ledger.tokens import Tokens
from tidegate.policy import Collection, Question
from tidegate.policy.toml import parse_policy, read_policy, write_collection, write_policy
from tidegate.service.access.permissions import ANALYST, OWNER, RESPONDENT
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app
from tidegate.service.datasets import PolicyFile, ServedDatasets
from tidegate.service.routes.collections import estimate_distribution

POLICY = """\
# Read me: these comments stay.
[dataset]
name = "shop"
unit = "row"     # one report, one person

[attributes]
age  = { kind = "integer", from = 18, to = 57, bins = [28, 38, 48] }
town = { kind = "category", values = ["Aby", "Berg", "Ceder"] }
one  = { kind = "category", values = ["only"] }
cart = { kind = "items", vocabulary = ["milk", "bread", "tea"] }
who  = { kind = "key" }

[collection.shoppers]   # the first one
questions.town = { attribute = "town", operator = "unary", epsilon = 2.0 }"""
WANTED = {
    "collection": "visitors",
    "questions": {"age": {"attribute": "age", "operator": "square-wave", "epsilon": "1.5"}},
    "clients": 500,
}
AT = "/v1/data/shop/collections"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "shop.toml").write_text(POLICY, "utf-8")
    return tmp_path / "shop.toml"


@contextmanager
def serve_file(file: Path) -> Iterator[RunningService]:
    """One of the processes that serve a file."""
    datasets = ServedDatasets.from_files([str(file)])
    app = create_app(QUIET, datasets)
    stored_tokens = Tokens(datasets.ledger.store)
    tokens = {role: make_token(stored_tokens, role=role, name=role, dataset="shop")[0] for role in (OWNER, ANALYST)}
    tokens[RESPONDENT] = make_token(stored_tokens, role=RESPONDENT, name="rosa", dataset="shop", record="1")[0]
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield RunningService(client, app, datasets, tokens)


def visitors(policy: Any, **more: Any) -> Collection:
    return Collection("visitors", {"town": Question("town", policy.attributes["town"], "subset", epsilon=1)}, **more)


def test_new_collection_is_appended_to_the_file_and_accepts_reports(file: Path) -> None:
    with serve_file(file) as shop:
        drafted = shop.post(f"{AT}/drafts", WANTED).json()
        assert file.read_text("utf-8") == POLICY, "a draft makes nothing"
        response = shop.post(AT, WANTED)
        assert (response.status_code, response.json()["collection"], response.json()["reports"]) == (201, "visitors", 0)
        assert file.read_text("utf-8") == f"{POLICY}\n\n{drafted['section']}"
        survey = shop.datasets["shop"].survey("visitors")
        sent = shop.post(f"{AT}/visitors/reports", {"reports": [survey.client().randomize({"age": 30})]}, "public")
        assert sent.json()["accepted"] == 1
        assert [collection["collection"] for collection in shop.get(AT, ANALYST).json()["collections"]] == [
            "shoppers",
            "visitors",
        ]
        opened = [entry for entry in shop.datasets.ledger.entries() if entry.account == "shop/visitors"]
        assert opened[0].content()["who"] == OWNER
    assert read_policy(file).collections["visitors"].clients == 500
    assert [path.name for path in file.parent.iterdir() if path.suffix == ".part"] == []


def test_all_processes_see_a_new_collection(file: Path) -> None:
    with serve_file(file) as here, serve_file(file) as there:
        assert there.get(f"{AT}/visitors", "public").status_code == 404
        assert here.post(AT, WANTED).status_code == 201
        described = here.get(f"{AT}/visitors", "public").json()
        assert there.get(f"{AT}/visitors", "public").json() == described
        second = {**WANTED, "collection": "guests"}
        assert there.post(AT, second).status_code == 201
        assert [collection["collection"] for collection in here.get(AT).json()["collections"]][1:] == [
            "visitors",
            "guests",
        ]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "wrong",
    [
        {**WANTED, "collection": "shoppers"},
        {**WANTED, "collection": "a b"},
        {**WANTED, "collection": "x]\n[dataset"},
        {**WANTED, "questions": {}},
        {**WANTED, "questions": {"age": {"attribute": "nothing", "operator": "unary", "epsilon": 1}}},
        {**WANTED, "questions": {"age": {"attribute": "town", "operator": "square-wave", "epsilon": 1}}},
        {**WANTED, "questions": {"age": {"attribute": "age", "operator": "square-wave", "epsilon": 900}}},
        {**WANTED, "questions": {"age": {"attribute": "age", "operator": "square-wave"}}},
        {**WANTED, "questions": {"age": {"attribute": "age", "operator": "square-wave", "epsilon": 1, "rho": 0.5}}},
        {**WANTED, "questions": {"who": {"attribute": "who", "operator": "unary", "epsilon": 1}}},
        {**WANTED, "repeats": "two-layers"},
        {**WANTED, "more": 1},
    ],
)
def test_invalid_collection_is_refused_and_the_file_is_unchanged(file: Path, wrong: Any) -> None:
    with serve_file(file) as shop:
        response = shop.post(AT, wrong)
        assert (response.status_code, set(response.json())) == (422, PROBLEM)
    assert file.read_text("utf-8") == POLICY


def test_analyst_can_list_but_not_create_collections(file: Path) -> None:
    with serve_file(file) as shop:
        assert shop.get(AT, ANALYST).status_code == 200
        for path in (AT, f"{AT}/drafts"):
            assert shop.post(path, WANTED, ANALYST).status_code == 403
    assert file.read_text("utf-8") == POLICY


def test_adviser_lists_the_available_attributes(file: Path) -> None:
    with serve_file(file) as shop:
        content = {attribute["attribute"]: attribute for attribute in shop.get(AT).json()["attributes"]}
    assert {name: (attribute["values"], attribute["ordered"]) for name, attribute in content.items()} == {
        "age": (4, True),  # its bins
        "town": (3, False),
        "cart": (3, False),
    }, "neither a key nor what has one value"


def test_policy_without_a_file_accepts_no_collection(fresh_service: RunningService) -> None:
    response = fresh_service.post("/v1/data/people/collections", {**WANTED})
    assert (response.status_code, "no policy file" in response.json()["detail"]) == (422, True)
    assert fresh_service.get("/v1/data/people/collections").json()["may_add"] is False


def test_promise_refused_by_the_ledger_leaves_the_file_unchanged(file: Path) -> None:
    with tg.open(file) as session:
        other = visitors(session.policy, version=3)
        file.write_text(f"{POLICY}\n{write_collection(other)}", "utf-8")
    with tg.open(file) as session:
        session.collect("visitors")
    file.write_text(POLICY, "utf-8")
    with serve_file(file) as shop:
        response = shop.post(AT, WANTED)
        assert (response.status_code, response.json()["code"]) == (409, StalePolicy("").code)
        response = shop.post(AT, {**WANTED, "version": 3})
        assert (response.status_code, response.json()["code"]) == (409, PolicyLoosened("").code)
        assert file.read_text("utf-8") == POLICY
        assert shop.post(AT, {**WANTED, "version": 4}).status_code == 201


def test_concurrently_changed_file_is_not_overwritten(file: Path) -> None:
    policy = read_policy(file)
    file.write_text(POLICY.replace("epsilon = 2.0", "epsilon = 1.0"), "utf-8")
    before = file.read_bytes()
    with pytest.raises(StalePolicy):
        PolicyFile(file).add(visitors(policy), to=policy, agree=lambda _: None)
    assert file.read_bytes() == before


def test_refused_collection_leaves_the_file_unchanged(file: Path) -> None:
    def refuse(_: Any) -> None:
        raise Unsupported("no.")

    policy = read_policy(file)
    with pytest.raises(Unsupported, match="no"):
        PolicyFile(file).add(visitors(policy), to=policy, agree=refuse)
    assert file.read_text("utf-8") == POLICY
    assert sorted(path.name for path in file.parent.iterdir()) == [".shop.toml.lock", "shop.toml"]


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "\n# last words"])
def test_section_is_appended_after_any_line_ending(file: Path, ending: str) -> None:
    file.write_bytes((POLICY + ending).encode())
    policy = read_policy(file)
    grown = PolicyFile(file).add(visitors(policy), to=policy, agree=lambda _: None)
    assert read_policy(file) == grown
    assert file.read_bytes().startswith((POLICY + ending).encode())


def test_inline_collections_are_refused_and_unchanged(file: Path) -> None:
    """An inline table in TOML cannot be extended: a section for it would be invalid."""
    line = (
        'collection = { shoppers = { questions = { town = { attribute = "town", operator = "unary", epsilon = 2 } } } }'
    )
    text = f"{line}\n{POLICY.partition('[collection')[0]}"
    file.write_text(text, "utf-8")
    policy = read_policy(file)
    with pytest.raises(Unsupported, match="by hand"):
        PolicyFile(file).add(visitors(policy), to=policy, agree=lambda _: None)
    assert file.read_text("utf-8") == text


def test_symbolic_link_and_permissions_are_preserved(file: Path) -> None:
    link = file.with_name("link.toml")
    link.symlink_to(file)
    os.chmod(file, 0o640)
    policy = read_policy(link)
    PolicyFile(link).add(visitors(policy), to=policy, agree=lambda _: None)
    assert link.is_symlink()
    assert (file.stat().st_mode & 0o777, "visitors" in file.read_text("utf-8")) == (0o640, True)


ADDING = """\
import sys
from pathlib import Path
from tidegate.errors import StalePolicy
from tidegate.policy import Collection, Question
from tidegate.policy.toml import read_policy
from tidegate.service.datasets import PolicyFile
path, word = Path(sys.argv[1]), sys.argv[2]
for number in range(8):
    while True:
        policy = read_policy(path)
        asked = {"town": Question("town", policy.attributes["town"], "subset", epsilon=1)}
        try:
            PolicyFile(path).add(Collection(f"{word}{number}", asked), to=policy, agree=lambda _: None)
            break
        except StalePolicy:  # the other one was quicker
            continue
"""


def test_concurrent_additions_are_both_saved(file: Path) -> None:
    at_work = [subprocess.Popen([sys.executable, "-c", ADDING, str(file), word]) for word in ("a", "b")]
    while any(item.poll() is None for item in at_work):
        read_policy(file)  # a concurrent reader reads a complete policy
    assert [item.returncode for item in at_work] == [0, 0]
    names = {f"{word}{number}" for word in "ab" for number in range(8)}
    assert set(read_policy(file).collections) == names | {"shoppers"}


# A file that changes while it is served


def test_changed_policy_file_is_reloaded(file: Path) -> None:
    datasets = ServedDatasets.from_files([str(file)])
    before = datasets["shop"]
    assert datasets["shop"] is before
    file.write_text(POLICY.replace('"Ceder"', '"Ceder", "Dal"').replace("unary", "subset"), "utf-8")
    assert len(datasets["shop"].policy.attributes["town"].values) == 4  # type: ignore[attr-defined]
    assert datasets["shop"].session.ledger is before.session.ledger, "one pool of connections"


@pytest.mark.parametrize(
    "other",
    [
        "this is no policy",
        POLICY.replace('"shop"', '"store"'),
        POLICY.replace('unit = "row"', 'unit = "row"\nledger = "x"'),
    ],
    ids=["unreadable", "another data set", "another ledger"],
)
def test_invalid_policy_file_is_ignored(file: Path, other: str) -> None:
    datasets = ServedDatasets.from_files([str(file)])
    before = datasets["shop"]
    file.write_text(other, "utf-8")
    assert datasets["shop"] is before
    file.unlink()
    assert datasets["shop"] is before
    file.write_text(f"{POLICY}\nclients = 7\n", "utf-8")
    assert datasets["shop"].policy.collections["shoppers"].clients == 7, "and it is looked at again"


def test_changed_file_is_opened_once_by_concurrent_threads(file: Path) -> None:
    datasets, met = ServedDatasets.from_files([str(file)]), []
    assert datasets["shop"]
    file.write_text(f"{POLICY}\nclients = 7\n", "utf-8")
    together = threading.Barrier(8)

    def ask() -> None:
        together.wait()
        met.append(datasets["shop"])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(item) for item in met}) == 1
    assert met[0].policy.collections["shoppers"].clients == 7


def test_new_collection_keeps_earlier_answers_and_releases(tmp_path: Path) -> None:
    """The account continues: a repeated query is free, and a released record stays released."""
    import pyarrow.csv
    from support.service import SECRET, policy, table

    pyarrow.csv.write_csv(table(), tmp_path / "people.csv")
    text = write_policy(policy()).replace(f"{SECRET}place.csv", "people.csv")
    (tmp_path / "people.toml").write_text(text, "utf-8")
    datasets = ServedDatasets.from_files([str(tmp_path / "people.toml")])
    body = {"epsilon": "1", "user": "ana"}
    first = datasets["people"].session.answer("SELECT COUNT(*) FROM people WHERE age > 20", anyway=True, **body)
    out = datasets["people"].desk("hq").request(f"{SECRET}0001")
    before = datasets["people"]
    before.add(visitors(before.policy), user="olga")
    grown = datasets["people"]
    assert grown is not before
    again = grown.session.answer("SELECT COUNT(*) FROM people WHERE age > 20", anyway=True, **body)
    assert (again.value, str(again.charge.cost)) == (first.value, "0")
    assert grown.desk("hq").request(f"{SECRET}0001") == out
    assert grown.session.account.spent == before.session.ledger.account("people").spent  # type: ignore[union-attr]


def test_written_section_parses_to_the_same_collection() -> None:
    policy = parse_policy(POLICY)
    for item in (*policy.collections.values(), visitors(policy, closed=True, clients=3, version=2)):
        text = f"{POLICY.partition('[collection')[0]}\n{write_collection(item)}"
        assert parse_policy(text).collections[item.name] == item


# The end


def test_closed_collection_refuses_reports_and_stays_readable(file: Path) -> None:
    with serve_file(file) as shop:
        survey = shop.datasets["shop"].survey("shoppers")
        reports = [survey.client().randomize({"town": "Aby"}) for _ in range(20)]
        assert shop.post(f"{AT}/shoppers/reports", {"reports": reports[:10]}, "public").json()["accepted"] == 10
        assert shop.post(f"{AT}/shoppers/closing", {"version": 2}).status_code == 409, "another version"
        assert shop.post(f"{AT}/shoppers/closing", {"version": 1}, ANALYST).status_code == 403
        for _ in range(2):
            assert shop.post(f"{AT}/shoppers/closing", {"version": 1}).json()["closed"] is True
        late = shop.post(f"{AT}/shoppers/reports", {"reports": reports[10:]}, "public").json()
        assert (late["accepted"], sum(late["refused"].values())) == (0, 10)
        assert shop.get(f"{AT}/shoppers/distributions/town").json()["reports"] == 10
        assert shop.get(AT).json()["collections"][0]["closed"] is True


def test_estimate_is_computed_once_until_a_report_is_counted(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = ServedDatasets.from_files([str(file)])["shop"]
    survey, computed = dataset.survey("shoppers"), []
    compute = type(survey).distribution

    def counting(*args: Any, **options: Any) -> Any:
        computed.append(1)
        return compute(*args, **options)

    monkeypatch.setattr(type(survey), "distribution", counting)
    for reports in (1, 2):
        survey.submit([survey.client().randomize({"town": "Aby"})])
        first, again = (estimate_distribution(dataset, "shoppers", "town") for _ in range(2))
        assert first == again
        assert (first["reports"], len(computed)) == (reports, reports)
    estimate = estimate_distribution(dataset, "shoppers", "town", confidence=0.5)
    assert estimate != first, "the options are part of the cache's key"


def test_remote_session_creates_and_closes_a_collection(file: Path) -> None:
    with serve_file(file) as shop, connect_to(shop, OWNER, "shop") as remote:
        survey = remote.make_collection("visitors", {"town": {"attribute": "town", "operator": "subset", "epsilon": 1}})
        assert survey.submit([survey.client().randomize({"town": "Berg"})]).accepted == 1
        survey.close()
        assert survey.closed is True


def test_broken_collection_does_not_hide_the_others(file: Path) -> None:
    with tg.open(file) as session:
        session.collect("shoppers")
    file.write_text(f"{POLICY.replace('2.0', '3.0')}\n\n{write_collection(visitors(parse_policy(POLICY)))}", "utf-8")
    with serve_file(file) as shop:
        content = {collection["collection"]: collection["problem"] for collection in shop.get(AT).json()["collections"]}
    assert content["visitors"] is None
    assert "other questions" in str(content["shoppers"])


def test_data_set_from_a_session_has_no_policy_file(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "l.ledger")) as running:
        assert running.datasets["people"].file is None
