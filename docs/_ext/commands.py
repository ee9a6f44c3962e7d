"""The command reference: the directive ``tidegate-commands`` lists every command from its own help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def all_commands() -> Iterator[tuple[str, Any]]:
    """Yield every command and every group with its full name."""
    from tidegate.cli.app import app

    yield from _below("tidegate", typer.main.get_command(app))


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for part, subcommand in getattr(command, "commands", {}).items():
        yield from _below(f"{name} {part}", subcommand)


def parameters_of(command: Any) -> list[Any]:
    """Return the arguments and options of a command without `--help`, which all commands have."""
    return [
        parameter
        for parameter in command.params
        if "--help" not in parameter.opts and not getattr(parameter, "hidden", False)
    ]


def command_page() -> str:
    """Return the sections of all commands as Markdown."""
    return "".join(_section(name, command) for name, command in all_commands() if name != "tidegate")


def _section(name: str, command: Any) -> str:
    level = "##" if name.count(" ") == 1 else "###"
    summary = " ".join((command.help or "").split())
    if getattr(command, "commands", None):
        return f"\n{level} {name}\n\n{summary}\n"
    parameters = parameters_of(command)
    rows = "".join(f"| {_names(parameter)} | {_meaning(parameter)} |\n" for parameter in parameters)
    table = f"\n| parameter | meaning |\n|---|---|\n{rows}" if rows else ""
    return f"\n{level} {name}\n\n{summary}\n\n```text\n{_usage(name, parameters)}\n```\n{table}"


def _usage(name: str, parameters: list[Any]) -> str:
    words = [name]
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            shown = parameter.name.upper() + ("..." if parameter.nargs == -1 else "")
            words.append(shown if parameter.required else f"[{shown}]")
        elif parameter.required:
            words.append(f"{parameter.opts[0]} {parameter.name.upper()}")
    has_options = any(parameter.param_type_name == "option" for parameter in parameters)
    return " ".join([*words, "[OPTIONS]"] if has_options else words)


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`"
    return ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])


def _meaning(parameter: Any) -> str:
    text = " ".join((parameter.help or "").split()).replace("|", "\\|").replace("<", "&lt;")
    default = parameter.default
    is_plain = isinstance(default, int | float | str) and not isinstance(default, bool) and default != ""
    repeated = " Can be given several times." if getattr(parameter, "multiple", False) else ""
    return text + repeated + (" Required." if parameter.required else f" Default: `{default}`." if is_plain else "")


class CommandReference(SphinxDirective):
    """The sections of all commands, inserted where the directive stands."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(command_page(), allow_section_headings=True)


def setup(app: Any) -> dict[str, bool]:
    """Register the directive with Sphinx."""
    app.add_directive("tidegate-commands", CommandReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
