"""Changed queries of the corpus: each is planned or refused, in a bounded time, and nothing fails after the charge."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answer.corpus import CorpusQuery, corpus_policies, corpus_queries, corpus_tables
from answer.mutations import mutate_text, mutate_typed

import tidegate as tg
from tidegate.answer.sql import plan_sql
from tidegate.errors import TidegateError
from tidegate.policy import Policy

CORPUS = corpus_queries()
INTERNAL = ("core0", "row_of_cells", "universe", "tidegate_", "sqlglot", "duckdb", "Exception", "Traceback", "ibis")
SECONDS = 2.0


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Policy]:
    return corpus_policies(tmp_path_factory.mktemp("policies"))


def mutations(policies: dict[str, Policy], seed: int, count: int, *, typed: bool) -> Iterator[tuple[CorpusQuery, str]]:
    chance = random.Random(seed)
    columns = {name: [column.rpartition(".")[2] for column in policy.attributes] for name, policy in policies.items()}
    for _ in range(count):
        query = chance.choice(CORPUS)
        yield (
            query,
            (mutate_typed(query.sql, columns[query.policy], chance) if typed else mutate_text(query.sql, chance)),
        )


@pytest.mark.parametrize(
    ("typed", "count"),
    [
        (False, 400),
        (True, 100),
        pytest.param(False, 10_000, marks=pytest.mark.long),
        pytest.param(True, 5_000, marks=pytest.mark.long),
    ],
)
def test_every_mutation_is_planned_or_refused(
    policies: dict[str, Policy], typed: bool, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    seed = int.from_bytes(os.urandom(4)) if os.environ.get("TIDEGATE_SEED") == "fresh" else 7
    slow, planned, leaks = [], 0, []
    for query, text in mutations(policies, seed + count, count, typed=typed):
        started = time.process_time()
        try:
            plan_sql(text, policies[query.policy])
            planned += 1
        except TidegateError as refusal:
            leaks += [word for word in INTERNAL if word in str(refusal) and word.lower() not in text.lower()]
        if time.process_time() - started > SECONDS:
            slow.append(text)
    assert planned > count * (0.2 if typed else 0.005)
    assert not slow
    assert not leaks
    assert not [record for record in caplog.records if record.levelname == "ERROR"], "an exception while planning"


@pytest.mark.parametrize(("count", "fewest"), [(30, 5), pytest.param(120, 20, marks=pytest.mark.long)])
def test_nothing_fails_after_the_charge(policies: dict[str, Policy], count: int, fewest: int, tmp_path: Path) -> None:
    tables = corpus_tables(3)
    sessions: dict[str, Any] = {
        name: tg.open(
            policy, table=tables[name] if policy.tables else tables[name][name], ledger=str(tmp_path / f"{name}.ledger")
        )
        for name, policy in policies.items()
    }
    answered = 0
    for query, text in mutations(policies, 23, count, typed=True):
        session = sessions[query.policy]
        before = session.account.totals
        try:
            session.answer(text, epsilon=20, plan="one-by-one")
            answered += 1
        except TidegateError:
            assert session.account.totals == before, text
    assert answered >= fewest
    for session in sessions.values():
        session.close()
