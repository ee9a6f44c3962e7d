"""collect define|randomize|submit|flush|status|estimate|mean|shares|verify|tree: answers randomized on the device, counted here."""

from __future__ import annotations

import json as jsons
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.output import JSON, counted, emit, plural, say, table, working, write_whole
from tidegate.errors import LedgerBroken, SourceMissing, SourceUnreadable, Unsupported

collect = typer.Typer(help="Collect answers that each person's device randomizes.", no_args_is_help=True)

POLICY = typer.Argument(help="A policy file with a collection.")
NAME = typer.Argument("", help="The collection (optional if the policy has only one).")
LEDGER = typer.Option("", "--ledger", help="A ledger other than the policy's: a path or postgresql://...")
REPORTS = typer.Option(
    "", "--reports", help="The location of the randomized reports: a folder or a URL such as s3://..."
)
BATCH = 100_000
LINES_SHOWN = 5


@contextmanager
def open_survey(policy: Path, name: str, ledger: str, reports: str) -> Iterator[Any]:
    """Open the survey of a collection."""
    import tidegate as tg

    with tg.open(policy, ledger=ledger) as session:
        yield session.collect(name, reports=reports)


@collect.command("define", short_help="Open or close a collection, and write its description.")
def define(
    policy: Path = POLICY,
    name: str = NAME,
    out: Path | None = typer.Option(None, "--out", help="Write the public description here (default: print it)."),
    ledger: str = LEDGER,
    reports: str = REPORTS,
    json: bool = JSON,
) -> None:
    """Open a collection (or close it, if the policy has closed = true) and write its public description for clients."""
    with open_survey(policy, name, ledger, reports) as survey:
        described = survey.collection.public_dict()
        state = "closed and accepts no more reports" if survey.closed else "open"
        about = {"collection": survey.collection.name, "version": survey.collection.version, "state": state}
        loss = survey.respondent_loss
    text = jsons.dumps(described, indent=2, ensure_ascii=False) + "\n"
    if out is not None:
        _write(out, text)
    if json:
        return emit({**about, "gives": loss.to_dict(), "description": described, "out": str(out) if out else None})
    lines = [
        f'"{about["collection"]}", version {about["version"]}, is {state}.',
        f"{str(loss)[0].upper()}{str(loss)[1:]}.",
        f"Fingerprint {described['fingerprint']}: publish it where respondents can check it.",
    ]
    if out is None:
        print(text, end="")
        print("\n".join(lines), file=sys.stderr)
        return None
    return say(
        *lines, f"{out}: for clients. Next: tidegate collect randomize {out} --answers ANSWERS.csv --out REPORTS.jsonl"
    )


@collect.command("randomize")
def randomize(
    description: Path = typer.Argument(help="The public description, from collect define."),
    answers: Path = typer.Option(..., "--answers", help="A CSV file of true answers, with one column per question."),
    out: Path = typer.Option(..., "--out", help="The file to write reports to, one JSON value per line."),
    memory: Path | None = typer.Option(
        None,
        "--memory",
        help="The memory of one person: all rows belong to this person, and repeats reveal nothing new.",
    ),
    fingerprint: str | None = typer.Option(
        None, "--fingerprint", help="Refuse a collection with any other fingerprint."
    ),
    json: bool = JSON,
) -> None:
    """Randomize on the device. Without --memory, every row is another person and nothing is stored: do it only once."""
    from tidegate.cli.respondent_file import read_answers
    from tidegate.collect.client import Client

    stored: Any = {} if memory is None else str(memory)
    client = Client(_description(description), memory=stored, fingerprint=fingerprint)
    rows, ignored = read_answers(answers, client.collection)
    randomized = []
    with counted("randomizing") as progress:
        for number, row in enumerate(rows):
            if memory is None:
                stored.clear()  # the next row is another person
            randomized.append(_report(client, row, number))
            if not number % 1000:
                progress(number, len(rows))
    _write(out, "".join(f"{jsons.dumps(report, separators=(',', ':'))}\n" for report in randomized))
    if json:
        about = {"out": str(out), "reports": len(randomized), "persons": 1 if memory else len(randomized)}
        return emit({**about, "ignored": ignored, "memory": str(memory) if memory else None})
    lines = [f"{out}: {plural(len(randomized), 'report')} with randomized answers only. Keep {answers} on this device."]
    lines += [f"Ignored columns that are not questions: {', '.join(ignored)}."] if ignored else []
    if not memory:
        lines.append("Nothing was stored: randomizing the same people again would reveal more about them.")
    elif len(randomized) > 1:
        lines.append(
            f"All {len(randomized):,} rows count as one person, whose memory is {memory}: the same answers gave the same "
            "report. If each row is another person, remove --memory."
        )
    return say(*lines)


