"""A cache on disk for slow results that depend on public inputs alone, under a key of their inputs."""

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
    """Return the key of a result: the hash of all its inputs."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def cache_folder() -> Path:
    """Return $TIDEGATE_CACHE, or tidegate/ in $XDG_CACHE_HOME or in ~/.cache."""
    if folder := os.environ.get("TIDEGATE_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidegate"


def load_or_compute(key: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the result of `compute` (a JSON object), from the cache if it is there.

    A file that is damaged or belongs to another key is computed again. A folder that cannot be written is not an error: the
    result is just not cached.
    """
    result = _read(key)
    if result is None:
        result = compute()
        _write(key, result)
    return result


def _file(key: str) -> Path:
    return cache_folder() / f"{key}.json"


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read(key: str) -> dict[str, Any] | None:
    try:
        stored = json.loads(_file(key).read_text("utf-8"))
        whole = stored["key"] == key and stored["digest"] == _digest(stored["content"])
    except (OSError, RuntimeError, ValueError, TypeError, KeyError):  # RuntimeError: there is no home folder
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
            os.replace(name, _file(key))  # atomic: two processes can write the same file
        except OSError:
            Path(name).unlink(missing_ok=True)
