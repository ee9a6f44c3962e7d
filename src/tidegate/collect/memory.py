"""What a client remembers on its own device: its answers, so that a repeat tells nothing new.

A memory is any mutable mapping of text to JSON values. Its keys:

    seal                            32 random bytes as hexadecimal digits; ids of reports are made with it
    FINGERPRINT/about               name and version of the collection, and the epsilon of each question
    FINGERPRINT/answer/QUESTION/CODE   the permanent answer to a true value (CODE); it never leaves the device
    FINGERPRINT/reports             how many reports were made (where each is fresh)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidegate.errors import SourceUnreadable

Memory = MutableMapping[str, Any]


class FileMemory(MutableMapping[str, Any]):
    """A memory in a JSON file, readable by its owner only; every change is on disk before it is used."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._content: dict[str, Any] = self._load()

    def _load(self) -> dict[str, Any]:
        if not self._path.exists():
            return {}
        content: Any = None
        with suppress(ValueError, OSError):
            content = json.loads(self._path.read_text("utf-8"))
        if not isinstance(content, dict):
            raise SourceUnreadable(
                f"the memory {self._path} cannot be read; nothing was randomized.",
                "Restore it. Starting over would answer anew, and two answers tell more than one.",
            )
        return content

    def _save(self) -> None:
        beside = self._path.with_name(self._path.name + ".new")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(self._content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self._path)

    def __getitem__(self, key: str) -> Any:
        return self._content[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._content[key] = value
        self._save()

    def __delitem__(self, key: str) -> None:
        del self._content[key]
        self._save()

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)