@collect.command("submit")
def submit(
    policy: Path = POLICY,
    name: str = typer.Argument(help="The collection."),
    reports: Path = typer.Argument(help="A file of reports, one JSON value per line."),
    ledger: str = LEDGER,
    location: str = REPORTS,
    json: bool = JSON,
) -> None:
    """Count valid reports and refuse the others with a reason. An interrupted run can be repeated: no report counts twice."""
    size = reports.stat().st_size if reports.is_file() else 0
    accepted, repeated, refused = 0, 0, defaultdict(list)
    with open_survey(policy, name, ledger, location) as survey, counted("submitting (bytes)") as progress:
        for first, batch, done in _batches(reports):
            submitted = survey.submit(batch)
            if submitted.again:
                repeated += submitted.accepted
            else:
                accepted += submitted.accepted
            for line, reason in enumerate(submitted.reasons, start=first):
                if reason is not None:
                    refused[reason].append(line)
            progress(done, size)
        total = survey.reports
    refused_count = sum(map(len, refused.values()))
    if json:
        lines = {reason: {"reports": len(numbers), "lines": numbers} for reason, numbers in refused.items()}
        emit(
            {
                "taken": accepted,
                "taken_before": repeated,
                "refused": refused_count,
                "reasons": lines,
                "reports": total,
            }
        )
    else:
        before = f" {repeated:,} were counted before." if repeated else ""
        say(f"{plural(accepted, 'report')} accepted, {refused_count:,} refused.{before} {total:,} in total.")
        for reason, numbers in refused.items():
            say(f"  {len(numbers):,}: {reason} ({_lines(numbers)})")
    if refused and not accepted and not repeated:
        raise typer.Exit(2)


@collect.command("flush", short_help="Count the waiting reports, if there are enough.")
def flush(
    policy: Path = POLICY,
    name: str = NAME,
    ledger: str = LEDGER,
    reports: str = REPORTS,
    json: bool = JSON,
) -> None:
    """Count the waiting reports of the service as one batch. Refused if there are fewer than the policy's minimum; closing
    the collection (closed = true) counts the rest. A service does this on its schedule."""
    with open_survey(policy, name, ledger, reports) as survey, working("counting the waiting reports"):
        newly_counted, total = survey.flush(), survey.reports
    if json:
        return emit({"counted": newly_counted, "reports": total})
    return say(f"{plural(newly_counted, 'report')} counted in one batch. {total:,} in total.")


@collect.command("status", short_help="Show the reports so far and what they reveal.")
def status(
    policy: Path = POLICY,
    name: str = NAME,
    ledger: str = LEDGER,
    reports: str = REPORTS,
    json: bool = JSON,
) -> None:
    """Show how many reports are counted and waiting, the local epsilon, and what a later reader of the ledger can learn."""
    with open_survey(policy, name, ledger, reports) as survey:
        collection, loss, rule = survey.collection, survey.respondent_loss, survey.collection.batches
        about = {"collection": collection.name, "version": collection.version, "closed": survey.closed}
        about |= {"reports": survey.reports, "waiting": survey.waiting, "batch": str(rule)}
        readers, weakest = survey.later_readers(), survey.weakest_reader()
    if json:
        batches = [{"at": at, **claim.to_dict()} for at, claim in readers]
        return emit({**about, "gives": loss.to_dict(), "says": str(loss), "later_readers": batches})
    waiting = f"{about['waiting']:,} or more" if about["waiting"] else f"fewer than {rule.at_least:,}"
    say(
        f'"{collection.name}", version {collection.version}, is {"closed" if about["closed"] else "open"}: '
        f"{plural(about['reports'], 'report')} counted, {waiting} waiting; {rule}.",
        f"{str(loss)[0].upper()}{str(loss)[1:]}.",
    )
    if weakest is None:
        return None
    say(str(weakest))
    rows = [[at, f"{claim.reports:,}", *claim.shown] for at, claim in readers]
    return table(["batch", "reports", "epsilon of a later reader", "delta"], rows, right={1, 2, 3})


