"""What a later reader of ledger and results learns: stated per shuffled batch, after the local epsilon."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from collect.surveys import SHOPPERS, open_survey, policy_of, reports
from typer.testing import CliRunner

import tidegate as tg
from tidegate.accounting.later_reader import later_reader
from tidegate.accounting.shuffle import general_epsilon
from tidegate.cli.app import app
from tidegate.policy.toml import write_policy

LATER = datetime.now(UTC) + timedelta(days=2)  # tomorrow would be today in a run that passes midnight


def test_only_shuffled_batches_have_a_claim(tmp_path: Path) -> None:
    session, survey = open_survey(f"{tmp_path}/l.ledger", tmp_path / "r")
    with session:
        survey.submit(reports(0, 50))
        assert (survey.later_readers(), survey.weakest_reader()) == ([], None)
        survey.receive(reports(50, 150))
        assert survey.later_readers() == [], "waiting reports are in no batch yet"
        survey.flush_if_due(now=LATER)
        survey.receive(reports(200, 7))
        survey.close()
        claims = [claim for _, claim in survey.later_readers()]
        assert [claim.reports for claim in claims] == [150, 7]
        assert survey.weakest_reader() == claims[1] == later_reader(SHOPPERS, 7)
        assert claims[0].epsilon == general_epsilon(4.0, 150)
        (first, _) = survey.later_readers(delta=1e-4)
        assert first[1].epsilon == pytest.approx(general_epsilon(4.0, 150, delta=1e-4))


def test_status_command_states_the_local_epsilon_before_the_shuffled_one(tmp_path: Path) -> None:
    file = tmp_path / "people.toml"
    file.write_text(write_policy(policy_of()), "utf-8")
    run = CliRunner().invoke
    assert "epsilon of a later reader" not in run(app, ["collect", "status", str(file)]).output
    with tg.open(file) as session:
        survey = session.collect("shoppers")
        survey.receive(reports(0, 300))
        assert survey.flush() == 300
        claim = survey.weakest_reader()
    output = " ".join(run(app, ["collect", "status", str(file)]).output.split())
    assert claim is not None
    assert (
        output.index("a local epsilon of 4") < output.index("A later reader") < output.index("300 reports of a batch")
    )
    content = json.loads(run(app, ["collect", "status", str(file), "--json"]).output)
    assert content["later_readers"] == [{"at": content["later_readers"][0]["at"], **claim.to_dict()}]
    assert (content["reports"], content["waiting"], content["closed"]) == (300, 0, False)
