"""Every model that has a name keeps the contract: it is that name's, deterministic, and reads its diary without rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthesize.margins import Margins
from synthesize.towns import opened

from tidegate.errors import Unsupported
from tidegate.synthesize.mechanisms import MODELS, model_for

EXACT = [name for name in MODELS if getattr(model_for(name), "exact", True)]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_the_one_that_its_name_says(name: str) -> None:
    assert model_for(name).name == name
    assert model_for(name.partition("/")[0]).name.partition("/")[0] == name.partition("/")[0]
    assert model_for(name).__doc__


@pytest.mark.parametrize("name", [*EXACT, "margins/1"])
def test_a_model_draws_the_same_from_its_diary_again_without_the_rows(tmp_path: Path, name: str) -> None:
    model: Any = Margins() if name == "margins/1" else name
    columns = ["pay", "zip"]
    with opened(tmp_path) as session:
        first = session.synthesize(epsilon=2, model=model, columns=columns, rows=300)[0]
        drawn = first.to_arrow()
    with opened(tmp_path) as session:  # from the ledger alone
        again = session.synthesize(epsilon=2, model=model, columns=columns, rows=300)[0]
        assert again.to_arrow() == drawn
        assert sum(step.epsilon for step in again.steps) <= 2
        assert all(step.value.dtype == np.int64 for step in again.steps)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in EXACT])
def test_a_model_that_is_not_exact_is_refused_by_a_promise(tmp_path: Path, name: str) -> None:
    with opened(tmp_path) as session:
        with pytest.raises(Unsupported, match="keeps no exact loss"):
            session.synthesize(epsilon=1, model=name)
        assert not session.account.spent


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(Unsupported, match='Did you mean "forest"'):
        model_for("forst")