@collect.command("estimate", short_help="Estimate the distribution of the true values.")
def estimate(
    policy: Path = POLICY,
    name: str = typer.Argument(help="The collection."),
    question: str = typer.Argument("", help="A question (default: all)."),
    method: str = typer.Option("", "--method", help="bank (default), bayes, em, em-smoothed or inversion."),
    confidence: float = typer.Option(0.95, "--confidence", help="The confidence of the band."),
    strict: bool = typer.Option(
        False, "--strict", help="A band without assumptions beyond the reports: slow and wide."
    ),
    atoms: bool = typer.Option(False, "--atoms", help="The numbers are a few distinct but unknown values."),
    plot: Path | None = typer.Option(None, "--plot", help="Write a chart of one question to this file (.svg, .png)."),
    ledger: str = LEDGER,
    reports: str = REPORTS,
    json: bool = JSON,
) -> None:
    """Estimate the distribution of the true values from all reports so far. Estimates are free."""
    with open_survey(policy, name, ledger, reports) as survey:
        questions = [question] if question else survey.estimable
        if plot is not None and len(questions) != 1:
            raise Unsupported("`--plot` needs a single question.", f"Name one of: {', '.join(questions)}.")
        estimates = []
        for about in questions:
            with counted(f"estimating {about}") as progress:
                settings: dict[str, Any] = {"method": method, "confidence": confidence, "progress": progress}
                settings |= {"band": "strict" if strict else "default", "atoms": atoms}
                estimates.append(survey.distribution(about, **settings))
        if plot is not None:
            estimates[0].plot(plot)
    if json:
        return emit(estimates[0].to_dict() if question else [distribution.to_dict() for distribution in estimates])
    for distribution in estimates:
        _show(distribution)
    return say(f"{plot}: chart written.") if plot is not None else None


@collect.command("mean", short_help="Estimate the mean of a number.")
def mean(
    policy: Path = POLICY,
    name: str = typer.Argument(help="The collection."),
    question: str = typer.Argument(help="A question about a number."),
    confidence: float = typer.Option(0.95, "--confidence", help="The confidence of the interval."),
    ledger: str = LEDGER,
    reports: str = REPORTS,
    json: bool = JSON,
) -> None:
    """Estimate the mean of the true values from all reports so far. Estimates are free."""
    with open_survey(policy, name, ledger, reports) as survey, working("estimating the mean"):
        estimated = survey.mean(question, confidence=confidence)
    return emit(estimated.to_dict()) if json else say(str(estimated))


@collect.command("shares", short_help="Estimate the share of each option of a set.")
def shares(
    policy: Path = POLICY,
    name: str = NAME,
    question: str = typer.Option("", "--question", help="The question about a set (optional if there is one)."),
    confidence: float = typer.Option(0.95, "--confidence", help="The confidence of each interval."),
    ledger: str = LEDGER,
    reports: str = REPORTS,
    json: bool = JSON,
) -> None:
    """Estimate how many people chose each option of a question about a set, from all reports so far. Estimates are free."""
    with open_survey(policy, name, ledger, reports) as survey, working("estimating the shares"):
        estimated = survey.shares(question, confidence=confidence)
    if json:
        return emit(estimated.to_dict())
    say(f"{estimated.question}: {plural(estimated.reports, 'report')}; {estimated.sure}.")
    is_poisoned = estimated.low_poisoned is not None
    rows = [_option_row(row, is_poisoned) for row in estimated.rows()]
    headers = [estimated.attribute, "share", "low", "high", *(["if 1% were false"] if is_poisoned else [])]
    return table(headers, rows, right={1, 2, 3})


def _option_row(row: dict[str, Any], is_poisoned: bool) -> list[str]:
    shown = [row["option"], _percent(row["share"]), _percent(row["low"]), _percent(row["high"])]
    return [*shown, f"{_percent(row['low_poisoned'])} to {_percent(row['high_poisoned'])}"] if is_poisoned else shown


@collect.command("verify", short_help="Compare all stored reports with the ledger's counts.")
def verify(
    policy: Path = POLICY,
    name: str = NAME,
    engine: str = typer.Option("duckdb", "--engine", help="duckdb or spark."),
    ledger: str = LEDGER,
    reports: str = REPORTS,
    json: bool = JSON,
) -> None:
    """Count all stored reports again and compare them with the ledger's counts."""
    with open_survey(policy, name, ledger, reports) as survey, working("counting the reports again"):
        problems, count, files = survey.verify(engine), survey.reports, len(survey.files())
    if problems:
        raise LedgerBroken(
            problems[0], "Restore the segments from a copy. The counts are unchanged.", problems=problems
        )
    return (
        emit({"holds": True, "reports": count, "segments": files})
        if json
        else say(f"{plural(count, 'report')} in {plural(files, 'segment')} match the ledger's counts.")
    )


