"""The data sets that are served: each opened once, and shared by all requests.

A data set whose policy file changed is opened anew when it is next asked for, in every process that serves it. A file that
cannot be read, or that became another data set's, is not taken: what was served stays served, and the log says so.

A policy's file while it is served: whether it changed, and a collection added to it.

A file is only ever added to: what stands in it stays as it was written, comments and all. Several processes may serve one
file; they take turns, and whoever reads it sees it whole, as before or as after.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tidegate.collect.memory import alone
from tidegate.errors import NotThere, PolicyUnreadable, StalePolicy, TidegateError, Unsupported
from tidegate.ledger import Ledger
from tidegate.policy import Policy
from tidegate.policy.collection import Collection
from tidegate.policy.toml import parse_policy, write_collection
from tidegate.service.logs import tell
from tidegate.session import Session, open_session

Mark = tuple[int, int, int]  # when it was written, which file it is, how long it is


@dataclass(frozen=True)
class PolicyFile:
    """The file that a data set was opened from."""

    path: Path

    def mark(self) -> Mark | None:
        """Another mark, another content; None where no file is there."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def add(self, collection: Collection, *, to: Policy, agreed: Callable[[Policy], None]) -> Policy:
        """Write a new collection at the end of the file, and give the policy that the file holds then.

        Guarantee  The file afterwards says what it said before and this one collection more, or it is as it was. `agreed`
                   is called with the new policy just before the file takes its place; where it raises, nothing changes.
        """
        place = self.path.resolve()  # a link stays a link
        problem = ""
        try:
            with alone(place.with_name(f".{place.name}.lock")):
                text = place.read_bytes().decode("utf-8")
                if parse_policy(text) != to:
                    raise StalePolicy("the policy file was changed meanwhile.", "Look at it, and try again.")
                longer = _with_section(text, write_collection(collection))
                policy = _read_again(longer, collection, to)
                _replace(place, longer, lambda: agreed(policy))
                return policy
        except (OSError, UnicodeDecodeError) as error:
            problem = getattr(error, "strerror", None) or type(error).__name__
        raise Unsupported(
            f"the policy file cannot be written from here: {problem}.", "Add the section to the file by hand."
        )


def _with_section(text: str, section: str) -> str:
    return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}\n{section}"


def _read_again(text: str, collection: Collection, before: Policy) -> Policy:
    """The policy of the longer text, which must be the one before and this collection."""
    wanted = replace(before, collections={**before.collections, collection.name: collection})
    with suppress(PolicyUnreadable):  # such as a file that writes all its collections in one line
        if parse_policy(text) == wanted:
            return wanted
    raise Unsupported("the section cannot be added at the end of this policy file.", "Add it to the file by hand.")


