"""The opening of a selection for hiding promises, and its verification.

The owner opens a selection once: commit to a key, read the table, compute mix and quotas, choose records. The key has its
entry before the table is read, and the selection has its entry before the first request.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tidegate.accounting.explain import OpenSelection
from tidegate.errors import Infeasible, Unsupported, did_you_mean
from tidegate.frames import Row, Rows
from tidegate.ledger import Ledger
from tidegate.ledger.entry import CHARGED, Entry, canonical
from tidegate.ledger.release_book import ReleaseBook
from tidegate.ledger.selection_book import Selected, SelectionBook
from tidegate.ledger.selections import RULE
from tidegate.policy import Policy
from tidegate.policy.hiding import Hiding, JointHiding
from tidegate.release.layout import Layout
from tidegate.release.selection import (
    Population,
    Quotas,
    SelectionKey,
    choose,
    draw_decoys,
    mix_of_table,
    quotas_of,
    short_cells,
)
from tidegate.release.snapshot import read_snapshot
from tidegate.tables import Table

ShowShort = Callable[[list[tuple[str, str]]], None]  # receives the short cells: (group, value). For the owner alone
MOST_CELLS = 100_000


@dataclass(frozen=True)
class Selection(Rows):
    """What is public about an open selection: the quota of every value in every hidden group."""

    epoch: int
    opened: str  # the day of its entry
    entry: int
    quotas: Quotas
    at_most: Fraction
    groups: tuple[str, ...]
    values: tuple[str, ...]

    @classmethod
    def of_entry(cls, entry: Entry, layout: Layout) -> Selection:
        """Return the selection that an entry opened."""
        body = entry.content()
        labels = tuple(layout.joint_groups), tuple(layout.joint_values)
        return cls(body["epoch"], entry.at[:10], entry.number, quotas_in(body), Fraction(body["at_most"]), *labels)

    @property
    def summary(self) -> OpenSelection:
        """What an explanation of the promise says about the selection."""
        return OpenSelection(self.quotas.share, len(self.quotas.hidden), len(self.quotas.sizes))

    def __str__(self) -> str:
        quotas = self.quotas
        return (
            f"Selection {self.epoch} of {self.opened}: {sum(quotas.chosen):,} of {sum(quotas.sizes):,} records can be released. "
            "The others never will."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the selection as JSON values. All of them are public."""
        return {
            "epoch": self.epoch,
            "opened": self.opened,
            "entry": self.entry,
            "share": float(self.quotas.share),
            "mix": [str(share) for share in self.quotas.mix],
            "at_most": str(self.at_most),
            "groups": list(self.groups),
            "values": list(self.values),
            "sizes": list(self.quotas.sizes),
            "hidden": list(self.quotas.hidden),
            "quotas": [None if row is None else list(row) for row in self.quotas.by_group],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy | None = None) -> Selection:
        """Return the selection that `to_dict` wrote."""
        labels = tuple(data["groups"]), tuple(data["values"])
        quotas, at_most = quotas_in(data), Fraction(data["at_most"])
        return cls(data["epoch"], data["opened"], data["entry"], quotas, at_most, *labels)

    def rows(self) -> list[Row]:
        """Return one dictionary per group: its records, how many of them can be released, and whether it is hidden."""
        return [
            {"group": group, "records": size, "chosen": chosen, "hidden": number in self.quotas.hidden}
            for number, (group, size, chosen) in enumerate(
                zip(self.groups, self.quotas.sizes, self.quotas.chosen, strict=True)
            )
        ]


def read_selections(ledger: Ledger, policy: Policy) -> list[Selection]:
    """Return the open selections of a policy's data set, with the quotas that are in force."""
    latest = {entry.content()["epoch"]: entry for entry in SelectionBook(ledger, policy).openings()}
    layout = Layout(policy)
    return [Selection.of_entry(entry, layout) for entry in latest.values()]


# Opening


