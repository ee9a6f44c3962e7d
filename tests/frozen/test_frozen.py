"""Names, addresses and shapes that others depend on do not change by accident."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidegate as tg
from frozen.snapshots import HERE, SNAPSHOTS, read, shape
from tidegate.ledger import verify
from tidegate.ledger.backup import export_lines, verify_export
from tidegate.policy import read_policy

HOW = "If this change is intended: PYTHONPATH=tests python -m frozen, and explain it in the commit."


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_frozen_interface_is_unchanged(name: str) -> None:
    current = json.loads(json.dumps(SNAPSHOTS[name]()))
    assert current == read(name), HOW


def test_changed_option_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidegate.cli.app import app

    [check] = [command for command in app.registered_commands if command.name == "check"]
    monkeypatch.setattr(check, "name", "inspect")
    assert SNAPSHOTS["commands"]() != read("commands")


# A ledger with every kind of entry and event, written by version 0.1.0 before its redesign


@pytest.fixture
def old(tmp_path: Path) -> Path:
    shutil.copytree(HERE / "ledger", tmp_path / "old")
    return tmp_path / "old"


def answers(folder: Path) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((folder / "answers.json").read_text("utf-8"))
    return stored


def test_old_export_and_old_ledger_verify(old: Path) -> None:
    assert verify_export(old / "export.jsonl").holds
    for name in ("people", "staff", "shop"):
        with tg.open(old / f"{name}.toml") as session:
            assert verify(*session.ledger.snapshot()).holds


def test_old_entries_are_exported_byte_for_byte(old: Path) -> None:
    with tg.open(old / "people.toml") as session:
        lines = list(export_lines(session.ledger))
    stored = [line for line in (old / "export.jsonl").read_text("utf-8").splitlines() if '"hash"' in line]
    assert [line for line in lines if '"hash"' in line][: len(stored)] == stored


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("count", tg.count().by("sex")),
        ("mean", tg.mean("pay")),
        ("variance", tg.variance("pay").by("sex")),
        ("median", tg.median("age")),
        ("histogram", tg.histogram("age")),
        ("regression", tg.regression("pay ~ age")),
    ],
)
def test_old_answers_are_found_at_no_cost(old: Path, name: str, query: tg.Query) -> None:
    with tg.open(old / "people.toml") as session:
        answer = session.answer(query, epsilon="0.1")
    assert (str(answer.cost), answer.entry) == ("0", answers(old)[name]["entry"])
    assert np.asarray(answer.noisy).shape == np.asarray(answers(old)[name]["values"]).shape


def test_old_synthetic_table_is_regenerated_from_its_diary(old: Path) -> None:
    with tg.open(old / "people.toml") as session:
        tables = session.synthesize(epsilon="0.1", rows=50, seed=7, model="forest/1")
        drawn = tables[0].to_pandas().astype(str).values.tolist()
    assert (str(tables.cost), drawn) == ("0", answers(old)["synthetic"]["values"])


def test_old_desk_and_collection_continue(old: Path) -> None:
    with tg.open(old / "staff.toml") as session:
        desk = session.release()
        released = [dict(record) for record in desk.released()[0]]
        assert len(released) >= 37
        assert type(desk.request("s100")).__name__ in ("Released", "Deferred")
        assert verify(*session.ledger.snapshot()).holds
    with tg.open(old / "shop.toml") as session:
        assert session.collect().counts("town").tolist() == answers(old)["counts"]["values"]
        assert session.collect().closed


def test_fingerprints_are_unchanged(old: Path) -> None:
    entries = [json.loads(line) for line in (old / "export.jsonl").read_text("utf-8").splitlines()]
    stored = {e["account"]: e["policy"] for e in entries if e.get("kind") == "policy"}
    assert {name: read_policy(old / f"{name}.toml").fingerprint for name in stored} == stored


def test_shape_of_a_value_has_names_and_kinds() -> None:
    assert shape({"b": [1, 2], "a": None, "c": True}) == {"a": "NoneType", "b": ["number"], "c": "bool"}
