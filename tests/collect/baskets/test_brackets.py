"""Baskets of one size: padded they are estimated, cut they are only bracketed, and new ones are never cut."""

from __future__ import annotations

import json
import random
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collect.surveys import open_survey, policy_of
from sqlalchemy import text
from typer.testing import CliRunner

import tidegate as tg
import tidegate.collect.client
from tidegate.accounting.respondent import respondent_loss
from tidegate.cli.app import app
from tidegate.collect.baskets.mining import Frequent
from tidegate.collect.baskets.rules import Cut, supports
from tidegate.collect.client import Client
from tidegate.errors import PolicyUnreadable, Unsupported
from tidegate.ledger import queries, verify
from tidegate.ledger.chain import append
from tidegate.ledger.entry import COLLECTING, canonical
from tidegate.operators.exact_draws import SeededBytes
from tidegate.policy import Items, Question
from tidegate.policy.collection import Collection, operator_for
from tidegate.policy.toml import collection_from_dict, write_policy

ITEMS = Items(tuple("abcdefghijkl"))
PEOPLE = 3_000


def basket_collection(fixed: int) -> Collection:
    return Collection(
        "shop", {"basket": Question("basket", ITEMS, "cut-and-paste", cutoff=3, rho="0.02", largest=8, fixed=fixed)}
    )


def open_as_before(url: str, collection: Collection) -> None:
    """Put a collection into the ledger as it was possible before it was refused."""
    session = tg.open(policy_of(collection), ledger=url)
    loss = respondent_loss(collection)
    body = {"description": collection.public_dict(), "gives": loss.to_dict(), "says": str(loss), "who": ""}
    with session.ledger.store.writing() as connection:
        fields = {
            "account": "people/shop",
            "kind": COLLECTING,
            "policy": collection.fingerprint,
            "request": "version/1",
        }
        totals = {"question": "", "amount": "0", "spent": "0", "ceiling": "0", "body": canonical(body)}
        append(connection, queries.last(connection), **fields, **totals)
    session.close()