def _replace(place: Path, text: str, agreed: Callable[[], None]) -> None:
    """Write beside and bring to disk; then, if agreed, rename."""
    beside = place.with_name(f".{place.name}.part")
    try:
        with beside.open("wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(place, beside)
        agreed()
        os.replace(beside, place)
    finally:
        beside.unlink(missing_ok=True)


if TYPE_CHECKING:
    from tidegate.collect.survey import Survey
    from tidegate.release.desk import Desk

T = TypeVar("T")
TABLES_KEPT = 4  # synthetic tables at hand; others are drawn again
FINDINGS_KEPT = 64  # estimates from reports: a page that is looked at again is not computed again
PARSED_KEPT = 1000  # texts of SQL whose questions are at hand: frozen values


class Holding:
    """One data set under one policy, with the desks and surveys that were opened. `file` is the policy's, where it has one."""

    def __init__(self, session: Session, file: PolicyFile | None = None, mark: Mark | None = None) -> None:
        self.session, self.policy, self.name = session, session.policy, session.policy.dataset.name
        self.file, self.mark = file, mark
        self._turn, self._drawing = threading.Lock(), threading.Lock()
        self._opened: dict[tuple[str, str], Any] = {}
        self._drawn: OrderedDict[str, Any] = OrderedDict()
        self._found: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self.parsed = lru_cache(maxsize=PARSED_KEPT)(session.queries)

    def desk(self, promise: str) -> Desk:
        """The desk of a promise. Opening it for the first time compiles and simulates: it takes some seconds."""
        if promise not in self.policy.concealments:
            raise NotThere("no concealment promise of this data set has that name.", "See GET /data/{name}.")
        return self._once("desk", promise, lambda: self.session.release(promise))

    def survey(self, collection: str) -> Survey:
        """The survey of a collection."""
        if collection not in self.policy.collections:
            raise NotThere("no collection of this data set has that name.")
        return self._once("survey", collection, lambda: self.session.collect(collection))

    def is_open(self, promise: str) -> bool:
        """Whether the desk of a promise was opened here, so that asking for it takes no time."""
        return ("desk", promise) in self._opened

    def add(self, collection: Collection, *, user: str) -> None:
        """Put a new collection into the policy's file, and its promise into the ledger. See `PolicyFile.add`."""
        if self.file is None:
            raise Unsupported(
                "this data set's policy was given as a value: there is no file that a collection could be added to.",
                "Serve it from a file: tidegate serve people.toml",
            )
        if collection.name in self.policy.collections:
            raise Unsupported(
                "there is a collection of that name.",
                "Choose another name; a new version of a collection is written into the file itself.",
            )
        self.file.add(collection, to=self.policy, agreed=lambda policy: self._promise(policy, collection, user))

    def _promise(self, policy: Policy, collection: Collection, user: str) -> None:
        from tidegate.collect.run import open_collection

        place = self.session.reports_place()
        open_collection(self.session.ledger, collection, dataset=policy.dataset.name, place=place, user=user)

    def drawn(self, name: str, draw: Callable[[], T]) -> T:
        """Synthetic tables of a job, drawn now or lately."""
        with self._drawing:
            if name not in self._drawn:
                self._drawn[name] = draw()
            self._drawn.move_to_end(name)
            while len(self._drawn) > TABLES_KEPT:
                self._drawn.popitem(last=False)
            found: T = self._drawn[name]
            return found

    def found(self, name: tuple[Any, ...], find: Callable[[], T]) -> T:
        """What was found out lately under this name; a name says all that the finding depends on."""
        missing = object()
        found: Any = self._found.get(name, missing)
        if found is missing:
            found = find()  # outside of any lock: others must not wait for a slow one, even if one is made twice
            with self._drawing:
                self._found[name] = found
                while len(self._found) > FINDINGS_KEPT:
                    self._found.popitem(last=False)
        told: T = found
        return told

    def _once(self, kind: str, name: str, make: Callable[[], T]) -> T:
        found: T | None = self._opened.get((kind, name))
        if found is None:
            with self._turn:
                found = self._opened.get((kind, name)) or make()
                self._opened[kind, name] = found
        return found


class Holdings(Mapping[str, Holding]):
    """All data sets of a service, by name, over one ledger."""

    def __init__(
        self, sessions: Iterable[Session], *, files: Mapping[str, PolicyFile] | None = None, ledger: str = ""
    ) -> None:
        """`files` are those that the sessions were opened from, by name, with `ledger` where one was given."""
        found = list(sessions)
        if not found:
            raise Unsupported("there is nothing to serve.", "Name a policy: tidegate serve people.toml")
        addresses = {session.ledger_address for session in found}
        if len(addresses) > 1:
            raise Unsupported(
                "these policies name different ledgers, and a service has one.",
                "Give the one to use: --ledger all.ledger, or --ledger postgresql://host/database.",
            )
        self.ledger: Ledger = found[0].ledger
        self._turn, self._given = threading.Lock(), ledger
        self._held: dict[str, Holding] = {}
        for session in found:
            name = session.policy.dataset.name
            if name in self._held:
                raise Unsupported(f'two policies are called "{name}".', "Serve one of them.")
            self._held[name] = self._holding(session, (files or {}).get(name))

    @classmethod
    def from_files(cls, policies: Iterable[str], *, ledger: str = "") -> Holdings:
        """Open policies from files. A ledger's path starts from the first policy's folder, as with other commands."""
        names = list(policies)
        if ledger and "://" not in ledger and names:
            ledger = str((Path(names[0]).parent / Path(ledger).expanduser()).absolute())
        sessions = [open_session(name, ledger=ledger) for name in names]
        opened = zip(sessions, names, strict=True)
        files = {session.policy.dataset.name: PolicyFile(Path(path).absolute()) for session, path in opened}
        return cls(sessions, files=files, ledger=ledger)

    def __getitem__(self, name: str) -> Holding:
        held = self._held[name]
        if held.file is None or held.file.mark() == held.mark:
            return held
        return self._anew(name)

    def __contains__(self, name: object) -> bool:
        return name in self._held

    def _holding(self, session: Session, file: PolicyFile | None, mark: Mark | None = None) -> Holding:
        vars(session)["ledger"] = self.ledger  # one pool of connections, and one queue of writers
        return Holding(session, file, mark)  # without a mark it is read once more: it may have changed since

    def _anew(self, name: str) -> Holding:
        """A data set whose file changed: opened again, or kept as it was where the file cannot be served."""
        with self._turn:
            held = self._held[name]
            if held.file is None or (mark := held.file.mark()) == held.mark:
                return held  # another thread was quicker
            session = self._reopened(held)
            if session is None or session.policy == held.policy:
                held.mark = mark
            else:
                self._held[name] = self._holding(session, held.file, mark)
            return self._held[name]

    def _reopened(self, held: Holding) -> Session | None:
        try:
            session = open_session(held.file.path if held.file else "", ledger=self._given)
        except TidegateError as error:
            tell("policy-not-taken", dataset=held.name, problem=error.code)
            return None
        same = session.policy.dataset.name == held.name and session.ledger_address == held.session.ledger_address
        if not same:
            tell("policy-not-taken", dataset=held.name, problem="another data set, or another ledger")
        return session if same else None

    def __iter__(self) -> Any:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def close(self) -> None:
        self.ledger.close()