def _show(distribution: Any) -> None:
    say(
        f"{distribution.question}: {plural(distribution.reports, 'report')}, method {distribution.method}; {distribution.sure}."
    )
    if distribution.too_few:
        return say(distribution.too_few)
    is_poisoned = distribution.poisoning is not None
    rows = [_row(run, is_poisoned) for run in distribution.runs()]
    headers = [distribution.attribute, "share", "low", "high", *(["if 1% were false"] if is_poisoned else [])]
    table(headers, rows, right={1, 2, 3})
    if distribution.errors is not None and len(distribution.labels) > len(rows):
        say(f"The {len(rows)} most frequent of {len(distribution.labels):,}.")
    if is_poisoned:
        _show_comparison(distribution)
    for warning in distribution.warnings:
        say(f"Warning: {warning}")
    return None


def _row(run: Any, is_poisoned: bool) -> list[str]:
    shares = [run.label, _percent(run.mass), _percent(run.low), _percent(run.high)]
    return [*shares, f"{_percent(run.low_poisoned)} to {_percent(run.high_poisoned)}"] if is_poisoned else shares


def _show_comparison(distribution: Any) -> None:
    """Show which options differ: the order of the rows is no ranking."""
    say(f"{distribution.poisoning}.")
    clear = [difference for difference in distribution.differences() if difference.is_clear]
    if not clear:
        return say("No two options differ by more than the noise (95%, all pairs together).")
    say("Clear differences (95%, all pairs together):", *(f"  {difference}" for difference in clear[:LINES_SHOWN]))
    return say(f"  and {len(clear) - LINES_SHOWN:,} more (--json)") if len(clear) > LINES_SHOWN else None


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f}%"


def _lines(numbers: list[int]) -> str:
    shown = ", ".join(f"{line:,}" for line in numbers[:LINES_SHOWN])
    return f"line{'s' if numbers[1:] else ''} {shown}{', ...' if len(numbers) > LINES_SHOWN else ''}"


def _report(client: Any, row: dict[str, Any], number: int) -> dict[str, Any]:
    try:
        report: dict[str, Any] = client.randomize(row)
        return report
    except Unsupported as error:  # its message quotes no value
        what, do = error.what, error.do
    raise Unsupported(f"Row {number + 1:,}: {what}", do)


def _batches(path: Path) -> Iterator[tuple[int, list[Any], int]]:
    """Yield batches of lines: the number of the first line, the values, and the bytes read so far."""
    first, part, done = 1, [], 0
    for line in _read_lines(path):
        done += len(line)
        part.append(_value(line))
        if len(part) == BATCH:
            yield first, part, done
            first, part = first + len(part), []
    if part:
        yield first, part, done


def _read_lines(path: Path) -> Iterator[bytes]:
    problem = ""
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise SourceMissing(f"Cannot read {path}: {problem}.", "Name a file of reports, one JSON value per line.")


def _value(line: bytes) -> Any:
    """Return the JSON value of a line; None, which is not a report, if it cannot be parsed."""
    try:
        return jsons.loads(line)
    except (ValueError, RecursionError):
        return None


def _description(path: Path) -> dict[str, Any]:
    problem, content = "", None
    try:
        content = jsons.loads(path.read_text("utf-8"))
    except OSError as error:
        problem = error.strerror or type(error).__name__
    except (ValueError, RecursionError):
        problem = "it is not JSON"
    if problem or not isinstance(content, dict):
        raise SourceUnreadable(
            f"{path} is not the description of a collection{f': {problem}' if problem else ''}.",
            "Get one from its holder: tidegate collect define POLICY NAME --out DESCRIPTION.json",
        )
    return content


def _write(path: Path, text: str) -> None:
    """Write a new file atomically; never replace an existing one."""
    if path.exists():
        raise Unsupported(f"Cannot write {path}: it already exists.", "Name another file.")
    write_whole(path, text)


BY = typer.Option([], "--by", help="A predictor; can be repeated (default: all other questions).")


def tree(
    policy: Path = POLICY,
    name: str = typer.Argument(help="The collection."),
    label: str = typer.Option(..., "--label", help="The question to predict from the others."),
    by: list[str] = BY,
    strategy: str = typer.Option("best", "--strategy", help="best, joint, by-class, local, global or randomized."),
    ledger: str = LEDGER,
    reports: str = REPORTS,
    json: bool = JSON,
) -> None:
    """Grow a decision tree from all reports so far. Estimates are free."""
    from tidegate.collect.trees.survey_tree import tree_of

    with open_survey(policy, name, ledger, reports) as survey, working("growing the tree"):
        grown = tree_of(survey, label, by=by, strategy=strategy)
    if json:
        return emit(grown.to_dict())
    leaves = grown.classifier.tree_.leaves
    say(
        f'{label} from {", ".join(grown.questions)}: {grown.reports:,} reports, {leaves} leaves, strategy "{grown.strategy}".'
    )
    return say(*grown.lines())
