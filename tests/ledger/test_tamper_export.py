"""Exports: a change of any byte is detected, and a noted head detects a truncated tail."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from ledger.charges import charge
from ledger.tampering import Record
from support.people import people_policy

from tidegate.ledger import Ledger, export_lines, verify_export

ENTRIES = 14  # after entry 0


@pytest.fixture(scope="module")
def holds(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], bool]:
    """A function that returns whether a file with this content verifies."""
    path = tmp_path_factory.mktemp("export") / "people.jsonl"

    def check(content: bytes) -> bool:
        path.write_bytes(content)
        return verify_export(path).holds

    return check


def test_unchanged_export_verifies(record: Record, tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    path.write_bytes(record.lines)
    verdict = verify_export(path, head=record.entries[-1].hash)
    assert (verdict.problems, verdict.entries, verdict.head) == ([], ENTRIES, record.entries[-1].hash)


# bytes --------------------------------------------------------------------------------------------------------------


@settings(max_examples=400)
@given(
    at=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255), how=st.sampled_from(["change", "insert", "delete"])
)
def test_changed_inserted_or_deleted_byte_of_an_export_is_detected(
    record: Record, holds: Callable[[bytes], bool], at: float, byte: int, how: str
) -> None:
    index = int(at * len(record.lines))
    new = b"" if how == "delete" else bytes([byte])
    changed = record.lines[:index] + new + record.lines[index + (how != "insert") :]
    assume(changed != record.lines)
    assert not holds(changed)


@pytest.mark.long
@pytest.mark.parametrize("new", [b"", b"0", b"\n", b" ", None], ids=["gone", "zero", "line", "space", "next"])
def test_change_at_any_byte_of_an_export_is_detected(
    record: Record, holds: Callable[[bytes], bool], new: bytes | None
) -> None:
    for index, byte in enumerate(record.lines):
        replacement = bytes([(byte + 1) % 256]) if new is None else new
        if replacement != bytes([byte]):
            assert not holds(record.lines[:index] + replacement + record.lines[index + 1 :]), index
        if replacement:
            assert not holds(record.lines[:index] + replacement + record.lines[index:]), index


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "a space after a comma": lambda line: line.replace(b",", b", ", 1),
    "a space at the end": lambda line: line + b" ",
    "the line end of Windows": lambda line: line + b"\r",
    "another order of keys": lambda line: json.dumps(
        dict(reversed(json.loads(line).items())), separators=(",", ":")
    ).encode(),
    "a key twice": lambda line: line.replace(b"{", b'{"number":0,', 1),
    "a letter by its number": lambda line: line.replace(b'"number"', b'"n\\u0075mber"', 1),
    "no escapes": lambda line: json.dumps(json.loads(line), separators=(",", ":"), ensure_ascii=False).encode() + b" ",
    "a byte order mark": lambda line: b"\xef\xbb\xbf" + line,
    "another encoding": lambda line: line.decode().encode("utf-16"),
    "one more key": lambda line: line.replace(b"{", b'{"a":0,', 1),
    "a list around it": lambda line: b"[" + line + b"]",
}


@pytest.mark.parametrize("form", FORMS)
def test_equivalent_line_in_another_form_is_detected(record: Record, holds: Callable[[bytes], bool], form: str) -> None:
    lines = record.lines.removesuffix(b"\n").split(b"\n")
    for index, line in enumerate(lines):
        changed = FORMS[form](line)
        assert changed == line or not holds(b"\n".join([*lines[:index], changed, *lines[index + 1 :], b""])), index


@given(first=st.integers(0, 18), second=st.integers(0, 18))
@example(first=0, second=0)
def test_swapped_duplicate_and_missing_lines_of_an_export_are_detected(
    record: Record, holds: Callable[[bytes], bool], first: int, second: int
) -> None:
    lines = record.lines.splitlines(keepends=True)
    assume(first < len(lines) and second < len(lines))
    swapped = list(lines)
    swapped[first], swapped[second] = lines[second], lines[first]
    assert holds(b"".join(swapped)) == (lines[first] == lines[second])
    assert not holds(b"".join([*lines[:first], lines[second], *lines[first:]]))
    last = (
        max(first, second) >= len(lines) - 2
    )  # the last entry and its result: only a noted head detects a truncated tail
    assert last or not holds(b"".join(line for index, line in enumerate(lines) if index not in (first, second)))


def test_changed_form_of_a_result_number_is_detected(record: Record, holds: Callable[[bytes], bool]) -> None:
    assert not holds(record.lines.replace(b'{"number":3,"payload"', b'{"number":3.0,"payload"'))


def test_deeply_nested_line_is_detected_without_a_crash(record: Record, holds: Callable[[bytes], bool]) -> None:
    assert not holds(record.lines + b"[" * 100_000 + b"]" * 100_000 + b"\n")


def test_export_during_writes_verifies(tmp_path: Path) -> None:
    ledger, policy = Ledger(str(tmp_path / "people.ledger")), people_policy()
    ledger.open_account(policy)
    lines = export_lines(ledger)
    written = [next(lines)]
    charge(ledger, policy, "meanwhile", "0.1").record("done")
    (tmp_path / "people.jsonl").write_text("".join(f"{line}\n" for line in [*written, *lines]))
    assert verify_export(tmp_path / "people.jsonl").problems == []
    ledger.close()
