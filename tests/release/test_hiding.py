"""The desk of a hiding promise: quotas are exact, outcomes do not depend on order, and nothing private is written."""

from __future__ import annotations

import json
import logging
import random
from bisect import bisect_right
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.demo import soldiers
from tidegate.errors import Infeasible, NotWaiting, PolicyLoosened, StalePolicy, Unsupported
from tidegate.ledger import chain, verify
from tidegate.ledger.entry import canonical
from tidegate.ledger.release_book import ReleaseBook, key_hash
from tidegate.ledger.selection_book import SelectionBook
from tidegate.policy import Category, Dataset, Hiding, Integer, Key, Loss, Policy
from tidegate.release.hiding_desk import HidingDesk
from tidegate.release.layout import Layout
from tidegate.release.recomputation import recompute_selections
from tidegate.release.result import Deferred, Refused, Released, Withheld
from tidegate.release.selection import Population, SelectionKey, choose, quotas_of

RECORDS = soldiers.records()
TABLE = pa.table(RECORDS)
DECLARED = ("0.015", "0.03", "0.08", "0.065", "0.105", "0.115", "0.045", "0.007", "0.003", "0")
TOWNS = ("a", "b", "c")


def towns_policy(*, name: str = "towns", **more: Any) -> Policy:
    """A small policy: two values in three towns."""
    attributes = {"id": Key(), "ill": Category(("yes", "no")), "town": Category(TOWNS), "rank": Integer(1, 3)}
    options = {"mix": ("0.1", "0.3"), "smallest": 10, "releases": ("id", "ill", "town"), **more}
    promise = Hiding(reveals="ill", about="town", **options)
    return Policy(Dataset(name), attributes, loss=Loss(1), hidings={"illness": promise})


def towns_table(ill: tuple[int, int, int] = (40, 60, 20), size: int = 100, start: int = 0) -> pa.Table:
    """Every town has `size` records, of which some are ill. Keys are shuffled: they say nothing about values."""
    rows = [
        {"ill": "yes" if number < count else "no", "town": town, "rank": 1 + number % 3}
        for town, count in zip(TOWNS, ill, strict=True)
        for number in range(size)
    ]
    keys = random.Random(1).sample(range(start, start + len(rows)), len(rows))
    return pa.Table.from_pylist([{"id": f"p{key}", **row} for key, row in zip(keys, rows, strict=True)])


def all_keys(table: pa.Table) -> list[str]:
    return list(table["id" if "id" in table.column_names else "name"].to_pylist())


def open_towns(url: str, table: pa.Table | None = None, **more: Any) -> tg.Session:
    return tg.open(towns_policy(**more), table=towns_table() if table is None else table, ledger=url)


def holds(session: tg.Session) -> None:
    assert verify(*session.ledger.snapshot()).problems == []


# Quotas and outcomes


@pytest.mark.one_in(2)
@pytest.mark.parametrize("mix", ["table", DECLARED])
def test_everybody_asks_and_every_group_releases_its_quotas(tmp_path: Path, mix: Any) -> None:
    policy = soldiers.hiding_policy(mix=mix)
    with tg.open(policy, table=TABLE, ledger=str(tmp_path / "a.ledger")) as session:
        selection = session.open_release()
        desk = session.release()
        outcomes = desk.request_many(random.Random(2).sample(RECORDS["name"], 10_000))
        assert desk.counts().T.tolist() == [list(row or ()) for row in selection.quotas.by_group]
        assert Counter(type(outcome) for outcome in outcomes.values()) == {
            Released: sum(selection.quotas.chosen),
            Withheld: 10_000 - sum(selection.quotas.chosen),
        }
        shares = {
            round(chosen / size, 3) for chosen, size in zip(selection.quotas.chosen, soldiers.SHARES, strict=True)
        }
        assert max(shares) - min(shares) < 0.01
        holds(session)
        assert recompute_selections(policy, lambda: session.table, session.ledger) == []


