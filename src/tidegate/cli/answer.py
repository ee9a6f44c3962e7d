"""answer: ask, or see first what asking would cost."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Any

import typer

from tidegate.charts.chart import FILE_TYPES, Chart
from tidegate.cli.output import JSON, emit, say, table, working
from tidegate.errors import TidegateError, Unsupported


def answer(
    policy: Path = typer.Argument(help="A policy file."),
    questions: list[str] = typer.Argument(
        help='SQL, e.g. "SELECT sex, AVG(age) FROM people GROUP BY sex"; several are charged together.'
    ),
    rho: str | None = typer.Option(None, "--rho", help="How likely somebody may be identified by this answer alone."),
    epsilon: str | None = typer.Option(None, "--epsilon", help="The loss to spend."),
    error: str | None = typer.Option(None, "--error", help="How far the answer may be off."),
    confidence: float = typer.Option(0.95, "--confidence", help="How often --error must hold."),
    calibration: str = typer.Option("equation-15", "--calibration", help='"equation-15", or "tight" with --rho.'),
    window: int = typer.Option(1, "--window", help="With tight: how many neighbouring values together stay below rho."),
    preview: bool = typer.Option(
        False, "--preview", help="Say what it would cost and how wrong it may be; spend nothing."
    ),
    fit: bool = typer.Option(
        False, "--fit", help="Say how accurate these questions can be with all that is left; spend nothing."
    ),
    free: bool = typer.Option(False, "--free", help="Only what follows from answers already given, at no cost."),
    plot: Path | None = typer.Option(None, "--plot", help="Also draw the answer into this file (.svg, .png)."),
    ledger: str = typer.Option("", "--ledger", help="Another ledger than the policy's: a path or postgresql://..."),
    key: str = typer.Option("", "--key", help="An idempotency key for this request."),
    json: bool = JSON,
) -> None:
    """Ask for statistics with noise: counts, sums, means, variances, quantiles, histograms."""
    import tidegate as tg

    with tg.open(policy, ledger=ledger) as session:
        asked = [query for text in questions for query in session.queries(text)]
        wanted: dict[str, Any] = {"rho": rho, "epsilon": epsilon, "error": error, "confidence": confidence}
        wanted |= {"calibration": calibration, "window": window}
        if fit:
            return _told(session.fit(asked, confidence=confidence), json)
        if preview:
            return _told(session.preview(asked, **wanted), json)
        if free:
            return _free(session, asked, json)
        if plot is not None and (len(asked) != 1 or plot.suffix.lower() not in FILE_TYPES):
            raise Unsupported("--plot draws one question into a .svg or .png file.")
        with working(f"asking {'; '.join(query.says() for query in asked)}"):
            question = asked[0] if len(asked) == 1 else asked
            given = session.answer(question, **wanted, key=key, user=getpass.getuser())
        if plot is not None and isinstance(given, tg.Answer):
            _save(given.plot(), plot)
        return emit(given.to_dict()) if json else _show(given)


def _told(before: Any, json: bool) -> None:
    return emit(before.to_dict()) if json else say(str(before))


def _free(session: Any, asked: list[Any], json: bool) -> None:
    found = [(query, session.derive(query)) for query in asked]
    if json:
        return emit([one.to_dict() if one else {"question": query.says(), "values": None} for query, one in found])
    for query, one in found:
        say(str(one) if one else f"{query.says()}: nothing that was answered before says it.")
    return None


def _show(given: Any) -> None:
    for one in given if hasattr(given, "answers") else [given]:
        if not one.values.ndim:
            say(f"{one.query.says()}: {one.line()}")
            continue
        rows = one.rows()
        headers = [name for name in rows[0] if name != "noisy" or name in one.labels]
        table(
            headers,
            [[_cell(row[name]) for name in headers] for row in rows],
            right=set(range(len(one.labels), len(headers))),
        )
        compared = one.comparison
        if compared:
            say(f"{compared.says()}.")
        if one.caution:
            say(f"({one.caution})")
        if "low" in headers:
            say("low and high: where the true number lies, 95 times in 100, as far as the noise goes.")
    say(given.charge.says())


def _cell(value: Any) -> str:
    if value is None:
        return "(missing)"
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _save(chart: Chart, path: Path) -> None:
    problem = ""
    try:
        chart.save(path)
    except TidegateError as error:
        problem = error.what
    if problem:
        raise TidegateError(
            f"The answer was recorded, but {problem}", "Ask again with another --plot: it costs nothing."
        )
