"""One process at a time: a lock on a file of its own, which the operating system lets go when a process ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":  # pragma: no cover - Windows locks a byte, others a whole open file
    import msvcrt

    def _take(file: int) -> None:
        while True:
            try:
                return msvcrt.locking(file, msvcrt.LK_LOCK, 1)
            except OSError:  # it waits ten seconds only
                continue

    def _let_go(file: int) -> None:
        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _take(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)

    def _let_go(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other process or thread is in here with the same path. The file stays: removing it would let two in."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _take(file)
        try:
            yield
        finally:
            _let_go(file)
    finally:
        os.close(file)
