"""The wheel, installed in an empty environment outside of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


def run(*command: str | Path, cwd: Path, timeout: int = 300) -> str:
    process = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=CLEAN,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def uv() -> Path:
    return Path(sys.executable).parent / "uv"


@pytest.fixture(scope="module")
def wheel(uv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the shipped files with the locked builder."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    kinds = ("--wheel", "--sdist")
    run(uv, "build", *kinds, "--no-build-isolation", "--python", sys.executable, "-o", folder / "out", cwd=folder)
    (wheel_path,) = (folder / "out").glob("*.whl")
    return wheel_path


@pytest.fixture(scope="module")
def installed(uv: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment that contains only the locked dependencies and the wheel."""
    folder = tmp_path_factory.mktemp("user")
    run(uv, "venv", "--python", sys.executable, folder / "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    run(uv, "pip", "install", "--python", python, "--require-hashes", "-r", ROOT / "locks" / "run.txt", cwd=folder)
    run(uv, "pip", "install", "--python", python, "--no-deps", wheel, cwd=folder)
    return python.parent


def test_wheel_contains_every_file_but_caches(wheel: Path) -> None:
    paths = {
        f"tidegate/{path.relative_to(ROOT / 'src' / 'tidegate')}" for path in (ROOT / "src" / "tidegate").rglob("*")
    }
    expected = {name for name in paths if "__pycache__" not in name and Path(ROOT / "src" / name).is_file()}
    with ZipFile(wheel) as content:
        assert expected <= set(content.namelist())


def test_wheel_and_source_archive_contain_license_and_metadata(wheel: Path) -> None:
    license_text, notice = ((ROOT / name).read_bytes() for name in ("LICENSE", "NOTICE"))
    assert b"Apache License" in license_text
    assert b"END OF TERMS AND CONDITIONS" in license_text
    with ZipFile(wheel) as content:
        (folder,) = {name.partition("/")[0] for name in content.namelist() if ".dist-info/" in name}
        assert content.read(f"{folder}/licenses/LICENSE") == license_text
        assert content.read(f"{folder}/licenses/NOTICE") == notice
        metadata = content.read(f"{folder}/METADATA").decode("utf-8")
        assert "tidegate/py.typed" in content.namelist()
    assert "License-Expression: Apache-2.0\n" in metadata
    assert "Classifier: Typing :: Typed\n" in metadata
    assert "Author: The Tidegate authors\n" in metadata
    assert "License-File: LICENSE\n" in metadata
    assert "License-File: NOTICE\n" in metadata
    (archive,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    assert {"LICENSE", "NOTICE", "README.md", "pyproject.toml", "src/tidegate/py.typed"} <= names


@pytest.mark.long  # installs everything; test_pages_run.py runs README.md from the repository
def test_readme_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    output = run(installed / "tidegate", "demo", "--no-serve", cwd=tmp_path)
    assert "refused" in output
    (lines,) = re.findall(r"## Python\n.*?```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "quickstart.py").write_text(lines, "utf-8")
    assert "female" in run(installed / "python", "quickstart.py", cwd=tmp_path)
    where = run(installed / "python", "-c", "import tidegate; print(tidegate.__file__)", cwd=tmp_path)
    assert str(installed.parent) in where, "the import must not come from the repository"
