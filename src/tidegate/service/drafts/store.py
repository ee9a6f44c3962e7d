"""Drafts in the service's folder: one private JSON file each, so that every process sees the same state."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from tidegate.collect.memory import alone
from tidegate.errors import NotThere, TooLarge, Unsupported
from tidegate.ledger.file import replace_file
from tidegate.ledger.tokens import stamp
from tidegate.policy.draft import ColumnType

Step = Literal["source", "people", "columns", "promise", "simulation", "publication"]
STEPS: tuple[Step, ...] = get_args(Step)
Fields = Mapping[str, list[str]]  # the fields of a form, by name: a field can have several values
ID = re.compile(r"[0-9a-f]{20}")
MOST = 200  # drafts of a service


@dataclass(frozen=True)
class Draft:
    """An unfinished data set. `fields` are the texts that were typed, by step; `published` is the name of the data set."""

    id: str
    owner: str
    made: str
    changed: str = ""
    source: Mapping[str, Any] = field(default_factory=dict)  # kind, label, and path or address without a password
    types: Mapping[str, ColumnType] = field(default_factory=dict)
    fields: Mapping[str, Fields] = field(default_factory=dict)
    published: str = ""

    def value(self, step: Step, name: str, default: str = "") -> str:
        """Return the first value of a field."""
        return next(iter(self.values(step, name)), default)

    def values(self, step: Step, name: str) -> list[str]:
        """Return all values of a field."""
        return list(self.fields.get(step, {}).get(name, []))

    def with_fields(self, step: Step, fields: Fields) -> Draft:
        """Return the draft with the fields of one step replaced."""
        return replace(self, fields={**self.fields, step: {name: list(values) for name, values in fields.items()}})


class Drafts:
    """The drafts in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, *, owner: str) -> Draft:
        """Create an empty draft. Ids sort by creation time."""
        if len(self._paths()) >= MOST:
            raise TooLarge(f"There are already {MOST:,} drafts.", "Delete a draft that nobody needs.")
        now = stamp(datetime.now(UTC))
        draft = Draft(f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(4)}", owner, now, now)
        self._write(draft)
        return draft

    def find(self, name: str) -> Draft:
        """Return a draft by its id, or raise NotThere."""
        path = self._path(name)
        try:
            content = json.loads(path.read_text("utf-8")) if path else None
        except (FileNotFoundError, ValueError):
            content = None
        if not isinstance(content, dict):
            raise NotThere("There is no draft with this id.", "See the list of drafts.")
        return Draft(**content)

    def all(self) -> list[Draft]:
        """Return all drafts, the latest first."""
        return [self.find(path.stem) for path in sorted(self._paths(), reverse=True)]

    def update(self, name: str, change: Callable[[Draft], Draft]) -> Draft:
        """Change a draft and return it. Processes take turns, so no change is lost."""
        with alone(self._folder / ".lock"):
            draft = replace(change(self.find(name)), changed=stamp(datetime.now(UTC)))
            self._write(draft)
            return draft

    def remove(self, name: str) -> Draft:
        """Delete a draft and return it."""
        with alone(self._folder / ".lock"):
            draft = self.find(name)
            (self._folder / f"{draft.id}.json").unlink(missing_ok=True)
            return draft

    def _write(self, draft: Draft) -> None:
        path, problem = self._folder / f"{draft.id}.json", ""
        try:
            replace_file(path, json.dumps(asdict(draft)).encode())
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise Unsupported(f"The draft cannot be stored: {problem}.", "Ask the operator of the service.")

    def _path(self, name: str) -> Path | None:
        return self._folder / f"{name}.json" if ID.fullmatch(name) else None

    def _paths(self) -> list[Path]:
        return [path for path in self._folder.glob("*.json") if ID.fullmatch(path.stem)]
