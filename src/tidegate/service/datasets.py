"""The data sets of a service: each is opened once and shared by all requests.

If a policy file changes, every process reopens the data set at its next request. If the file cannot be read or now
describes another data set, the old policy stays in use and the log reports the problem.

A policy file is only appended to: its text and comments stay as they are. Several processes can serve the same file. They
take turns, and a reader sees either the old file or the new one.
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

Mark = tuple[int, int, int]  # modification time, inode, size


@dataclass(frozen=True)
class PolicyFile:
    """The file that a data set was opened from."""

    path: Path

    def mark(self) -> Mark | None:
        """Return a mark that changes with the content, or None if the file does not exist."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size

    def add(self, collection: Collection, *, to: Policy, agreed: Callable[[Policy], None]) -> Policy:
        """Append a new collection to the file and return the resulting policy.

        Guarantee:
            The new file describes the old policy plus this collection; on any error the file is unchanged. `agreed` is called
            with the new policy just before the file is replaced. If it raises, nothing changes.
        """
        path = self.path.resolve()  # keep a symbolic link
        problem = ""
        try:
            with alone(path.with_name(f".{path.name}.lock")):
                text = path.read_bytes().decode("utf-8")
                if parse_policy(text) != to:
                    raise StalePolicy("The policy file was changed in the meantime.", "Check the file and try again.")
                longer = _with_section(text, write_collection(collection))
                policy = _read_again(longer, collection, to)
                _replace(path, longer, lambda: agreed(policy))
                return policy
        except (OSError, UnicodeDecodeError) as error:
            problem = getattr(error, "strerror", None) or type(error).__name__
        raise Unsupported(
            f"The service cannot write the policy file: {problem}.", "Add the section to the file by hand."
        )


def _with_section(text: str, section: str) -> str:
    return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}\n{section}"


def _read_again(text: str, collection: Collection, before: Policy) -> Policy:
    """Parse the extended text; the result must be the old policy plus this collection."""
    extended = replace(before, collections={**before.collections, collection.name: collection})
    with suppress(PolicyUnreadable):  # for example, a file with all collections in one line
        if parse_policy(text) == extended:
            return extended
    raise Unsupported("The section cannot be appended to this policy file.", "Add it to the file by hand.")


