"""init, check, risk convert: draft a policy, check it, and explain its numbers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.output import JSON, emit, plural, say, table, working
from tidegate.errors import PolicyUnreadable, TidegateError, Unsupported


def init(
    data: Path = typer.Argument(help="A CSV, Parquet or Arrow file, or a folder of Parquet files."),
    out: Path | None = typer.Option(
        None, "--out", help="The policy file to write (default: NAME.toml next to the data)."
    ),
    json: bool = JSON,
) -> None:
    """Write a draft policy from the header and the column types, with open decisions marked."""
    from tidegate.policy.draft import draft_policy
    from tidegate.policy.section import OPEN
    from tidegate.tables.inspection import column_types

    columns = column_types(data)
    path = out or data.with_suffix(".toml")
    if path.exists():
        raise PolicyUnreadable(f"{path} already exists and was not changed.", "Name another file with --out.")
    stem = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in data.stem)
    name = stem if stem[:1].isalpha() else f"data_{stem}"
    text = draft_policy(name, os.path.relpath(data.absolute(), path.absolute().parent), columns)
    path.write_text(text, "utf-8")
    count = sum(line.partition("#")[0].count(f'"{OPEN}"') for line in text.splitlines())
    if json:
        return emit({"policy": str(path), "columns": columns, "open": count})
    return say(
        f'{path}: {len(columns)} columns, {count} open decisions (marked "?").',
        f"Edit the file, then run: tidegate check {path}",
    )


def check(
    policy: Path = typer.Argument(help="A policy file."),
    data: bool = typer.Option(
        False,
        "--data",
        help="Compare the data with the policy. For the data holder only: the output contains exact numbers.",
    ),
    json: bool = JSON,
) -> None:
    """Explain each promise, report which values of rho are feasible, and list what is missing.

    With --data: the exact numbers of rows outside each universe, unlisted labels, missing values and rows. The command
    exits with 1 if the data does not match the policy. Nothing is written to the ledger.
    """
    if data:
        return _check_data(policy, json)
    from tidegate.accounting.explain import Finding, explain
    from tidegate.policy import read_policy

    read = read_policy(policy)
    findings = explain(read)
    if read.dataset.source or not read.collections:  # a policy that only collects needs no table
        with working("opening the source"):
            source = _source(read, policy.parent)
        findings.append(Finding("source", **source))
    problems = [finding for finding in findings if finding.problem]
    if json:
        emit(
            {
                "policy": read.dataset.name,
                "fingerprint": read.fingerprint,
                "findings": [finding.to_dict() for finding in findings],
                "problems": len(problems),
            }
        )
    else:
        _print(findings, len(problems), _next_commands(policy, read))
    if problems:
        raise typer.Exit(2)
    return None


def _check_data(path: Path, json: bool) -> None:
    from tidegate.policy import read_policy
    from tidegate.tables import open_table
    from tidegate.tables.inspection import inspect

    with working("reading the data"):
        inspection = inspect(open_table(read_policy(path), folder=path.parent))
    if json:
        emit(inspection.to_dict())
    else:
        _print_inspection(inspection)
    if inspection.problems:
        raise typer.Exit(1)


def _print_inspection(inspection: Any) -> None:
    from tidegate.tables.inspection import WARNING

    declared = f"; the policy declares {inspection.declared:,}" if inspection.declared is not None else ""
    say(WARNING, f"{plural(inspection.rows, 'row')}{declared if not inspection.persons else ''}")
    if inspection.persons:
        persons = inspection.persons
        say(
            f'{plural(persons.persons, "person")} by "{persons.key}"{declared}; {plural(persons.without_key, "row")} without a key are ignored',
            f"{plural(persons.above, 'person')} with more than {persons.at_most} rows: {plural(persons.rows_lost, 'row')} not counted",
        )
    headers = ["column", "type", "missing", "outside", "distinct"]
    rows = [[c.name, c.type, f"{c.missing:,}", _outside(c), f"{c.distinct:,}"] for c in inspection.columns]
    table(headers, rows, right={2, 4})
    for column in inspection.columns:
        for label in column.unlisted:
            hint = f': did you mean "{label.nearest}"?' if label.nearest else ""
            say(f'{column.name}: "{label.value}" {plural(label.rows, "row")}, not listed{hint}')
    say(*(f"! {problem}" for problem in inspection.problems))
    say(*(["The data matches the policy."] if not inspection.problems else []), WARNING)


def _outside(column: Any) -> str:
    return ", ".join(f"{count:,} {side}" for side, count in column.outside.items() if count) or "0"


def _next_commands(path: Path, policy: Any) -> list[str]:
    """Return commands to try next with this policy."""
    commands = []
    if policy.identification or policy.loss:
        commands.append(f'tidegate answer {path} "SELECT COUNT(*) FROM {policy.dataset.name}" --epsilon 0.1 --preview')  # noqa: S608
    commands += [
        f"tidegate release {path} {name} --requests KEYS.csv --out RELEASED.csv" for name in policy.concealments
    ]
    commands += [f"tidegate collect define {path} {name}" for name in policy.collections]
    return commands


def _source(policy: Any, folder: Path) -> dict[str, Any]:
    from tidegate.tables import open_table

    try:
        table = open_table(policy, folder=folder)
    except TidegateError as error:
        return {"says": error.what, "do": error.do, "problem": True}
    return {"says": f"{plural(len(policy.attributes), 'declared column')} found, read by {table.engine}"}


def _print(findings: list[Any], problems: int, next_commands: list[str]) -> None:
    width = max(len(finding.about) for finding in findings) + 2
    for finding in findings:
        mark = "!" if finding.problem or finding.warning else " "
        say(f"{mark} {finding.about:<{width}}{finding.says}")
        if finding.do:
            say(f"  {'':<{width}}{finding.do}")
    if problems:
        say(
            f"{problems} problem{'s' if problems != 1 else ''}. Queries are refused until {'they are' if problems != 1 else 'it is'} solved."
        )
    else:
        warnings = sum(finding.warning for finding in findings)
        mention = f" {plural(warnings, 'warning')}, marked with !." if warnings else ""
        say(f"No problems.{mention}", *(f"  {line}" for line in next_commands))


def convert(
    worlds: str = typer.Option(..., help="The number of possible values (or 1 / the largest prior)."),
    rho: str | None = typer.Option(None, help="The largest probability of identification."),
    epsilon: str | None = typer.Option(None, help="The total privacy loss."),
    z: str | None = typer.Option(None, help="The total loss under the average guarantee."),
    guarantee: str = typer.Option("worst-case", help='"worst-case", or "average".'),
    json: bool = JSON,
) -> None:
    """Convert rho to the loss that it allows, or a loss to the rho that it implies."""
    from tidegate.accounting import Amount, Target, identification_at, yes_no_at
    from tidegate.exact import say as number
    from tidegate.policy.promises import GUARANTEES

    count = _number(worlds, "worlds")
    if count <= 1 or sum(value is not None for value in (rho, epsilon, z)) != 1:
        raise Unsupported(
            "The conversion needs `--worlds` above 1 and exactly one of `--rho`, `--epsilon`, or `--z`.",
            "For example: tidegate risk convert --worlds 99 --rho 0.1",
        )
    if guarantee not in GUARANTEES:
        raise Unsupported('`--guarantee` must be "worst-case" or "average".')
    kind: Any = "average" if z is not None else guarantee if epsilon is None else "worst-case"
    unit, short = ("z", "Z") if kind == "average" else ("epsilon", "epsilon")
    on_average = " on average" if kind == "average" else ""
    if rho is not None:
        target = Target("this", count, _number(rho, "rho"), kind)
        if not 0 < target.rho < 1:
            raise Unsupported(
                "`--rho` must be between 0 and 1.", "For example: tidegate risk convert --worlds 99 --rho 0.1"
            )
        target.refuse()
        result = {"worlds": str(count), "rho": str(target.rho), unit: str(target.limit)}
        loss = target.limit
        text = f"A probability of identification of at most {number(target.rho)}{on_average} among {number(count)} possible values allows a total loss of {short} {target.limit.say()}"
    else:
        loss = Amount.up(_number(epsilon or z or "", unit))
        after = identification_at(loss, count, kind)
        result = {"worlds": str(count), unit: str(loss), "rho": f"{after:.12f}"}
        text = f"A total loss of {short} {loss.say()} limits the probability of identification{on_average} to {float(after):.4g} among {number(count)} possible values (a random guess: {float(1 / count):.4g})"
    certainty = yes_no_at(loss, kind)
    result["yes_no"] = f"{certainty:.12f}"
    text += f"; an adversary can then answer a yes/no question about one person with a certainty of up to {float(certainty):.4g}."
    emit(result) if json else say(text)


def _number(text: str, name: str) -> Any:
    from tidegate.exact import exact

    try:
        value = exact(text)
    except (TypeError, ValueError):
        value = None
    if value is None or value < 0:
        raise Unsupported(f"`--{name}` must be a number of 0 or more.")
    return value
