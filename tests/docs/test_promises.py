"""Every promise has an adversary, limits, a proof and an attack or none, and the tests in the table exist."""

from __future__ import annotations

import re

import pytest
from docs.pages import DOCS

HEADING = "## Every promise, its proof or exact test, and its attack"
LINK = re.compile(r"\[([^\]]+)\]\(\.\./((?:tests|src)/[^)]+\.py)\)")
AUDIT = "../src/tidegate/audit/"
SECTIONS = ("answer", "release", "collect", "synthesize", "ledger")


def rows() -> list[list[str]]:
    """Return the table, cell by cell."""
    text = (DOCS / "promise.md").read_text("utf-8").partition(HEADING)[2]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def named_tests() -> list[tuple[str, str]]:
    """Return every test in the table with its file. The text of a link is the name of the test."""
    links = [link for row in rows() for cell in row for link in LINK.findall(cell)]
    return sorted(
        {
            (f"test_{words.replace(' ', '_')}" if path.startswith("tests/") else words.strip("`"), path)
            for words, path in links
        }
    )


@pytest.mark.parametrize(("name", "path"), named_tests())
def test_tests_in_the_table_exist(name: str, path: str) -> None:
    text = (DOCS.parent / path).read_text("utf-8")
    assert re.search(rf"^\s*def {name}\(", text, re.MULTILINE), f"{path} has no {name}"


def test_every_verb_and_the_ledger_are_in_the_table() -> None:
    first = " ".join(row[0] for row in rows())
    assert [section for section in SECTIONS if f"**{section}**" not in first] == []


def test_every_promise_names_its_adversary_its_limits_and_its_proof() -> None:
    for promise, adversary, limits, proof, attack, fault in rows():
        assert adversary, promise
        assert limits, promise
        if "not promised" not in promise:
            assert "../tests/" in proof, promise
        assert AUDIT in attack or attack.startswith("none in the audit"), promise
        assert "../tests/" in fault or fault == "none", promise
        if AUDIT in attack:
            assert "../tests/" in fault, promise


def test_attacks_in_the_table_are_part_of_the_audit() -> None:
    attacks = [path for row in rows() for _, path in LINK.findall(row[4])]
    assert [path for path in attacks if path.startswith("src/") and not path.startswith("src/tidegate/audit/")] == []
    assert any("none in the audit" in row[4] for row in rows()), "the page says where the audit has no attack"
