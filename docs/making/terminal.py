"""The commands as a page: what each is for, its arguments and options, as its own help says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

HEAD = """# Commands

What `tidegate --help` and the help of every command say, on one page. Made by `make docs`.

Every command has `--help`. A refusal exits with code 2 and says what happened, the numbers, and what to do; a defect of Tidegate
exits with code 1.
"""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its whole name, groups too."""
    from tidegate.cli.app import app

    yield from _below("tidegate", typer.main.get_command(app))


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for part, inner in getattr(command, "commands", {}).items():
        yield from _below(f"{name} {part}", inner)


def cli_page() -> str:
    """The whole page."""
    return HEAD + "".join(_section(name, command) for name, command in commands() if name != "tidegate")


def own_parameters(command: Any) -> list[Any]:
    """Arguments and options, without `--help`, which all have."""
    return [one for one in command.params if "--help" not in one.opts and not getattr(one, "hidden", False)]


def _section(name: str, command: Any) -> str:
    level = "##" if name.count(" ") == 1 else "###"
    told = " ".join((command.help or "").split())
    if getattr(command, "commands", None):
        return f"\n{level} {name}\n\n{told}\n"
    parameters = own_parameters(command)
    rows = "".join(f"| {_names(one)} | {_meaning(one)} |\n" for one in parameters)
    table = f"\n| | |\n|---|---|\n{rows}" if rows else ""
    return f"\n{level} {name}\n\n{told}\n\n```text\n{_usage(name, parameters)}\n```\n{table}"


def _usage(name: str, parameters: list[Any]) -> str:
    words = [name]
    for one in parameters:
        if one.param_type_name == "argument":
            shown = one.name.upper() + ("..." if one.nargs == -1 else "")
            words.append(shown if one.required else f"[{shown}]")
        elif one.required:
            words.append(f"{one.opts[0]} {one.name.upper()}")
    return " ".join([*words, "[OPTIONS]"] if any(one.param_type_name == "option" for one in parameters) else words)


def _names(one: Any) -> str:
    if one.param_type_name == "argument":
        return f"`{one.name.upper()}`"
    return ", ".join(f"`{name}`" for name in [*one.opts, *one.secondary_opts])


def _meaning(one: Any) -> str:
    told = " ".join((one.help or "").split()).replace("|", "\\|").replace("<", "&lt;")
    default = one.default
    plain = isinstance(default, int | float | str) and not isinstance(default, bool) and default != ""
    many = " May be given several times." if getattr(one, "multiple", False) else ""
    return told + many + (" Required." if one.required else f" Default: `{default}`." if plain else "")
