"""What the README shows, runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_twelve_lines_of_the_readme_run(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert code
    assert len(code[1].strip().splitlines()) <= 12
    demo = "from tidegate.cli.demo import demo; from pathlib import Path; demo(Path('tidegate-demo'), json=True)"
    subprocess.run([sys.executable, "-c", demo], cwd=tmp_path, check=True, capture_output=True)
    told = subprocess.run(
        [sys.executable, "-c", code[1]], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert "nothing was asked, nothing was spent." in told
    assert "identification of age at most 0.02" in told


def test_every_page_that_the_readme_names_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text("utf-8")):
        assert (ROOT / target).exists(), target


def test_help_lists_what_the_makefile_does() -> None:
    told = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for command in ("run", "test", "check", "claims", "bench", "lock"):
        assert f"\n{command}" in f"\n{told}"
