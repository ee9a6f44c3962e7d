"""The files about the project itself: citation, addresses, security policy."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
DISTRIBUTIONS = ("pyproject.toml", "papers/pyproject.toml")
CITATION_KEYS = {
    "cff-version", "message", "title", "type", "abstract", "authors", "license", "repository-code", "keywords", "references",
}  # fmt: skip
REFERENCE_KEYS = {
    "type", "title", "authors", "collection-title", "journal", "volume", "issue", "year", "doi", "notes",
}  # fmt: skip


@pytest.fixture
def citation() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    return loaded


def test_citation_has_the_form_of_cff_1_2_0(citation: dict[str, Any]) -> None:
    assert citation["cff-version"] == "1.2.0"
    assert set(citation) == CITATION_KEYS
    assert citation["type"] == "software"
    assert citation["authors"] == [{"name": "The Tidegate authors"}]
    assert all(isinstance(citation[key], str) and citation[key] for key in ("message", "title", "abstract"))


def test_citation_names_the_four_papers(citation: dict[str, Any]) -> None:
    assert [paper["authors"][0]["family-names"] for paper in citation["references"]] == [
        "Lee", "Bezzi", "Evfimievski", "Snoke",
    ]  # fmt: skip
    for paper in citation["references"]:
        assert set(paper) <= REFERENCE_KEYS
        assert paper["type"] in ("article", "conference-paper")
        assert all(set(author) == {"family-names", "given-names"} for author in paper["authors"])
        assert isinstance(paper["year"], int)
        assert re.fullmatch(r"10\.\d{4,9}/\S+", paper.get("doi", "10.1000/none"))


@pytest.mark.parametrize("path", DISTRIBUTIONS)
def test_distribution_states_license_and_addresses(path: str, citation: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / path).read_text("utf-8"))["project"]
    assert project["license"] == citation["license"]
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog", "Security"} == set(project["urls"])
    assert all(url.startswith(citation["repository-code"]) for url in project["urls"].values())


@pytest.mark.parametrize("path", DISTRIBUTIONS)
def test_addresses_in_the_repository_exist(path: str) -> None:
    urls = tomllib.loads((ROOT / path).read_text("utf-8"))["project"]["urls"].values()
    files = [url.partition("/blob/main/")[2] for url in urls if "/blob/main/" in url]
    assert files
    assert all((ROOT / file).is_file() for file in files)
