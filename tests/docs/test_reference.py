"""Every public name and command is in the reference with its purpose, and pages name commands that exist."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from _ext.blocks import blocks
from _ext.commands import all_commands, command_page, parameters_of
from _ext.sql import AGGREGATES, Aggregate
from docs.pages import DOCS, all_pages, name_of
from sqlglot import exp

import tidegate.errors
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.sql import plan_sql
from tidegate.answer.sql.measures import READERS
from tidegate.ledger import entry
from tidegate.policy import Dataset, EachPerson, Integer, Key, Loss, Policy

COMMANDS = dict(all_commands())
GROUPS = {name for name, command in COMMANDS.items() if getattr(command, "commands", None)}
DIRECTIVE = re.compile(r"^\.\. auto(module|class|function|exception):: ([\w.]+)$", re.MULTILINE)


def documented_names() -> list[str]:
    """Return the full names in the Python reference, those of modules included."""
    names = []
    for page in sorted((DOCS / "reference" / "api").glob("*.md")):
        for kind, name in DIRECTIVE.findall(page.read_text("utf-8")):
            names += [f"{name}.{part}" for part in module_names(name)] if kind == "module" else [name]
    return names


def module_names(module: str) -> list[str]:
    """Return `__all__` of a module; the page of errors shows the module's docstring instead."""
    return list(getattr(importlib.import_module(module), "__all__", []))


def resolve(name: str) -> Any:
    """Return the object of a full name."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def docstring_of(value: Any) -> str:
    """Return the docstring; the one that `dataclass` writes by itself does not count."""
    text = inspect.cleandoc(value.__doc__ or "")
    return "" if inspect.isclass(value) and text.startswith(f"{value.__name__}(") else text


def test_every_documented_name_states_its_purpose() -> None:
    values = ((name, resolve(name)) for name in documented_names())
    assert not [name for name, value in values if callable(value) and not docstring_of(value)]


@pytest.mark.parametrize("module", ["tidegate", "tidegate.testing"])
def test_every_public_name_is_in_the_reference_once(module: str) -> None:
    names = documented_names()
    repeated = {name for name in names if names.count(name) > 1}
    assert not repeated
    assert not {f"{module}.{name}" for name in module_names(module)} - {*names}


def test_every_error_is_in_the_reference() -> None:
    tree = tidegate.errors.__doc__ or ""
    missing = [error.__name__ for error in subclasses(tidegate.errors.TidegateError) if error.__name__ not in tree]
    assert not missing


def subclasses(error: type) -> list[type]:
    """Return an error class and all classes below it that are defined beside it."""
    below = (part for direct in error.__subclasses__() for part in subclasses(direct))
    return [error, *(part for part in below if part.__module__ == error.__module__)]


def test_every_command_is_in_the_reference() -> None:
    headings = re.findall(r"^##+ (.+)$", command_page(), re.MULTILINE)
    assert headings == [name for name in COMMANDS if name != "tidegate"]


def test_every_command_argument_and_option_has_a_help_text() -> None:
    missing = [name for name, command in COMMANDS.items() if not command.help]
    missing += [
        f"{name} {parameter.name}"
        for name, command in COMMANDS.items()
        for parameter in parameters_of(command)
        if not parameter.help
    ]
    assert not missing


def wrong_commands(text: str) -> Iterator[str]:
    """Yield the commands and options after `tidegate` in a line that do not exist."""
    for usage in re.split(r"(?:^|(?<=[\s`$(]))tidegate (?=[a-z-])", text)[1:]:
        words = usage.split()
        name = "tidegate"
        while words and f"{name} {words[0]}" in COMMANDS:
            name = f"{name} {words.pop(0)}"
        known = {
            option for parameter in COMMANDS[name].params for option in [*parameter.opts, *parameter.secondary_opts]
        }
        is_choice = words and "|" in words[0] and name in GROUPS | {"tidegate"}
        if is_choice:
            yield from (f"{name} {part}" for part in words[0].split("|") if f"{name} {part}" not in COMMANDS)
        elif name in GROUPS:
            yield from [f"{name} {words[0]}"] if words else []
        else:
            options = re.findall(r"(?<![\w-])--[a-z][a-z-]*", usage)
            yield from (f"{name} {option}" for option in options if option not in known | {"--help"})


def shown_commands(text: str) -> list[str]:
    """Return the lines of blocks that are not run, and the commands quoted in the text."""
    quoted = re.findall(r"`(tidegate [a-z][^`]*)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    lines = [line for block in blocks(text) if block.language in ("", "text") for line in block.text.splitlines()]
    return [*quoted, *(line for line in lines if re.match(r"(\$ )?tidegate ", line))]


@pytest.mark.parametrize("page", all_pages(), ids=name_of)
def test_commands_on_a_page_exist_with_their_options(page: Any) -> None:
    assert not [wrong for line in shown_commands(page.read_text("utf-8")) for wrong in wrong_commands(line)]


def test_missing_command_and_missing_option_are_detected() -> None:
    assert [*wrong_commands("tidegate anwser people.toml")] == ["tidegate anwser"]
    assert [*wrong_commands("tidegate answer people.toml --roh 0.1")] == ["tidegate answer --roh"]
    assert [*wrong_commands("tidegate ledger show|proof people.toml")] == ["tidegate ledger proof"]
    assert not [
        *wrong_commands('tidegate answer people.toml "SELECT ..." --fit      tidegate answer people.toml --free')
    ]


SQL_POLICY = Policy(
    Dataset("people", unit=EachPerson("person", 3)),
    {"person": Key(), "age": Integer(0, 99), "pay": Integer(0, 9)},
    loss=Loss(1),
)


@pytest.mark.parametrize("row", AGGREGATES, ids=lambda row: row.example)
def test_every_aggregate_of_the_reference_is_measured_as_it_says(row: Aggregate) -> None:
    queries = plan_sql(f"SELECT {row.example} FROM people", SQL_POLICY).queries
    assert queries[0].statistic == row.statistic


@pytest.mark.parametrize("statistic", ["count", "persons", "distinct"])
def test_prices_of_the_reference_are_those_of_the_mechanisms(statistic: str) -> None:
    row = next(row for row in AGGREGATES if row.statistic == statistic)
    moves = {"k": 3, "2k": 6, "1, of all rows": 1, "2 min(k, cells)": 2 * min(3, 10)}
    for text, shown in (("", row.one_cell), (" GROUP BY pay", row.cells)):
        (query,) = plan_sql(f"SELECT {row.example} FROM people{text}", SQL_POLICY).queries
        event = mechanism_for(query).event(query, SQL_POLICY, epsilon=Fraction(1))
        assert event.sensitivity == moves[shown]  # type: ignore[attr-defined]


def test_every_aggregate_of_the_grammar_is_in_the_reference() -> None:
    listed = " ".join(row.forms for row in AGGREGATES).upper()
    names = {kind.sql_name() for kind in READERS if kind is not exp.Anonymous and hasattr(kind, "sql_name")}
    aliases = {"VARIANCE_POP": "VAR_POP", "QUANTILE": "QUANTILE", "PERCENTILE_DISC": "QUANTILE_DISC"}
    assert not {name for name in names if aliases.get(name, name) not in listed}


def test_ledger_page_lists_every_kind_of_entry() -> None:
    kinds = {value for name, value in vars(entry).items() if name[0].isupper() and isinstance(value, str)}
    section = (DOCS / "ledger.md").read_text("utf-8").partition("## Entries")[2].partition("\n## ")[0]
    first_cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    assert set(re.findall(r"`([a-z-]+)`", " ".join(first_cells))) == kinds - {entry.GENESIS}
