"""Unusual keys and tables, changed policies, broken stores: one sentence, and no untested record is released."""

from __future__ import annotations

import json
import random
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event
from support.strange_tables import ATTRIBUTES, PLANTED, desk_of, patients, policy_of, reason, refuses

import tidegate as tg
from tidegate.errors import (
    Infeasible,
    LedgerUnavailable,
    NotWaiting,
    PolicyLoosened,
    SourceMissing,
    StalePolicy,
)
from tidegate.ledger import Ledger, chain, statements, verify
from tidegate.ledger.replay import Releases
from tidegate.ledger.statements import Statement
from tidegate.release.desk import Desk
from tidegate.release.result import Deferred, Refused, Released

# Keys

ODD = ["", " ", "a'b", 'a"b', "'; DROP TABLE t; --", "a\\b", "a\nb", "%", "_", "NULL", "None", "😀", "é", "e\u0301"]
ODD += ["\u2028", "k" * 100_000, "1", "01", "1.0", "{}", "$1", ":name", "?"]


def test_any_text_can_be_the_key_of_one_record(ledger_url: str) -> None:
    with desk_of(ledger_url, patients(ODD)) as desk:
        outcomes = desk.request_many(ODD)
        assert [outcome.number for outcome in outcomes.values()] == list(range(1, len(ODD) + 1))
        for key, outcome in outcomes.items():
            if isinstance(outcome, Released):
                assert outcome.record["id"] == key
        assert {record["id"] for record in desk.released()[0]} <= set(ODD)
        for nobody in ("a", "A'B", " a'b", "k" * 99_999, "É"):
            assert isinstance(desk.request(nobody), Refused)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")), unique=True, max_size=12))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_keys_with_unusual_characters_are_distinguished(tmp_path: Path, keys: list[str]) -> None:
    url = tmp_path / f"{random.Random(str(keys)).random()}.ledger"
    with desk_of(url, patients(keys, kind=pa.string())) as desk:
        outcomes = desk.request_many(keys)
        assert list(outcomes) == keys
        assert not any(isinstance(outcome, Refused) for outcome in outcomes.values())
        assert all(o.record["id"] == key for key, o in outcomes.items() if isinstance(o, Released))


@pytest.mark.parametrize("strange", ["\x00", "a\x00b", "\ud800", "a\udfffb"])
def test_unstorable_key_is_refused_without_affecting_others(tmp_path: Path, strange: str) -> None:
    with desk_of(tmp_path / "p.ledger", patients(["a", "b"])) as desk:
        outcomes = desk.request_many(["a", strange, "b"])
        assert reason(outcomes[strange]) == "no record has this key"
        assert isinstance(outcomes["a"], Released)
        assert outcomes["b"].number == 2
        assert isinstance(desk.status(strange), Refused)
        with refuses(NotWaiting, "is not waiting"):
            desk.withdraw(strange)


def test_number_and_its_text_are_the_same_key(tmp_path: Path) -> None:
    with desk_of(tmp_path / "p.ledger", patients([1, 2, 3])) as desk:
        assert desk.request(1) == desk.request("1")
        assert list(desk.request_many([2, "2", 1, "1", 2])) == ["2", "1"]
        for other in ("01", "1.0", " 1", "+1", "1 ", "１"):
            assert reason(desk.request(other)) == "no record has this key"
        assert desk.counts().sum() + desk.waiting == 2


def test_repeated_key_in_a_batch_is_one_request(ledger_url: str) -> None:
    with desk_of(ledger_url, patients(list("abcdef"))) as desk:
        outcomes = desk.request_many(["c", "a", "c", "c", "b", "a"])
        assert {key: outcome.number for key, outcome in outcomes.items()} == {"c": 1, "a": 2, "b": 3}


@pytest.mark.parametrize("none", ["None", "null", "NULL", "", "nan"])
def test_records_without_a_key_cannot_be_requested(tmp_path: Path, none: str) -> None:
    with desk_of(tmp_path / "p.ledger", patients(["a", None, None, "b"])) as desk:
        assert reason(desk.request(none)) == "no record has this key"
        assert [o.number for o in desk.request_many(["a", "b"]).values()] == [1, 2]


# Tables that change


