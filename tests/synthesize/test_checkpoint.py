"""The diary on disk: one process at a time, incomplete lines dropped, deleted once everything is recorded."""

from __future__ import annotations

import stat
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from ledger.charges import charges, verify_clean
from support.towns import people, policy
from synthesize.margins import Margins

from tidegate.errors import LedgerUnavailable
from tidegate.session import Session
from tidegate.synthesize.checkpoint import delete_diaries, diary_folder, open_diaries
from tidegate.synthesize.diary import Step

STEP = Step("margin of age", Fraction(1, 3), np.array([[1, -2], [3, 4]]))


def same(left: Step, right: Step) -> bool:
    return (left.name, left.epsilon, left.value.tolist()) == (right.name, right.epsilon, right.value.tolist())


def test_written_steps_are_read_again_table_by_table(tmp_path: Path) -> None:
    with open_diaries(tmp_path, "charge") as first:
        first.begin({"rows": 7})
        first.writer(1)(STEP)
    with open_diaries(tmp_path, "charge") as again:
        assert again.about == {"rows": 7}
        assert (again.steps(0), len(again.steps(1))) == ([], 1)
        assert same(again.steps(1)[0], STEP)
    assert stat.S_IMODE((tmp_path / "charge.jsonl").stat().st_mode) == 0o600
    delete_diaries(tmp_path, "charge")
    delete_diaries(tmp_path, "charge")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_truncated_line_is_dropped_and_written_again(tmp_path: Path, cut: int) -> None:
    with open_diaries(tmp_path, "charge") as first:
        first.begin({"rows": 7})
        first.writer(0)(STEP)
        first.writer(0)(STEP)
    file = tmp_path / "charge.jsonl"
    file.write_bytes(file.read_bytes()[:-cut])
    with open_diaries(tmp_path, "charge") as again:
        assert len(again.steps(0)) == 1
        again.writer(0)(STEP)
    with open_diaries(tmp_path, "charge") as third:
        assert all(same(step, STEP) for step in third.steps(0))
        assert len(third.steps(0)) == 2


def test_second_process_waits_and_reports_a_timeout(tmp_path: Path) -> None:
    with open_diaries(tmp_path, "charge"):
        with (
            pytest.raises(LedgerUnavailable, match="Another process is working"),
            open_diaries(tmp_path, "charge", patience=0.1),
        ):
            pass
        with open_diaries(tmp_path, "another charge"):
            pass
    with open_diaries(tmp_path, "charge", patience=0.1):
        pass


def test_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerUnavailable, match="cannot be written"), open_diaries(tmp_path / "file", "charge"):
        pass


def test_diaries_are_beside_the_ledger_file_or_the_policy() -> None:
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
        assert not list((tmp_path / "people.diaries").iterdir())
