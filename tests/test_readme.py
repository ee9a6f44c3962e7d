"""What the README says of the project is so. (That its code runs is tested with all other pages, in tests/docs.)"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from _ext.blocks import blocks

ROOT = Path(__file__).parent.parent


def test_the_twelve_lines_of_the_readme_are_twelve() -> None:
    (code,) = [block.text for block in blocks((ROOT / "README.md").read_text("utf-8")) if block.language == "python"]
    assert len(code.strip().splitlines()) <= 12


def test_every_page_that_the_readme_names_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text("utf-8")):
        assert (ROOT / target).exists(), target


def test_help_lists_what_the_makefile_does() -> None:
    told = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for command in ("run", "test", "check", "claims", "bench", "docs", "lock"):
        assert f"\n{command}" in f"\n{told}"


def test_the_demo_of_the_makefile_is_the_one_that_the_readme_tells_of() -> None:
    assert "$(BIN)/tidegate demo\n" in (ROOT / "Makefile").read_text("utf-8")
    text = (ROOT / "README.md").read_text("utf-8")
    for word in ("http://127.0.0.1:8480", "owner", "analyst", "respondent", "--no-serve"):
        assert word in text