def test_no_outcome_depends_on_the_order_or_the_batches_of_requests(ledger_url: str) -> None:
    with open_towns(ledger_url) as session:
        session.open_release()
        desk, keys = session.release(), all_keys(towns_table())
        for start in range(0, 300, 7):
            desk.request_many(keys[start : start + 7], user="ann")
        labels = {key: type(desk.status(key)) for key in keys}
        book = SelectionBook(session.ledger, session.policy)
        chosen = {row.key for row in book.rows() if row.digest}
        secret = desk._secret  # the reference: a label follows from the selection alone
    assert labels == {key: Released if key_hash(secret, key) in chosen else Withheld for key in keys}


def test_withheld_record_stays_withheld_and_released_record_is_returned_again(ledger_url: str) -> None:
    with open_towns(ledger_url) as session:
        session.open_release()
        desk = session.release()
        first = desk.request_many(all_keys(towns_table()))
        assert desk.request_many(all_keys(towns_table())) == first
        again = HidingDesk("illness", session.policy, lambda: session.table, session.ledger)
        assert again.request_many(all_keys(towns_table())) == first
        withheld = next(key for key, outcome in first.items() if isinstance(outcome, Withheld))
        released = next(key for key, outcome in first.items() if isinstance(outcome, Released))
        assert desk.request(withheld) == desk.status(withheld) == first[withheld]
        assert desk.request(released) == desk.status(released) == first[released]
        assert "asking again changes nothing" in str(first[withheld])
        with pytest.raises(NotWaiting):
            desk.withdraw(withheld)
        assert set(first[released].record) == {"id", "ill", "town"}
        assert desk.withheld == sum(isinstance(outcome, Withheld) for outcome in first.values())
        assert desk.waiting == 0
        holds(session)


def test_unknown_repeated_and_undeclared_records_are_not_in_the_selection(ledger_url: str) -> None:
    extra = pa.Table.from_pylist(
        [
            {"id": "twice", "ill": "yes", "town": "a", "rank": 1},
            {"id": "twice", "ill": "no", "town": "a", "rank": 1},
            {"id": "strange", "ill": "perhaps", "town": "a", "rank": 1},
        ]
    )
    with open_towns(ledger_url, pa.concat_tables([towns_table(), extra])) as session:
        assert session.open_release().quotas.sizes == (100, 100, 100)
        desk = session.release()
        outcomes = desk.request_many(["nobody", "twice", "strange", "bad\x00key"])
        assert all(isinstance(outcome, Refused) for outcome in outcomes.values())
        assert isinstance(desk.status("nobody"), Refused)
        assert not [entry for entry in session.ledger.entries() if entry.kind == "release"]


def test_record_that_changed_since_the_selection_is_withheld(tmp_path: Path) -> None:
    url, table = str(tmp_path / "a.ledger"), towns_table()
    with open_towns(url, table) as session:
        session.open_release()
        chosen = [key for key in all_keys(table) if isinstance(session.release().request(key), Released)][:1]
    rows = table.to_pylist()
    other = str(tmp_path / "b.ledger")
    with open_towns(other, table) as session:
        session.open_release()
        book, desk = SelectionBook(session.ledger, session.policy), session.release()
        hashes = {row.key for row in book.rows() if row.digest}
        chosen = [key for key in all_keys(table) if key_hash(desk._secret, key) in hashes][:2]
    changed = [{**row, "town": "a" if row["town"] == "b" else "b"} if row["id"] == chosen[0] else row for row in rows]
    changed = [row for row in changed if row["id"] != chosen[1]]
    with open_towns(other, pa.Table.from_pylist(changed)) as session:
        desk = session.release()
        assert isinstance(desk.request(chosen[0]), Withheld)
        assert desk.request(chosen[1]) == Refused("no record has this key")
        holds(session)
        problems = recompute_selections(session.policy, lambda: session.table, session.ledger)
        assert problems == ["Selection 1: 2 of 300 records are no longer in the table as they were."]


