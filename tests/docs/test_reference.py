"""The reference is what the code says today, every public name and command says what it is for, and pages name commands that exist."""

from __future__ import annotations

import re

import pytest
from making.blocks import blocks
from making.interface import public, told
from making.pages import DOCS, ROOT, Page, all_pages, page_of
from making.reference import PAGES
from making.terminal import commands, own_parameters

COMMANDS = dict(commands())
GROUPS = {name for name, command in COMMANDS.items() if getattr(command, "commands", None)}


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_not_stale(name: str) -> None:
    assert (DOCS / "reference" / name).read_text("utf-8") == PAGES[name](), "run: make docs"


def test_every_public_name_says_what_it_is_for() -> None:
    silent = [f"{module}.{name}" for _, module, name, value in public() if callable(value) and not told(value)]
    assert not silent


def test_every_name_of_the_package_is_in_the_reference() -> None:
    import tidegate

    page = (DOCS / "reference" / "api.md").read_text("utf-8")
    missing = [name for name in tidegate.__all__ if f"### `tg.{name}`" not in page and name != "TidegateError"]
    assert not missing


def test_every_command_argument_and_option_has_a_help() -> None:
    silent = [name for name, command in COMMANDS.items() if not command.help]
    silent += [
        f"{name} {one.name}" for name, command in COMMANDS.items() for one in own_parameters(command) if not one.help
    ]
    assert not silent


def wrong_commands(text: str) -> list[str]:
    """What a line says about `tidegate` that is not so: a command or an option that does not exist."""
    found = []
    for said in re.split(r"(?:^|(?<=[\s`$(]))tidegate (?=[a-z-])", text)[1:]:
        words = said.split()
        name = "tidegate"
        while words and f"{name} {words[0]}" in COMMANDS:
            name = f"{name} {words.pop(0)}"
        options = {option for one in COMMANDS[name].params for option in [*one.opts, *one.secondary_opts]} | {"--help"}
        one_of = words and "|" in words[0] and name in GROUPS | {"tidegate"}
        if one_of:
            found += [f"{name} {part}" for part in words[0].split("|") if f"{name} {part}" not in COMMANDS]
        elif name in GROUPS:
            found += [f"{name} {words[0]}"] if words else []
        else:
            found += [
                f"{name} {option}" for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", said) if option not in options
            ]
    return found


def shown_commands(page: Page) -> list[str]:
    """Lines of blocks that are for reading, and pieces of code in the text."""
    quoted = re.findall(r"`(tidegate [a-z][^`]*)`", re.sub(r"```.*?```", "", page.text, flags=re.DOTALL))
    lines = [line for block in blocks(page.text) if block.language in ("", "text") for line in block.text.splitlines()]
    return [*quoted, *(line for line in lines if re.match(r"(\$ )?tidegate ", line))]


@pytest.mark.parametrize("page", [*all_pages(), page_of(ROOT / "README.md")], ids=lambda page: page.place)
def test_commands_on_a_page_exist_with_their_options(page: Page) -> None:
    wrong = [found for line in shown_commands(page) for found in wrong_commands(line)]
    assert not wrong


def test_a_command_or_option_that_is_gone_is_found() -> None:
    assert wrong_commands("tidegate anwser people.toml") == ["tidegate anwser"]
    assert wrong_commands("tidegate answer people.toml --roh 0.1") == ["tidegate answer --roh"]
    assert wrong_commands("tidegate ledger show|prove people.toml") == ["tidegate ledger prove"]
    assert not wrong_commands('tidegate answer people.toml "SELECT ..." --fit      tidegate answer people.toml --free')
