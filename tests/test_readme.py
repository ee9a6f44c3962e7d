"""Statements of the README about the project are true. (tests/docs runs its code with all other pages.)"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

from _ext.blocks import blocks

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text("utf-8")


def test_python_example_has_at_most_twelve_lines() -> None:
    (code,) = [block.text for block in blocks(TEXT) if block.language == "python"]
    assert len(code.strip().splitlines()) <= 12


def test_every_file_that_the_readme_links_exists() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert not [target for target in targets if not (ROOT / target).exists()]


def test_first_screen_has_a_picture_and_no_badge() -> None:
    first = TEXT.partition("\n## ")[0]
    assert "docs/pictures/console-" in first
    assert "://" not in first


def test_readme_installs_the_base_and_all_and_links_the_table_of_extras() -> None:
    shown = re.findall(r"^pip install '?(tidegate[a-z\[\]]*)'? ", TEXT, re.MULTILINE)
    assert shown == ["tidegate", "tidegate[all]"]
    assert "](docs/install.md)" in TEXT


def test_install_page_names_every_extra_and_both_distributions() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    assert re.findall(r"^\| `([a-z]+)` \|", page, re.MULTILINE) == list(declared)
    for distribution in ("pip install tidegate ", "pip install tidegate-papers"):
        assert distribution in page


def test_make_help_lists_the_commands() -> None:
    output = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for command in ("run", "test", "check", "claims", "bench", "docs", "lock"):
        assert f"\n{command}" in f"\n{output}"


def test_readme_describes_the_demo_of_the_makefile() -> None:
    assert "$(BIN)/tidegate demo\n" in (ROOT / "Makefile").read_text("utf-8")
    for word in ("http://127.0.0.1:8480", "owner", "analyst", "respondent", "--no-serve"):
        assert word in TEXT
