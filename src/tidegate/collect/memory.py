"""What a client remembers on its own device: its answers, so that a repeat tells nothing new, and what was used of a lifetime.

A memory is any mutable mapping of text to JSON values. Its keys, the same in every language:

    seal                       32 random bytes as hexadecimal digits; ids of reports are made with it
    answer/KEY/CODE            {"report": the permanent answer to a true value, "state": {HOLDER: "sending" or "sent"}};
                               a draft for a holder who is not named there. KEY is `question_key`, CODE is hexadecimal;
                               it is the true value, and never leaves the device
    holder/HOLDER              {"spent": epsilon, "lifetime": epsilon} as exact texts ("7/3"); null is unlimited
    FINGERPRINT/once           the id of the one report that is taken of each person; "" once it was forgotten
    FINGERPRINT/reports        how many reports were drawn (where each is fresh)
    FINGERPRINT/draft/CODES    a fresh report that was not handed out or confirmed yet

HOLDER is who the collection names, or else the collection's own name. Earlier versions kept FINGERPRINT/about and
FINGERPRINT/answer/QUESTION/CODE; a client converts them when it meets them.

Where several processes may use one memory it needs `held()`, as a FileMemory has it: nobody else changes it meanwhile.

One process at a time: a lock on a file of its own, which the operating system lets go when a process ends.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from tidegate.accounting.respondent import Loss, total
from tidegate.errors import SourceUnreadable, Unsupported
from tidegate.exact import say
from tidegate.policy.attributes import Attribute, Numeric
from tidegate.policy.collection import Question
from tidegate.policy.fingerprint import fingerprint_of

Memory = MutableMapping[str, Any]


def question_key(holder: str, question: Question) -> str:
    """The name under which answers to a question are remembered: what is asked and how, whoever words it anew.

    Guarantee  The collection's name, its version and the order and names of its questions are no part of it.
    """
    parameters: dict[str, Any] = {name: str(value) for name, value in question.parameters.items()}
    if question.plans:
        parameters["plans"] = [
            {"size": plan.size, "keep": list(map(str, plan.keep)), "insert": str(plan.insert)}
            for plan in question.plans
        ]
    about = {"holder": holder, "subject": question.attribute, "universe": _universe(question.universe)}
    return fingerprint_of({**about, "operator": question.operator, "parameters": parameters})


def _universe(universe: Attribute) -> dict[str, Any]:
    """The values in one form: numbers as exact texts, however they were written."""
    if not isinstance(universe, Numeric):
        return universe.to_dict()
    bounds = {"from": str(universe.low), "to": str(universe.high), "step": str(universe.width)}
    bins = list(map(str, universe.cuts))
    return {"kind": universe.kind, **bounds, "bins": bins, "missing": universe.to_dict()["missing"]}


@dataclass(frozen=True)
class Account:
    """What one person's answers to a holder have used of their lifetime."""

    holder: str
    spent: Loss
    lifetime: Loss

    def __str__(self) -> str:
        return f"Your answers to {self.holder} have used {_amount(self.spent)} of {_amount(self.lifetime)}."

    def refuse(self, more: Loss, questions: int) -> None:
        """Refuse what does not fit into the lifetime."""
        if self.lifetime is None:
            return
        used = total((self.spent, more))
        if used is None or used > self.lifetime:
            asked = "This question" if questions == 1 else "These questions"
            raise Unsupported(
                f"{self} {asked} would need {_amount(more)} more. Nothing was sent.",
                "Answers that you sent before can be sent again at no cost.",
            )

    @classmethod
    def read(cls, memory: Memory, holder: str, lifetime: Loss) -> Account:
        """The account in a memory. The first lifetime seen is kept; a later one may be lower, never higher."""
        record = memory.get(f"holder/{holder}", {"spent": "0"})
        first = _loss(record["lifetime"]) if "lifetime" in record else None
        known = [limit for limit in (first, lifetime) if limit is not None]
        return cls(holder, _loss(record["spent"]), min(known, default=None))

    def record(self) -> dict[str, dict[str, str | None]]:
        """Its entry in a memory."""
        return {f"holder/{self.holder}": {"spent": _text(self.spent), "lifetime": _text(self.lifetime)}}


def _loss(text: str | None) -> Loss:
    return None if text is None else Fraction(text)


def _text(loss: Loss) -> str | None:
    return None if loss is None else str(loss)


def _amount(loss: Loss) -> str:
    said = "unlimited" if loss is None else say(loss, 4)
    return f"{said}.0" if said.replace(",", "").isdigit() else said


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

    def update(self, *changes: Any, **more: Any) -> None:
        """Make all changes in one write: after a crash all of them are there, or none."""
        with self.held():
            self._save({**self._content, **dict(*changes, **more)})

    def __delitem__(self, key: str) -> None:
        with self.held():
            content = dict(self._content)
            del content[key]
            self._save(content)

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)


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
