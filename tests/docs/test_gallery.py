"""The gallery shows the items of the papers' data files and the results of a quick run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import tidegate_papers
from _ext.gallery import PAPERS
from docs.pages import GALLERY
from tidegate_papers.item import WORDS


def page_items(name: str) -> dict[str, str]:
    """Return the items of a page with their status."""
    text = (GALLERY / f"{name}.md").read_text("utf-8")
    rows = re.findall(rf"^\| `([^`]+)` \|.*\| \**({'|'.join(WORDS)})\** \|", text, re.MULTILINE)
    assert len(rows) == len(dict(rows)), "an item twice"
    return dict(rows)


@pytest.mark.parametrize("name", ["identifiability", "release", "pmse"])
def test_page_has_the_items_of_its_paper(name: str) -> None:
    data = json.loads((Path(tidegate_papers.__file__).parent / f"{name}.json").read_text("utf-8"))
    assert set(page_items(name)) == {item["id"] for item in data["items"]}


def test_numbers_on_the_page_add_up() -> None:
    index = (GALLERY / "index.md").read_text("utf-8")
    for name in PAPERS:
        statuses = list(page_items(name).values())
        counts = " | ".join(str(statuses.count(status)) for status in WORDS)
        assert f"| {counts} | `tidegate reproduce {name}` |" in index


def test_page_shows_the_results_of_a_run_without_data() -> None:
    from tidegate_papers.identifiability import reproduce

    page = page_items("identifiability")
    done = reproduce(None)
    assert len(done.items) + done.left_out == len(page)
    assert {item.id: item.status for item in done.items} == {item.id: page[item.id] for item in done.items}
