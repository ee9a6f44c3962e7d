"""A source has one account: a second one, under another name or in another ledger, needs a reason."""

from __future__ import annotations

import hashlib
import hmac
import logging
import shutil
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from ledger.network import Network
from sqlalchemy.engine import make_url

import tidegate as tg
from tidegate import demo
from tidegate.errors import PolicyLoosened, Unsupported
from tidegate.ledger.backup import export_lines
from tidegate.ledger.entry import SECOND
from tidegate.session import Session

POLICY = """
[dataset]
name = "{name}"
source = "{source}"
unit = "row"
[attributes]
age = {{ kind = "integer", from = 18, to = 90 }}
sex = {{ kind = "category", values = ["f", "m"] }}
[promise.loss]
epsilon = 2.0
"""
QUESTION = tg.count().by("sex")
LINKED = """
[dataset]
name = "both"
unit = { person = "person", at_most = 1 }
[tables]
visits = { source = "visits.csv" }
[attributes.visits]
person = { kind = "key" }
cost = { kind = "integer", from = 0, to = 50 }
[promise.loss]
epsilon = 2.0
"""


@pytest.fixture(autouse=True)
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "state" / "sources.registry"
    monkeypatch.setenv("TIDEGATE_REGISTRY", str(path))
    return path


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A folder with a policy, its source, and an account that has spent 0.8."""
    folder = tmp_path / "people"
    folder.mkdir()
    rows = "".join(f"{20 + n % 60},{'fm'[n % 2]}\n" for n in range(300))
    (folder / "people.csv").write_text(f"age,sex\n{rows}")
    write(folder, "people")
    spend(folder / "people.toml", "0.8")
    return folder


def write(folder: Path, name: str, source: str | Path = "people.csv") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(POLICY.format(name=name, source=source))
    return path


def spend(policy: Path, epsilon: str = "0.1", **options: Any) -> Session:
    with tg.open(policy, **options) as session:
        session.answer(QUESTION, epsilon=epsilon)
    return session


def test_other_name_is_refused_with_the_account_and_its_loss(people: Path) -> None:
    """In the same ledger, and in one of its own."""
    other = write(people, "persons")
    with pytest.raises(Unsupported) as raised:
        spend(other)
    assert raised.value.what == 'This source has the account "people" in people.ledger with epsilon 0.8 spent.'
    assert f'name = "people" and ledger = "{people / "people.ledger"}"' in raised.value.do
    with pytest.raises(Unsupported, match=r'account "people" in this ledger with epsilon 0\.8 spent'):
        spend(other, ledger="people.ledger")


def test_new_ledger_is_refused_also_for_a_preview(people: Path) -> None:
    with (
        tg.open(people / "people.toml", ledger="new.ledger") as session,
        pytest.raises(Unsupported, match=r"people\.ledger with epsilon 0\.8"),
    ):
        session.preview(QUESTION, epsilon="0.1")


def test_copy_is_recognized_by_its_content_and_a_changed_file_by_its_location(people: Path) -> None:
    shutil.copy(people / "people.csv", people / "copy.csv")
    with pytest.raises(Unsupported, match='account "people"'):
        spend(write(people, "copy", "copy.csv"))
    with (people / "people.csv").open("a") as file:
        file.write("50,f\n")
    with pytest.raises(Unsupported, match='account "people"'):
        spend(write(people, "changed"))
    spend(people / "people.toml", "0.2")


def test_copy_with_one_other_byte_is_not_recognized(people: Path) -> None:
    """As documented: this prevents mistakes, not a dishonest owner."""
    (people / "other.csv").write_text((people / "people.csv").read_text().replace("20,f", "21,f", 1))
    spend(write(people, "other", "other.csv"))


def test_reason_opens_a_second_account_and_is_recorded_once(people: Path) -> None:
    other = write(people, "persons")
    spend(other, new_account="the old account is archived")
    spend(other)  # accepted from now on
    with tg.open(other) as session:
        [entry] = [entry for entry in session.ledger.entries("persons") if entry.kind == SECOND]
        assert entry.content() == {"reason": "the old account is archived"}
        assert session.ledger.verify().holds
    spend(people / "people.toml", "0.2")
    assert SECOND not in [entry.kind for entry in tg.open(people / "people.toml").ledger.entries()]


def test_account_without_entries_does_not_block_another_name(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,sex\n30,f\n")
    with tg.open(write(tmp_path, "first")) as session:
        assert str(session.account.spent) == "0"
    spend(write(tmp_path, "second"))


def test_moved_folder_and_copied_ledger_keep_their_account(people: Path, tmp_path: Path) -> None:
    moved = Path(shutil.move(people, tmp_path / "moved"))
    assert str(spend(moved / "people.toml", "0.8").policy.dataset.name) == "people"
    copied = Path(shutil.copytree(moved, tmp_path / "copied"))
    spend(copied / "people.toml", "0.3")


def test_ledger_that_is_gone_still_blocks(people: Path) -> None:
    (people / "people.ledger").unlink()
    with pytest.raises(Unsupported, match=r'account "people" in people\.ledger, which cannot be read now'):
        spend(write(people, "persons"))


def test_registered_source_is_not_read_again(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.tables.source._digest_of_files", lambda *_: pytest.fail("the content is read"))
    with tg.open(people / "people.toml") as session:
        assert str(session.account.spent) == "0.8"


def test_policies_as_values_and_tables_in_memory_are_not_registered(people: Path, registry: Path) -> None:
    registry.unlink()
    policy = tg.Policy(tg.Dataset("people"), {"sex": tg.Category(("f", "m"))}, loss=tg.Loss(1))
    for source in (people / "people.csv", tg.open(people / "people.toml").table.source.to_pyarrow()):
        with tg.open(policy, table=source, ledger=str(people / f"{type(source).__name__}.ledger")) as session:
            session.answer(QUESTION, epsilon="0.1")
    assert not registry.exists()


def test_registry_and_export_hold_no_hash_that_could_be_tried(people: Path, registry: Path) -> None:
    """Search both for every SHA-256 and HMAC of the file, its size and its location."""
    source = people / "people.csv"
    status = source.stat()
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    inner = hashlib.sha256(f". {digest}\n".encode()).hexdigest()
    stamp = f". {status.st_size} {status.st_mtime_ns} {status.st_ino}"
    plain = [digest, inner, *(hashlib.sha256(text.encode()).hexdigest() for text in (stamp, str(source), str(status.st_size)))]  # fmt: skip
    plain += [hmac.new(b"", text.encode(), hashlib.sha256).hexdigest() for text in (digest, inner, stamp)]
    key = sqlite3.connect(registry).execute("SELECT value FROM registry_key").fetchone()[0]
    stored = {
        value for row in sqlite3.connect(registry).execute("SELECT * FROM tidegate_known_sources") for value in row
    }
    keyed = {
        hmac.new(bytes.fromhex(key), text.encode(), hashlib.sha256).hexdigest() for text in (inner, stamp, str(source))
    }
    assert keyed <= stored, "these are the hashes that must not leave"
    with tg.open(people / "people.toml") as session:
        exported = "\n".join(export_lines(session.ledger))
        tables = ("tidegate_known_sources", "tidegate_source_states")
        in_ledger = [
            str(value)
            for table in tables
            for row in sqlite3.connect(people / "people.ledger").execute(f"SELECT * FROM {table}")
            for value in row
        ]
    secret = [value for value in [*plain, *stored, *in_ledger, key] if len(value) == 64]
    first = next(iter(tg.open(people / "people.toml").ledger.entries())).hash  # names the ledger; it is public
    assert len(secret) > 12
    assert [value for value in secret if value in exported and value != first] == []
    assert not any(value in registry.read_bytes().decode("latin-1") for value in plain)
    assert stat.S_IMODE(registry.stat().st_mode) == 0o600


def test_unusable_registry_is_reported_and_blocks_nothing(
    people: Path, registry: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry.write_text("not a database, and longer than the header of one " * 10)
    with caplog.at_level(logging.WARNING, "tidegate.ledger"):
        spend(people / "people.toml", "0.1")
    assert "cannot be used (DatabaseError)" in caplog.text


def test_demos_have_a_registry_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_REGISTRY")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    for name in ("first", "second"):
        demo.write(tmp_path / name)
        spend(tmp_path / name / "people.toml", ledger=demo.LEDGER)
    assert not (tmp_path / "home").exists()
    (tmp_path / "third").mkdir()
    (tmp_path / "third" / "people.csv").write_text("age,sex\n30,f\n")
    spend(write(tmp_path / "third", "people"))
    assert (tmp_path / "home" / "tidegate" / "sources.registry").exists()


def test_source_in_postgres_is_known_by_its_location(tmp_path: Path, postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE people AS SELECT 30 AS age, 'm' AS sex FROM generate_series(1, 50)")
    address = f"{postgres_url}&table=people"
    spend(write(tmp_path, "first", address))
    with pytest.raises(Unsupported, match=r'account "first" in first\.ledger with epsilon 0\.1 spent'):
        spend(write(tmp_path, "second", address))


def test_service_with_two_names_for_one_source_refuses_the_second(people: Path) -> None:
    from tidegate.service.datasets import ServedDatasets

    served = ServedDatasets.from_files(
        [str(people / "people.toml"), str(write(people, "persons"))], ledger="people.ledger"
    )
    assert str(served["people"].session.account.spent) == "0.8"
    with pytest.raises(Unsupported, match='account "people" in this ledger'):
        served["persons"].session.answer(QUESTION, epsilon="0.1")
    served.close()


# Other names of one source ------------------------------------------------------------------------------------------


def test_links_to_a_file_are_recognized_also_after_rows_were_appended(people: Path) -> None:
    (people / "soft.csv").symlink_to("people.csv")
    (people / "hard.csv").hardlink_to(people / "people.csv")
    for is_appended in (False, True):
        if is_appended:
            with (people / "people.csv").open("a") as file:
                file.write("50,f\n" * 20)
        for name in ("soft", "hard"):
            with pytest.raises(Unsupported, match='account "people"'):
                spend(write(people, name, f"{name}.csv"))


def test_copy_with_appended_rows_is_recognized_by_its_beginning(people: Path) -> None:
    (people / "longer.csv").write_text((people / "people.csv").read_text() + "50,f\n" * 900)
    with pytest.raises(Unsupported, match='account "people"'):
        spend(write(people, "longer", "longer.csv"))


def test_file_with_the_same_first_rows_only_is_another_source(people: Path) -> None:
    lines = (people / "people.csv").read_text().splitlines()
    (people / "other.csv").write_text("\n".join([*lines[:120], *(["33,m"] * 200)]))
    spend(write(people, "other", "other.csv"))


def test_earlier_source_of_an_account_stays_known(people: Path) -> None:
    (people / "next.csv").write_text("age,sex\n" + "44,m\n" * 300)
    spend(write(people, "people", "next.csv"), "0.2")
    with pytest.raises(Unsupported, match=r'account "people" in people\.ledger with epsilon 1 spent'):
        spend(write(people, "again", "people.csv"))


def test_shared_persons_admit_a_second_account_that_is_charged_together(people: Path) -> None:
    other = write(people, "persons")
    text = other.read_text()
    other.write_text(text.replace('unit = "row"', 'unit = "row"\nshares_persons_with = ["people"]'))
    with pytest.raises(Unsupported, match=r"people\.ledger with epsilon 0\.8") as raised:
        spend(other)  # its own ledger cannot add up both
    assert 'in the same ledger, set shares_persons_with = ["people"]' in raised.value.do
    spend(other, "0.5", ledger="people.ledger")
    with tg.open(other, ledger="people.ledger") as session:
        assert str(session.account.left) == "0.7"
        kinds = [entry.kind for entry in session.ledger.entries("persons")]
        assert kinds == ["policy", "charge", "result"], "the decision is in the policy's entry"
        assert session.ledger.verify().holds
    other.write_text(text)
    with pytest.raises(PolicyLoosened):
        spend(other, ledger="people.ledger")


def test_two_linked_tables_are_the_source_of_each_other(people: Path) -> None:
    """A policy over one of the tables of another policy has the same persons."""
    (people / "both.toml").write_text(LINKED)
    (people / "visits.csv").write_text("person,cost\n" + "".join(f"{n},{n % 50}\n" for n in range(300)))
    with tg.open(people / "both.toml") as session:
        session.answer(tg.count().by("visits.cost"), epsilon="0.1", anyway=True)
    visits = write(people, "visits", "visits.csv")
    visits.write_text(visits.read_text().replace("[attributes]", '[attributes]\ncost = { kind = "integer", from = 0, to = 50 }').replace(
        'age = { kind = "integer", from = 18, to = 90 }\nsex = { kind = "category", values = ["f", "m"] }', ""))  # fmt: skip
    with tg.open(visits) as session, pytest.raises(Unsupported, match='account "both"'):
        session.answer(tg.count().by("cost"), epsilon="0.1", anyway=True)


@pytest.fixture
def by_tcp(postgres_server: Any) -> Any:
    """A forwarder of TCP connections to the server's socket: it has another address there."""
    [path] = Path(postgres_server.pgdata).glob(".s.PGSQL.[0-9]*[0-9]")
    network = Network(path)
    yield network.port
    network.close()


