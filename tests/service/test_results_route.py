"""GET .../results: the same results as a local session, as JSON and CSV, from counted batches only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from collect.test_poll_results import CANTEEN, reports
from support.service import RunningService, run_service

from tidegate.collect.polls.results import PollResults
from tidegate.policy import Dataset, Policy
from tidegate.service.access.permissions import ANALYST, OWNER, PUBLIC, RESPONDENT

AT = "/v1/data/canteen/collections/canteen"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    policy = Policy(Dataset("canteen"), {}, collections={"canteen": CANTEEN})
    with run_service(str(tmp_path_factory.mktemp("poll") / "all.ledger"), policies=(policy,)) as running:
        yield running


def test_results_of_the_service(service: RunningService, tmp_path: Path) -> None:
    survey = service.datasets["canteen"].survey("canteen")
    survey.receive(reports(survey, 150))
    early = service.get(f"{AT}/results", ANALYST).json()
    assert (early["reports"], early["waiting"]) == (0, 100)
    assert all(question["too_few"] for question in early["questions"])
    state = service.get(f"{AT}/state", OWNER).json()
    assert (state["status"], state["next_count"]) == (early["status"], early["closes"])
    survey.close()
    data = service.get(f"{AT}/results?confidence=0.9", ANALYST).json()
    assert data == survey.results(confidence=0.9).to_dict()
    text = service.get(f"{AT}/results?format=csv&language=de", ANALYST)
    assert text.headers["content-type"] == "text/csv; charset=utf-8"
    assert text.text == survey.results().to_csv(language="de")
    accepted = service.get(f"{AT}/results", ANALYST, headers={"accept": "text/csv"})
    assert accepted.text == survey.results().to_csv()
    charts = service.get(f"{AT}/results?charts=true", ANALYST).json()["charts"]
    assert set(charts) == {"often", "dishes", "age", "pay"}
    assert PollResults.from_dict(data).to_csv() == survey.results(confidence=0.9).to_csv()
    assert service.get(f"{AT}/results?format=csv&language=fr", ANALYST).status_code == 422


@pytest.mark.parametrize("role", [PUBLIC, RESPONDENT])
def test_results_are_for_analysts_and_owners(service: RunningService, role: str) -> None:
    assert service.get(f"{AT}/results", role).status_code in (401, 403)
