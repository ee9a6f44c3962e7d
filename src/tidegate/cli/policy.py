"""check, risk convert: check a policy, and explain its numbers."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.output import JSON, emit, plural, say, table, working
from tidegate.errors import TidegateError, Unsupported


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
    exits with 1 if the data does not match the policy. No number is written to the ledger. If answers failed because the
    source could not be read, the ledger records that the owner has looked at the data, and others are answered again.
    """
    if data:
        return _check_data(policy, json)
    from tidegate.accounting.explain import Finding, explain
    from tidegate.policy import read_policy

    read = read_policy(policy)
    findings = explain(read, _open_selection(policy) if read.hidings else None)
    if read.dataset.source or not read.collections:  # a policy that only collects needs no table
        with working("opening the source"):
            source = _source(policy, read)
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


def _open_selection(path: Path) -> Any:
    """Return what is public about the open selection of hiding promises; None if there is no ledger or it is not open."""
    from tidegate.ledger import Ledger
    from tidegate.release.hiding import read_selections
    from tidegate.session import open_session

    session = open_session(path)
    address = session.ledger_address
    if "://" not in address and not Path(address).exists():
        return None
    ledger = Ledger(address, read_only=True)
    try:
        selections = read_selections(ledger, session.policy)
    finally:
        ledger.close()
    return selections[0].summary if selections else None


def _check_data(path: Path, json: bool) -> None:
    from tidegate.session import open_session
    from tidegate.tables.inspection import WARNING, inspect
    from tidegate.tables.links import count_unmatched

    with open_session(path) as session:
        policy = session.policy
        with working("reading the data"):
            tables = session.open_parts() if policy.tables else {"": session.table}
            inspections = {name: inspect(table) for name, table in tables.items()}
            unmatched = count_unmatched(policy, session.open_rows)
        if json:
            contents = {name: inspection.to_dict() for name, inspection in inspections.items()}
            emit({"tables": contents, "unmatched": unmatched} if policy.tables else contents[""])
        else:
            for name, inspection in inspections.items():
                _print_inspection(inspection, name)
            if unmatched:
                say(*(f"{plural(count, 'row')} without a match: {of}" for of, count in unmatched.items()), WARNING)
        session.note_inspection()
    if any(inspection.problems for inspection in inspections.values()):
        raise typer.Exit(1)


def _print_inspection(inspection: Any, name: str = "") -> None:
    from tidegate.tables.inspection import WARNING

    declared = f"; the policy declares {inspection.declared:,}" if inspection.declared is not None else ""
    say(
        WARNING,
        f"{f'Table {name}: ' if name else ''}{plural(inspection.rows, 'row')}{declared if not inspection.persons else ''}",
    )
    if inspection.persons:
        persons = inspection.persons
        say(
            f'{plural(persons.persons, "person")} by "{persons.key}"{declared}; {plural(persons.without_key, "row")} without a key are ignored',
            f"{plural(persons.above, 'person')} with more than {persons.at_most} rows: {plural(persons.rows_lost, 'row')} not counted",
        )
    if inspection.malformed and (inspection.malformed.lines or inspection.malformed.characters):
        lines, characters = inspection.malformed.lines, inspection.malformed.characters
        say(
            f"{plural(lines, 'line')} {'is' if lines == 1 else 'are'} not well formed, and {plural(characters, 'line')} "
            f"{'has' if characters == 1 else 'have'} characters that are not UTF-8."
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
        commands.append(first_command(path, policy))
    commands += [f"tidegate release open {shlex.quote(str(path))}"] if policy.hidings else []
    commands += [
        f"tidegate release {shlex.quote(str(path))} {name} --requests KEYS.csv --out RELEASED.csv"
        for name in policy.release_promises
    ]
    commands += [
        f"tidegate collect define {shlex.quote(str(path))} {name}"
        for name in policy.collections
        if name not in policy.polls
    ]
    commands += [f"tidegate poll preview {shlex.quote(str(path))}"] if policy.polls else []
    return commands


def first_command(path: Path, policy: Any) -> str:
    """Return the command that previews a first query."""
    from tidegate.policy.draft import first_query

    return f"tidegate answer {shlex.quote(str(path))} {_quoted(first_query(policy))} --epsilon 0.1 --preview"


def _quoted(query: str) -> str:
    return shlex.quote(query) if any(letter in query for letter in '"\\$`!') else f'"{query}"'


def _source(path: Path, policy: Any) -> dict[str, Any]:
    from tidegate.tables.header import check_header

    try:
        if check_header(policy, path.parent):
            engines = "duckdb"
        else:
            from tidegate.session import open_session

            engines = open_session(path).check_sources()
    except TidegateError as error:
        return {"says": error.what, "do": error.do, "problem": True}
    return {"says": f"{plural(len(policy.attributes), 'declared column')} found, read by {engines}"}


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