def test_table_in_postgres_is_one_source_under_every_address(tmp_path: Path, postgres_url: str, by_tcp: int) -> None:
    """By socket, host name, address, role, search path and qualified name."""
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS clinic")
        connection.execute("CREATE TABLE clinic.people AS SELECT 30 AS age, 'm' AS sex FROM generate_series(1, 50)")
        connection.execute("DROP ROLE IF EXISTS reader_of_people")
        connection.execute("CREATE ROLE reader_of_people LOGIN")
        connection.execute(
            "GRANT USAGE ON SCHEMA clinic TO reader_of_people; GRANT SELECT ON clinic.people TO reader_of_people"
        )
        connection.execute("CREATE VIEW public.view_of_people AS SELECT * FROM clinic.people")
    database = make_url(postgres_url).database
    try:
        spend(write(tmp_path, "first", f"{postgres_url}&table=clinic.people"))
        with psycopg.connect(postgres_url, autocommit=True) as connection:  # the counters of changes differ from now on
            connection.execute("INSERT INTO clinic.people VALUES (31, 'f')")
        for number, (user, host, query) in enumerate(
            [
                ("postgres", "127.0.0.1", "table=clinic.people"),
                ("postgres", "localhost", "table=clinic.people"),
                ("reader_of_people", "127.0.0.1", "table=clinic.people"),
                ("postgres", "localhost", "options=-csearch_path%3Dclinic&table=people"),
            ]
        ):
            address = f"postgresql://{user}@{host}:{by_tcp}/{database}?{query}"
            with pytest.raises(Unsupported, match=r'account "first" in first\.ledger with epsilon 0\.1 spent'):
                spend(write(tmp_path, f"other{number}", address))
        view = f"{postgres_url}&table=view_of_people"
        spend(write(tmp_path, "view", view))  # as documented: what is under a view is not known
        with pytest.raises(Unsupported, match=r'account "view" in view\.ledger'):
            spend(write(tmp_path, "same_view", view.replace("table=", "connect_timeout=9&table=")))
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA clinic CASCADE; DROP OWNED BY reader_of_people; DROP ROLE reader_of_people")
