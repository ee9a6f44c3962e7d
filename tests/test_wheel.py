"""What a user installs: the wheel, in an empty environment, outside of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


def run(*command: str | Path, cwd: Path, patience: int = 300) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=CLEAN,
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def uv() -> Path:
    return Path(sys.executable).parent / "uv"


@pytest.fixture(scope="module")
def wheel(uv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of what is shipped, with the locked builder."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    run(uv, "build", "--wheel", "--no-build-isolation", "--python", sys.executable, "-o", folder / "out", cwd=folder)
    (made,) = (folder / "out").glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(uv: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the locked dependencies and the wheel, and nothing else: its folder of programs."""
    place = tmp_path_factory.mktemp("user")
    run(uv, "venv", "--python", sys.executable, place / "env", cwd=place)
    python = place / "env" / "bin" / "python"
    run(uv, "pip", "install", "--python", python, "--require-hashes", "-r", ROOT / "locks" / "run.txt", cwd=place)
    run(uv, "pip", "install", "--python", python, "--no-deps", wheel, cwd=place)
    return python.parent


def test_everything_but_caches_is_in_the_wheel(wheel: Path) -> None:
    kept = {
        f"tidegate/{path.relative_to(ROOT / 'src' / 'tidegate')}" for path in (ROOT / "src" / "tidegate").rglob("*")
    }
    expected = {name for name in kept if "__pycache__" not in name and Path(ROOT / "src" / name).is_file()}
    with ZipFile(wheel) as content:
        assert expected <= set(content.namelist())


def test_the_readme_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    told = run(installed / "tidegate", "demo", "--no-serve", cwd=tmp_path)
    assert "refused" in told
    (lines,) = re.findall(
        r"## Twelve lines\n.*?```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )
    (tmp_path / "quickstart.py").write_text(lines, "utf-8")
    assert "female" in run(installed / "python", "quickstart.py", cwd=tmp_path)
    where = run(installed / "python", "-c", "import tidegate; print(tidegate.__file__)", cwd=tmp_path)
    assert str(installed.parent) in where, "not the repository's own"