def waiting_for(desk: Desk, ids: list[str]) -> list[str]:
    return [key for key, outcome in desk.request_many(ids).items() if isinstance(outcome, Deferred)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("change", ["gone", "other values", "twice"])
def test_tested_record_is_released_even_if_the_table_changes(ledger_url: str, change: str) -> None:
    women, men = [f"f{n}" for n in range(12)], [f"m{n}" for n in range(40)]
    rows = [(key, key[0], "A", 30) for key in (*women, *men)]
    names = ("id", "sex", "ward", "age")
    first = pa.table({name: [row[n] for row in rows] for n, name in enumerate(names)})
    with desk_of(ledger_url, first) as desk:
        waits = waiting_for(desk, women)
    assert waits, "no request waits, so nothing is tested"
    changed = {
        "gone": [row for row in rows if row[0] not in waits],
        "other values": [
            (key, "m", "C", age) if key in waits else (key, sex, ward, age) for key, sex, ward, age in rows
        ],
        "twice": [*rows, *(row for row in rows if row[0] in waits)],
    }[change]
    later = pa.table({name: [row[n] for row in changed] for n, name in enumerate(names)})
    with desk_of(ledger_url, later) as desk:
        assert isinstance(desk.status(waits[0]), Deferred)
        desk.request_many([key for key in men if key in later["id"].to_pylist()])
        left = {record["id"]: record for record in desk.released()[0]}
        assert set(waits) & set(left), "none of them was released, so nothing is tested"
        for key in set(waits) & set(left):
            assert left[key] == {"id": key, "sex": "f", "ward": "A"}
            assert desk.request(key).record == left[key]
        counted = [[sum((r["sex"], r["ward"]) == (s, w) for r in left.values()) for w in "ABC"] for s in "fm"]
        assert desk.counts().tolist() == counted


def test_broken_record_does_not_stop_the_desk_and_a_missing_file_is_reported(tmp_path: Path) -> None:
    source = tmp_path / "patients.csv"
    pyarrow.csv.write_csv(patients(list("abcdef")), source)
    with desk_of(tmp_path / "p.ledger", str(source)) as desk:
        desk.request("a")
    broken = source.read_text() + f'"x","{PLANTED[0]}","{PLANTED[1]}",forty-{PLANTED[2]}\n'
    source.write_text(broken)
    with desk_of(tmp_path / "p.ledger", str(source)) as desk:
        assert not any(planted in str(desk.request("b")) for planted in PLANTED)
    source.unlink()
    with desk_of(tmp_path / "p.ledger", str(source)) as desk:
        assert isinstance(desk.request("a"), Released)  # what left is in the ledger
        with refuses(SourceMissing, "patients.csv"):
            desk.request("c")
        assert desk.counts().sum() >= 1


# Values outside of the policy, and missing ones


def test_undeclared_value_is_refused_without_being_quoted(tmp_path: Path) -> None:
    rows = {"id": ["a", "b", "c"], "sex": ["f", PLANTED[0], "m"], "ward": [PLANTED[1], "A", "A"], "age": [987654, 1, 2]}
    with desk_of(tmp_path / "p.ledger", pa.table(rows)) as desk:
        outcomes = desk.request_many(["a", "b", "c"])
        assert reason(outcomes["a"]) == reason(outcomes["b"])
        assert "a value that the policy does not declare" in reason(outcomes["a"])
        assert outcomes["c"].number == 1


@pytest.mark.parametrize(("sex", "ward"), list(product(["dropped", "value"], repeat=2)))
def test_missing_value_follows_the_policy(tmp_path: Path, sex: Any, ward: Any) -> None:
    described = {**ATTRIBUTES, "sex": tg.Category(("f", "m"), sex), "ward": tg.Category(("A", "B", "C"), ward)}
    weights = (1, 1, 1) if sex == "value" else (1, 1)
    policy = policy_of(attributes=described, wards={"baseline": weights, "releases": ("id", "sex", "ward")})
    rows: dict[str, list[Any]] = {
        "id": list("abcd"),
        "sex": ["f", None, "m", None],
        "ward": ["A", "B", None, None],
        "age": [1] * 4,
    }
    with desk_of(tmp_path / "p.ledger", pa.table(rows), policy) as desk:
        outcomes = desk.request_many(list("abcd"))
        refused = {key for key, outcome in outcomes.items() if isinstance(outcome, Refused)}
        expected = ({"b", "d"} if sex == "dropped" else set()) | ({"c", "d"} if ward == "dropped" else set())
        assert refused == expected
        for key, outcome in outcomes.items():
            if isinstance(outcome, Released):
                at = "abcd".index(key)
                assert outcome.record == {"id": key, "sex": rows["sex"][at], "ward": rows["ward"][at]}
        assert desk.counts().shape == (2 + (sex == "value"), 3 + (ward == "value"))


@pytest.mark.parametrize("missing", ["dropped", "value", "lowest"])
def test_infinite_numbers_are_released_as_text_or_null(tmp_path: Path, missing: Any) -> None:
    described = {**ATTRIBUTES, "dose": tg.Grid("0", "2", "0.5", missing=missing)}
    weights = (1,) * (6 if missing == "value" else 5)
    result = {"reveals": "dose", "baseline": weights, "shows": "values", "releases": ("id", "dose")}
    rows = {"id": list("abcd"), "dose": [1.0, float("nan"), float("inf"), None], "sex": ["f"] * 4, "ward": list("ABCA")}
    table = pa.table({**rows, "age": [1] * 4})
    with desk_of(tmp_path / "p.ledger", table, policy_of(attributes=described, wards=result)) as desk:
        outcomes = desk.request_many(list("abcd"))
        left = {key: outcome.record["dose"] for key, outcome in outcomes.items() if isinstance(outcome, Released)}
        assert left["a"] == 1.0
        assert left["c"] == "inf"
        assert isinstance(outcomes["b"], Refused) == isinstance(outcomes["d"], Refused) == (missing == "dropped")
        assert left.get("b") is None
        json.dumps([outcome.to_dict() for outcome in outcomes.values()], allow_nan=False)


# Several columns on both sides


def test_cells_of_several_columns_match_the_reference_implementation(tmp_path: Path) -> None:
    described = {
        "id": tg.Key(),
        "age": tg.Integer(0, 99, bins=(20, 40, 60), missing="value"),
        "dose": tg.Grid("0", "2", "0.25", bins=("0.5", "1.5")),
        "ward": tg.Category(("A", "B", "C"), "value"),
        "night": tg.Category((False, True)),
    }
    promise = tg.Concealment(
        reveals=("age", "dose"), about=("ward", "night"), baseline=(1,) * 15, tests="dixon", significance="0.0001"
    )
    chance = random.Random(4)
    ages = [chance.choice([None, *range(-5, 120)]) for _ in range(400)]
    doses = [chance.choice([None, *np.arange(-0.5, 2.6, 0.05).round(2).tolist()]) for _ in range(400)]
    wards = [chance.choice(["A", "B", "C", None, "Z"]) for _ in range(400)]
    nights = [chance.choice([True, False]) for _ in range(400)]
    ids = [f"p{n}" for n in range(400)]
    table = pa.table({"id": ids, "age": ages, "dose": doses, "ward": wards, "night": nights})
    policy = policy_of(attributes=described, both=promise)
    with desk_of(tmp_path / "p.ledger", table, policy) as desk:
        outcomes = desk.request_many(ids)
        slow = np.zeros((15, 8), np.int64)
        for n, outcome in enumerate(outcomes.values()):
            assert isinstance(outcome, Refused) == (doses[n] is None)
            if isinstance(outcome, Released):
                x, y = _age_bin(ages[n]) * 3 + _dose_bin(doses[n]), _ward(wards[n]) * 2 + nights[n]
                slow[x, y] += 1
                assert outcome.record["age"] == ["0-19", "20-39", "40-59", "60-99", None][_age_bin(ages[n])]
                assert outcome.record["dose"] == ["0-0.25", "0.5-1.25", "1.5-2"][_dose_bin(doses[n])]
                assert outcome.record["ward"] == ["A", "B", "C", None][_ward(wards[n])]
                assert outcome.record["night"] is nights[n]
        assert slow.sum() > 50
        assert desk.counts().tolist() == slow.tolist()
        cells = desk.history()
        assert np.bincount(cells, minlength=120).tolist() == slow.T.ravel().tolist()


def _age_bin(age: int | None) -> int:
    return 4 if age is None else sum(min(max(age, 0), 99) >= start for start in (20, 40, 60))


def _dose_bin(dose: float) -> int:
    """The nearest quarter; the policy's bins start at 0.5 and 1.5."""
    quarters = min(range(9), key=lambda quarter: (abs(quarter / 4 - min(max(dose, 0), 2)), -quarter))
    return sum(quarters >= start for start in (2, 6))


def _ward(ward: str | None) -> int:
    return ["A", "B", "C", None].index(ward if ward in ("A", "B", "C") else None)


# Policies that change, and several of them


SEX = {"baseline": (1, 1), "releases": ("id", "sex")}
AGE = {"reveals": "age", "baseline": (1, 1, 1, 1), "releases": ("id",)}


def test_order_of_promises_has_no_effect(ledger_url: str) -> None:
    first, other = policy_of(a=SEX, b=AGE), policy_of(b=AGE, a=SEX)
    ids = [f"p{n}" for n in range(80)]
    assert first.fingerprint == other.fingerprint
    with (
        desk_of(ledger_url, patients(ids), first, "a") as here,
        desk_of(ledger_url, patients(ids), other, "a") as there,
    ):
        for start in range(0, 80, 8):
            here.request_many(ids[start : start + 4])
            there.request_many(ids[start + 4 : start + 8])
        assert here.counts().shape == there.counts().shape == (2, 3)
        assert here.counts().tolist() == there.counts().tolist()
        slow = [
            [sum((r["sex"], _row(r["id"])["ward"]) == (s, w) for r in here.released()[0]) for w in "ABC"] for s in "fm"
        ]
        assert here.counts().tolist() == slow
        for desk in (here, there):
            assert all(r.value < r.critical for readings in desk.readings().values() for r in readings)


def _row(key: str) -> dict[str, Any]:
    n = int(key[1:])
    return {"sex": "fm"[n % 2], "ward": "ABC"[n // 2 % 3]}


def test_promise_cannot_be_added_after_the_first_request(tmp_path: Path) -> None:
    url, table = tmp_path / "p.ledger", patients([f"p{n}" for n in range(9)])
    with desk_of(url, table, policy_of(a=SEX)):
        pass  # opened without a request
    with desk_of(url, table, policy_of(a=SEX, b=AGE), "b") as desk:
        desk.request("p1")
    third = {**SEX, "tests": "chi-square"}
    with (
        refuses(Infeasible, r"before \[promise.concealment.c\] was added"),
        desk_of(url, table, policy_of(a=SEX, b=AGE, c=third), "c"),
    ):
        pass
    with desk_of(url, table, policy_of(a=SEX, b=AGE), "b") as desk:  # and the ledger is as it was
        assert desk.request("p1").number == 1


@pytest.mark.parametrize(
    "other",
    [
        {"sex": tg.Category(("m", "f"))},
        {"sex": tg.Category(("f", "x"))},
        {"ward": tg.Category(("C", "B", "A"))},
    ],
)
def test_columns_of_an_open_desk_cannot_be_redefined(tmp_path: Path, other: dict[str, Any]) -> None:
    """Counts would silently get another meaning."""
    url, table = tmp_path / "p.ledger", patients([f"p{n}" for n in range(9)])
    with desk_of(url, table) as desk:
        desk.request_many(["p1", "p2"])
    with (
        refuses(PolicyLoosened, "has changed"),
        desk_of(url, table, policy_of(attributes={**ATTRIBUTES, **other})),
    ):
        pass
    with desk_of(url, table, policy_of(attributes={**ATTRIBUTES, "age": tg.Integer(0, 120)})) as desk:
        assert desk.counts().sum() == 2  # a column that no promise counts by may change


def test_two_data_sets_share_only_the_ledger(ledger_url: str) -> None:
    ids = [f"p{n}" for n in range(30)]
    with (
        desk_of(ledger_url, patients(ids), policy_of("here")) as here,
        desk_of(ledger_url, patients(ids, sexes="mf"), policy_of("there")) as there,
    ):
        for key in ids[:10]:
            first, other = here.request(key), there.request(key)
            assert first.number == other.number == ids.index(key) + 1
        assert here.counts().tolist() == there.counts()[::-1].tolist()
        assert not isinstance(here.status(ids[20]), Deferred)
        there.request(ids[20])
        assert isinstance(here.status(ids[20]), Refused)
        assert here._state.hash("p1") != there._state.hash("p1"), "a person in both would be visible"
        assert all(record["sex"] == _row(record["id"])["sex"] for record in here.released()[0])


def test_desk_with_a_stale_policy_decides_nothing(ledger_url: str) -> None:
    ids = [f"p{n}" for n in range(60)]
    with tg.open(policy_of(), table=patients(ids, sexes="fffm"), ledger=ledger_url) as old:
        desk = old.release()
        waits = waiting_for(desk, ids[:30])
        stricter = policy_of(wards={"releases": ("id", "sex", "ward"), "significance": "0.4"})
        with desk_of(ledger_url, patients(ids, sexes="fffm"), stricter) as new:
            for attempt in (lambda: desk.request(ids[40]), lambda: desk.withdraw(waits[0])):
                with refuses(StalePolicy, "it was changed in the meantime"):
                    attempt()
            assert isinstance(desk.status(waits[0]), Deferred)
            assert not isinstance(new.request(ids[40]), Refused)
            assert desk.counts().tolist() == new.counts().tolist()  # to look on is allowed


# Stores that fail


def test_desk_on_a_read_only_ledger_only_reads(tmp_path: Path) -> None:
    ids, url = [f"p{n}" for n in range(30)], tmp_path / "p.ledger"
    with desk_of(url, patients(ids, sexes="fffm")) as desk:
        waits = waiting_for(desk, ids[:20])
        expected = desk.counts().tolist(), desk.waiting, desk.released()
    ledger = Ledger(str(url), read_only=True)
    with tg.open(policy_of(), table=patients(ids), ledger=str(tmp_path / "unused.ledger")) as session:
        looking = Desk("wards", policy_of(), lambda: session.table, ledger)
        assert (looking.counts().tolist(), looking.waiting, looking.released()) == expected
        assert isinstance(looking.request(waits[0]), Deferred)
        for attempt in (lambda: looking.request(ids[25]), lambda: looking.withdraw(waits[0])):
            with refuses(LedgerUnavailable, "read-only"):
                attempt()
        assert (looking.counts().tolist(), looking.waiting, looking.released()) == expected
    ledger.close()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "statement", ["SELECT (SELECT max(", "INSERT INTO tidegate_requests", "INSERT INTO tidegate_entries"]
)
def test_desk_continues_from_the_last_commit_after_a_failure(
    ledger_url: str, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [f"p{n}" for n in range(60)]
    table = patients(ids, sexes="fffm")
    with tg.open(policy_of(), table=table, ledger=ledger_url) as session, desk_of(ledger_url, table) as other:
        desk = session.release()
        desk.request_many(ids[:20])
        other.request_many(ids[20:40])
        engine = session.ledger.store.engine

        def fail(connection: Any, cursor: Any, words: str, *rest: Any) -> None:
            if words.startswith(statement):
                raise ConnectionResetError

        def write(
            connection: Any, added: Statement, values: Any
        ) -> None:  # sent by the driver, past the engine's events
            fail(connection, None, added.sqlite)
            statements.write(connection, added, values)

        event.listen(engine, "before_cursor_execute", fail)
        monkeypatch.setattr(chain, "write", write)
        with pytest.raises(ConnectionResetError):
            desk.request_many(ids[40:])
        monkeypatch.undo()
        event.remove(engine, "before_cursor_execute", fail)
        assert desk.counts().tolist() == other.counts().tolist()
        desk.request_many(ids[40:])
        assert desk.counts().tolist() == other.counts().tolist()
        assert desk.waiting == other.waiting
        with desk_of(ledger_url, table) as fresh:
            assert (fresh.counts().tolist(), fresh.waiting) == (desk.counts().tolist(), desk.waiting)
        assert verify(*session.ledger.snapshot()).problems == []


@pytest.mark.parametrize(
    "body",
    [
        {"released": [[1, "a", "h"], [1, "b", "h"]], "waiting": []},
        {"released": [[1, "a", "h"]], "waiting": [[1, "b", "h"]]},
        {"released": [], "waiting": [[1, "a", "h"], [1, "b", "h"]]},
        {"released": [[1, "a", "h"], [2, "a", "h"]], "waiting": []},
        {"released": [[1, "a", "h"]], "waiting": [[2, "a", "h"]]},
    ],
)
def test_duplicate_number_or_key_in_an_entry_is_detected(body: Any) -> None:
    assert Releases().decide(body, 1) != []
    assert Releases().decide({"released": [[1, "a", "h"]], "waiting": [[2, "b", "h"]]}, 1) == []
