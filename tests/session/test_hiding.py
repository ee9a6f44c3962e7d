"""A hiding promise through a local and a remote session: the same selection and the same outcomes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from session.conftest import serve
from session.test_contract import same
from support.service import QUIET, RunningService, run_service

import tidegate as tg
from tidegate.demo import soldiers
from tidegate.policy import Dataset
from tidegate.release.result import Refused, Released, Withheld


def test_remote_session_opens_a_selection_and_gets_the_outcomes_of_a_local_one(tmp_path: Path) -> None:
    import pyarrow as pa

    policy = replace(soldiers.hiding_policy(among=2), dataset=Dataset("soldiers"))
    with run_service(
        str(tmp_path / "a.ledger"), settings=QUIET, policies=(policy,), data=pa.table(soldiers.records())
    ) as running:
        compare(running)


def compare(running: RunningService) -> None:
    local = running.datasets["soldiers"].session
    names = [*list(soldiers.in_mixed_order())[:60], "nobody"]
    with serve(running.app) as url, tg.connect(url, running.tokens["owner"], dataset="soldiers") as remote:
        assert remote.policy == local.policy
        selection = remote.open_release(sensitive=["L2"])
        same(selection, local.release().selections[0])
        outcomes = remote.release().request_many(names)
        assert {type(outcome) for outcome in outcomes.values()} == {Released, Withheld, Refused}
        same(list(outcomes.values()), list(local.release().request_many(names).values()))
        same(remote.release().status(names[0]), local.release().status(names[0]))
        same(remote.release().released(), local.release().released())
        assert remote.release().state()["open"]
