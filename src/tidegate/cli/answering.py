"""answer: ask, or see first what asking would cost."""

from __future__ import annotations

import getpass
from pathlib import Path

import typer

from tidegate.cli.show import JSON, emit, say, table, working


def answer(
    policy: Path = typer.Argument(help="A policy file."),
    by: list[str] = typer.Option([], "--by", help="Count for every value of this column (may be given several times)."),
    epsilon: str = typer.Option(..., "--epsilon", help="The loss to spend."),
    preview: bool = typer.Option(
        False, "--preview", help="Say what it would cost and how wrong it may be; spend nothing."
    ),
    ledger: str = typer.Option("", "--ledger", help="Another ledger than the policy's: a path or postgresql://..."),
    key: str = typer.Option("", "--key", help="An idempotency key for this request."),
    json: bool = JSON,
) -> None:
    """Count the rows, in all or by columns, with noise."""
    import tidegate as tg

    with tg.open(policy, ledger=ledger) as session:
        question = tg.count(by=tuple(by))
        if preview:
            before = session.preview(question, epsilon=epsilon)
            return emit(before.to_dict()) if json else say(str(before))
        with working(f"asking {question.says()}"):
            given = session.answer(question, epsilon=epsilon, key=key, who=getpass.getuser())
        if json:
            return emit(given.to_dict())
        if given.values.ndim:
            rows = [[*(str(row[name]) for name in given.labels), f"{row['count']:,}"] for row in given.rows()]
            table([*given.labels, "count"], rows, right={len(given.labels)})
        return say(str(given))