def run_survey(tmp_path: Path, fixed: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The survey of people who all hold a to e. What depends on the collection alone is computed once for all clients."""
    collection, url = basket_collection(fixed), str(tmp_path / "s.ledger")
    operator, loss = operator_for(collection.questions["basket"]), respondent_loss(collection)
    monkeypatch.setattr(tidegate.collect.client, "operator_for", lambda question: operator)
    monkeypatch.setattr(tidegate.collect.client, "respondent_loss", lambda collection: loss)
    if collection.questions["basket"].cuts:
        open_as_before(url, collection)
    _, survey = open_survey(url, tmp_path / "reports", collection)
    clients = (Client(collection, source=SeededBytes(f"{fixed} {number}")) for number in range(PEOPLE))
    survey.submit([client.randomize({"basket": list("abcde")}) for client in clients])
    return survey


def estimates(survey: Any) -> list[tuple[float, float]]:
    """What the reports say of a, of a and b, and of a, b and c, with standard errors."""
    with supports(survey, "basket") as source:
        counted = [source.count(np.array([range(items)])) for items in (1, 2, 3)]
    return [(float(support[0]), float(error[0])) for support, error in counted]


def test_padded_baskets_are_estimated_without_bias(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    survey = run_survey(tmp_path, 8, monkeypatch)
    for (support, error), width in zip(estimates(survey), (0.04, 0.12, 0.45), strict=True):
        assert abs(support - 1) < 4 * error
        assert error == pytest.approx(width, rel=0.35)


def test_cut_baskets_have_a_bracket_around_the_truth_and_no_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey = run_survey(tmp_path, 3, monkeypatch)
    for (support, error), left in zip(estimates(survey), (0.6, 0.3, 0.1), strict=True):
        assert abs(support - left) < 4 * error, "what is left after the cut is no support"
    rule_set = survey.rules(min_support=0.2, largest=2)
    shown = rule_set.to_dict()
    assert shown["rules"] == []
    assert "cut to 3 items" in shown["warning"]
    assert {tuple(itemset["items"]) for itemset in shown["itemsets"]} >= {("a",), ("a", "b")}
    for itemset in shown["itemsets"]:
        assert (itemset["support"], itemset["error"]) == (None, None)
        assert itemset["low"] < itemset["high"] == 1
    sharp = survey.rules(min_support=0.2, largest=1, sizes={5: 1.0}).to_dict()["itemsets"]
    assert all(itemset["low"] > 0.9 and itemset["high"] == 1 for itemset in sharp)


def test_brackets_are_sharp_over_all_small_populations() -> None:
    """Every population of sizes 1 to 4 on a grid: its support is in the bracket, and some reach both ends."""
    shares = {1: 0.25, 2: 0.25, 3: 0.25, 4: 0.25}
    cut, k = Cut(2, 4, shares), 2
    by_left: dict[float, list[float]] = {}
    for part in product(np.linspace(0, 1, 7), repeat=3):  # of the people with 2, 3 and 4 items
        share_by_size = dict(zip((2, 3, 4), (0.25 * p for p in part), strict=True))
        left = round(sum(cut.kept(size, k) * share for size, share in share_by_size.items()), 12)
        by_left.setdefault(left, []).append(sum(share_by_size.values()))
    ends = [0, 0]
    for left, held_shares in by_left.items():
        low, high = cut.bracket(left, left, k)
        assert low - 1e-9 <= min(held_shares)
        assert max(held_shares) <= high + 1e-9
        ends[0] += low == pytest.approx(min(held_shares), abs=1e-9)
        ends[1] += high == pytest.approx(max(held_shares), abs=1e-9)
        wide = Cut(2, 4).bracket(left, left, k)
        assert wide[0] <= low + 1e-9
        assert wide[1] >= high - 1e-9
    assert min(ends) > len(by_left) / 6
    assert cut.bracket(0.0, 0.0, 3) == (0.0, 0.5), "no report shows three items of two"
    with pytest.raises(Unsupported, match="add up to 1"):
        Cut(2, 4, {1: 0.2})


def test_brackets_cover_simulated_supports() -> None:
    chance, covered = random.Random(5), 0
    for _ in range(200):
        sizes = [chance.randint(1, 8) for _ in range(400)]
        has_itemset = [chance.random() < 0.4 and size >= 2 for size in sizes]
        left = [has and chance.random() < Cut(3, 8).kept(size, 2) for has, size in zip(has_itemset, sizes, strict=True)]
        share, truth = float(np.mean(left)), float(np.mean(has_itemset))
        itemset = Frequent((0, 1), share, float(np.sqrt(share * (1 - share) / 400)))
        known = {size: sizes.count(size) / 400 for size in set(sizes)}
        low, high = Cut(3, 8, known).of(itemset)
        covered += low <= truth <= high
    assert covered >= 190


def test_new_collection_that_cuts_is_refused_and_an_old_one_is_read(tmp_path: Path) -> None:
    old = basket_collection(3)
    with pytest.raises(PolicyUnreadable, match="cuts them to 3"):
        open_survey(str(tmp_path / "new.ledger"), tmp_path / "r", old)
    assert collection_from_dict(old.public_dict()) == old
    file = tmp_path / "shop.toml"
    file.write_text(write_policy(policy_of(old)), "utf-8")
    run = CliRunner().invoke
    checked = run(app, ["check", str(file), "--json"])
    assert checked.exit_code == 2
    assert any(
        "cuts them to 3" in finding["says"] for finding in json.loads(checked.output)["findings"] if finding["problem"]
    )
    assert isinstance(run(app, ["collect", "define", str(file)]).exception, PolicyUnreadable)
    file.write_text(write_policy(policy_of(basket_collection(8))), "utf-8")
    assert run(app, ["check", str(file)]).exit_code == 0


def test_padded_question_refuses_a_larger_basket_instead_of_cutting_it() -> None:
    operator = operator_for(basket_collection(8).questions["basket"])
    with pytest.raises(Unsupported, match="can have at most 8 items; this one has 9"):
        operator.sample_basket(list(range(9)), SeededBytes("x"))


def test_versions_of_the_ledger_with_a_cut_collection_verify(tmp_path: Path) -> None:
    url = str(tmp_path / "s.ledger")
    open_as_before(url, basket_collection(3))
    session, _ = open_survey(url, tmp_path / "r", basket_collection(3))
    assert verify(*session.ledger.snapshot()).problems == []
    with session.ledger.store.reading() as connection:
        kinds = connection.execute(text("SELECT kind FROM tidegate_entries ORDER BY number")).scalars().all()
    assert kinds == ["genesis", "collection"]
