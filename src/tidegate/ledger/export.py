"""The whole ledger as JSON lines, for an auditor who trusts neither the database nor the disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tidegate.errors import LedgerUnavailable
from tidegate.ledger.entry import Entry, canonical, entry_from
from tidegate.ledger.ledger import Ledger
from tidegate.ledger.verify import Verdict, verify

HEADER = {"tidegate-ledger": 1}


def export_lines(ledger: Ledger, *, dataset: str = "") -> Iterator[str]:
    """Yield a header, then every entry in order, each result right after the entry that recorded it.

    With `dataset`, yield only the entries of a data set and its collections, for an auditor who must not see the others.
    Such an export names the data set in its header. Its entries and totals verify; only the whole ledger shows whether
    entries are missing.
    """
    entries, payloads, *_ = ledger.snapshot()
    yield canonical({**HEADER, "dataset": dataset} if dataset else HEADER)
    for entry in entries:
        if dataset and entry.account.partition("/")[0] != dataset:
            continue
        yield entry.line()
        if entry.number in payloads:
            yield canonical({"number": entry.number, "payload": payloads[entry.number]})


def verify_export(path: Path, *, head: str = "") -> Verdict:
    """Verify an exported file. Every byte counts: a line that is not in its exact form is a change."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LedgerUnavailable(
            f'Cannot read "{path}": {error.strerror or type(error).__name__}.', "Check the path and its permissions."
        ) from None
    entries: list[Entry] = []
    payloads: dict[int, str] = {}
    lines = content.split(b"\n")
    dataset = _dataset(lines[0])
    if dataset is None or lines[-1] != b"":
        return _broken("the file is not a complete export.")
    for number, line in enumerate(lines[1:-1], start=2):
        if not _take(line, entries, payloads):
            return _broken(f"line {number:,} is not in the form in which it was written.")
    return verify(entries, payloads, head=head, dataset=dataset)


def _dataset(line: bytes) -> str | None:
    """Return the data set of an export; empty for the whole ledger, None if this is not a header."""
    try:
        header = json.loads(line)
        dataset = header.get("dataset", "")
        named = {**HEADER, "dataset": dataset} if dataset else HEADER
        return dataset if canonical(named).encode() == line and isinstance(dataset, str) else None
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None


def _take(line: bytes, entries: list[Entry], payloads: dict[int, str]) -> bool:
    try:
        value = json.loads(line)
        if canonical(value).encode() != line:
            return False
        if set(value) == {"number", "payload"}:
            number = value["number"]
            in_place = bool(entries) and type(number) is int and entries[-1].number == number and number not in payloads
            payloads[value["number"]] = value["payload"]
            return in_place
        entry = entry_from(value)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    entries.append(entry)
    return set(value) == set(Entry.__dataclass_fields__)


def _broken(problem: str) -> Verdict:
    return Verdict(problems=[problem])
