"""An exported record in the hands of an auditor: every byte of it counts, and a noted head finds a lost tail."""

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
    """Whether a file with this content verifies."""
    path = tmp_path_factory.mktemp("export") / "people.jsonl"

    def ask(content: bytes) -> bool:
        path.write_bytes(content)
        return verify_export(path).holds

    return ask


def test_an_export_holds_as_it_was_written(record: Record, tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    path.write_bytes(record.lines)
    verdict = verify_export(path, head=record.entries[-1].hash)
    assert (verdict.problems, verdict.entries, verdict.head) == ([], ENTRIES, record.entries[-1].hash)


# bytes --------------------------------------------------------------------------------------------------------------


@settings(max_examples=400)
@given(
    at=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255), how=st.sampled_from(["change", "insert", "delete"])
)
def test_a_byte_of_an_export_cannot_be_changed_put_in_or_taken_out(
    record: Record, holds: Callable[[bytes], bool], at: float, byte: int, how: str
) -> None:
    place = int(at * len(record.lines))
    new = b"" if how == "delete" else bytes([byte])
    changed = record.lines[:place] + new + record.lines[place + (how != "insert") :]
    assume(changed != record.lines)
    assert not holds(changed)


@pytest.mark.long
@pytest.mark.parametrize("new", [b"", b"0", b"\n", b" ", None], ids=["gone", "zero", "line", "space", "next"])
def test_no_byte_of_an_export_at_any_place_can_be_changed(
    record: Record, holds: Callable[[bytes], bool], new: bytes | None
) -> None:
    for place, byte in enumerate(record.lines):
        put = bytes([(byte + 1) % 256]) if new is None else new
        if put != bytes([byte]):
            assert not holds(record.lines[:place] + put + record.lines[place + 1 :]), place
        if put:
            assert not holds(record.lines[:place] + put + record.lines[place:]), place


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
def test_a_line_that_means_the_same_in_another_form_is_a_change(
    record: Record, holds: Callable[[bytes], bool], form: str
) -> None:
    lines = record.lines.removesuffix(b"\n").split(b"\n")
    for place, line in enumerate(lines):
        changed = FORMS[form](line)
        assert changed == line or not holds(b"\n".join([*lines[:place], changed, *lines[place + 1 :], b""])), place


@given(one=st.integers(0, 18), other=st.integers(0, 18))
@example(one=0, other=0)
def test_lines_of_an_export_cannot_be_swapped_doubled_or_taken_out(
    record: Record, holds: Callable[[bytes], bool], one: int, other: int
) -> None:
    lines = record.lines.splitlines(keepends=True)
    assume(one < len(lines) and other < len(lines))
    swapped = list(lines)
    swapped[one], swapped[other] = lines[other], lines[one]
    assert holds(b"".join(swapped)) == (lines[one] == lines[other])
    assert not holds(b"".join([*lines[:one], lines[other], *lines[one:]]))
    last = max(one, other) >= len(lines) - 2  # the last entry and its result: a cut tail, which only a head can find
    assert last or not holds(b"".join(line for place, line in enumerate(lines) if place not in (one, other)))


def test_the_number_of_a_result_keeps_its_exact_form(record: Record, holds: Callable[[bytes], bool]) -> None:
    assert not holds(record.lines.replace(b'{"number":3,"payload"', b'{"number":3.0,"payload"'))


def test_a_line_that_nests_without_end_is_a_change_and_no_crash(record: Record, holds: Callable[[bytes], bool]) -> None:
    assert not holds(record.lines + b"[" * 100_000 + b"]" * 100_000 + b"\n")


def test_an_export_holds_that_was_made_while_others_write(tmp_path: Path) -> None:
    ledger, policy = Ledger(str(tmp_path / "people.ledger")), people_policy()
    ledger.open_account(policy)
    lines = export_lines(ledger)
    written = [next(lines)]
    charge(ledger, policy, "meanwhile", "0.1").record("done")
    (tmp_path / "people.jsonl").write_text("".join(f"{line}\n" for line in [*written, *lines]))
    assert verify_export(tmp_path / "people.jsonl").problems == []
    ledger.close()
