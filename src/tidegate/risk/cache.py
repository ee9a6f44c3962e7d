"""What took long to compute and depends on public inputs alone, kept in a folder under a key of its content."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def content_key(**inputs: Any) -> str:
    """A name for a result: the hash of everything that it depends on."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def cache_folder() -> Path:
    """$TIDEGATE_CACHE, or else tidegate/ in $XDG_CACHE_HOME or in ~/.cache."""
    if told := os.environ.get("TIDEGATE_CACHE"):
        return Path(told)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidegate"


def kept(key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `make` gives (a JSON object), from the folder if it was made before.

    A file that is damaged or belongs to another key is made anew. A folder that cannot be written is no error: the
    result is only not kept.
    """
    found = _read(key)
    if found is None:
        found = make()
        _write(key, found)
    return found


def _file(key: str) -> Path:
    return cache_folder() / f"{key}.json"


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read(key: str) -> dict[str, Any] | None:
    try:
        stored = json.loads(_file(key).read_text("utf-8"))
        whole = stored["key"] == key and stored["digest"] == _digest(stored["content"])
    except (OSError, RuntimeError, ValueError, TypeError, KeyError):  # RuntimeError: nobody's home folder
        return None
    return stored["content"] if whole and isinstance(stored["content"], dict) else None


def _write(key: str, content: dict[str, Any]) -> None:
    text = json.dumps({"key": key, "digest": _digest(content), "content": content})
    with contextlib.suppress(OSError, RuntimeError):
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(name, _file(key))  # all at once: two processes may write the same
        except OSError:
            Path(name).unlink(missing_ok=True)
