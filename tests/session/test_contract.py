"""A local and a remote session have the same methods, and return the same classes, JSON and text."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from session.conftest import KEYS, Pair

import tidegate as tg
from tidegate.errors import BudgetExceeded, KeyReused, NotWaiting, UnknownColumn, Unsupported
from tidegate.release.result import Deferred, Refused, Released
from tidegate.session.protocol import CollectionSurvey, DataSession, ReleaseDesk

SEVERAL = [tg.count().by("town"), tg.mean("age"), tg.median("age")]
WHERE = tg.count().where((tg.col("age") >= 30) & (tg.col("town") != "Aby"))
QUERIES = [
    tg.count(),
    WHERE,
    tg.count().by("town", "age"),
    tg.histogram("age"),
    tg.sum("age").by("town"),
    tg.mean("age"),
    tg.variance("age"),
    tg.std("age").by("town"),
    tg.median("age"),
    tg.min("age"),
    tg.max("age"),
    tg.quantile("age", Fraction(1, 3)).by("town"),
    tg.regression("age ~ pay"),
]

# Every call is made once before, so that the compared ones cost nothing on both sides.
SESSION: dict[str, list[Callable[[DataSession], Any]]] = {
    "answer": [
        *(lambda session, query=query: session.answer(query, epsilon=2) for query in QUERIES),
        lambda session: session.answer(SEVERAL, epsilon=3),
        lambda session: session.answer([tg.count()], epsilon=2),
        lambda session: session.answer("SELECT COUNT(*) FROM people", epsilon=2),
        lambda session: session.answer("SELECT COUNT(*), AVG(age) FROM people", epsilon="1/3"),
        lambda session: session.answer(tg.mean("age"), rho=0.5),
        lambda session: session.answer(tg.mean("pay"), rho=0.5, calibration="tight", window=2, key="tight"),
        lambda session: session.answer(tg.count(), error=5, confidence=0.9),
    ],
    "preview": [
        *(lambda session, query=query: session.preview(query, epsilon=2) for query in QUERIES),
        lambda session: session.preview(SEVERAL, rho=0.5),
        lambda session: session.preview("SELECT AVG(age) FROM people", error=0.5, confidence=0.8),
    ],
    "fit": [
        lambda session: session.fit(tg.count()),
        lambda session: session.fit(SEVERAL, confidence=0.5),
    ],
    "derive": [
        lambda session: session.derive(tg.count().where(tg.col("town") == "Aby")),
        lambda session: session.derive("SELECT AVG(age) FROM people"),
        lambda session: session.derive(tg.median("pay")),
    ],
    "preview_synthesis": [
        lambda session: session.preview_synthesis(epsilon=1),
        lambda session: session.preview_synthesis(
            rho=0.5, tables=2, rows=9, model="forest/2", target="town", columns=["age", "town"]
        ),
    ],
    "synthesize": [
        lambda session: session.synthesize(epsilon=2, tables=2, rows=30, seed=5, columns=["age", "town"]),
    ],
    "paid_quality": [
        lambda session: session.paid_quality(
            session.synthesize(epsilon=2, tables=2, rows=30, seed=5, columns=["age", "town"]), epsilon="0.5"
        ),
    ],
}
OWN = {
    "policy",
    "account",
    "release",
    "open_release",
    "collect",
    "poll",
    "close",
}  # compared in tests of their own, below
SURVEY: dict[str, list[Callable[[CollectionSurvey], Any]]] = {
    "reports": [lambda survey: survey.reports],
    "waiting": [lambda survey: survey.waiting],
    "closed": [lambda survey: survey.closed],
    "estimable": [lambda survey: survey.estimable],
    "distribution": [
        lambda survey: survey.distribution("town"),
        lambda survey: survey.distribution("age", confidence=0.8),
        lambda survey: survey.distribution("pay", band="strict"),
        lambda survey: survey.distribution("pay", method="em"),
        lambda survey: survey.distribution("pay", atoms=True),
    ],
    "estimates": [lambda survey: list(survey.estimates().values())],
    "mean": [lambda survey: survey.mean("pay"), lambda survey: survey.mean("pay", confidence=0.8)],
    "shares": [lambda survey: survey.shares(), lambda survey: survey.shares("basket", confidence=0.8)],
    "results": [lambda survey: survey.results(), lambda survey: survey.results(confidence=0.8)],
    "state": [lambda survey: survey.state()],
    "rules": [
        lambda survey: survey.rules(min_support=0.1),
        lambda survey: survey.rules("basket", min_support=0.2, min_confidence=0.3, largest=2),
    ],
    "tree": [
        lambda survey: survey.tree("town", by=["age"], strategy="randomized"),
        lambda survey: survey.tree("town", by=["pay", "age"], strategy="by-class"),
    ],
}


def methods(protocol: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(protocol) if not name.startswith("_")}


def same(here: Any, there: Any) -> None:
    """Assert equal types, JSON, text and notebook pages."""
    assert type(there) is type(here)
    if isinstance(here, list | tuple):
        assert len(there) == len(here)
        for first, other in zip(here, there, strict=True):
            same(first, other)
    elif hasattr(here, "to_dict"):
        assert there.to_dict() == here.to_dict()
        if type(here).__str__ is not object.__str__ and "__str__" in vars(type(here)):
            assert str(there) == str(here)
        if hasattr(here, "_repr_html_"):
            assert there._repr_html_() == here._repr_html_()
        assert there.to_arrow().equals(here.to_arrow())
        assert type(there.to_pandas()) is type(here.to_pandas())
    else:
        assert there == here


def as_cases(calls: dict[str, list[Any]]) -> list[Any]:
    return [
        pytest.param(call, id=f"{name} {number}")
        for name, group in calls.items()
        for number, call in enumerate(group, 1)
    ]


@pytest.mark.parametrize("call", as_cases(SESSION))
def test_methods_of_sessions_return_the_same(pair: Pair, call: Callable[[DataSession], Any]) -> None:
    call(pair.local)
    same(call(pair.local), call(pair.remote))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("call", as_cases(SURVEY))
def test_methods_of_surveys_return_the_same(pair: Pair, call: Callable[[CollectionSurvey], Any]) -> None:
    same(call(pair.local.collect("shoppers")), call(pair.remote.collect("shoppers")))


def test_every_method_of_the_protocols_is_compared() -> None:
    assert set(SESSION) | OWN == methods(DataSession)
    assert set(SURVEY) | {"client", "submit", "receive", "invite", "sign", "close"} == methods(CollectionSurvey)
    assert methods(ReleaseDesk) == {"request", "request_many", "status", "withdraw", "released"}


def test_policy_and_account_are_the_same(pair: Pair) -> None:
    assert pair.remote.policy.public_dict() == pair.local.policy.public_dict()
    assert pair.remote.account == pair.local.account
    for here, there in ((pair.local.policy, pair.remote.policy), (pair.local.account, pair.remote.account)):
        assert there._repr_html_() == here._repr_html_()
        assert there.to_arrow().equals(here.to_arrow())


def test_outcomes_of_requests_are_the_same(pair: Pair) -> None:
    here, there = pair.local.release(), pair.remote.release("hq")
    same(list(here.request_many(KEYS).values()), list(there.request_many(KEYS).values()))
    assert there.request_many(KEYS).to_arrow().equals(here.request_many(KEYS).to_arrow())
    assert there.released()[0].to_arrow().equals(here.released()[0].to_arrow())
    kinds = {type(outcome) for outcome in there.request_many([*KEYS, "nobody"]).values()}
    assert kinds == {Released, Deferred, Refused}
    for key in (*KEYS[:3], "nobody"):
        same(here.request(key), there.request(key))
        same(here.status(key), there.status(key))
    same(here.released(), there.released())
    same(here.released(1, limit=2), there.released(1, limit=2))
    waiting = next(key for key, outcome in there.request_many(KEYS).items() if isinstance(outcome, Deferred))
    there.withdraw(waiting)
    same(here.status(waiting), there.status(waiting))
    for desk in (here, there):
        with pytest.raises(NotWaiting):
            desk.withdraw(waiting)


def test_responses_to_reports_are_the_same(pair: Pair) -> None:
    here, there = pair.local.collect(), pair.remote.collect()
    value = {"age": 30, "town": "Aby", "pay": 3, "basket": ["tea"]}
    assert there.client().randomize(value).keys() == here.client().randomize(value).keys()
    first, second = ([survey.client().randomize(value), {"not": "a report"}] for survey in (here, there))
    same(here.receive(first), there.receive(second))
    same(here.receive(second), there.receive(first))
    submitted, sent = here.submit([first[1]]), there.submit([first[1]])
    assert (type(sent), sent.reasons, str(sent)) == (type(submitted), submitted.reasons, str(submitted))


def test_new_charge_reports_its_cost(session: DataSession) -> None:
    epsilon = "0.125" if isinstance(session, tg.Session) else "0.375"  # other than any before
    assert str(session.answer(tg.count(), epsilon=epsilon).cost) == epsilon
    assert str(session.answer(tg.count(), epsilon=epsilon).cost) == "0"
    tables = session.synthesize(epsilon=epsilon, rows=10, columns=["age", "town"])
    assert (str(tables.cost), tables.charge.stored, len(tables), tables[0].rows) == (epsilon, "", 1, 10)
    assert "stored answer" not in str(tables)
    again = session.synthesize(epsilon=epsilon, rows=10, columns=["age", "town"])
    assert str(again.cost) == "0"
    assert again[0].to_arrow().to_pylist() == tables[0].to_arrow().to_pylist()
    quality = session.paid_quality(tables, epsilon=epsilon)
    assert str(quality.cost) == epsilon


def test_rows_of_synthetic_tables_are_the_same(pair: Pair) -> None:
    def make_tables(session: DataSession) -> tg.SyntheticTables:
        return session.synthesize(epsilon=2, tables=2, rows=30, seed=5, columns=["age", "town"])

    make_tables(pair.local)  # pays, if no test before did
    here, there = make_tables(pair.local), make_tables(pair.remote)
    for first, other in zip(here, there, strict=True):
        assert other.to_pandas().equals(first.to_pandas())
    with pytest.raises(Unsupported, match="Only the service can draw"):
        there[0].draw(10)
    with pytest.raises(Unsupported, match="come from a service"):
        there.quality()
    jobs = [job for job in pair.remote.syntheses() if job.request["seed"] == 5]
    same(here, jobs[-1].tables())
    with pytest.raises(Unsupported, match="not from this service"):
        pair.remote.paid_quality(here, epsilon=1)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_intervals_exist_for_any_confidence(pair: Pair, confidence: float) -> None:
    here, there = (session.answer(tg.count().by("town"), epsilon=2) for session in (pair.local, pair.remote))
    ends = here.interval(confidence), there.interval(confidence)
    assert ends[0] is not None
    assert ends[1] is not None
    assert np.array_equal(ends[0], ends[1])


def test_long_distributions_keep_their_band_for_the_usual_rows(pair: Pair) -> None:
    here, there = (session.collect().distribution("pay") for session in (pair.local, pair.remote))
    assert len(here.labels) > len(here.runs()) == 20
    assert there.runs() == here.runs()
    with pytest.raises(Unsupported, match="20 rows"):
        there.runs(7)
    assert (there.plot() is None) == (here.plot() is None)


def test_trees_give_the_same_predictions(pair: Pair) -> None:
    answers = [{"age": age} for age in (20, 35, 50)]
    here, there = (
        session.collect().tree("town", by=["age"], strategy="by-class") for session in (pair.local, pair.remote)
    )
    assert there.predict(answers) == here.predict(answers)
    assert np.array_equal(there.shares(answers), here.shares(answers))


def test_errors_are_the_same(session: DataSession) -> None:
    with pytest.raises(UnknownColumn, match="salary"):
        session.preview(tg.mean("salary"), epsilon=1)
    with pytest.raises(Unsupported):
        session.answer(tg.count())
    with pytest.raises(BudgetExceeded):
        session.answer(tg.count(), epsilon=10_000)
    with pytest.raises(BudgetExceeded):
        session.synthesize(epsilon=5_000)
    session.answer(tg.count(), epsilon=2, key="used")
    with pytest.raises(KeyReused):
        session.answer(tg.mean("age"), epsilon=2, key="used")
    with pytest.raises(Unsupported):
        session.collect().tree("basket", by=["town"])


def test_result_of_a_newer_policy_uses_that_policy(pair: Pair) -> None:
    pair.local.answer(tg.count(), epsilon=2)  # pays, if no test before did
    with tg.connect(pair.url, pair.token, dataset="people") as remote:
        remote._policy = replace(remote.policy, loss=tg.Loss(1))
        result = remote.answer(tg.count(), epsilon=2)
        assert result.to_dict() == pair.local.answer(tg.count(), epsilon=2).to_dict()
        assert remote.policy.fingerprint == pair.local.policy.fingerprint


def test_data_set_without_polls_says_so(session: DataSession) -> None:
    with pytest.raises(Unsupported, match="no polls"):
        session.poll()
    with pytest.raises(Unsupported, match='no poll called "shoppers"'):
        session.poll("shoppers")
