"""The table of the security standard: every item of levels 1 and 2 has one row, and what a row names exists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| ([\d., to]+) \| ([\w/]+) \| (.*) \|$", (ROOT / "docs" / "asvs.md").read_text("utf-8"), re.M)
STATES = {"met", "partly", "open", "n/a", "operator"}
# items of levels 1 and 2 in each section of ASVS 5.0.0, without chapter 17 (WebRTC)
SECTIONS = {
    1: (2, 9, 11, 3, 2),
    2: (3, 3, 4, 1),
    3: (0, 2, 4, 6, 5, 0, 2),
    4: (3, 1, 2, 4),
    5: (1, 3, 2, 3),
    6: (3, 12, 4, 4, 5, 3, 0, 4),
    7: (3, 4, 2, 5, 2, 2),
    8: (2, 3, 1, 1),
    9: (3, 4),
    10: (2, 2, 4, 11, 5, 2, 3),
    11: (2, 3, 3, 4, 1, 1),
    12: (3, 2, 4),
    13: (1, 5, 2, 5),
    14: (2, 4, 3),
    15: (3, 3, 7),
    16: (1, 5, 4, 3, 3),
}


def items_of(text: str) -> list[str]:
    """Return the items of a row: `1.2.1`, `1.3.8, 1.3.9` or `1.2.1 to 1.2.3`."""
    if " to " not in text:
        return text.split(", ")
    first, last = (item.rpartition(".") for item in text.split(" to "))
    assert first[0] == last[0]
    return [f"{first[0]}.{number}" for number in range(int(first[2]), int(last[2]) + 1)]


def test_every_item_has_one_row() -> None:
    expected = {
        f"{chapter}.{section}.{item}"
        for chapter, sections in SECTIONS.items()
        for section, count in enumerate(sections, 1)
        for item in range(1, count + 1)
    }
    listed = Counter(item for items, _, _ in ROWS for item in items_of(items))
    assert len(expected) == 246
    assert set(listed) == expected
    assert max(listed.values()) == 1


def test_every_state_is_known_and_every_named_file_exists() -> None:
    assert {state for _, state, _ in ROWS} == STATES
    for items, _, text in ROWS:
        for path in re.findall(r"`((?:tests|locks)[\w/.]*)`", text):
            assert (ROOT / path).exists(), (items, path)