def _replace(path: Path, text: str, agreed: Callable[[], None]) -> None:
    """Write a temporary file and flush it to disk; then call `agreed` and rename."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, temporary)
        agreed()
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


if TYPE_CHECKING:
    from tidegate.collect.survey import Survey
    from tidegate.release.desk import Desk

T = TypeVar("T")
CACHED_TABLES = 4  # sets of synthetic tables; others are regenerated
CACHED_FINDINGS = 64  # estimates from reports, so that a page that is opened again is not computed again
CACHED_SQL = 1000  # parsed SQL texts: frozen values


class ServedDataset:
    """One data set under one policy, with its open desks and surveys. `file` is the policy file, if there is one."""

    def __init__(self, session: Session, file: PolicyFile | None = None, mark: Mark | None = None) -> None:
        self.session, self.policy, self.name = session, session.policy, session.policy.dataset.name
        self.file, self.mark = file, mark
        self._turn, self._drawing = threading.Lock(), threading.Lock()
        self._opened: dict[tuple[str, str], Any] = {}
        self._drawn: OrderedDict[str, Any] = OrderedDict()
        self._found: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self.parsed = lru_cache(maxsize=CACHED_SQL)(session.queries)

    def desk(self, promise: str) -> Desk:
        """Return the release desk of a promise. Opening it for the first time takes some seconds."""
        if promise not in self.policy.concealments:
            raise NotThere("This data set has no concealment promise of that name.", "See GET /data/{name}.")
        return self._once("desk", promise, lambda: self.session.release(promise))

    def survey(self, collection: str) -> Survey:
        """Return the survey of a collection."""
        if collection not in self.policy.collections:
            raise NotThere("This data set has no collection of that name.")
        return self._once("survey", collection, lambda: self.session.collect(collection))

    def is_open(self, promise: str) -> bool:
        """Return whether the release desk of a promise is open in this process."""
        return ("desk", promise) in self._opened

    def add(self, collection: Collection, *, user: str) -> None:
        """Add a new collection to the policy file and its promise to the ledger. See `PolicyFile.add`."""
        if self.file is None:
            raise Unsupported(
                "This data set has no policy file, so a collection cannot be added.",
                "Serve it from a file: tidegate serve people.toml",
            )
        if collection.name in self.policy.collections:
            raise Unsupported(
                "This data set already has a collection of that name.",
                "Choose another name, or edit the policy file to create a new version of the collection.",
            )
        self.file.add(collection, to=self.policy, agreed=lambda policy: self._promise(policy, collection, user))

    def _promise(self, policy: Policy, collection: Collection, user: str) -> None:
        from tidegate.collect.run import open_collection

        place = self.session.reports_place()
        open_collection(self.session.ledger, collection, dataset=policy.dataset.name, place=place, user=user)

    def drawn(self, name: str, draw: Callable[[], T]) -> T:
        """Return the synthetic tables of a job, from the cache or regenerated."""
        with self._drawing:
            if name not in self._drawn:
                self._drawn[name] = draw()
            self._drawn.move_to_end(name)
            while len(self._drawn) > CACHED_TABLES:
                self._drawn.popitem(last=False)
            found: T = self._drawn[name]
            return found

    def found(self, name: tuple[Any, ...], find: Callable[[], T]) -> T:
        """Return a cached result or compute it. `name` must contain everything that the result depends on."""
        missing = object()
        found: Any = self._found.get(name, missing)
        if found is missing:
            found = find()  # outside the lock: a slow computation must not block others, even if it runs twice
            with self._drawing:
                self._found[name] = found
                while len(self._found) > CACHED_FINDINGS:
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


class ServedDatasets(Mapping[str, ServedDataset]):
    """All data sets of a service, by name, over one ledger."""

    def __init__(
        self, sessions: Iterable[Session], *, files: Mapping[str, PolicyFile] | None = None, ledger: str = ""
    ) -> None:
        """`files` are the policy files of the sessions by data set name; `ledger` overrides the policies' ledger."""
        found = list(sessions)
        if not found:
            raise Unsupported("There is no data set to serve.", "Name a policy: tidegate serve people.toml")
        addresses = {session.ledger_address for session in found}
        if len(addresses) > 1:
            raise Unsupported(
                "These policies name different ledgers, but a service needs a single one.",
                "Specify the ledger: --ledger all.ledger, or --ledger postgresql://host/database.",
            )
        self.ledger: Ledger = found[0].ledger
        self._turn, self._given = threading.Lock(), ledger
        self._held: dict[str, ServedDataset] = {}
        for session in found:
            name = session.policy.dataset.name
            if name in self._held:
                raise Unsupported(f'Two policies have the name "{name}".', "Serve one of them.")
            self._held[name] = self._holding(session, (files or {}).get(name))

    @classmethod
    def from_files(cls, policies: Iterable[str], *, ledger: str = "") -> ServedDatasets:
        """Open policies from files. A ledger path is relative to the first policy's folder, as with other commands."""
        names = list(policies)
        if ledger and "://" not in ledger and names:
            ledger = str((Path(names[0]).parent / Path(ledger).expanduser()).absolute())
        sessions = [open_session(name, ledger=ledger) for name in names]
        opened = zip(sessions, names, strict=True)
        files = {session.policy.dataset.name: PolicyFile(Path(path).absolute()) for session, path in opened}
        return cls(sessions, files=files, ledger=ledger)

    def __getitem__(self, name: str) -> ServedDataset:
        held = self._held[name]
        if held.file is None or held.file.mark() == held.mark:
            return held
        return self._anew(name)

    def __contains__(self, name: object) -> bool:
        return name in self._held

    def _holding(self, session: Session, file: PolicyFile | None, mark: Mark | None = None) -> ServedDataset:
        vars(session)["ledger"] = self.ledger  # one connection pool and one queue of writers
        return ServedDataset(session, file, mark)  # without a mark the file is read again: it may have changed since

    def _anew(self, name: str) -> ServedDataset:
        """Reopen a data set whose file changed; keep the old one if the file cannot be served."""
        with self._turn:
            held = self._held[name]
            if held.file is None or (mark := held.file.mark()) == held.mark:
                return held  # another thread was faster
            session = self._reopened(held)
            if session is None or session.policy == held.policy:
                held.mark = mark
            else:
                self._held[name] = self._holding(session, held.file, mark)
            return self._held[name]

    def _reopened(self, held: ServedDataset) -> Session | None:
        try:
            session = open_session(held.file.path if held.file else "", ledger=self._given)
        except TidegateError as error:
            tell("policy-not-taken", dataset=held.name, problem=error.code)
            return None
        same = session.policy.dataset.name == held.name and session.ledger_address == held.session.ledger_address
        if not same:
            tell("policy-not-taken", dataset=held.name, problem="The file names another data set or another ledger.")
        return session if same else None

    def __iter__(self) -> Any:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def close(self) -> None:
        self.ledger.close()
