"""The diary on disk while a synthesis runs: one JSON value per line, in a file named after the charge.

Every step is on disk before the model uses it. A run that was killed therefore continues from there, with the same numbers
and at no new cost. One process at a time holds the file. It is deleted once the result is in the ledger.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tidegate.errors import LedgerBroken, LedgerUnavailable
from tidegate.synthesize.diary import Step

try:
    import fcntl
except ImportError:  # Windows: one process at a time is then up to the user
    fcntl = None  # type: ignore[assignment]

PATIENCE = 3_600.0  # seconds to wait for another process
PAUSE = 0.05  # seconds between two attempts


class Diaries:
    """The diaries of one charge, one for each table. `about` contains the public facts that they started with."""

    def __init__(self, file: int, path: Path) -> None:
        self._file, self._path = file, path
        self.about: dict[str, Any] = {}
        self._steps: dict[int, list[Step]] = {}
        self._read()

    def steps(self, table: int) -> list[Step]:
        """Return the written steps of a table."""
        return list(self._steps.get(table, ()))

    def begin(self, about: dict[str, Any]) -> None:
        """Write the public facts, before the first step."""
        self.about = about
        self._write({"about": about})

    def writer(self, table: int) -> Callable[[Step], None]:
        """Return a function that writes a step of a table: the step is on disk when it returns."""
        return lambda step: self._write({"table": table, **step.to_dict()})

    def _write(self, content: dict[str, Any]) -> None:
        line = json.dumps(content, separators=(",", ":")).encode() + b"\n"
        with suppress(OSError):
            size = os.write(self._file, line)
            os.fsync(self._file)
            if size == len(line):
                return
        raise LedgerUnavailable(
            f'The diary "{self._path.name}" cannot be written completely.',
            "Free disk space, then request again at no cost.",
        )

    def _read(self) -> None:
        """Read the written steps. An incomplete last line was never used, so it is cut off."""
        content = os.pread(self._file, os.fstat(self._file).st_size, 0)  # a faster process may have deleted the path
        whole = content.rpartition(b"\n")[0] + b"\n" if b"\n" in content else b""
        os.ftruncate(self._file, len(whole))
        for number, line in enumerate(whole.splitlines()):
            try:
                self._add(json.loads(line))
            except (ValueError, LookupError, TypeError):
                self._broken(number + 1)

    def _add(self, content: dict[str, Any]) -> None:
        if "about" in content:
            self.about = content["about"]
        else:
            self._steps.setdefault(content["table"], []).append(Step.from_dict(content))

    def _broken(self, number: int) -> None:
        raise LedgerBroken(
            f'Line {number:,} of the diary "{self._path.name}" cannot be read: the file was changed.',
            "Restore the file. What was learned under its charge cannot be learned a second time.",
        )


@contextmanager
def open_diaries(folder: Path, charge: str, *, patience: float = PATIENCE) -> Iterator[Diaries]:
    """Open the diaries of a charge for this process alone. Waits while another process holds them."""
    path = folder / f"{charge}.jsonl"
    file = _open(path)
    try:
        _wait(file, path, patience)
        yield Diaries(file, path)
    finally:
        os.close(file)  # releases the lock


def prepare_folder(folder: Path) -> None:
    """Refuse a folder in which no diary can be written, before anything is charged."""
    problem = ""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        problem = "" if os.access(folder, os.W_OK | os.X_OK) else "permission denied"
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise LedgerUnavailable(
            f'No diary can be written in "{folder}": {problem}. Nothing was charged.',
            "Make it a folder that this user can write to.",
        )


def delete_diaries(folder: Path, charge: str) -> None:
    """Delete the diaries of a charge whose result is in the ledger."""
    with suppress(OSError):
        (folder / f"{charge}.jsonl").unlink(missing_ok=True)


def diary_folder(ledger: str, folder: Path, name: str) -> Path:
    """Return the folder of the diaries: beside a ledger that is a file, else in the policy's folder."""
    file = ledger.removeprefix("sqlite:///")
    return Path(f"{file}.diaries") if "://" not in file else folder / f"{name}.diaries"


def _open(path: Path) -> int:
    problem = ""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    raise LedgerUnavailable(
        f'The diary "{path}" cannot be written: {problem}.',
        "Make the file writable. The charge remains, and the same request is free.",
    )


def _wait(file: int, path: Path, patience: float) -> None:
    deadline = time.monotonic() + patience
    while not _locked(file):
        if time.monotonic() > deadline:
            raise LedgerUnavailable(
                f'Another process is working on this synthesis ("{path.name}").',
                "Wait until it has finished; the same request then returns its result at no cost.",
            )
        time.sleep(PAUSE)


def _locked(file: int) -> bool:
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
