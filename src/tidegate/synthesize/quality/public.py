"""The report for everybody who gets the tables: what the model measured, and its loss. It needs no true row.

Everything here is a function of the diary, which the ledger has charged, and of the policy. It can be published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from tidegate.accounting import Amount, epsilon_at_delta
from tidegate.accounting.average import DELTA
from tidegate.exact import say
from tidegate.frames import arrow_table
from tidegate.html import render
from tidegate.synthesize.model import Summary
from tidegate.synthesize.quality.page import Section, Table
from tidegate.synthesize.quality.result import Report
from tidegate.synthesize.quality.text import wrap

FORMAT = "tidegate-public-quality/1"
AUDIENCE = "Public: everything here follows from the noisy counts that were charged to the budget. No other number depends on the rows."
READS = {
    "columns": "Shares inside a cell are not known to the model. The noise of a cell's count has the standard deviation that is "
    "shown, in rows.",
    "pairs": "These pairs were counted on groups of neighboring cells, with noise of the standard deviation that is shown, in "
    "rows. Other pairs show only what follows from them.",
    "maps": "A column that follows from another one. It is drawn by a table of noisy counts, and in the share of rows that is "
    "shown independently of it.",
    "independent": "In the tables these columns are independent of all others, whatever they are in the original.",
}
ROW: dict[str, type] = {
    "column": str,
    "cells": int,
    "deviation": float,
    "pairs": int,
    "follows": str,
    "independent": bool,
}


@dataclass(frozen=True)
class PublicReport(Report):
    """What is public about synthetic tables: pairs, cells and maps that were measured with noise, and the loss."""

    stem = "public-quality"  # beside a report for the data holder, it must not be taken for that
    summary: Summary
    promise: str
    name: str = ""
    delta: Fraction = DELTA

    @property
    def epsilon(self) -> float:
        """The epsilon that is shown: the pure one, or the one that follows at `delta` from the pairwise zCDP loss."""
        spent = self.summary.spent
        return float(spent.pure) if spent.pure is not None else epsilon_at_delta(Amount.up(spent.zcdp), self.delta)

    @property
    def loss(self) -> str:
        """The loss in one sentence."""
        spent = self.summary.spent
        if spent.pure is not None:
            return f"The model used epsilon = {_up(spent.pure)} of pure differential privacy (Z = {_up(spent.z)})."
        return (
            f"The model used Z = {_up(spent.z)}; as differential privacy this is at most epsilon = {_up(self.epsilon)} "
            f"with delta = {float(self.delta):.2g}."
        )

    @property
    def findings(self) -> tuple[str, ...]:
        """The report in a few sentences."""
        summary = self.summary
        counts = (
            f"{_number(len(summary.pairs), 'pair')} of columns {_was(summary.pairs)} counted together, and "
            f"{_number(len(summary.maps), 'column')} {_was(summary.maps)} recognized as following from another column."
        )
        findings = [f"{self.promise[:1].upper()}{self.promise[1:].rstrip('.')}.", self.loss, counts]
        if summary.independent:
            findings.append(f"Independent of all other columns: {', '.join(summary.independent)}.")
        if summary.pairs:
            findings.append(
                f"The largest difference between a counted pair and the model is {summary.misfit:.2g} standard deviations."
            )
        return tuple(finding for finding in findings if finding)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        summary = self.summary.to_dict()
        shown = {"epsilon": self.epsilon, "delta": 0.0 if self.summary.spent.pure is not None else float(self.delta)}
        return {
            "format": FORMAT,
            "public": True,
            "banner": summary.pop("banner"),
            "data_set": self.name,
            "promise": self.promise,
            "loss": {**summary.pop("spent"), "z": str(self.summary.spent.z), "display": shown},
            "findings": list(self.findings),
            **summary,
        }

    def to_arrow(self) -> pa.Table:
        """Return one row per column: its cells, the deviation of their noise, its pairs, and what it follows from."""
        return arrow_table(self._columns(), ROW)

    def _columns(self) -> list[dict[str, Any]]:
        summary = self.summary
        maps = {found_map.column: found_map.by for found_map in summary.maps}
        return [
            {
                "column": name,
                "cells": len(starts),
                "deviation": summary.deviations.get(name),
                "pairs": sum(name in (pair.left, pair.right) for pair in summary.pairs),
                "follows": maps.get(name),
                "independent": name in summary.independent,
            }
            for name, starts in summary.cells.items()
        ]

    def to_html(self) -> str:
        """Return one page that needs nothing else: no script and no link."""
        title = f"What the synthetic tables show: {self.name}" if self.name else "What the synthetic tables show"
        view: dict[str, Any] = {
            "title": title,
            "caution": "",
            "why": "",
            "banner": self.summary.banner,
            "size": AUDIENCE,
        }
        view |= {"findings": self.findings, "sections": self._sections(), "notes": (), "notes_heading": ""}
        return render("report/quality.html", view)

    def _repr_html_(self) -> str:
        view = {"caution": "", "banner": self.summary.banner, "findings": self.findings}
        return render("report/quality_fragment.html", {**view, "table_of": _pair_table(self.summary)})

    def _sections(self) -> list[Section]:
        summary = self.summary
        rows = [
            (row["column"], f"{row['cells']:,}", _deviation(row["deviation"]), _role(row)) for row in self._columns()
        ]
        columns = Section(
            heading="Columns",
            texts=[READS["columns"]],
            after_table=(("column", "cells", "standard deviation of a count", "associations"), rows),
        )
        pairs = Section(heading="Pairs of columns", texts=[READS["pairs"]], after_table=_pair_table(summary))
        maps = Section(
            heading="Columns that follow from another",
            texts=[READS["maps"]],
            after_table=(
                ("column", "follows from", "drawn independently"),
                [(found_map.column, found_map.by, f"{100 * found_map.error:.2g}%") for found_map in summary.maps],
            ),
        )
        left = Section(heading="Independent columns", texts=[", ".join(summary.independent), READS["independent"]])
        choices = ((columns, True), (pairs, summary.pairs), (maps, summary.maps), (left, summary.independent))
        return [section for section, is_there in choices if is_there]

    def says(self) -> str:
        """Return the report for a terminal."""
        summary = self.summary
        banner = [summary.banner] if summary.banner else []
        lines = [*banner, f"What the synthetic tables show{f': {self.name}' if self.name else ''}", *self.findings, ""]
        lines += ["Columns"]
        lines += [
            f"  {row['column']:<24} {row['cells']:>5,} cells   sd {_deviation(row['deviation']):<8} {_role(row)}"
            for row in self._columns()
        ]
        lines += [*wrap(READS["columns"]), ""]
        if table := _pair_table(summary):
            lines += ["Pairs of columns"]
            lines += [f"  {names:<40} {groups:>9} groups   sd {sd:<8} {phase}" for names, groups, sd, phase in table[1]]
            lines += [*wrap(READS["pairs"]), ""]
        if summary.maps:
            lines += ["Columns that follow from another"]
            lines += [f"  {found_map.column} by {found_map.by}" for found_map in summary.maps]
            lines += wrap(READS["maps"])
        return "\n".join(lines).rstrip()


def public_report(summary: Summary, promise: str, *, name: str = "", delta: Fraction = DELTA) -> PublicReport:
    """Return the report for everybody who gets the tables. It reads the summary of the diary and no true row.

    Args:
        promise: The sentence of the policy's promise, shown as it is.
        delta: The delta of the epsilon that is shown for a loss without a pure bound.
    """
    return PublicReport(summary, promise, name, delta)


def _pair_table(summary: Summary) -> Table | None:
    rows = [
        (
            f"{pair.left} and {pair.right}",
            f"{pair.groups[0]} × {pair.groups[1]}",
            _deviation(pair.deviation),
            "strongest association" if pair.phase == "tree" else "correction",
        )
        for pair in summary.pairs
    ]
    return (("columns", "groups", "standard deviation of a count", "chosen as"), rows) if rows else None


def _role(row: dict[str, Any]) -> str:
    if row["follows"] is not None:
        return f"follows from {row['follows']}"
    return "independent" if row["independent"] else _number(row["pairs"], "pair")


def _deviation(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _up(value: Fraction | float) -> str:
    """Return an amount in four digits, rounded up: a loss is never shown below its value."""
    if not value:
        return "0"
    unit = Fraction(10) ** (math.floor(math.log10(value)) - 3)
    return say(math.ceil(Fraction(value) / unit) * unit, 4)


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _was(items: Sequence[Any]) -> str:
    return "was" if len(items) == 1 else "were"
