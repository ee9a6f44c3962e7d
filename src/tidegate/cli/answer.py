"""answer: run queries, or preview their cost."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from tidegate.charts.chart import FILE_TYPES, Chart
from tidegate.cli.output import JSON, emit, say, table, working
from tidegate.errors import TidegateError, Unsupported
from tidegate.frames import leave_out_pandas


def answer(
    policy: Path = typer.Argument(help="A policy file."),
    questions: list[str] = typer.Argument(
        help='SQL queries, e.g. "SELECT sex, AVG(age) FROM people GROUP BY sex"; several are charged together.'
    ),
    rho: str | None = typer.Option(
        None, "--rho", help="The largest probability of identification by this answer alone."
    ),
    epsilon: str | None = typer.Option(None, "--epsilon", help="The privacy loss to spend."),
    error: str | None = typer.Option(None, "--error", help="The largest error of the answer."),
    share: str | None = typer.Option(None, "--share", help="The part of the total budget to spend, e.g. 0.1."),
    z: str | None = typer.Option(None, "--z", help="The loss to spend under the average guarantee."),
    confidence: float = typer.Option(0.95, "--confidence", help="The confidence of --error."),
    calibration: str = typer.Option("equation-15", "--calibration", help='"equation-15", or "tight" with --rho.'),
    window: int = typer.Option(
        1, "--window", help="With tight: the number of neighboring values that together stay below rho."
    ),
    plan: str = typer.Option(
        "one-by-one", "--plan", help='"one-by-one", or "auto": answer several counts from one measurement.'
    ),
    preview: bool = typer.Option(
        False, "--preview", help="Show the cost and the expected error without spending anything."
    ),
    fit: bool = typer.Option(
        False, "--fit", help="Show the accuracy that the whole remaining budget allows, without spending anything."
    ),
    free: bool = typer.Option(False, "--free", help="Only derive results from earlier answers, at no cost."),
    plot: Path | None = typer.Option(
        None, "--plot", help="Also write a chart of the answer to this file (.svg, .png)."
    ),
    ledger: str = typer.Option("", "--ledger", help="A ledger other than the policy's: a path or postgresql://..."),
    key: str = typer.Option("", "--key", help="An idempotency key for this request."),
    cells: int = typer.Option(10_000, "--cells", help="The largest number of cells of a GROUP BY."),
    new_account: str = typer.Option(
        "", "--new-account", help="The reason to open a second account over a source that has one; it is recorded."
    ),
    anyway: bool = typer.Option(
        False, "--anyway", help="Ask even if the noise leaves nothing to know: the error is at least half of the range."
    ),
    json: bool = JSON,
) -> None:
    """Answer SQL with noise: counts, sums, means, variances, quantiles; the rest of a query runs on the noisy numbers."""
    import tidegate as tg

    with tg.open(policy, ledger=ledger, new_account=new_account) as session:
        sql: Any = session.sql(questions, cells=cells)
        queries = session.queries(sql)
        settings: dict[str, Any] = {"rho": rho, "epsilon": epsilon, "error": error, "confidence": confidence}
        settings |= {"share": share, "z": z, "calibration": calibration, "window": window, "plan": plan}
        if fit:
            return _show_preview(session.fit(sql, confidence=confidence), json)
        if preview:
            return _show_preview(session.preview(sql, **settings), json)
        if free:
            return _free(session, queries, json)
        if plot is not None and (len(queries) != 1 or not sql.plain or plot.suffix.lower() not in FILE_TYPES):
            raise Unsupported(
                "`--plot` needs a single statistic by its groups, and a .svg or .png file.",
                "Leave out AS, HAVING, ORDER BY and LIMIT: SELECT sex, AVG(age) FROM people GROUP BY sex.",
            )
        leave_out_pandas()
        with working(f"answering {'; '.join(query.says() for query in queries)}"):
            answers = session.answer(sql, **settings, key=key, user=getpass.getuser(), anyway=anyway)
        if plot is not None and isinstance(answers, tg.Answer):
            _save(answers.plot(), plot)
        return emit(answers.to_dict()) if json else _show(answers)


def _show_preview(preview: Any, json: bool) -> None:
    return emit(preview.to_dict()) if json else say(str(preview))


def _free(session: Any, queries: Sequence[Any], json: bool) -> None:
    results = [(query, session.derive(query)) for query in queries]
    if json:
        return emit(
            [derived.to_dict() if derived else {"question": query.says(), "values": None} for query, derived in results]
        )
    for query, derived in results:
        say(str(derived) if derived else f"{query.says()}: cannot be derived from earlier answers.")
    return None


def _show(answers: Any) -> None:
    for sql_table in getattr(answers, "tables", ()):
        _show_table(sql_table)
    if getattr(answers, "tables", ()):
        say(*answers.notes, answers.charge.says())
        return
    for answer in answers if hasattr(answers, "answers") else [answers]:
        if not answer.values.ndim:
            say(f"{answer.query.says()}: {answer.line()}")
            continue
        rows = answer.rows()
        headers = [name for name in rows[0] if name != "noisy" or name in answer.labels]
        labels = headers[: len(answer.labels)]
        table(
            headers,
            [[_cell(row[name], is_label=name in labels) for name in headers] for row in rows],
            right=set(range(len(answer.labels), len(headers))),
        )
        compared = answer.comparison
        if compared:
            say(f"{compared.says()}.")
        if answer.caution:
            say(f"({answer.caution})")
        if "low" in headers:
            say("low and high: the 95% interval of the true number, accounting for the noise only.")
    say(answers.charge.says())


def _show_table(result: Any) -> None:
    """Print the table of an SQL statement, with the ends of the intervals of noisy numbers."""
    rows = result.rows()
    headers, texts = result.texts()
    numbers = {i for i, name in enumerate(headers) if any(isinstance(row[name], int | float) for row in rows)}
    table(headers, texts, right=numbers)
    if result.intervals:
        say("NAME_low and NAME_high: the 95% interval of the true number, accounting for the noise only.")


def _cell(value: Any, *, is_label: bool) -> str:
    """Return a value as text; a label has no separators, because it can be a year."""
    from tidegate.answer.comparison import label_text, number

    return number(value) if isinstance(value, int | float) and not is_label else label_text(value)


def _save(chart: Chart, path: Path) -> None:
    problem = ""
    try:
        chart.save(path)
    except TidegateError as error:
        problem = error.what
    if problem:
        raise TidegateError(
            f"The answer was recorded, but {problem}", "Run the query again with another --plot. It costs nothing."
        )
