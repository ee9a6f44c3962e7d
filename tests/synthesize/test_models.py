"""Every named model keeps the contract: it has that name, is deterministic, and is rebuilt from its diary without rows."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.towns import open_session
from synthesize.margins import Margins

from tidegate.errors import MissingExtra, Unsupported
from tidegate.ledger.verify import verify
from tidegate.synthesize import mechanisms
from tidegate.synthesize.mechanisms import MODELS, PUBLISHED, is_installed, model_for

EXACT = [*MODELS, "bppd/1", "smooth-histogram/1"]


@pytest.mark.parametrize("name", [*MODELS, *PUBLISHED])
def test_name_loads_its_model(name: str) -> None:
    assert model_for(name).name == name
    assert model_for(name.partition("/")[0]).name.partition("/")[0] == name.partition("/")[0]
    assert model_for(name).__doc__


@pytest.mark.parametrize("name", [*EXACT, "margins/1"])
def test_stored_diary_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    model: Any = Margins() if name == "margins/1" else name
    columns = ["pay", "zip"]
    with open_session(tmp_path) as session:
        first = session.synthesize(epsilon=2, model=model, columns=columns, rows=300)[0]
        drawn = first.to_arrow()
    with open_session(tmp_path) as session:  # from the ledger alone
        again = session.synthesize(epsilon=2, model=model, columns=columns, rows=300)[0]
        assert again.to_arrow() == drawn
        assert sum(step.epsilon for step in again.steps) <= 2
        assert all(step.value.dtype == np.int64 for step in again.steps)


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name not in EXACT])
def test_inexact_model_is_refused(tmp_path: Path, name: str) -> None:
    with open_session(tmp_path) as session:
        with pytest.raises(Unsupported, match="has no exact loss"):
            session.synthesize(epsilon=1, model=name)
        assert not session.account.spent


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(Unsupported, match='Did you mean "forest"'):
        model_for("forst")


@pytest.fixture
def without_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the distribution tidegate-papers."""
    monkeypatch.setattr(mechanisms, "entry_points", lambda *, group: [])


@pytest.mark.parametrize("name", ["bppd/1", "smooth-histogram", "metropolis/1", "plug-in"])
def test_published_model_without_the_papers_names_the_distribution(
    tmp_path: Path, without_papers: None, name: str
) -> None:
    assert not is_installed(name)
    with open_session(tmp_path) as session:
        with pytest.raises(MissingExtra, match=f'"{name}.*tidegate-papers') as refused:
            session.synthesize(epsilon=1, model=name)
        assert refused.value.do == "Install it with: pip install tidegate-papers"
        assert not session.account.spent


def test_product_models_need_no_papers(without_papers: None) -> None:
    assert all(is_installed(name) and model_for(name).name == name for name in MODELS)


def test_ledger_that_names_a_published_model_verifies_without_the_papers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_session(tmp_path) as session:
        session.synthesize(epsilon=1, model="bppd/1", columns=["pay", "zip"])
        monkeypatch.setattr(mechanisms, "entry_points", lambda *, group: [])
        entries = session.ledger.snapshot()
        assert verify(*entries).problems == []
        assert "bppd/1" in "".join(entry.body for entry in entries[0])


def test_models_of_other_distributions_are_loaded_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("margins/1", "synthesize.margins:Margins", "tidegate.models"),
        EntryPoint("forest/1", "synthesize.margins:Margins", "tidegate.models"),
        EntryPoint("broken/1", "no.such.module:Model", "tidegate.models"),
    ]
    monkeypatch.setattr(mechanisms, "entry_points", lambda *, group: points)
    assert model_for("margins").name == "margins/1"
    assert model_for("forest/1").name == "forest/1"
    assert type(model_for("forest/1")) is not Margins, "a model of the product was replaced"
