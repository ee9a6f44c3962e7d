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
    min_support: float = typer.Option(..., "--min-support", help="The smallest support: 0.01."),
    min_confidence: float = typer.Option(0.5, "--min-confidence", help="The smallest confidence of a rule."),
    largest: int | None = typer.Option(None, "--largest", help="The largest number of items in an itemset."),
    slack: float = typer.Option(
        1.0, "--slack", help="Follow candidates up to this many standard errors below the smallest support."
    ),
    ledger: str = LEDGER,
    reports: str = REPORTS,
    json: bool = JSON,
) -> None:
    """Find association rules in randomized baskets, with standard errors."""
    with opened(policy, name, ledger, reports) as survey, working("finding rules"):
        found = survey.rules(
            question, min_support=min_support, min_confidence=min_confidence, largest=largest, slack=slack
        )
    return emit(found.to_dict()) if json else _show(found)


def _show(found: Any) -> None:
    itemsets = sorted(found.mined.frequent(), key=lambda itemset: (len(itemset.items), -itemset.support))
    say(
        f"{found.mined.transactions:,} reports; {len(itemsets):,} itemsets with support {found.mined.min_support:g} or more."
    )
    if found.mined.stopped:
        say(found.mined.stopped)
    if found.cut:
        say(found.warning)
        brackets = [
            [", ".join(found.named(itemset.items)), *(f"{end:.4f}" for end in found.cut.of(itemset))]
            for itemset in itemsets
        ]
        return table(["items", "low", "high"], brackets[:SHOWN], right={1, 2})
    if itemsets:
        rows = [
            [", ".join(found.named(itemset.items)), f"{itemset.support:.4f}", f"{itemset.error:.4f}"]
            for itemset in itemsets[:SHOWN]
        ]
        table(["items", "support", "standard error"], rows, right={1, 2})
    if found.rules:
        rule_rows = [
            [
                ", ".join(found.named(rule.given)),
                ", ".join(found.named(rule.then)),
                f"{rule.shown:.3f}",
                f"{rule.confidence_error:.3f}",
                f"{rule.support:.4f}",
            ]
            for rule in found.rules[:SHOWN]
        ]
        table(["baskets with", "also contain", "confidence", "standard error", "support"], rule_rows, right={2, 3, 4})
    if max(len(itemsets), len(found.rules)) > SHOWN:
        say(f"(the first {SHOWN} of each; use --json for all)")
    return None
