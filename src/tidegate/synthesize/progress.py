"""The display of long work in a terminal or a notebook: one line, which is removed at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from tidegate.synthesize.model import Progress


def silent(stage: str, done: int, of: int) -> None:
    """Ignore progress."""


@contextmanager
def progress_display(progress: Progress | bool | None, *, work: str) -> Iterator[Progress]:
    """Yield the callback that shows progress: the user's own, or one line where somebody watches. False shows nothing."""
    if progress is not None and not isinstance(progress, bool):
        yield progress
    elif progress is False or not (sys.stderr.isatty() or _is_notebook()):
        yield silent
    else:
        line = _Line(sys.stderr, work)
        try:
            yield line
        finally:
            line.clear()


def _is_notebook() -> bool:
    """Return whether output goes to a Jupyter kernel, which is not a terminal but overwrites lines like one."""
    return type(sys.stderr).__module__.startswith("ipykernel")


class _Line:
    """One line of output that is written again and again."""

    def __init__(self, stream: TextIO, work: str) -> None:
        self._stream, self._work, self._width = stream, work, 0

    def __call__(self, stage: str, done: int, of: int) -> None:
        text = f"{self._work}: {stage or 'waiting in the queue'}" + (f" {done:,} of {of:,}" if of else "")
        self._write(text)

    def clear(self) -> None:
        if self._width:
            self._write("")
            self._write("")

    def _write(self, text: str) -> None:
        self._stream.write(f"\r{text.ljust(self._width)}")
        self._stream.flush()
        self._width = len(text)
