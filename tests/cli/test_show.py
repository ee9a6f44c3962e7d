"""Messages of commands: plurals, and the name of the policy file."""

from __future__ import annotations

import json
import sys

import pytest

from tidegate.cli import output
from tidegate.errors import BudgetExceeded


@pytest.mark.parametrize(("number", "said"), [(0, "0 reports"), (1, "1 report"), (2_000, "2,000 reports")])
def test_plural_adds_an_s_except_for_one(number: int, said: str) -> None:
    assert output.plural(number, "report") == said


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["answer", "my people.toml", "SELECT 1", "--json"], "'my people.toml'"),
        (["synthesize", "pay.toml", "--epsilon", "2", "--json"], "pay.toml"),
        (["demo", "--json"], "POLICY"),
    ],
)
def test_advice_names_the_policy_of_the_command(
    words: list[str], named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise BudgetExceeded("too much.", "Request at most 1.", left="1")

    monkeypatch.setattr(sys, "argv", ["tidegate", *words])
    with pytest.raises(SystemExit):
        output.guarded(refuse)
    result = capsys.readouterr()
    assert result.err.endswith(f"Request at most 1. See what was spent: tidegate ledger show {named}\n")
    assert json.loads(result.out)["error"]["do"].endswith(f"ledger show {named}")
