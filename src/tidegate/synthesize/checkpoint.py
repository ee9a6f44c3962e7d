"""The diary in the ledger while a synthesis runs: one JSON value per line, under the charge that paid for it.

Every step is committed before the model uses it. A run that was killed therefore continues from there, on any machine, with
the same numbers and at no new cost. The diary is deleted once the result is recorded. Earlier versions wrote it into a file,
which is read once and then deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tidegate.errors import LedgerBroken, LedgerUnavailable, Unsupported
from tidegate.ledger import Entry, Ledger
from tidegate.ledger.diaries import EXPIRED, PATIENCE, DiaryLines, delete_diary, hold_diary
from tidegate.synthesize.diary import Step


class Diaries:
    """The diaries of one charge, one for each table. `about` contains the public facts that they started with."""

    def __init__(self, lines: DiaryLines) -> None:
        self._lines = lines
        self.about: dict[str, Any] = {}
        self._steps: dict[int, list[Step]] = {}
        for number, line in enumerate(lines.lines, start=1):
            try:
                self._add(json.loads(line))
            except (ValueError, LookupError, TypeError):
                self._break(number)
        if EXPIRED in self.about:
            raise Unsupported(
                f"This synthesis was never finished, and what it had learned before {self.about[EXPIRED]} was deleted.",
                "Request other tables, for example with another epsilon. They are charged.",
            )

    def steps(self, table: int) -> list[Step]:
        """Return the written steps of a table."""
        return list(self._steps.get(table, ()))

    def begin(self, about: dict[str, Any]) -> None:
        """Write the public facts, before the first step."""
        self.about = about
        self._write({"about": about})

    def writer(self, table: int) -> Callable[[Step], None]:
        """Return a function that writes a step of a table: the step is committed when it returns."""
        return lambda step: self._write({"table": table, **step.to_dict()})

    def _write(self, content: dict[str, Any]) -> None:
        self._lines.append(_line(content))

    def _add(self, content: dict[str, Any]) -> None:
        if "about" in content or EXPIRED in content:
            self.about = content.get("about", content)
        else:
            self._steps.setdefault(content["table"], []).append(Step.from_dict(content))

    def _break(self, number: int) -> None:
        raise LedgerBroken(
            f"Line {number:,} of the diary of this synthesis cannot be read: the ledger was changed.",
            "Restore a backup. What was learned under its charge cannot be learned a second time.",
        )


@contextmanager
def open_diaries(
    ledger: Ledger, charge: Entry, *, folder: Path | None = None, patience: float = PATIENCE
) -> Iterator[Diaries]:
    """Open the diaries of a charge for this process alone. Waits while another process holds them.

    `folder` is where an earlier version wrote them.
    """
    with hold_diary(ledger.store, charge, patience=patience) as lines:
        file = folder / f"{charge.hash}.jsonl" if folder is not None else None
        if file is not None and file.exists():
            _move_file(file, lines)
        yield Diaries(lines)


def delete_diaries(ledger: Ledger, charge: Entry, *, folder: Path | None = None) -> None:
    """Delete the diaries of a charge whose result is in the ledger."""
    delete_diary(ledger.store, charge.number)
    if folder is not None:
        _remove(folder / f"{charge.hash}.jsonl")


def diary_folder(ledger: str, folder: Path, name: str) -> Path:
    """Return the folder in which earlier versions wrote diaries: beside a ledger that is a file, else in the policy's folder."""
    file = ledger.removeprefix("sqlite:///")
    return Path(f"{file}.diaries") if "://" not in file else folder / f"{name}.diaries"


def _move_file(path: Path, lines: DiaryLines) -> None:
    """Move the diary of an earlier version into the ledger. An incomplete last line was never used, so it is left out."""
    problem = ""
    try:
        whole = path.read_bytes().rpartition(b"\n")[0]
        texts = [_line(json.loads(line)) for line in whole.splitlines()]
    except OSError as error:
        problem = error.strerror or type(error).__name__
    except ValueError:
        problem = "it was changed"
    if problem:
        raise LedgerUnavailable(
            f'The diary "{path.name}" of an earlier version cannot be read: {problem}.',
            "Restore the file. What was learned under its charge cannot be learned a second time.",
        )
    if texts and not lines.lines:  # otherwise it was moved before, and could not be deleted
        lines.append(*texts)
    _remove(path)


def _remove(path: Path) -> None:
    """Delete a file, and its folder if that is empty now."""
    with suppress(OSError):
        path.unlink(missing_ok=True)
        path.parent.rmdir()


def _line(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"))