# Opening


def test_policy_without_a_hiding_promise_has_no_selection(tmp_path: Path) -> None:
    policy = replace(towns_policy(), hidings={})
    with tg.open(policy, table=towns_table(), ledger=str(tmp_path / "towns.ledger")) as session:
        with pytest.raises(Unsupported, match="no hiding promise, so there is no selection"):
            session.open_release()
        assert [entry.kind for entry in session.ledger.entries()] == ["genesis"]


def test_progress_counts_the_decided_requests(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    table = towns_table((200, 300, 100), size=500)
    with open_towns(str(tmp_path / "towns.ledger"), table) as session:
        session.open_release()
        desk = session.release()
        desk.request_many(all_keys(table), progress=lambda done, of: steps.append((done, of)))  # type: ignore[call-arg]
    assert steps == [(1000, 1500), (1500, 1500)]


def test_selection_opens_once_and_requires_its_opening(ledger_url: str) -> None:
    with open_towns(ledger_url) as session:
        with pytest.raises(Infeasible, match="chosen for release yet"):
            session.release()
        session.open_release()
        with pytest.raises(Infeasible, match="cannot be drawn again"):
            session.open_release()
        with pytest.raises(Infeasible, match="no records that were added since"):
            session.open_release(later=True)
        kinds = [entry.kind for entry in session.ledger.entries()]
        assert kinds == ["genesis", "policy", "hiding-key", "hiding-open"]


def test_key_is_committed_before_the_table_is_read(ledger_url: str) -> None:
    policy = towns_policy()
    with tg.open(policy, table=towns_table(), ledger=ledger_url) as session:
        from tidegate.release.hiding import open_selection

        def unreadable() -> Any:
            kinds.extend(entry.kind for entry in session.ledger.entries())
            raise RuntimeError

        kinds: list[str] = []
        with pytest.raises(RuntimeError):
            open_selection(policy, unreadable, session.ledger)
        assert kinds == ["genesis", "policy", "hiding-key"]
        first = next(entry for entry in session.ledger.entries() if entry.kind == "hiding-key")
        session.open_release()  # continues with the same key
        assert [entry for entry in session.ledger.entries() if entry.kind == "hiding-key"] == [first]
        holds(session)


def test_short_cell_is_shown_to_the_owner_alone(ledger_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[Any] = []
    with open_towns(ledger_url, towns_table((40, 60, 12))) as session:
        with pytest.raises(Infeasible) as raised:
            session.open_release(show_short=shown.extend)
        assert shown == [("c", "yes")]
        written = " ".join(entry.body for entry in session.ledger.entries() if entry.kind != "policy") + caplog.text
        for text in (str(raised.value), json.dumps(raised.value.to_dict()), written):
            assert '"c"' not in text
            assert "yes" not in text
        assert raised.value.facts == {}
        holds(session)
        with pytest.raises(Infeasible, match="chosen for release yet"):
            session.release()


def test_selection_that_would_release_nothing_is_refused(ledger_url: str) -> None:
    with (
        open_towns(ledger_url, smallest=101) as session,
        pytest.raises(Infeasible, match="No record could be released"),
    ):
        session.open_release()


def test_small_groups_release_nothing(ledger_url: str) -> None:
    rows = [row for row in towns_table().to_pylist() if row["town"] != "c" or int(row["id"][1:]) < 60]
    small = sum(row["town"] == "c" for row in rows)
    assert 0 < small < 50
    with open_towns(ledger_url, pa.Table.from_pylist(rows), smallest=50) as session:
        selection = session.open_release()
        assert selection.quotas.by_group == ((10, 30), (10, 30), (0, 0))
        desk = session.release()
        desk.request_many([row["id"] for row in rows])
        assert desk.counts().sum(axis=0).tolist() == [40, 40, 0]


# Sensitive groups and decoys


def test_sensitive_groups_hide_among_decoys_and_the_rest_leaves_in_full(ledger_url: str) -> None:
    policy = soldiers.hiding_policy(among=2)
    with tg.open(policy, table=TABLE, ledger=ledger_url) as session:
        selection = session.open_release(sensitive=["L2"])
        hidden = selection.quotas.hidden
        assert len(hidden) == 2
        assert 1 in hidden
        assert [row is None for row in selection.quotas.by_group] == [group not in hidden for group in range(5)]
        assert Fraction(7, 10) < selection.quotas.share < Fraction(9, 10)
        desk = session.release()
        everyone = [name for name, town in zip(RECORDS["name"], RECORDS["location"], strict=True) if town == "L3"]
        outcomes = desk.request_many(everyone)
        assert any(isinstance(outcome, Withheld) for outcome in outcomes.values()) == (2 in hidden)
        holds(session)
        assert recompute_selections(policy, lambda: session.table, session.ledger) == []


def test_private_list_is_in_no_entry_and_cannot_change(ledger_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    attributes = {"id": Key(), "ill": Category(("yes", "no")), "town": Category(("xylo", "yonder", "zebra", "empty"))}
    rows = [
        {**row, "town": {"a": "xylo", "b": "yonder", "c": "zebra"}[row["town"]]} for row in towns_table().to_pylist()
    ]
    promise = Hiding(reveals="ill", about="town", mix=("0.1", "0.3"), among=2, smallest=10, releases=("id", "ill"))
    policy = Policy(Dataset("towns"), attributes, hidings={"illness": promise})
    with tg.open(policy, table=pa.Table.from_pylist(rows).drop(["rank"]), ledger=ledger_url) as session:
        with pytest.raises(Unsupported, match="must be named"):
            session.open_release()
        with pytest.raises(Unsupported, match='no group "zebro"'):
            session.open_release(sensitive=["zebro"])
        with pytest.raises(Unsupported, match="named twice"):
            session.open_release(sensitive=["zebra", ["zebra"]])
        with pytest.raises(Infeasible, match="requires 4 groups"):
            session.open_release(sensitive=["zebra", "xylo"])
        with pytest.raises(Infeasible, match="fewer than 10 records"):
            session.open_release(sensitive=["empty"])
        session.open_release(sensitive=["zebra"])  # a list that could not be opened does not bind
        with pytest.raises(Infeasible, match="cannot change"):
            session.open_release(sensitive=["xylo"], later=True)
        assert [entry.kind for entry in session.ledger.entries()][2:] == [*["hiding-key"] * 3, "hiding-open"]
        written = [entry.body for entry in session.ledger.entries() if entry.kind.startswith("hiding")]
        assert not any("zebra" in json.dumps({**json.loads(body), "columns": {}}) for body in written)
        assert "zebra" not in caplog.text
        holds(session)


def test_list_of_groups_without_among_is_refused(ledger_url: str) -> None:
    with open_towns(ledger_url) as session, pytest.raises(Unsupported, match="hides every group"):
        session.open_release(sensitive=["a"])


# Later records and lower shares


def test_later_records_wait_for_the_next_selection_and_withheld_ones_are_not_drawn_again(tmp_path: Path) -> None:
    url, later = str(tmp_path / "a.ledger"), towns_table((30, 30, 30), start=1_000)
    with open_towns(url) as session:
        session.open_release()
        first = session.release().request_many(all_keys(towns_table()))
    both = pa.concat_tables([towns_table(), later])
    with open_towns(url, both) as session:
        desk = session.release()
        outcome = desk.request("p1000")
        assert outcome == Deferred(0, later=True)
        assert "next selection" in str(outcome)
        selection = session.open_release(later=True)
        assert (selection.epoch, selection.quotas.sizes) == (2, (100, 100, 100))
        outcomes = session.release().request_many(all_keys(later))
        assert Counter(type(outcome).__name__ for outcome in outcomes.values()) == {"Released": 120, "Withheld": 180}
        assert session.release().request_many(all_keys(towns_table())) == first
        assert desk.request("p1000") == outcomes["p1000"]  # a desk that was open before learns of the selection
        holds(session)
        assert recompute_selections(session.policy, lambda: session.table, session.ledger) == []


def test_lower_mix_cuts_what_was_not_released_by_the_same_ranks(tmp_path: Path) -> None:
    url, table = str(tmp_path / "a.ledger"), towns_table()
    keys = all_keys(table)
    with open_towns(url, table) as session:
        session.open_release()
        before = session.release().request_many(keys[:150])
    with open_towns(url, table, mix=("0.05", "0.3")) as session:
        desk = session.release()
        assert desk.selections[0].quotas.by_group == ((5, 30),) * 3
        after = desk.request_many(keys)
        assert {key: after[key] for key in keys[:150]} == before
        fresh = [outcome for key, outcome in after.items() if key not in before and isinstance(outcome, Released)]
        assert sum(outcome.record["ill"] == "yes" for outcome in fresh) <= 15
        holds(session)
        assert recompute_selections(session.policy, lambda: session.table, session.ledger) == []
        lowered = desk.selections[0].quotas
    with open_towns(url, table, mix=("0.1", "0.3")) as session, pytest.raises(PolicyLoosened):
        session.release()
    with open_towns(url, table, mix=("0.05", "0.3"), at_most="0.7") as session, pytest.raises(PolicyLoosened):
        session.release()
    assert sum(map(sum, lowered.by_group)) == 105


def test_cut_chooses_the_smallest_ranks() -> None:
    key = SelectionKey(b"k" * 32, "towns")
    population = Population({0: [f"h{n}" for n in range(30)], 1: [f"i{n}" for n in range(30)]}, 2, 1)
    more = choose(key, 1, population, quotas_of((Fraction(1, 4), Fraction(1, 4)), (60,), (0,), 1))
    less = choose(key, 1, population, quotas_of((Fraction(1, 8), Fraction(1, 4)), (60,), (0,), 1))
    assert less < more


def test_desk_of_an_earlier_policy_cannot_decide_after_a_change(tmp_path: Path) -> None:
    url, table = str(tmp_path / "a.ledger"), towns_table()
    with open_towns(url, table) as session:
        session.open_release()
        old = session.release()
        with open_towns(url, table, mix=("0.05", "0.3")) as newer:
            newer.release()
        with pytest.raises(StalePolicy):
            old.request_many(all_keys(table))
        assert not [entry for entry in session.ledger.entries() if entry.kind == "release"]


# Several desks, other promises, other verbs


def test_desks_share_one_selection_over_the_joined_groups(ledger_url: str) -> None:
    """The example of the specification: 25 joined groups of 100, quotas 7 and 30, 37% released, all groups alike."""
    sites, employers = [f"s{n}" for n in range(5)], [f"e{n}" for n in range(5)]
    attributes = {"id": Key(), "ill": Category(("yes", "no")), "site": Category(sites), "employer": Category(employers)}
    shared = {"reveals": "ill", "mix": ("0.075", "0.3"), "smallest": 10}
    hidings = {
        "sites": Hiding(about="site", releases=("id", "ill", "site"), **shared),
        "employers": Hiding(about="employer", releases=("id", "ill", "employer"), **shared),
    }
    policy = Policy(Dataset("plants"), attributes, hidings=hidings)
    keys = random.Random(5).sample(range(2_500), 2_500)
    cells = [(site, employer, n) for site in sites for employer in employers for n in range(100)]
    rows = [
        {"id": str(key), "ill": "yes" if n < (60 if (s, e) == ("s1", "e3") else 20) else "no", "site": s, "employer": e}
        for key, (s, e, n) in zip(keys, cells, strict=True)
    ]
    with tg.open(policy, table=pa.Table.from_pylist(rows), ledger=ledger_url) as session:
        selection = session.open_release()
        assert selection.quotas.by_group == ((7, 30),) * 25
        assert selection.quotas.share == Fraction(37, 100)
        names = [row["id"] for row in rows]
        at_sites = session.release("sites").request_many(names[:1_500])
        at_employers = session.release("employers").request_many(names)
        released = {key for key, outcome in at_employers.items() if isinstance(outcome, Released)}
        assert {key for key, outcome in at_sites.items() if isinstance(outcome, Released)} == released & set(
            names[:1_500]
        )
        assert session.release("sites").counts().tolist() == [[35] * 5, [150] * 5]
        assert session.release("employers").counts().tolist() == [[35] * 5, [150] * 5]
        assert set(at_sites[next(iter(released & set(names[:1_500])))].record) == {"id", "ill", "site"}
        holds(session)


def test_promise_after_a_release_and_second_data_set_over_the_source_are_refused(tmp_path: Path) -> None:
    url = str(tmp_path / "a.ledger")
    csv = tmp_path / "towns.csv"
    csv.write_text(
        "\n".join(["id,ill,town,rank", *(",".join(map(str, r.values())) for r in towns_table().to_pylist())])
    )
    first = replace(towns_policy(), dataset=Dataset("towns", source=str(csv)))
    second = replace(towns_policy(), dataset=Dataset("again", source=str(csv)))
    with tg.Session(first, ledger=url, folder=tmp_path) as session:
        session.open_release()
    with tg.Session(second, ledger=url, folder=tmp_path) as session, pytest.raises(Infeasible, match="same source"):
        session.open_release()


def test_answers_and_synthetic_tables_that_combine_the_columns_are_refused_before_the_charge(ledger_url: str) -> None:
    with open_towns(ledger_url) as session:
        queries: list[Any] = [
            tg.count().by("ill", "town"),
            tg.count().by("town").where(tg.col("ill") == "yes"),
            "SELECT town, AVG(CASE WHEN ill = 'yes' THEN 1 ELSE 0 END) FROM towns GROUP BY town",
            "SELECT COUNT(*) FROM towns WHERE town || ill = 'ayes'",
        ]
        for query in queries:
            with pytest.raises(Unsupported, match="A hiding promise covers these columns"):
                session.answer(query, epsilon="0.1")
            with pytest.raises(Unsupported):
                session.preview(query, epsilon="0.1")
        with pytest.raises(Unsupported, match="The synthetic table combines"):
            session.synthesize(epsilon="0.1")
        assert float(session.account.spent) == 0
        session.answer([tg.count().by("town"), tg.count().by("ill"), tg.mean("rank").by("town")], epsilon="0.1")
        session.preview_synthesis(epsilon="0.1", columns=["ill", "rank"])


@pytest.mark.long_for("postgres")
def test_selection_cannot_open_after_an_answer_that_combined_the_columns(ledger_url: str) -> None:
    queries: list[Any] = [tg.count().by("town"), tg.count().by("ill").where(tg.col("rank") > 1)]
    with tg.open(replace(towns_policy(), hidings={}), table=towns_table(), ledger=ledger_url) as session:
        session.answer(queries, epsilon="0.1")
    with open_towns(ledger_url, name="towns") as session:
        session.open_release()  # each query alone shows no composition
    others: list[Any] = [
        [tg.mean("rank"), tg.count().by("town").where(tg.col("ill") == "yes")],
        tg.count().by("ill", "town"),
    ]
    for number, query in enumerate(others):
        plain = replace(towns_policy(name=f"t{number}"), hidings={})
        with tg.open(plain, table=towns_table(), ledger=ledger_url) as session:
            session.answer(query, epsilon="0.1")
        with (
            open_towns(ledger_url, name=f"t{number}") as session,
            pytest.raises(Infeasible, match="cannot be hidden any more"),
        ):
            session.open_release()
    with tg.open(replace(towns_policy(name="drawn"), hidings={}), table=towns_table(), ledger=ledger_url) as session:
        session.synthesize(epsilon="0.5")
    with open_towns(ledger_url, name="drawn") as session, pytest.raises(Infeasible, match="cannot be hidden any more"):
        session.open_release()


def test_policy_can_allow_answers(ledger_url: str) -> None:
    with open_towns(ledger_url, answers="allowed") as session:
        assert len(session.answer(tg.count().by("ill", "town"), epsilon="0.1").rows()) == 6


# What is written


def test_entries_are_the_same_for_two_tables_with_equal_sizes_quotas_and_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Withheld records change their value without a change of labels: only the two salted digests of the table differ."""
    written, logged, outcomes = [], [], []
    table = rows = towns_table()
    for turn in range(2):
        numbers = iter(range(10**6))
        monkeypatch.setattr(chain.system, "token_hex", lambda size, numbers=numbers: f"{next(numbers):0{2 * size}x}")
        monkeypatch.setattr(chain, "moment_text", lambda moment: "2026-11-17T12:00:00.000+00:00")
        caplog.clear()
        caplog.set_level(logging.DEBUG)
        with open_towns(str(tmp_path / f"{turn}.ledger"), rows) as session:
            session.open_release()
            outcome = session.release().request_many(all_keys(table), user="ann")
            outcomes.append({key: value.to_dict() for key, value in outcome.items()})
            written.append([entry.__dict__ for entry in session.ledger.entries()])
            own = [record for record in caplog.records if record.name.startswith("tidegate")]  # not of migrations
            logged.append([record.getMessage().replace(f"{turn}.ledger", "") for record in own])
            rows = relabelled(session, table)
    assert rows != table
    assert outcomes[0] == outcomes[1]
    assert logged[0] == logged[1]
    for first, second in zip(*written, strict=True):
        assert without_digests(first) == without_digests(second)
    body = next(json.loads(entry["body"]) for entry in written[0] if entry["kind"] == "hiding-open")
    assert set(body) == {
        "rule", "epoch", "mix", "mix_from", "at_most", "margin", "among", "smallest", "sizes", "hidden", "quotas",
        "columns", "snapshot", "chosen", "stored",
    }  # fmt: skip


def without_digests(entry: dict[str, Any]) -> dict[str, Any]:
    body = {name: value for name, value in json.loads(entry["body"]).items() if name not in ("snapshot", "stored")}
    return {**entry, "body": body, "previous": "", "hash": ""}


def relabelled(session: tg.Session, table: pa.Table) -> pa.Table:
    """Give withheld records of town a another value where no label changes: their rank is above all chosen ones."""
    stored = SelectionBook(session.ledger, session.policy).secret()
    assert stored is not None
    key, secret = SelectionKey(stored.key, "towns"), ReleaseBook(session.ledger, session.policy).secret()
    rows = table.to_pylist()
    own = [row for row in rows if row["town"] == "a"]
    ranks = {row["id"]: key.rank("select", 1, key_hash(secret, row["id"])) for row in own}
    healthy = sorted(ranks[row["id"]] for row in own if row["ill"] == "no")
    ill = sorted((row for row in own if row["ill"] == "yes"), key=lambda row: ranks[row["id"]])
    moved = {row["id"] for row in ill[10:] if ranks[row["id"]] > healthy[29]}
    moved = set(sorted(moved)[:10])
    assert moved
    return pa.Table.from_pylist([{**row, "ill": "no"} if row["id"] in moved else row for row in rows])


def test_text_of_a_record_is_its_canonical_json() -> None:
    layout, rows = Layout(soldiers.hiding_policy()), TABLE.slice(0, 400).to_pylist()
    rows[3]["name"], rows[4]["name"], rows[5]["name"] = 'o"neil \u00e9\u2028', None, 7
    for row in rows:
        positions = [bisect_right(soldiers.STARTS, row["age"]), soldiers.LOCATIONS.index(row["location"])]
        record = {"name": row["name"], "age": layout.labels["age"][positions[0]], "location": row["location"]}
        assert layout.shown_text(row, positions) == canonical(record)