def open_selection(
    policy: Policy,
    open_table: Callable[[], Table],
    ledger: Ledger,
    *,
    sensitive: Sequence[Sequence[str] | str] | None = None,
    later: bool = False,
    source: str = "",
    show_short: ShowShort | None = None,
) -> Selection:
    """Choose the records that can be released. The owner calls this once, and again for records that were added later.

    Args:
        sensitive: The groups to hide, if the promise has `among` = k: labels of the columns in `about`, joined in order.
        later: Open the next selection, over the records that were not in the table at an earlier one.
        show_short: Receives the cells that have too few records for their quota, if the selection cannot be opened.

    Raises:
        Infeasible: The table cannot fill the quotas, or nothing could be released. Nothing was chosen.
    """
    joint = joint_hiding(policy)
    layout = Layout(policy)
    if layout.groups * layout.values > MOST_CELLS:
        raise Infeasible(
            f"The hiding promises have {layout.groups:,} groups and {layout.values:,} values, more than {MOST_CELLS:,} cells together.",
            "Use wider bins or fewer columns.",
        )
    ledger.open_account(policy)
    book = SelectionBook(ledger, policy)
    openings = [Selection.of_entry(entry, layout) for entry in book.openings()]
    if openings and not later:
        raise Infeasible(
            f"The selection of this data set has been open since {openings[0].opened}, and it cannot be drawn again.",
            "Request records, or open the next selection for records that were added since (--later).",
        )
    if not openings:
        _refuse_earlier_answers(policy, joint, ledger)
    if later and not openings:
        raise Infeasible("There is no open selection yet.", "Open the first one without --later.")
    groups = None if later and sensitive is None else _private_list(joint, layout, sensitive)
    secret = book.commit_key(groups, source)
    key, epoch = SelectionKey(secret.key, book.account), len({opening.epoch for opening in openings}) + 1
    known = {row.key for row in book.rows()} if later else set()
    snapshot = read_snapshot(open_table(), layout, ReleaseBook(ledger, policy).secret(), known)
    if later and not snapshot.cell_of:
        raise Infeasible(
            f"There are no records that were added since the selection of {openings[-1].opened}.",
            "Nothing needs to be done.",
        )
    population = Population(snapshot.cells, layout.values, layout.groups)
    if openings:
        hidden = openings[0].quotas.hidden
    else:
        hidden = hidden_groups(key, joint.promise, layout, secret.groups, population.sizes)
    mix = joint.promise.mix
    shares = mix_of_table(key, epoch, population, hidden, joint.promise) if isinstance(mix, str) else mix
    quotas = quotas_of(shares, population.sizes, hidden, joint.promise.smallest)
    _refuse_short(quotas, population, joint.promise, layout, show_short)
    chosen = choose(key, epoch, population, quotas)
    body = describe_quotas(joint.promise, quotas, epoch) | {
        "columns": describe_columns(policy, joint),
        "snapshot": key.digest(epoch, "snapshot", snapshot.lines()),
        "chosen": key.digest(epoch, "chosen", sorted(chosen)),
    }
    return Selection.of_entry(book.open(body, snapshot.rows(epoch, chosen, secret.key)), layout)


def _refuse_earlier_answers(policy: Policy, joint: JointHiding, ledger: Ledger) -> None:
    """Refuse if an earlier answer or synthetic table combined the columns: what it shows cannot be hidden any more."""
    if joint.promise.answers == "allowed":
        return
    for entry in ledger.entries(policy.dataset.name):
        for columns in _columns_asked(entry.content()["question"]) if entry.kind == CHARGED else ():
            if columns & set(joint.reveals) and columns & set(joint.about):
                raise Infeasible(
                    f"Entry {entry.number:,} of the ledger answered a query that combines columns of `reveals` and `about`. What it "
                    "shows cannot be hidden any more.",
                    'Open a new data set under another name, or set answers = "allowed": the promise then covers released '
                    "records alone.",
                )


def _columns_asked(question: Any) -> Iterator[set[str]]:
    """Yield the words of each query of a charge, among them its columns; the columns of a synthetic table."""
    if isinstance(question, list):
        for part in question:
            yield from _columns_asked(part)
    elif isinstance(question, dict) and "ask" in question:
        named = {part: question.get(part) for part in ("column", "by", "where", "on")}
        yield set(re.findall(r"\w+", canonical(named)))
    elif isinstance(question, dict) and question.get("verb") == "synthesize":
        yield set(question["columns"] or question["of"])
    elif isinstance(question, dict):
        for part in question.values():
            yield from _columns_asked(part)


def joint_hiding(policy: Policy) -> JointHiding:
    if policy.hiding is None:
        raise Unsupported(
            f'"{policy.dataset.name}" has no hiding promise, so there is no selection to open.',
            "Add [promise.hiding.NAME] to the policy.",
        )
    return policy.hiding


def describe_quotas(promise: Hiding, quotas: Quotas, epoch: int) -> dict[str, Any]:
    return {
        "rule": RULE,
        "epoch": epoch,
        "mix": [str(share) for share in quotas.mix],
        "mix_from": "table" if promise.mix == "table" else "policy",
        "at_most": str(promise.at_most),
        "margin": str(promise.margin),
        "among": promise.among,
        "smallest": promise.smallest,
        "sizes": list(quotas.sizes),
        "hidden": list(quotas.hidden),
        "quotas": [None if row is None else list(row) for row in quotas.by_group],
    }


def describe_columns(policy: Policy, joint: JointHiding) -> dict[str, Any]:
    """Return the description of the columns that give cells their meaning, in their order."""
    described = policy.public_dict()["attributes"]
    return {
        "reveals": [[column, described[column]] for column in joint.reveals],
        "about": [[column, described[column]] for column in joint.about],
    }


