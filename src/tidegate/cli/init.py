"""init: a first policy, with open decisions or by a dialog of at most six decisions."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import typer

from tidegate.cli.output import INTERRUPTED, JSON, emit, plural, say, write_whole
from tidegate.errors import PolicyUnreadable, TidegateError, did_you_mean

DECISIONS = 6  # the largest number of decisions before the first answer
PROMISE = "epsilon 1"
MOST_ROWS = 5  # of a person, if no other number is written
WARNING = (
    "Bounds and lists must be public knowledge. Do not look them up in the data: the highest value in the data would "
    "reveal that one person has it."
)
T = TypeVar("T")


def init(
    data: Path = typer.Argument(help="A CSV, Parquet or Arrow file, or a folder of Parquet files."),
    out: Path | None = typer.Option(
        None, "--out", help="The policy file to write (default: NAME.toml next to the data)."
    ),
    ask: bool = typer.Option(False, "--ask", help="Ask for the decisions and write a complete policy."),
    json: bool = JSON,
) -> None:
    """Write a draft policy from the header and the column types, with open decisions marked.

    With --ask: a dialog of at most six decisions, with a proposal for each. The policy is complete after it.
    """
    from tidegate.policy.draft import draft_policy
    from tidegate.policy.section import OPEN
    from tidegate.tables.column_types import column_types, unreadable_forms

    columns, forms = column_types(data), unreadable_forms(data)
    columns |= {name: kind for name, (kind, _) in forms.items()}
    hints = {name: hint for name, (_, hint) in forms.items() if hint}
    path = out or data.with_suffix(".toml")
    if path.exists():
        raise PolicyUnreadable(f"{path} already exists and was not changed.", "Name another file with --out.")
    stem = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in data.stem)
    name = stem if stem[:1].isalpha() else f"data_{stem}"
    source = os.path.relpath(data.absolute(), path.absolute().parent)
    if ask:
        _show_hints(hints)
        return _write_answers(path, Dialog(name, source, columns, folder=path.parent), json)
    text = draft_policy(name, source, columns, hints=hints)
    write_whole(path, text)
    count = sum(line.partition("#")[0].count(f'"{OPEN}"') for line in text.splitlines())
    if json:
        return emit({"policy": str(path), "columns": columns, "open": count, "hints": hints})
    _show_hints(hints)
    return say(
        f'{path}: {len(columns)} columns, {count} open decisions (marked "?").',
        f"Edit the file, then run: tidegate check {shlex.quote(str(path))}",
    )


def _show_hints(hints: Mapping[str, str]) -> None:
    """Show which columns have to be changed in the data."""
    for name, hint in hints.items():
        print(f'Change the column "{name}" in the data: {hint}.', file=sys.stderr)


def _write_answers(path: Path, dialog: Dialog, json: bool) -> None:
    from tidegate.cli.policy import first_command
    from tidegate.policy.draft import first_query, propose_synthesis
    from tidegate.policy.toml import write_policy

    try:
        policy = dialog.run()
    except (EOFError, KeyboardInterrupt):  # the answers ended, or Ctrl-C
        print("\nNo file was written.", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    header = f"# Decisions of the data holder, made by a dialog. Explained by: tidegate check {path.name}\n"
    proposals = propose_synthesis({name: kind for name, kind in dialog.columns.items() if name in policy.attributes})
    write_whole(path, header + write_policy(policy) + "".join(f"{line}\n" for line in proposals))
    command = first_command(path, policy)
    if json:
        columns = {name: attribute.kind for name, attribute in policy.attributes.items()}
        query = first_query(policy)
        return emit({"policy": str(path), "columns": columns, "open": 0, "decisions": dialog.decisions, "query": query})
    return say(
        f"{path}: {plural(len(policy.attributes), 'column')}, {plural(dialog.decisions, 'decision')}, none open.",
        f"Compare it with the data (exact figures, for you alone): tidegate check {shlex.quote(str(path))} --data",
        f"Try a first query: {command}",
    )


@dataclass
class Dialog:
    """Decisions about one table, each with a proposal that an empty answer accepts. Nothing is read from the rows."""

    name: str
    source: str
    columns: Mapping[str, Any]
    folder: Path = Path()
    decisions: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)

    def run(self) -> Any:
        """Return the policy after at most six decisions."""
        from tidegate.accounting.explain import explain
        from tidegate.policy import Category, Dataset, Key, Moment, Numeric, Policy, Text
        from tidegate.policy.draft import propose

        proposals = {name: propose(name, kind) for name, kind in self.columns.items()}
        self.attributes = {name: attribute for name, attribute in proposals.items() if attribute is not None}
        self._show("Columns, by their names and types:", *self._lines(self.attributes))
        unsupported = [name for name, attribute in proposals.items() if attribute is None]
        if unsupported:
            self._show(f"Left out, because their types are not supported: {', '.join(unsupported)}.")
        self.attributes = self._decide("Columns to leave out (separated by commas)", "none", self._leave_out)
        unit = self._decide(
            "Protect each row, or a person with several rows (KEY COLUMN AND LARGEST NUMBER OF ROWS)", "row", self._unit
        )
        bounded = {n: a for n, a in self.attributes.items() if isinstance(a, Numeric)}
        if bounded:
            self._show("", WARNING, *self._lines(bounded))
            example = self._example(bounded, Moment)
            self.attributes = self._decide(
                f"Accept these bounds, or write others, with a step or grid if needed (such as {example}; ...)",
                "accept",
                self._bounds,
            )
        listed = {
            n: a for n, a in self.attributes.items() if isinstance(a, Category | Text) and self.columns[n] == "text"
        }
        if listed:
            self._show("", *self._lines(listed))
            column = next((n for n, a in listed.items() if isinstance(a, Text)), next(iter(listed)))
            example = f"{column} = north, south"
            self.attributes = self._decide(
                f"Accept these, or list the public values (such as {example}; ... or {column} = FILE.csv:COLUMN)",
                "accept",
                self._values,
            )
        rows = self._decide("The public number of rows (of persons, if they are protected)", "not public", self._rows)
        attributes = self.attributes

        def build(answer: str) -> Policy:
            identification, loss = self._promise(answer)
            policy = Policy(Dataset(self.name, self.source, unit, rows), attributes, identification, loss, version=2)
            for finding in explain(policy):
                if finding.problem:
                    raise PolicyUnreadable(finding.says, finding.do)
            return policy

        protectable = [n for n, a in attributes.items() if not isinstance(a, Key | Text) and a.size > 20]
        example = (
            f", or a largest probability of guessing a column, such as rho 0.1 {protectable[0]}" if protectable else ""
        )
        return self._decide(f"The promise: the total epsilon of all answers{example}", PROMISE, build)

    def _decide(self, question: str, default: str, read: Callable[[str], T]) -> T:
        """Ask until the answer can be read. Prompts go to standard error: standard output is for the result."""
        self.decisions += 1
        while True:
            print(f"{self.decisions}. {question} [{default}]: ", end="", file=sys.stderr, flush=True)
            answer = input().strip()
            try:
                return read("" if answer == default else answer)
            except TidegateError as error:
                self._show(f"{error.what} {error.do}")

    def _show(self, *lines: str) -> None:
        print("\n".join(lines), file=sys.stderr)

    def _lines(self, attributes: Mapping[str, Any]) -> list[str]:
        width = max(map(len, attributes), default=0)
        return [
            f"  {name:<{width}}  {attribute.kind}: {attribute.describe()}" for name, attribute in attributes.items()
        ]

    def _example(self, bounded: Mapping[str, Any], moment: type) -> str:
        name, attribute = next(iter(bounded.items()))
        kind = attribute.kind
        if isinstance(attribute, moment):
            return f"{name} 2015-01-01 2024-12-31{' month' if kind == 'date' else ''}"
        return f"{name} 0 200{'' if kind == 'integer' else ' 0.5'}"

    def _column(self, name: str) -> str:
        if name not in self.attributes:
            raise PolicyUnreadable(f'There is no column "{name}".', did_you_mean(name, self.attributes))
        return name

    def _leave_out(self, answer: str) -> dict[str, Any]:
        names = {self._column(name.strip()) for name in answer.split(",") if name.strip()}
        left = {name: attribute for name, attribute in self.attributes.items() if name not in names}
        if not left:
            raise PolicyUnreadable("A policy needs at least one column.", "Leave out fewer columns.")
        return left

    def _unit(self, answer: str) -> Any:
        from tidegate.policy import EachPerson, EachRow, Key

        if not answer:
            return EachRow()
        name, _, number = answer.rpartition(" ") if answer.rpartition(" ")[2].isdecimal() else (answer, "", MOST_ROWS)
        column = self._column(name.strip())
        unit = EachPerson(column, int(number))
        self.attributes[column] = Key()
        return unit

    def _bounds(self, answer: str) -> dict[str, Any]:
        """Read "age 18 90; price 0 500 0.01; joined 2015-01-01 2024-12-31 month"."""
        return {**self.attributes, **dict(self._bound(part.split()) for part in answer.split(";") if part.strip())}

    def _bound(self, words: list[str]) -> tuple[str, Any]:
        from tidegate.policy import Grid, Integer, Moment, Numeric

        count = next((n for n in range(len(words), 0, -1) if " ".join(words[:n]) in self.attributes), 1)
        column, (first, last, *rest) = (
            self._column(" ".join(words[:count])),
            [*words[count:], "", ""][: max(2, len(words) - count)],
        )
        attribute = self.attributes[column]
        if not isinstance(attribute, Numeric) or not last:
            raise PolicyUnreadable(
                f'"{column}" needs two bounds, and only numbers, dates and times have them.', "Write COLUMN FROM TO."
            )
        try:
            if isinstance(attribute, Moment):
                settings = dict(zip(("grid", "zone"), rest, strict=False))
                return column, replace(self.attributes[column], first=first, last=last, **settings)
            if isinstance(attribute, Integer) and not rest:
                return column, Integer(int(first), int(last))
            grid = type(attribute) if isinstance(attribute, Grid) else Grid
            return column, grid(first, last, rest[0] if rest else attribute.width)
        except (ValueError, TypeError) as error:
            if isinstance(error, TidegateError):
                raise
        raise PolicyUnreadable(f'The bounds of "{column}" are not {attribute.comparable}.', "Write COLUMN FROM TO.")

    def _values(self, answer: str) -> dict[str, Any]:
        """Read "sex = female, male; town = towns.csv:name"."""
        from tidegate.policy import Category
        from tidegate.policy.kinds import read_values

        attributes = dict(self.attributes)
        for part in filter(str.strip, answer.split(";")):
            name, _, values = (word.strip() for word in part.partition("="))
            column = self._column(name)
            if file := re.fullmatch(r"(.+\.csv):(.+)", values):
                listed, digest = read_values(self.folder / file[1], file[2])
                attributes[column] = Category(listed, "dropped", "other", file[1], file[2], digest)
            else:
                words = tuple(word.strip() for word in values.split(",") if word.strip())
                attributes[column] = Category(words, outside="other")
        return attributes

    def _rows(self, answer: str) -> int | None:
        digits = answer.replace(",", "").replace("_", "")
        if not answer or digits.isdecimal():
            return int(digits) if answer else None
        raise PolicyUnreadable("The number of rows must be a whole number.", "Press Enter if it is not public.")

    def _promise(self, answer: str) -> tuple[Any, Any]:
        """Read "epsilon 1" or "rho 0.1 age"; epsilon 1 if it is empty."""
        from tidegate.exact import exact
        from tidegate.policy import Identification, Loss

        kind, _, rest = (answer or PROMISE).partition(" ")
        number, _, columns = rest.strip().partition(" ")
        try:
            value = exact(number)
        except (ValueError, TypeError):
            value = None
        if value is None or kind not in ("epsilon", "rho") or (kind == "rho") != bool(columns.strip()):
            raise PolicyUnreadable("The promise cannot be read.", "Write, for example, epsilon 1, or rho 0.1 COLUMN.")
        if kind == "epsilon":
            return None, Loss(value)
        protect = [self._column(name.strip()) for name in columns.split(",")]
        return Identification(value, worlds="values", protect=tuple(protect)), None
