"""The memory of a client on its device: answers, so that a repeat reveals nothing new, and the used lifetimes.

A memory is any mutable mapping of text to JSON values. Its keys, the same in every language:

    seal                       32 random bytes as hexadecimal digits, the key for ids of reports
    answer/KEY/CODE            {"report": the permanent answer to a true value, "state": {HOLDER: "sending" or "sent"}};
                               a draft for a holder who is not named there. KEY is `question_key`, CODE is hexadecimal;
                               it is the true value, and never leaves the device (`memory_code` if the operator has a seed)
    seed/KEY                   the seed of this device, if the operator has one
    chosen/KEY                 the `question_key`s that the device drew, where a person is asked some of the questions
    holder/HOLDER              {"spent": epsilon, "lifetime": epsilon} as exact texts ("7/3"); null is unlimited
    FINGERPRINT/once           the id of the only report that is accepted; "" after it was forgotten
    FINGERPRINT/reports        the number of reports drawn (if each is fresh)
    FINGERPRINT/draft/CODES    a fresh report that was not yet returned or confirmed

HOLDER is the holder that the collection names, or else the collection's name. Earlier versions stored FINGERPRINT/about and
FINGERPRINT/answer/QUESTION/CODE; a client converts them when it reads them.

A memory that several processes use needs a method `held()` that locks it, as FileMemory has. The lock is a separate
file; the operating system releases it when a process ends.
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
from tidegate.policy.calendar import Moment
from tidegate.policy.collection import Question
from tidegate.policy.fingerprint import fingerprint_of, texts

Memory = MutableMapping[str, Any]


def question_key(holder: str, question: Question) -> str:
    """Return the key of answers to a question: it depends on what is asked and how, not on the wording.

    Guarantee:
        The collection's name, its version and the order and names of its questions are not part of it.
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
    """Return the values in one form, with numbers as exact texts."""
    if isinstance(universe, Moment) or not isinstance(universe, Numeric):
        return texts(universe.to_dict())  # type: ignore[no-any-return]
    bounds = {"from": str(universe.low), "to": str(universe.high), "step": str(universe.width)}
    bins = list(map(str, universe.cuts))
    content = universe.to_dict()
    settings = {name: value for name, value in content.items() if name in ("missing", "outside")}
    return {"kind": universe.kind, **bounds, "bins": bins, **settings}


@dataclass(frozen=True)
class Account:
    """The part of a lifetime that one person's answers to a holder have used."""

    holder: str
    spent: Loss
    lifetime: Loss

    def __str__(self) -> str:
        return f"Your answers to {self.holder} have used {_amount(self.spent)} of {_amount(self.lifetime)}."

    def refuse(self, more: Loss, questions: int) -> None:
        """Refuse a loss that exceeds the lifetime."""
        if self.lifetime is None:
            return
        used = total((self.spent, more))
        if used is None or used > self.lifetime:
            subject = "This question" if questions == 1 else "These questions"
            raise Unsupported(
                f"{self} {subject} would need {_amount(more)} more. Nothing was sent.",
                "Answers that you sent before can be sent again at no cost.",
            )

    @classmethod
    def read(cls, memory: Memory, holder: str, lifetime: Loss) -> Account:
        """Return the account in a memory. A later lifetime can lower the first one, never raise it."""
        record = memory.get(f"holder/{holder}", {"spent": "0"})
        first = _loss(record["lifetime"]) if "lifetime" in record else None
        known = [limit for limit in (first, lifetime) if limit is not None]
        return cls(holder, _loss(record["spent"]), min(known, default=None))

    def record(self) -> dict[str, dict[str, str | None]]:
        """Return its entry in a memory."""
        return {f"holder/{self.holder}": {"spent": _text(self.spent), "lifetime": _text(self.lifetime)}}


def _loss(text: str | None) -> Loss:
    return None if text is None else Fraction(text)


def _text(loss: Loss) -> str | None:
    return None if loss is None else str(loss)


def _amount(loss: Loss) -> str:
    amount = "unlimited" if loss is None else say(loss, 4)
    return f"{amount}.0" if amount.replace(",", "").isdigit() else amount


def locked(memory: Memory) -> AbstractContextManager[None]:
    """Lock a memory that can be shared; a plain mapping belongs to one client and needs no lock."""
    lock: AbstractContextManager[None] = getattr(memory, "held", nullcontext)()
    return lock


class FileMemory(MutableMapping[str, Any]):
    """A memory in a JSON file, readable by its owner only; every change is on disk before it is used.

    Guarantee:
        Between entering and leaving `held()`, no other process or thread that uses the same file reads or changes it,
        and earlier changes are visible: two processes that answer the same question at once give one answer.
    """

    def __init__(self, path: str | Path) -> None:
        self._named = path
        self._path = Path(os.path.realpath(path))  # one lock, whichever link leads to the file
        self._content: dict[str, Any] = {}
        self._content = self._load()
        self._mine, self._inside = threading.RLock(), False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the memory and load what others wrote before."""
        with self._mine, ExitStack() as until:
            if not self._inside:  # else: a change inside a longer operation
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
        exists = self._path.exists()
        if not exists and not self._content:
            return {}
        content: Any = None
        with suppress(ValueError, OSError):
            content = json.loads(self._path.read_text("utf-8"))
        if not isinstance(content, dict):
            raise SourceUnreadable(
                f"The memory {self._named} {'cannot be read' if exists else 'no longer exists'}. Nothing was randomized.",
                "Restore it. A new memory would draw new answers, and two answers reveal more than one.",
            )
        return content

    def _save(self, content: dict[str, Any]) -> None:
        beside = self._path.with_name(self._path.name + ".new")
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self._path)
        except OSError as problem:
            raise self._unwritable(problem) from problem
        self._content = content

    def _unwritable(self, problem: OSError) -> SourceUnreadable:
        return SourceUnreadable(
            f"The memory {self._named} cannot be written ({problem.strerror}). Nothing was randomized.",
            "Name a file in an existing folder that you can write to. An answer that cannot be stored is not sent.",
        )

    def __getitem__(self, key: str) -> Any:
        return self._content[key]

    def __setitem__(self, key: str, value: Any) -> None:
        with self.held():
            self._save({**self._content, key: value})

    def update(self, *changes: Any, **more: Any) -> None:
        """Make all changes in one write: a crash leaves all of them or none."""
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

    def _acquire(file: int) -> None:
        while True:
            try:
                return msvcrt.locking(file, msvcrt.LK_LOCK, 1)
            except OSError:  # LK_LOCK gives up after ten seconds
                continue

    def _release(file: int) -> None:
        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _acquire(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)

    def _release(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the lock of a path; wait for it first. The file is never removed: two processes could then hold the lock."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _acquire(file)
        try:
            yield
        finally:
            _release(file)
    finally:
        os.close(file)