def _private_list(
    joint: JointHiding, layout: Layout, sensitive: Sequence[Sequence[str] | str] | None
) -> list[list[str]] | None:
    """Return the sensitive groups as lists of labels, or None if every group is hidden."""
    if joint.promise.among == "all":
        if sensitive:
            raise Unsupported(
                'Sensitive groups were named, but the policy hides every group (among = "all").',
                "Leave the list out, or set `among` to a number.",
            )
        return None
    if not sensitive:
        raise Unsupported(
            f"The policy hides sensitive groups among {joint.promise.among} times as many, so they must be named.",
            "Pass them privately: tidegate release open POLICY --sensitive-file FILE",
        )
    groups = [[group] if isinstance(group, str) else [str(label) for label in group] for group in sensitive]
    for group in groups:
        if ", ".join(group) not in layout.joint_groups:
            raise Unsupported(
                f'There is no group "{", ".join(group)}" of {", ".join(joint.about)}.',
                did_you_mean(", ".join(group), layout.joint_groups),
            )
    if joint.promise.among * len(groups) > layout.groups:
        raise Infeasible(
            f"Hiding {len(groups):,} groups among {joint.promise.among} times as many requires {joint.promise.among * len(groups):,} "
            f"groups, and the policy has {layout.groups:,}.",
            'Set among = "all", or a smaller number.',
        )
    if len({tuple(group) for group in groups}) != len(groups):
        raise Unsupported("A sensitive group was named twice.", "Name each group once.")
    return sorted(groups)


def read_sensitive_groups(text: str) -> list[list[str]]:
    """Return the groups of a private file: one per line, the labels of several columns separated by commas."""
    return [[label.strip() for label in row] for row in csv.reader(io.StringIO(text)) if any(map(str.strip, row))]


def hidden_groups(
    key: SelectionKey, promise: Hiding, layout: Layout, groups: list[list[str]] | None, sizes: Sequence[int]
) -> tuple[int, ...]:
    """Return the groups that release equal shares: all of them, or the sensitive ones with their decoys."""
    if promise.among == "all" or groups is None:
        return tuple(range(layout.groups))
    sensitive = sorted(layout.joint_groups.index(", ".join(group)) for group in groups)
    eligible = [group for group, size in enumerate(sizes) if size >= promise.smallest]
    small = [group for group in sensitive if group not in eligible]
    if small:
        raise Infeasible(
            f'The sensitive group "{layout.joint_groups[small[0]]}" has fewer than {promise.smallest:,} records, so it releases '
            "nothing and needs no others to hide among.",
            "Remove it from the list.",
        )
    if promise.among * len(sensitive) > len(eligible):
        raise Infeasible(
            f"Hiding {len(sensitive):,} groups among {promise.among} times as many requires {promise.among * len(sensitive):,} groups "
            f"with at least {promise.smallest:,} records; there are {len(eligible):,}.",
            'Set among = "all", or a smaller number.',
        )
    return draw_decoys(key, sensitive, promise.among, eligible)


def _refuse_short(
    quotas: Quotas, population: Population, promise: Hiding, layout: Layout, show_short: ShowShort | None
) -> None:
    short = short_cells(quotas, population, promise.at_most)
    if short:
        if show_short:
            show_short([(layout.joint_groups[group], layout.joint_values[value]) for group, value in short])
        raise Infeasible(
            "The selection cannot be opened: in at least one cell, the quota is more than `at_most` of the records. "
            "Nothing was chosen.",
            "Raise `margin` by 0.5 and try again. The larger margin is public, and shows that the first attempt failed."
            if promise.mix == "table"
            else "Lower the shares of `mix`, or use wider bins. Do not fit the shares to the table: the result would be a "
            "statistic of the most unusual group.",
        )
    if not quotas.share:
        raise Infeasible(
            "No record could be released: the smallest share over all groups is 0 for every value, or every group has fewer "
            f"than {promise.smallest:,} records.",
            "Join groups, use wider bins, name the sensitive groups (`among`), or answer with noise instead.",
        )


def population_of(rows: Iterable[Selected], layout: Layout) -> Population:
    """Return the population of stored records."""
    cells: dict[int, list[str]] = {}
    for row in rows:
        cells.setdefault(row.cell, []).append(row.key)
    return Population(cells, layout.values, layout.groups)


def quotas_in(body: Mapping[str, Any]) -> Quotas:
    """Return the quotas that the body of an opening states."""
    rows = tuple(None if row is None else tuple(row) for row in body["quotas"])
    return Quotas(tuple(map(Fraction, body["mix"])), tuple(body["sizes"]), tuple(body["hidden"]), rows)
