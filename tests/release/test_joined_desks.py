"""Two desks over one key: a join of their records must be under one promise, or the second desk does not open."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.strange_tables import desk_of

import tidegate as tg
from tidegate.accounting.explain import explain
from tidegate.errors import Infeasible
from tidegate.ledger import verify
from tidegate.policy.joins import find_untested_join
from tidegate.policy.toml import write_policy
from tidegate.release.desk import Desk
from tidegate.release.result import Released

COLUMNS: dict[str, Any] = {
    "id": tg.Key(),
    "ill": tg.Category(("yes", "no")),
    "site": tg.Category(("north", "south")),
    "employer": tg.Category(("mill", "port")),
}
HIDDEN = {("north", "mill"): 0.6, ("north", "port"): 0.2, ("south", "mill"): 0.2, ("south", "port"): 0.6}


def illness(about: Any, *releases: str, **more: Any) -> tg.Concealment:
    return tg.Concealment(reveals="ill", about=about, baseline=(2, 3), releases=releases, **more)


SITES = illness("site", "id", "ill", "site")
EMPLOYERS = illness("employer", "id", "ill", "employer")
BOTH = illness(("site", "employer"))


def policy_of(name: str = "clinic", **promises: tg.Concealment) -> tg.Policy:
    return tg.Policy(tg.Dataset(name), COLUMNS, concealments=promises or {"sites": SITES, "employers": EMPLOYERS})


def patients(count: int = 2_500) -> pa.Table:
    """Every site and every employer has 40% ill; a site and an employer together have 60% or 20%."""
    rows, dealt = [], dict.fromkeys(HIDDEN, 0)
    for number in range(count):
        group = list(HIDDEN)[number % 4]
        dealt[group] += 1
        ill = int(dealt[group] * HIDDEN[group]) > int((dealt[group] - 1) * HIDDEN[group])
        rows.append({"id": f"p{number}", "ill": "yes" if ill else "no", "site": group[0], "employer": group[1]})
    return pa.Table.from_pylist(rows)


def joined_share(desks: list[Any], group: tuple[str, str]) -> float:
    """Return the share of ill records of a site and an employer, for an observer who joins the released records."""
    records: dict[str, dict[str, str]] = {}
    for desk in desks:
        for record in desk.released()[0]:
            records.setdefault(record["id"], {}).update(record)
    ill = [record["ill"] == "yes" for record in records.values() if (record["site"], record["employer"]) == group]
    return sum(ill) / len(ill)


def refusal_of(session: tg.Session, desk: str) -> Infeasible:
    with pytest.raises(Infeasible) as error:
        session.release(desk)
    return error.value


def test_second_desk_over_the_same_key_is_refused(ledger_url: str) -> None:
    with tg.open(policy_of(), table=patients(), ledger=ledger_url) as session:
        first = session.release("sites")
        assert isinstance(first.request("p1"), Released)
        error = refusal_of(session, "employers")
        assert "no promise tests these columns together" in error.what
        assert all(column in error.what for column in ("ill", "site", "employer"))
        assert "`releases`" in error.do
        assert isinstance(session.release("sites").request("p2"), Released)
        assert verify(*session.ledger.snapshot()).problems == []


def test_promise_over_a_join_limits_both_desks(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(2_500)]
    alone = policy_of(sites=SITES)
    with desk_of(tmp_path / "alone.ledger", patients(), alone) as desk:
        desk.request_many(names)
        assert desk.counts().sum() > 2_400  # the promise about sites alone sees nothing unusual
    covered = policy_of(sites=SITES, employers=EMPLOYERS, joined=BOTH)
    with tg.open(covered, table=patients(), ledger=str(tmp_path / "s.ledger")) as session:
        desks = [session.release("sites"), session.release("employers")]
        desks[0].request_many(names)
        for readings in session.release("joined").readings().values():
            assert all(reading.value < reading.critical for reading in readings)
        assert desks[0].counts().sum() < 2_000
        assert all(0.3 < joined_share(desks, group) < 0.5 for group in HIDDEN)
        assert verify(*session.ledger.snapshot()).problems == []


def test_opening_order_decides_which_desk_is_first_in_every_process(ledger_url: str) -> None:
    with tg.open(policy_of(), table=patients(8), ledger=ledger_url) as session:
        session.release("employers")
    with tg.open(policy_of(), table=patients(8), ledger=ledger_url) as session:
        refusal_of(session, "sites")
        session.release("employers").request("p1")


def test_earlier_released_columns_still_count(tmp_path: Path) -> None:
    url = str(tmp_path / "s.ledger")
    with tg.open(policy_of(), table=patients(40), ledger=url) as session:
        session.release("sites").request("p1")
    narrowed = policy_of(sites=illness("site", "id"), employers=EMPLOYERS)
    with tg.open(narrowed, table=patients(40), ledger=url) as session:
        refusal_of(session, "employers")
    policy = policy_of(sites=SITES, employers=illness("employer", "id", "ill"))
    with tg.open(policy, table=patients(40), ledger=url) as session:
        assert set(session.release("employers").released()[0][0]) == {"id", "ill"}


JOINS: dict[str, tuple[dict[str, tg.Concealment], bool]] = {
    "one desk": ({"sites": SITES}, False),
    "two groups of one property": ({"sites": SITES, "employers": EMPLOYERS}, True),
    "a promise over both groups": ({"sites": SITES, "employers": EMPLOYERS, "joined": BOTH}, False),
    "a promise over both groups that releases nothing": (
        {"sites": SITES, "employers": EMPLOYERS, "joined": illness(("site", "employer"), "id")},
        False,
    ),
    "the same columns under other tests": ({"sites": SITES, "again": illness("site", "ill", tests="dixon")}, False),
    "a second desk that releases only the key": ({"sites": SITES, "employers": illness("employer", "id")}, False),
    "no desk releases the key": ({"sites": illness("site"), "employers": illness("employer")}, True),
    "a promise over all columns but not about the group": (
        {
            "site": tg.Concealment(reveals="ill", about="site", releases=("ill",), baseline=(2, 3)),
            "work": tg.Concealment(reveals="employer", about="site", releases=("employer",), baseline=(1, 1)),
            "other": tg.Concealment(reveals="ill", about="employer", releases=("id",), baseline=(2, 3)),
        },
        True,
    ),
    "three desks of which each pair has a promise": (
        {
            "a": SITES,
            "b": EMPLOYERS,
            "c": tg.Concealment(reveals="ill", about="shift", baseline=(2, 3)),
            "ab": BOTH,
            "bc": illness(("employer", "shift")),
            "ac": illness(("site", "shift")),
        },
        True,
    ),
}


@pytest.mark.parametrize("case", JOINS)
def test_join_is_tested_when_one_promise_covers_all_released_columns_and_the_groups(case: str) -> None:
    promises, untested = JOINS[case]
    policy = tg.Policy(tg.Dataset("d"), {**COLUMNS, "shift": tg.Category(("day", "night"))}, concealments=promises)
    assert (find_untested_join(policy) is not None) == untested
    problems = [finding for finding in explain(policy) if finding.problem]
    assert bool(problems) == untested
    if untested:
        assert "together" in problems[0].says
        assert "releases" in problems[0].do


def test_promise_suggested_by_check_covers_the_join() -> None:
    join = find_untested_join(policy_of())
    assert join is not None
    assert 'reveals = ["ill"]' in join.do
    assert 'about = ["employer", "site"]' in join.do
    suggested = illness(("employer", "site"))
    assert find_untested_join(policy_of(sites=SITES, employers=EMPLOYERS, joined=suggested)) is None


def test_desks_of_an_earlier_version_all_count_as_opened(tmp_path: Path) -> None:
    """Entries of earlier versions do not state which desk was opened."""
    from sqlalchemy import text

    url, policy = str(tmp_path / "s.ledger"), policy_of(sites=SITES)
    with tg.open(policy, table=patients(8), ledger=url) as session:
        session.release("sites")
        with session.ledger.store.writing() as connection:
            query = text("SELECT number, body FROM tidegate_entries WHERE kind = 'desk'")
            ((number, body),) = connection.execute(query).all()
            earlier = {key: value for key, value in json.loads(body).items() if key in ("promises", "sha256")}
            change = text("UPDATE tidegate_entries SET body = :body WHERE number = :number")
            connection.execute(change, {"body": json.dumps(earlier), "number": number})
    with tg.open(policy, table=patients(8), ledger=url) as session:
        assert session.release("sites").request("p1").number == 1
    with tg.open(policy_of(sites=SITES, employers=EMPLOYERS), table=patients(8), ledger=url) as session:
        refusal_of(session, "employers")


def write_policy_file(folder: Path, table: pa.Table, name: str = "clinic", **promises: tg.Concealment) -> Path:
    """Write a policy file over clinic.csv in a folder."""
    with (folder / "clinic.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, table.column_names)
        writer.writeheader()
        writer.writerows(table.to_pylist())
    policy = policy_of(name, **promises)
    policy = replace(policy, dataset=replace(policy.dataset, source="clinic.csv", ledger="all.ledger"))
    (folder / f"{name}.toml").write_text(write_policy(policy))
    return folder / f"{name}.toml"


def test_second_data_set_over_the_same_source_opens_no_desk_in_one_ledger(tmp_path: Path) -> None:
    here = write_policy_file(tmp_path, patients(40), "sites", sites=SITES)
    there = write_policy_file(tmp_path, patients(40), "employers", employers=EMPLOYERS)
    with tg.open(here) as session:
        session.release().request("p1")
    with tg.open(there) as session:
        error = refusal_of(session, "")
        assert 'data set "sites"' in error.what
        assert "same policy" in error.do
    with tg.open(here) as session:
        assert isinstance(session.release().request("p2"), Released)
        ledger = "\n".join(entry.body for entry in session.ledger.snapshot()[0])
        assert "clinic.csv" not in ledger, "the location of the source is no part of the ledger"


def test_two_data_sets_with_different_sources_share_one_ledger(tmp_path: Path) -> None:
    for folder in ("north", "south"):
        (tmp_path / folder).mkdir()
    first, second = (
        write_policy_file(tmp_path / name, patients(size), name, sites=SITES)
        for name, size in (("north", 8), ("south", 9))
    )
    for path in (first, second):
        with tg.open(path, ledger=str(tmp_path / "all.ledger")) as session:
            assert session.release().request("p1").number == 1


def test_desk_opening_is_recorded_once(tmp_path: Path) -> None:
    path = write_policy_file(tmp_path, patients(8), sites=SITES, employers=EMPLOYERS, joined=BOTH)
    for name in ("sites", "employers", "sites", "employers"):
        with tg.open(path) as session:
            desk: Desk = session.release(name)
            desk.request("p1")
            opened = [entry for entry in session.ledger.snapshot()[0] if entry.kind == "desk"]
    assert len(opened) == 2
    assert [json.loads(entry.body)["desk"] for entry in opened] == ["sites", "employers"]
