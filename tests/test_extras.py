"""The base install answers queries; everything else is an extra, and a missing one is reported with its command."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.errors import MissingExtra
from tidegate.extras import EXTRAS, OPTIONAL, extra

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tidegate"
IMPORTED_AS = {"scikit-learn": "sklearn", "prometheus-client": "prometheus_client", "ibis-framework": "ibis"}

# Run in a child: a finder that knows no optional package, then commands as a user types them.
BASE = """
import importlib.abc, json, sys
optional = set(json.loads(sys.argv[1]))
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in optional:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from tidegate.cli import main
import contextlib, io
results = []
for command in json.loads(sys.argv[2]):
    sys.argv = ["tidegate", *command]
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
    results.append([code, output.getvalue()])
print(json.dumps(results))
"""


def run_base(folder: Path, commands: list[list[str]]) -> list[tuple[int, str]]:
    """Run commands where no optional package can be imported."""
    arguments = [json.dumps(sorted(OPTIONAL)), json.dumps(commands)]
    done = subprocess.run(
        [sys.executable, "-c", BASE, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [(code, output) for code, output in json.loads(done.stdout.splitlines()[-1])]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rows = "".join(f"{18 + i % 70},{'female' if i % 2 else 'male'},{i}\n" for i in range(300))
    (tmp_path / "people.csv").write_text("age,sex,id\n" + rows, "utf-8")
    (tmp_path / "people.toml").write_text(
        """
version = 1
[dataset]
name = "people"
source = "people.csv"
unit = "row"
rows = 300
[attributes]
age = { kind = "integer", from = 18, to = 90 }
sex = { kind = "category", values = ["female", "male"] }
id = { kind = "key" }
[promise.identification]
rho = 0.05
worlds = "values"
protect = ["age"]
[promise.concealment.ages]
reveals = ["age"]
about = ["sex"]
tests = ["mutual-information"]
significance = 0.20
releases = ["id", "sex"]
[collection.shoppers]
questions.age = { attribute = "age", operator = "square-wave", epsilon = 2.0 }
version = 1
""",
        "utf-8",
    )
    return tmp_path


def test_base_install_answers_queries(people: Path) -> None:
    commands = [
        ["--help"],
        ["init", "people.csv", "--out", "new.toml"],
        ["check", "people.toml"],
        ["answer", "people.toml", "SELECT sex, AVG(age) FROM people GROUP BY sex", "--rho", "0.02", "--preview"],
        ["answer", "people.toml", "SELECT sex, AVG(age) FROM people GROUP BY sex", "--rho", "0.02"],
        ["answer", "people.toml", "SELECT MEDIAN(age) FROM people", "--epsilon", "0.1", "--json"],
        ["ledger", "show", "people.toml"],
        ["ledger", "verify", "people.toml"],
        ["risk", "convert", "--worlds", "99", "--rho", "0.1"],
    ]
    for command, (code, output) in zip(commands, run_base(people, commands), strict=True):
        assert code == 0, f"{command}: {output[-1500:]}"


def test_other_commands_name_their_extra(people: Path) -> None:
    expected = {
        ("release", "people.toml", "ages", "--key", "7"): "tidegate[release]",
        ("collect", "estimate", "people.toml", "shoppers"): "tidegate[collect]",
        ("synthesize", "people.toml", "--epsilon", "0.4", "--out", "synthetic"): "tidegate[synthesize]",
        ("audit", "people.toml"): "tidegate[audit]",
        ("serve", "people.toml"): "tidegate[service]",
    }
    for (command, expected_extra), (code, output) in zip(
        expected.items(), run_base(people, list(map(list, expected))), strict=True
    ):
        assert code == 2, f"{command}: {output[-1500:]}"
        assert f"pip install '{expected_extra}'" in " ".join(output.split()), f"{command}: {output[-1500:]}"
        assert "Traceback" not in output


def test_every_optional_import_names_the_extra_that_installs_it() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        if path.is_relative_to(SOURCE / "service") and path.name != "__init__.py":
            continue  # the package requires its extra before any of its modules is imported
        for package, line, name in optional_imports(path):
            where = f"{path.relative_to(SOURCE)}:{line} imports {package}"
            assert name, f"{where} outside of `with extra(...)`"
            assert package in EXTRAS[name], f'{where}, which the extra "{name}" does not install'


def optional_imports(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield every import of an optional package: its name, its line and the extra that is named around it."""

    def walk(node: ast.AST, name: str) -> Iterator[tuple[str, int, str]]:
        if isinstance(node, ast.With) and (
            named := re.match(r"extra\('(\w+)'", ast.unparse(node.items[0].context_expr))
        ):
            name = named[1]
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules = [node.module]
        for package in {module.partition(".")[0] for module in modules} & OPTIONAL:
            yield package, getattr(node, "lineno", 0), name
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        for child in ast.iter_child_nodes(node):
            yield from walk(child, name)

    yield from walk(ast.parse(path.read_text("utf-8")), "")


def test_extras_match_the_project_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    listed = {name: packages_of(project["optional-dependencies"], name) for name in EXTRAS}
    for name, packages in EXTRAS.items():
        installed_with_others = {"starlette"} if name == "service" else set()
        assert set(packages) - installed_with_others <= listed[name], name
    base = {package_of(requirement) for requirement in project["dependencies"]}
    assert not base & OPTIONAL


def packages_of(extras: dict[str, list[str]], name: str) -> set[str]:
    """Return the import names of the packages that an extra installs, including nested extras."""
    packages: set[str] = set()
    for requirement in extras[name]:
        if inner := re.match(r"tidegate\[(.+)\]", requirement):
            packages = packages.union(*(packages_of(extras, part) for part in inner[1].split(",")))
        else:
            packages.add(package_of(requirement))
    return packages


def package_of(requirement: str) -> str:
    name = re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]
    return IMPORTED_AS.get(name, name)


def test_missing_package_without_an_extra_is_an_import_error() -> None:
    with pytest.raises(ModuleNotFoundError), extra("release", "Releasing records"):
        import a_package_that_does_not_exist  # noqa: F401
    with (
        pytest.raises(MissingExtra, match="Releasing records needs numba") as problem,
        extra("release", "Releasing records"),
    ):
        raise ModuleNotFoundError("No module named 'numba.core'", name="numba.core")
    assert problem.value.do == "Install it with: pip install 'tidegate[release]'"


def test_importing_the_package_loads_no_third_party_module() -> None:
    script = "import sys; import tidegate; print([n for n in ('numpy', 'ibis', 'pyarrow', 'pandas', 'sqlalchemy', 'typer') if n in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"
    script = "import sys; sys.argv = ['tidegate', '--help']; from tidegate.cli import main\ntry: main()\nexcept SystemExit: pass\nprint([n for n in ('numpy', 'ibis') if n in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert loaded.splitlines()[-1] == "[]"
