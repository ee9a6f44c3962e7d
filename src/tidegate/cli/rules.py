"""collect rules: frequent itemsets and association rules of randomized baskets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from tidegate.cli.collect import LEDGER, NAME, POLICY, REPORTS, opened
from tidegate.cli.output import JSON, emit, say, table, working

SHOWN = 40


def rules(
    policy: Path = POLICY,
    name: str = NAME,
    question: str = typer.Option("", "--question", help="The question about baskets (optional if there is one)."),
    min_support: float = typer.Option(..., "--min-support", help="The least support: 0.01."),
    min_confidence: float = typer.Option(0.5, "--min-confidence", help="The least confidence of a rule."),
    largest: int | None = typer.Option(None, "--largest", help="The most items of an itemset."),
    slack: float = typer.Option(
        1.0, "--slack", help="Follow candidates so many standard errors below the least support."
    ),
    ledger: str = LEDGER,
    reports: str = REPORTS,
    json: bool = JSON,
) -> None:
    """Which items go together, from randomized baskets, each with its standard error."""
    with opened(policy, name, ledger, reports) as survey, working("counting bits"):
        found = survey.rules(
            question, min_support=min_support, min_confidence=min_confidence, largest=largest, slack=slack
        )
    return emit(found.to_dict()) if json else _show(found)


def _show(found: Any) -> None:
    itemsets = sorted(found.mined.frequent(), key=lambda one: (len(one.items), -one.support))
    say(
        f"{found.mined.transactions:,} reports; {len(itemsets):,} itemsets with support {found.mined.min_support:g} or more."
    )
    if found.mined.stopped:
        say(found.mined.stopped)
    if found.cut:
        say(found.warning)
        brackets = [
            [", ".join(found.named(one.items)), *(f"{end:.4f}" for end in found.cut.of(one))] for one in itemsets
        ]
        return table(["items", "low", "high"], brackets[:SHOWN], right={1, 2})
    if itemsets:
        rows = [
            [", ".join(found.named(one.items)), f"{one.support:.4f}", f"{one.error:.4f}"] for one in itemsets[:SHOWN]
        ]
        table(["items", "support", "standard error"], rows, right={1, 2})
    if found.rules:
        told = [
            [
                ", ".join(found.named(rule.given)),
                ", ".join(found.named(rule.then)),
                f"{rule.shown:.3f}",
                f"{rule.confidence_error:.3f}",
                f"{rule.support:.4f}",
            ]
            for rule in found.rules[:SHOWN]
        ]
        table(["who has", "also has", "confidence", "standard error", "support"], told, right={2, 3, 4})
    if max(len(itemsets), len(found.rules)) > SHOWN:
        say(f"(the first {SHOWN} of each; --json has all)")
    return None
