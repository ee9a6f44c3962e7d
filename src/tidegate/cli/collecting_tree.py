"""collect tree: which answers go with which class, learnt from randomized reports."""

from __future__ import annotations

from pathlib import Path

import typer

from tidegate.cli.collecting import LEDGER, POLICY, REPORTS, opened
from tidegate.cli.show import JSON, emit, say, working

BY = typer.Option([], "--by", help="A question to tell it from; may be given several times (default: all others).")


def tree(
    policy: Path = POLICY,
    name: str = typer.Argument(help="The collection."),
    label: str = typer.Option(..., "--label", help="The question whose answer is to be told from the others."),
    by: list[str] = BY,
    strategy: str = typer.Option("best", "--strategy", help="best, joint, by-class, local, global or randomized."),
    ledger: str = LEDGER,
    reports: str = REPORTS,
    json: bool = JSON,
) -> None:
    """A decision tree, from all reports so far. Free, at any time."""
    from tidegate.collect.trees.asking import tree_of

    with opened(policy, name, ledger, reports) as survey, working("growing the tree"):
        found = tree_of(survey, label, by=by, strategy=strategy)
    if json:
        return emit(found.to_dict())
    leaves = found.classifier.tree_.leaves
    say(
        f'{label} from {", ".join(found.questions)}: {found.reports:,} reports, {leaves} leaves, by "{found.strategy}".'
    )
    return say(*found.lines())
