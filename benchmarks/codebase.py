"""python -m benchmarks.codebase [--root TREE] [--json]: figures on how easy this code base is to maintain.

Sizes of files and functions, vague names, how often one call path changes folders, and the time of the most common
commands. `--root` measures another checkout with this script, so that two trees can be compared.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).parent.parent
REPEATS = 5
# Nouns of the field that end like a gerund or a participle.
SUFFIXES = ("ing", "ed")
NOUNS = {
    "differencing", "encoding", "feed", "finding", "heaping", "hiding", "learning", "mapping", "meaning", "mining", "poisoning", "pricing", "raking",
    "randomized", "rating", "sampling", "screening", "seed", "spending", "tampering", "testing", "timing", "training",
}  # fmt: skip
VAGUE = {"asked", "found", "given", "held", "kept", "made", "many", "one", "place", "told", "wanted", "who"}

POLICY = """
version = 1
[dataset]
name = "people"
source = "people.csv"
unit = "row"
rows = 400
[attributes]
age = { kind = "integer", from = 18, to = 90 }
sex = { kind = "category", values = ["female", "male"] }
[promise.identification]
rho = 0.05
worlds = "values"
protect = ["age"]
[collection.shoppers]
questions.age = { attribute = "age", operator = "square-wave", epsilon = 2.0 }
version = 1
"""

TRACE = """
import json, sys
import tidegate

def open_session(ledger):
    session = tidegate.open("people.toml", ledger=ledger)
    if sys.argv[1] == "estimate":
        survey = session.collect("shoppers")
        survey.submit([survey.client().randomize({"age": 18 + number % 70}) for number in range(200)])
    return session

def answer(session):
    session.answer(tidegate.mean("age").by("sex"), epsilon=0.1)

def estimate(session):
    session.collect("shoppers").distribution("age")

walk = []

def follow(frame, event, argument):
    if event == "call" and "/tidegate/" in frame.f_code.co_filename:
        walk.append(frame.f_code.co_filename.rsplit("/tidegate/", 1)[1])

work = {"answer": answer, "estimate": estimate}[sys.argv[1]]
work(open_session("first.ledger"))  # imports and compiled kernels are not part of the trace
session = open_session("second.ledger")
sys.setprofile(follow)
work(session)
sys.setprofile(None)
folders = [name.rpartition("/")[0] for name in walk]
switches = sum(here != there for here, there in zip(folders, folders[1:]))
figures = {"calls": len(walk), "files": len(set(walk)), "folders": len(set(folders)), "switches": switches}
print(json.dumps(figures))
"""


def python_files(root: Path) -> list[Path]:
    """Return the files of the product."""
    return sorted((root / "src" / "tidegate").rglob("*.py"))


def sizes(root: Path) -> dict[str, Any]:
    """Measure files and functions in lines."""
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in python_files(root)}
    functions = [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for path in lines
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    full = [count for path, count in lines.items() if path.name != "__init__.py"]
    return {
        "files": len(lines),
        "lines": sum(lines.values()),
        "median file": int(statistics.median(full)),
        "files under 60 lines": sum(count < 60 for count in full),
        "files over 350 lines": sum(count > 350 for count in full),
        "functions": len(functions),
        "median function": int(statistics.median(functions)),
        "longest function": max(functions),
    }


def is_verbal(name: str) -> bool:
    """Return whether a part of a file name is a gerund or a participle."""
    return any(part.endswith(SUFFIXES) and part not in NOUNS for part in name.strip("_").split("_"))


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield every name that functions and modules bind, once for every binding."""
    fields = set[ast.AST]()
    for node in ast.walk(tree):  # a class comes before what is in it
        if isinstance(node, ast.ClassDef):
            assigned = [of for of in node.body if isinstance(of, ast.Assign | ast.AnnAssign)]
            fields.update(target for of in assigned for target in ast.walk(of) if isinstance(target, ast.Name))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in fields:
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name


def names(root: Path) -> dict[str, Any]:
    """Measure how many names are vague."""
    files = python_files(root)
    verbal = sum(is_verbal(path.stem) for path in files)
    bound = [name for path in files for name in bound_names(ast.parse(path.read_text("utf-8")))]
    vague = sum(name in VAGUE for name in bound)
    return {
        "participle file names": f"{verbal / len(files):.1%}",
        "vague locals": f"{vague / len(bound):.1%} ({vague:,} of {len(bound):,})",
    }


def walks(root: Path, folder: Path) -> dict[str, Any]:
    """Trace one answer and one estimate through the folders, with warm imports and caches."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows = "".join(f"{18 + i % 70},{'female' if i % 2 else 'male'}\n" for i in range(400))
    (folder / "people.csv").write_text("age,sex\n" + rows, "utf-8")
    (folder / "people.toml").write_text(POLICY, "utf-8")
    return {f"one {verb}": _follow(root, verb, folder) for verb in ("answer", "estimate")}


def _follow(root: Path, verb: str, folder: Path) -> dict[str, int]:
    command = [sys.executable, "-c", TRACE, verb]
    done = subprocess.run(command, cwd=folder, env=_environment(root), check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return result


def times(root: Path, folder: Path) -> dict[str, str]:
    """Time the most common commands: the median of some runs, with cached bytecode."""
    command_line = "import sys; from tidegate.cli import main; sys.argv[0] = 'tidegate'; main()"
    commands = {
        "import tidegate.session": ["import tidegate.session"],
        "tidegate --help": [command_line, "--help"],
        "tidegate check": [command_line, "check", "people.toml"],
        "tidegate ledger show": [command_line, "ledger", "show", "second.ledger"],
    }
    medians = {}
    for name, command in commands.items():
        seconds = []
        for _ in range(REPEATS + 1):  # the first one warms the caches
            began = perf_counter()
            arguments = [sys.executable, "-c", *command]
            subprocess.run(arguments, cwd=folder, env=_environment(root), check=True, stdout=subprocess.DEVNULL)
            seconds.append(perf_counter() - began)
        medians[name] = f"{statistics.median(seconds[1:]):.2f} s"
    return medians


def _environment(root: Path) -> dict[str, str]:
    paths = [str(root / "src"), str(root / "papers" / "src")]
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, "PYTHONPATH": os.pathsep.join(paths)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.codebase", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--root", type=Path, default=HERE, help="another checkout of this repository")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    root, folder = options.root.resolve(), HERE / "build" / "codebase"
    figures = {**sizes(root), **names(root), **walks(root, folder), **times(root, folder)}
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        shown = ", ".join(f"{count:,} {what}" for what, count in value.items()) if isinstance(value, dict) else value
        print(f"{name:26} {shown:,}" if isinstance(shown, int) else f"{name:26} {shown}")


if __name__ == "__main__":
    main()
