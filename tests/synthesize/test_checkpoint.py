"""The diary of a charge: in the ledger, one process at a time, never learned twice, deleted once everything is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from ledger.charges import charge, charges, verify_clean
from support.diaries import diary_lines
from support.people import people_policy
from support.towns import people, policy
from synthesize.margins import Margins

from tidegate.errors import LedgerUnavailable, Unsupported
from tidegate.ledger import Entry, Ledger, backup
from tidegate.ledger import diaries as stored
from tidegate.ledger.retention import expire
from tidegate.ledger.schema import leases
from tidegate.ledger.transfer import copy
from tidegate.session import Session
from tidegate.synthesize.checkpoint import delete_diaries, diary_folder, open_diaries
from tidegate.synthesize.diary import Step

STEP = Step("margin of age", Fraction(1, 3), np.array([[1, -2], [3, 4]]))


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    with closing(Ledger(ledger_url)) as opened:
        opened.open_account(people_policy())
        for number in range(2):
            charge(opened, people_policy(), number, "0.1")
        yield opened


def same(left: Step, right: Step) -> bool:
    return (left.name, left.epsilon, left.value.tolist()) == (right.name, right.epsilon, right.value.tolist())


def begin(ledger: Ledger, entry: Entry) -> None:
    with open_diaries(ledger, entry) as diary:
        diary.begin({"rows": 7})
        diary.writer(1)(STEP)


def test_written_steps_are_read_again_table_by_table(ledger: Ledger) -> None:
    entry = charges(ledger)[0]
    begin(ledger, entry)
    with open_diaries(ledger, entry) as again:
        assert again.about == {"rows": 7}
        assert (again.steps(0), len(again.steps(1))) == ([], 1)
        assert same(again.steps(1)[0], STEP)
    assert verify_clean(ledger).holds
    delete_diaries(ledger, entry)
    delete_diaries(ledger, entry)
    with open_diaries(ledger, entry) as empty:
        assert (empty.about, empty.steps(1)) == ({}, [])


def test_second_process_waits_and_reports_a_timeout(ledger: Ledger) -> None:
    first, second = charges(ledger)
    with open_diaries(ledger, first):
        with (
            pytest.raises(LedgerUnavailable, match="Another process is working"),
            open_diaries(ledger, first, patience=0.1),
        ):
            pass
        with open_diaries(ledger, second, patience=0):
            pass
    with open_diaries(ledger, first, patience=0):
        pass


def take_over(ledger: Ledger, *, owner: str, seconds_ago: float) -> None:
    with ledger.store.writing() as connection:
        beat = ledger.store.clock(connection) - seconds_ago
        connection.execute(leases.update().values(owner=owner, beat=beat))


def test_lease_of_a_silent_machine_ends_and_its_late_line_is_refused(ledger: Ledger) -> None:
    entry = charges(ledger)[0]
    with open_diaries(ledger, entry) as late:
        late.begin({"rows": 7})
        take_over(ledger, owner="elsewhere/1/x", seconds_ago=stored.LEASE - 5)
        with pytest.raises(LedgerUnavailable, match="Another process is"), open_diaries(ledger, entry, patience=0.1):
            pass
        take_over(ledger, owner="elsewhere/1/x", seconds_ago=stored.LEASE + 1)
        with open_diaries(ledger, entry, patience=0) as later:
            with pytest.raises(LedgerUnavailable, match="has taken over"):
                late.writer(1)(STEP)
            later.writer(1)(STEP)
    with open_diaries(ledger, entry, patience=0) as diary:
        assert len(diary.steps(1)) == 1
    assert verify_clean(ledger).holds


def test_lease_is_renewed_while_a_long_step_runs(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "LEASE", 0.5)
    monkeypatch.setattr(stored, "BEAT", 0.1)
    entry = charges(ledger)[0]
    with open_diaries(ledger, entry) as diary:
        with pytest.raises(LedgerUnavailable, match="is working"), open_diaries(ledger, entry, patience=1.2):
            pass
        diary.begin({"rows": 7})


def test_backup_and_copy_contain_the_diary(tmp_path: Path, ledger: Ledger) -> None:
    begin(ledger, charges(ledger)[0])
    lines = diary_lines(ledger_file(tmp_path, ledger))
    assert len(lines) == 2
    assert diary_lines(tmp_path / "saved") == lines


def ledger_file(folder: Path, ledger: Ledger) -> Path:
    """Back up a ledger, move the original to a new file, and return the new file."""
    backup(ledger, folder / "saved")
    address = str(ledger.store.path or ledger.store.engine.url.render_as_string(hide_password=False))
    copy(address.replace("postgresql+psycopg", "postgresql"), str(folder / "moved.ledger"))
    entry = charges(ledger)[0]
    with open_diaries(ledger, entry) as diary, pytest.raises(LedgerUnavailable, match="was moved"):
        diary.writer(1)(STEP)
    return folder / "moved.ledger"


def test_expired_diary_is_never_learned_again(ledger: Ledger) -> None:
    for entry in charges(ledger):
        begin(ledger, entry)
    today = datetime.now(UTC).date()
    assert expire(ledger, today - timedelta(days=1))["diaries"] == 0
    assert expire(ledger, today + timedelta(days=1), user="olga") == {"deleted": 0, "withdrawn": 0, "diaries": 2}
    assert expire(ledger, today + timedelta(days=1))["diaries"] == 0
    for entry in charges(ledger):
        with pytest.raises(Unsupported, match="was deleted"), open_diaries(ledger, entry):
            pass
    assert verify_clean(ledger).holds


def test_diaries_of_earlier_versions_are_beside_the_ledger_file_or_the_policy() -> None:
    folder = Path("here")
    assert diary_folder("a/b.ledger", folder, "people") == Path("a/b.ledger.diaries")
    assert diary_folder("sqlite:///a/b.ledger", folder, "people") == Path("a/b.ledger.diaries")
    assert diary_folder("postgresql://host/db", folder, "people") == Path("here/people.diaries")


def test_postgres_ledger_records_the_same_charge_and_table(tmp_path: Path, postgres_url: str) -> None:
    with Session(policy(), table=people(), ledger=postgres_url, folder=tmp_path) as session:
        first = session.synthesize(epsilon=1, model=Margins())
        again = session.synthesize(epsilon=1, model=Margins())
        assert (str(again.cost), again[0].to_arrow()) == ("0", first[0].to_arrow())
        assert len(charges(session.ledger)) == 1
        assert verify_clean(session.ledger).holds
        assert not diary_lines(postgres_url)
        assert not list(tmp_path.iterdir())
