"""The interface that users, scripts and ledgers depend on, compared with files in this folder.

`PYTHONPATH=tests python -m frozen` writes the files again. A change to one of them is a decision: its commit says why.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer.main

import tidegate
import tidegate.testing
from tidegate.errors import TidegateError

HERE = Path(__file__).parent
Snapshot = Callable[[], Any]


def commands() -> dict[str, Any]:
    """Return every command with its parameters; help texts are not frozen."""
    from tidegate.cli.app import app

    parameters: dict[str, Any] = {}

    def walk(command: Any, name: str) -> None:
        for part, inner in sorted(getattr(command, "commands", {}).items()):
            walk(inner, f"{name} {part}")
        if not getattr(command, "commands", None):
            parameters[name] = [_parameter(item) for item in command.params if item.name != "help"]

    walk(typer.main.get_command(app), "tidegate")
    return parameters


def _parameter(parameter: Any) -> str:
    names = "/".join((*parameter.opts, *parameter.secondary_opts))
    marks = ["required"] if parameter.required else [repr(parameter.default)] if parameter.default is not None else []
    marks += ["repeated"] if parameter.multiple or parameter.nargs != 1 else []
    return " ".join([names, *marks])


def error_codes() -> list[str]:
    """Return the codes in JSON errors."""
    for module in pkgutil.walk_packages(tidegate.__path__, "tidegate."):
        if not module.name.endswith("__main__") and ".migrations" not in module.name:
            importlib.import_module(module.name)

    def below(kind: type[TidegateError]) -> set[str]:
        own = {kind("").code} if kind.__module__.startswith("tidegate") else set()
        return own.union(*(below(inner) for inner in kind.__subclasses__()))

    return sorted(below(TidegateError))


def public_names() -> dict[str, list[str]]:
    return {"tidegate": sorted(tidegate.__all__), "tidegate.testing": sorted(tidegate.testing.__all__)}


def stored_names() -> dict[str, list[str]]:
    """Return names that ledgers, policies and diaries contain."""
    from tidegate.accounting import events
    from tidegate.ledger import entry
    from tidegate.ledger.schema import metadata
    from tidegate.operators import OPERATORS

    kinds = [
        value for name, value in vars(entry).items() if name.isupper() and name not in ("GENESIS", "FORMAT", "_SEALED")
    ]
    tables = [f"{table.name}.{column.name}" for table in metadata.sorted_tables for column in table.columns]
    return {
        "entry kinds": sorted(kind for kind in kinds if isinstance(kind, str)),
        "event kinds": sorted(events.KINDS),
        "operators": sorted(OPERATORS),
        "columns": sorted(tables),
    }


def openapi() -> dict[str, Any]:
    """Return addresses, methods, parameters, status codes and names in bodies; texts and examples are not frozen."""
    from tidegate.service.app import create_app
    from tidegate.service.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder) / "people.toml"
        policy.write_text((HERE / "ledger" / "people.toml").read_text("utf-8"), "utf-8")
        (Path(folder) / "people.csv").write_text("person,age,sex,pay\n", "utf-8")
        schema = create_app(Settings(policies=(str(policy),))).openapi()
    return {
        f"{method.upper()} {path}": {
            "parameters": sorted(f"{item['in']} {item['name']}" for item in operation.get("parameters", [])),
            "statuses": sorted(operation["responses"]),
            "body": _body_names(operation.get("requestBody"), schema),
        }
        for path, methods in sorted(schema["paths"].items())
        for method, operation in sorted(methods.items())
    }


def _body_names(body: Any, schema: dict[str, Any]) -> list[str]:
    names: set[str] = set()
    for kind, content in (body or {}).get("content", {}).items():
        reference = content.get("schema", {}).get("$ref", "")
        inner = schema["components"]["schemas"].get(reference.rpartition("/")[2], {})
        names |= {f"{kind} {name}" for name in inner.get("properties", {})} or {kind}
    return sorted(names)


def shape(value: Any) -> Any:
    """Return the names and kinds in a JSON value; a list has the shape of its first element."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def read(name: str) -> Any:
    return json.loads((HERE / f"{name}.json").read_text("utf-8"))


def write(name: str, value: Any) -> None:
    (HERE / f"{name}.json").write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", "utf-8")


SNAPSHOTS: dict[str, Snapshot] = {
    "commands": commands,
    "openapi": openapi,
    "error_codes": error_codes,
    "public_names": public_names,
    "stored_names": stored_names,
}
