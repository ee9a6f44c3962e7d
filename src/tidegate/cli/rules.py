"""collect rules: frequent itemsets and association rules of randomized baskets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from tidegate.cli.collect import LEDGER, NAME, POLICY, REPORTS, open_survey
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
    with open_survey(policy, name, ledger, reports) as survey, working("finding rules"):
        rule_set = survey.rules(
            question, min_support=min_support, min_confidence=min_confidence, largest=largest, slack=slack
        )
    return emit(rule_set.to_dict()) if json else _show(rule_set)


def _show(rule_set: Any) -> None:
    itemsets = sorted(rule_set.mined.frequent(), key=lambda itemset: (len(itemset.items), -itemset.support))
    say(
        f"{rule_set.mined.transactions:,} reports; {len(itemsets):,} itemsets with support {rule_set.mined.min_support:g} or more."
    )
    if rule_set.mined.stopped:
        say(rule_set.mined.stopped)
    if rule_set.cut:
        say(rule_set.warning)
        brackets = [
            [", ".join(rule_set.named(itemset.items)), *(f"{end:.4f}" for end in rule_set.cut.of(itemset))]
            for itemset in itemsets
        ]
        return table(["items", "low", "high"], brackets[:SHOWN], right={1, 2})
    if itemsets:
        rows = [
            [
                ", ".join(rule_set.named(itemset.items)),
                f"{itemset.support:.4f}",
                f"{itemset.error:.4f}",
                " to ".join(f"{end:.4f}" for end in rule_set.poisoned(itemset) or ()),
            ]
            for itemset in itemsets[:SHOWN]
        ]
        table(["items", "support", "standard error", "if 1% were false"], rows, right={1, 2, 3})
    if rule_set.screening and rule_set.rules:
        say(f"{rule_set.screening}.")
    if rule_set.established:
        say("Established rules:")
        rows = [
            [*_sides(rule_set, rule), f"{rule.verdict.low:.3f} to {rule.verdict.high:.3f}", f"{rule.support:.4f}"]
            for rule in rule_set.established[:SHOWN]
        ]
        table(["baskets with", "also contain", "confidence", "interval", "support"], rows, right={2, 4})
    if rule_set.candidates:
        say("Candidates (may be chance):")
        rows = [
            [*_sides(rule_set, rule), f"{rule.confidence_error:.3f}", f"{rule.support:.4f}"]
            for rule in rule_set.candidates[:SHOWN]
        ]
        table(["baskets with", "also contain", "confidence", "standard error", "support"], rows, right={2, 3, 4})
    if max(len(itemsets), len(rule_set.rules)) > SHOWN:
        say(f"(the first {SHOWN} of each; use --json for all)")
    return None


def _sides(rule_set: Any, rule: Any) -> list[str]:
    return [", ".join(rule_set.named(rule.given)), ", ".join(rule_set.named(rule.then)), f"{rule.shown:.3f}"]
