"""What a client remembers on its own device: its answers, so that a repeat tells nothing new.

A memory is any mutable mapping of text to JSON values. Its keys:

    seal                            32 random bytes as hexadecimal digits; ids of reports are made with it
    FINGERPRINT/about               name and version of the collection, and the epsilon of each question
    FINGERPRINT/answer/QUESTION/CODE   the permanent answer to a true value (CODE); it never leaves the device
    FINGERPRINT/reports             how many reports were made (where each is fresh)

Where several processes may use one memory it needs `held()`, as a FileMemory has it: nobody else changes it meanwhile.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from tidegate.collect.locking import alone
from tidegate.errors import SourceUnreadable

Memory = MutableMapping[str, Any]


def held(memory: Memory) -> AbstractContextManager[None]:
    """Keep others out of a memory that can be shared; a plain mapping belongs to its one client."""
    keep: AbstractContextManager[None] = getattr(memory, "held", nullcontext)()
    return keep


class FileMemory(MutableMapping[str, Any]):
    """A memory in a JSON file, readable by its owner only; every change is on disk before it is used.

    Guarantee  Between entering and leaving `held()` no other process or thread that uses the same file reads or changes
               it, and what they wrote before is seen: two that answer the same question at once give one answer.
    """

    def __init__(self, path: str | Path) -> None:
        self._named = path
        self._path = Path(os.path.realpath(path))  # one lock, by whatever link it is reached
        self._content: dict[str, Any] = {}
        self._content = self._load()
        self._mine, self._inside = threading.RLock(), False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep others out, with what they wrote before at hand."""
        with self._mine, ExitStack() as until:
            if not self._inside:  # else: a change within a longer story
                self._enter(until)
            yield

    def _enter(self, until: ExitStack) -> None:
        try:
            until.enter_context(alone(self._path.with_name(self._path.name + ".lock")))
        except OSError as problem:
            raise self._unwritable(problem) from problem
        self._content, self._inside = self._load(), True
        until.callback(setattr, self, "_inside", False)

    def _load(self) -> dict[str, Any]:
        there = self._path.exists()
        if not there and not self._content:
            return {}
        content: Any = None
        with suppress(ValueError, OSError):
            content = json.loads(self._path.read_text("utf-8"))
        if not isinstance(content, dict):
            raise SourceUnreadable(
                f"the memory {self._named} {'cannot be read' if there else 'is gone'}; nothing was randomized.",
                "Restore it. Starting over would answer anew, and two answers tell more than one.",
            )
        return content

    def _save(self, content: dict[str, Any]) -> None:
        beside = self._path.with_name(self._path.name + ".new")
        try:
            made = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(made, "w", encoding="utf-8") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self._path)
        except OSError as problem:
            raise self._unwritable(problem) from problem
        self._content = content

    def _unwritable(self, problem: OSError) -> SourceUnreadable:
        return SourceUnreadable(
            f"the memory {self._named} cannot be written ({problem.strerror}); nothing was randomized.",
            "Name a file in a folder that exists and that you may write to: an answer that is not kept is not given.",
        )

    def __getitem__(self, key: str) -> Any:
        return self._content[key]

    def __setitem__(self, key: str, value: Any) -> None:
        with self.held():
            self._save({**self._content, key: value})

    def __delitem__(self, key: str) -> None:
        with self.held():
            content = dict(self._content)
            del content[key]
            self._save(content)

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)
