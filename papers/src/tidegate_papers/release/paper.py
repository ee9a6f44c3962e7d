"""The printed numbers of the paper, read from release.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.demo.soldiers import BASELINE
from tidegate_papers.item import Published, read_published

FACTS, PUBLISHED = read_published(Path(__file__).parent.parent / "release.json")
ITEMS: dict[str, Published] = {item.id: item for item in PUBLISHED}
TESTS = {"MIS": "mutual-information", "KLD": "kullback-leibler", "CST": "chi-square", "DQT": "dixon"}
LEVELS = ("0.2", "0.05")
TABLES: dict[str, NDArray[np.int64]] = {
    number: np.array(figure["counts"], np.int64) for number, figure in FACTS["figures"].items()
}
EXPECTED = np.array(BASELINE) / sum(BASELINE)


def printed(name: str) -> Any:
    """Return a value as the paper prints it."""
    return ITEMS[name].published
