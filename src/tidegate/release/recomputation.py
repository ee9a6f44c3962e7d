"""Verification of selections with the key and the table: everything that an opening states is computed again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tidegate.ledger import Ledger
from tidegate.ledger.release_book import ReleaseBook
from tidegate.ledger.selection_book import SelectionBook
from tidegate.policy import Policy
from tidegate.policy.hiding import Hiding
from tidegate.release.hiding import hidden_groups, joint_hiding, population_of, quotas_in
from tidegate.release.layout import Layout
from tidegate.release.selection import Population, SelectionKey, choose, mix_of_table, quotas_of, short_cells
from tidegate.release.snapshot import read_snapshot
from tidegate.tables import Table


def recompute_selections(policy: Policy, open_table: Callable[[], Table], ledger: Ledger) -> list[str]:
    """Compute every selection again from the key and the table; return the differences. For the owner or an auditor.

    Samples, mix, hidden groups, quotas and every choice are compared with the entries. A record that changed since the
    selection is a difference too, because the snapshot cannot be seen again.
    """
    joint, layout, book = joint_hiding(policy), Layout(policy), SelectionBook(ledger, policy)
    secret, entries = book.secret(), book.openings()
    if secret is None or not entries:
        return ["No selection is open."]
    key, problems = SelectionKey(secret.key, book.account), []
    rows, released = book.rows(), book.released()
    now = read_snapshot(open_table(), layout, ReleaseBook(ledger, policy).secret(), set()).cell_of
    for epoch in sorted({entry.content()["epoch"] for entry in entries}):
        first, *cuts = [entry.content() for entry in entries if entry.content()["epoch"] == epoch]
        own = [row for row in rows if row.epoch == epoch]
        changed = sum(now.get(row.key) != row.cell for row in own)
        if changed:
            problems.append(
                f"Selection {epoch}: {changed:,} of {len(own):,} records are no longer in the table as they were."
            )
        population = population_of(own, layout)
        problems += [
            f"Selection {epoch}: {problem}."
            for problem in _differences(key, epoch, population, joint.promise, layout, secret.groups, first, cuts)
        ]
        quotas = quotas_in([first, *cuts][-1])
        stored = {row.key for row in own if row.digest}
        chosen = choose(key, epoch, population, quotas)
        if stored - released != chosen - released or not stored >= chosen:
            problems.append(f"Selection {epoch}: other records are stored as chosen.")
    return problems


def _differences(
    key: SelectionKey,
    epoch: int,
    population: Population,
    promise: Hiding,
    layout: Layout,
    groups: list[list[str]] | None,
    first: Mapping[str, Any],
    cuts: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Return what an opening states differently from what follows from the key and the snapshot."""
    stated = quotas_in(first)
    opened = _with_settings(promise, first)
    hidden = hidden_groups(key, opened, layout, groups, population.sizes) if epoch == 1 else stated.hidden
    is_from_table = first["mix_from"] == "table"
    mix = mix_of_table(key, epoch, population, hidden, opened) if is_from_table else stated.mix
    lines = sorted(f"{name} {cell}" for cell, names in population.cells.items() for name in names)
    checks = [
        ("its sizes are others", stated.sizes == population.sizes),
        ("its hidden groups are others", stated.hidden == hidden),
        ("its mix is another", stated.mix == mix),
        ("its quotas are others", stated == quotas_of(mix, population.sizes, hidden, opened.smallest)),
        ("a quota is above `at_most`", not short_cells(stated, population, opened.at_most)),
        ("its snapshot is another", first["snapshot"] == key.digest(epoch, "snapshot", lines)),
    ]
    for body in (first, *cuts):
        chosen = sorted(choose(key, epoch, population, quotas_in(body)))
        checks.append(("its chosen records are others", body["chosen"] == key.digest(epoch, "chosen", chosen)))
    return [problem for problem, holds in checks if not holds]


def _with_settings(promise: Hiding, body: Mapping[str, Any]) -> Hiding:
    """Return the promise with the settings of an opening."""
    return replace(
        promise,
        at_most=Fraction(body["at_most"]),
        margin=Fraction(body["margin"]),
        among=body["among"],
        smallest=body["smallest"],
    )
