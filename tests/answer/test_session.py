"""Asking: one way to say how much, a preview that is the charge, answers that are stored, refusals that help."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest
from answer.conftest import policy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegate.accounting import Amount
from tidegate.answer import Answers, Query, count, histogram, max, mean, median, quantile, std, sum, variance
from tidegate.answer.run import plan
from tidegate.answer.spending import error_of, resolve_loss
from tidegate.errors import BudgetExceeded, Infeasible, KeyReused, SourceMissing, UnknownColumn, Unsupported
from tidegate.policy import Dataset, Identification, Integer, Policy
from tidegate.policy.predicates import col
from tidegate.risk import worst_risk
from tidegate.session import Session

Ask = Callable[..., Session]
QUERIES = [
    count(),
    count().where(col("age") >= 30),
    count().by("town"),
    histogram("age"),
    histogram("town").by("sex"),
    sum("age"),
    sum("pay").by("sex"),
    mean("age"),
    mean("pay"),
    mean("age").where(col("town") == "Aby").by("sex"),
    variance("pay"),
    std("age").by("sex"),
    median("age"),
    quantile("pay", "0.9").by("town"),
    max("age"),
]
queries = st.lists(st.sampled_from(QUERIES), min_size=1, max_size=3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(asked=queries, epsilon=st.fractions("1/1000", 3))
def test_the_preview_is_the_charge_to_the_last_digit(ask: Ask, asked: list[Query], epsilon) -> None:
    with ask(epsilon="1e6") as session:
        spent = session.account.spent
        before = session.preview(asked, epsilon=epsilon)
        given = session.answer(asked, epsilon=epsilon)
        after = session.account.spent
    assert before.cost.value <= epsilon
    assert given.cost in (before.cost, Amount(0))  # the same question of an earlier example is free
    assert after == spent + given.cost


@given(asked=st.sampled_from(QUERIES), one=st.fractions("1/50", "49/50"), other=st.fractions("1/50", "49/50"))
def test_a_larger_rho_never_means_more_noise(asked: Query, one, other) -> None:
    rules = policy(rho="0.9")
    low, high = sorted((one, other))
    losses = [resolve_loss((asked,), rules, rho=rho) for rho in (low, high)]
    assert losses[0] <= losses[1]
    errors = [error_of(asked, rules, loss, 0.95) for loss in losses]
    assert errors[0] is None or errors[0] >= errors[1]


@given(asked=st.sampled_from(QUERIES), epsilon=st.fractions("1/10000", 20))
def test_the_price_is_never_above_what_was_asked_and_hardly_below(asked: Query, epsilon) -> None:
    price = plan((asked,), policy(), epsilon=epsilon)[0].price.value
    assert epsilon * Fraction(1999, 2000) <= price <= epsilon


@pytest.mark.parametrize(
    "asked", [count(), histogram("age"), mean("pay"), sum("age"), mean("age")], ids=lambda query: query.says()
)
@pytest.mark.parametrize("wanted", [1, 5, 40])
def test_an_error_costs_just_enough(ask: Ask, asked: Query, wanted: int) -> None:
    rules = policy()
    loss = resolve_loss((asked,), rules, error=wanted)
    assert (error_of(asked, rules, loss, 0.95) or 0) <= wanted
    assert (error_of(asked, rules, loss * 9 / 10, 0.95) or 0) > wanted * 0.9


def test_the_same_question_is_free_and_gives_the_same(ask: Ask) -> None:
    with ask() as session:
        first, again = (session.answer(mean("age").by("sex"), epsilon="0.3") for _ in range(2))
        assert (first.values == again.values).all()
        assert (str(first.cost), str(again.cost)) == ("0.3", "0")
        more = session.answer(mean("age").by("sex"), epsilon="0.31")
        assert more.cost


def test_a_stored_answer_needs_no_table(ask: Ask, tmp_path) -> None:
    with ask() as session:
        first = session.answer(count().by("sex"), epsilon="0.3")
    with Session(policy(), table=tmp_path / "gone.csv", folder=tmp_path) as session:
        assert (session.answer(count().by("sex"), epsilon="0.3").values == first.values).all()
        with pytest.raises(SourceMissing):
            session.answer(count().by("sex"), epsilon="0.4")
        assert str(session.account.spent) == "0.3"


def test_several_questions_are_one_charge(ask: Ask) -> None:
    with ask() as session:
        given = session.answer([count(), mean("age"), median("pay")], epsilon="0.6")
        assert isinstance(given, Answers)
        assert len(given) == 3
        assert sum_of(session) == 1
        assert given.cost.value <= Amount.up("0.6").value


def sum_of(session: Session) -> int:
    return len([entry for entry in session.ledger.entries() if entry.kind == "charge"])


def test_an_idempotency_key_holds_one_question(ask: Ask) -> None:
    with ask() as session:
        first = session.answer(count(), epsilon="0.1", key="k1")
        assert session.answer(count(), epsilon="0.1", key="k1").value == first.value
        with pytest.raises(KeyReused):
            session.answer(count(), epsilon="0.2", key="k1")
        assert str(session.account.spent) == "0.1"


def test_a_refusal_names_the_nearest_that_fits(ask: Ask) -> None:
    with ask(epsilon="1") as session:
        session.answer(count(), epsilon="0.9")
        with pytest.raises(BudgetExceeded) as told:
            session.answer(sum("pay"), epsilon="0.5")
        assert told.value.facts == {"asked": "0.5", "spent": "0.9", "left": "0.1", "ceiling": "1"}
        assert "Request at most 0.1 (it would be within" in told.value.do
        assert session.answer(sum("pay"), epsilon="0.1").cost
        with pytest.raises(BudgetExceeded, match="nothing is left"):
            session.fit([count()])


def test_fit_says_what_is_possible_with_what_is_left(ask: Ask) -> None:
    with ask(epsilon="1") as session:
        session.answer(count(), epsilon="0.5")
        five = [count().by("town"), mean("pay"), sum("age"), median("age"), histogram("age")]
        fitted = session.fit(five)
        assert fitted.fits
        assert fitted.cost.value <= session.account.left.value
        assert [one.error is None for one in fitted.expected] == [False, False, False, True, False]
        assert session.answer(five, epsilon="0.5").cost == fitted.cost


WAYS = [
    {},
    {"rho": "0.1", "epsilon": "1"},
    {"epsilon": "0"},
    {"epsilon": "nan"},
    {"error": "-1"},
    {"epsilon": "1", "confidence": 1.5},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_exactly_one_way_says_how_much(ask: Ask, way: dict) -> None:
    with ask(rho="0.1") as session, pytest.raises(Unsupported):
        session.answer(count(), **way)
    assert not session.account.spent


def test_rho_is_refused_where_it_cannot_be_kept_and_nothing_is_spent(ask: Ask) -> None:
    with ask(rho="0.1") as session:
        with pytest.raises(Infeasible) as told:
            session.answer(count(), rho="0.01")
        assert told.value.facts["smallest_rho"] == 1 / 73
        assert told.value.facts["worlds_needed"] == 101
        assert not session.account.spent
        assert session.answer(count(), rho="0.05").charge.identification()["age"]["after"] == pytest.approx(0.05)
    with ask() as session, pytest.raises(Unsupported, match="identification promise"):
        session.answer(count(), rho="0.05")


def test_tight_calibration_shows_and_charges_the_loss_it_implies(ask: Ask) -> None:
    with ask(epsilon="100") as session:
        tight = session.preview(mean("pay"), rho="0.1", calibration="tight")
        guarded = session.preview(mean("pay"), rho="0.1", calibration="tight", window=3)
        assert tight.error < guarded.error
        assert tight.cost > guarded.cost
        given = session.answer(mean("pay"), rho="0.1", calibration="tight")
        assert given.cost == tight.cost
        with pytest.raises(Infeasible, match="4 neighboring values of 37"):
            session.preview(mean("pay"), rho="0.1", calibration="tight", window=4)
        with pytest.raises(Unsupported, match="Tight calibration requires"):
            session.preview(mean("age"), rho="0.1", calibration="tight")


def test_the_yes_no_certainty_is_shown_beside_rho(ask: Ask) -> None:
    with ask(rho="0.1") as session:
        before = session.preview(count(), epsilon="0.5")
        assert before.to_dict()["yes_no"]["after"] == pytest.approx(math.exp(0.5) / (1 + math.exp(0.5)))
        assert before.to_dict()["yes_no"]["now"] == 0.5
        assert "yes/no certainty at most 0.622 afterwards (limit 0.889)" in str(before)
        given = session.answer(count(), epsilon="0.5")
        assert given.to_dict()["yes_no"]["after"] == before.yes_no()["after"]
        assert "yes/no certainty at most 0.622" in str(given)


def priced(prior: Any, values: int) -> Policy:
    """A policy over few values whose adversary has a prior."""
    promise = Identification("0.99", protect=("grade",), prior={"grade": prior})
    return Policy(Dataset("grades", rows=100), {"grade": Integer(1, values, missing="lowest")}, promise)


@pytest.mark.parametrize(
    ("prior", "rho", "charge"),
    [
        (("0.5", "0.2", "0.1", "0.1", "0.1"), "0.6", 0.783019),
        (("0.2",) * 5, "0.6", 3.598974),
        (("0.3", *["0.1"] * 7), "1/3", 0.275169),
        (("0.05", "0.05", "0.8", "0.05", "0.05"), "0.9", 2.268262),
        (("0.4", "0.3", "0.2", "0.1"), "0.5", 0.760633),
    ],
)
def test_tight_calibration_keeps_rho_against_the_policys_prior(prior: Any, rho: str, charge: float) -> None:
    policy = priced(prior, len(prior))
    epsilon = resolve_loss((sum("grade"),), policy, rho=rho, calibration="tight")
    assert float(epsilon) == pytest.approx(charge, abs=1e-6)
    scale = (len(prior) - 1) / float(epsilon)
    assert worst_risk(range(len(prior)), scale=scale, prior=[float(p) for p in prior]) <= float(Fraction(rho))


def test_tight_calibration_needs_a_prior_of_every_value_and_a_rho_below_one() -> None:
    with pytest.raises(Unsupported, match="prior probability of every value"):
        resolve_loss((sum("grade"),), priced("0.5", 5), rho="0.6", calibration="tight")
    with pytest.raises(Unsupported, match="below 1"):
        resolve_loss((sum("grade"),), priced(("0.2",) * 5, 5), rho="1", calibration="tight")
    with pytest.raises(Infeasible, match=r"probability 0\.5"):
        resolve_loss((sum("grade"),), priced(("0.5", "0.5"), 2), rho="0.5", calibration="tight")


BAD: dict[str, Query] = {
    "an unknown column": mean("agee"),
    "a mean of a category": mean("sex"),
    "a key": count().by("person"),
    "a group twice": count().by("sex", "sex"),
    "a category that is not listed": count().where(col("town") == "Dal"),
    "a category as a number": count().where(col("town") >= 5),
    "a number as text": count().where(col("age") == "old"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_question_that_means_nothing_is_refused(ask: Ask, case: str) -> None:
    with ask() as session, pytest.raises((Unsupported, UnknownColumn)):
        session.answer(BAD[case], epsilon="0.1")
    assert not session.account.spent


def test_an_answer_prints_as_a_person_would_say_it(ask: Ask) -> None:
    with ask(rho="0.1") as session:
        given = session.answer(mean("pay"), rho="0.05")
        assert "(noise: " in str(given)
        assert "identification of age at most 0.05" in str(given)
        told = given.to_dict()
        assert json.loads(json.dumps(told)) == told
        assert told["identification"]["age"]["before"] == pytest.approx(1 / 73)
        assert "<table>" in given._repr_html_()
        assert given.plot().marks
        low, high = given.interval()
        assert low <= given.value <= high


def test_a_public_number_of_rows_must_be_the_tables(ask: Ask) -> None:
    from tidegate.errors import SourceUnreadable

    with ask(count=299) as session, pytest.raises(SourceUnreadable, match="declares 299 rows"):
        session.answer(mean("pay"), epsilon="0.1")
    assert not session.account.spent


def test_a_new_edition_of_the_data_is_asked_anew_from_the_same_account(ask: Ask, tmp_path) -> None:
    from dataclasses import replace

    import pyarrow as pa
    from answer.conftest import rows

    with ask() as session:
        session.answer(count(), epsilon="0.3")
    newer = replace(policy(), dataset=replace(policy().dataset, edition="2026-12"))
    with Session(newer, table=pa.Table.from_pylist(rows()), folder=tmp_path) as session:
        assert session.answer(count(), epsilon="0.3").cost
        assert str(session.account.spent) == "0.6"
        assert "edition: none -> 2026-12" in str([entry.body for entry in session.ledger.entries()])


def test_sessions_answer_several_threads_at_once(ask: Callable[..., Session]) -> None:
    """The rehearsal on no rows and the real query share one connection, which takes one query at a time."""
    with ask(epsilon="100") as session, ThreadPoolExecutor(8) as threads:
        asked = [mean("age").where(col("age") >= 18 + n % 40) for n in range(80)]
        answers = list(threads.map(lambda query: session.answer(query, epsilon="0.1"), asked))
    assert len({answer.entry for answer in answers}) == 40
