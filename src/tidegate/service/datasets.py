"""The data sets of a service: each is opened once and shared by all requests.

If a policy file changes, every process reopens the data set at its next request. If the file cannot be read or now
describes another data set, the old policy stays in use and the log reports the problem.

A policy file is only appended to: its text and comments stay as they are. Several processes can serve the same file. They
take turns, and a reader sees either the old file or the new one. Only `PolicyFile.replace` writes a whole new text.

A service with a folder (see `folder.py`) also serves every policy in it. Each process notices a new file at its next request.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tidegate.answer.sql import SqlPlan, plan_sql
from tidegate.collect.memory import alone
from tidegate.errors import NotThere, PolicyUnreadable, StalePolicy, TidegateError, Unsupported
from tidegate.ledger import Ledger
from tidegate.policy import Policy
from tidegate.policy.collection import Collection
from tidegate.policy.toml import parse_policy, write_collection
from tidegate.service.folder import ServiceFolder
from tidegate.service.logs import log_event
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

    def add(self, collection: Collection, *, to: Policy, agree: Callable[[Policy], None]) -> Policy:
        """Append a new collection to the file and return the resulting policy.

        Guarantee:
            The new file describes the old policy plus this collection; on any error the file is unchanged. `agree` is called
            with the new policy just before the file is replaced. If it raises, nothing changes.
        """
        path = self.path.resolve()  # keep a symbolic link
        problem = ""
        try:
            with alone(path.with_name(f".{path.name}.lock")):
                extended, policy = self._extend(collection, to)
                _replace(path, extended, lambda: agree(policy))
                return policy
        except (OSError, UnicodeDecodeError) as error:
            problem = getattr(error, "strerror", None) or type(error).__name__
        raise Unsupported(
            f"The service cannot write the policy file: {problem}.", "Add the section to the file by hand."
        )

    def replace(self, text: str, *, to: Policy, agree: Callable[[Policy], None]) -> Policy:
        """Replace the whole text of the file, which described the policy `to`, and return the new policy.

        Guarantee:
            On any error the file is unchanged. `agree` is called with the new policy just before the file is replaced. If it
            raises, nothing changes.
        """
        path = self.path.resolve()
        problem = ""
        try:
            with alone(path.with_name(f".{path.name}.lock")):
                if self._parse(path.read_bytes().decode("utf-8")) != to:
                    raise StalePolicy("The policy file was changed in the meantime.", "Reload the page and try again.")
                policy = self._parse(text)
                _replace(path, text, lambda: agree(policy))
                return policy
        except (OSError, UnicodeDecodeError) as error:
            problem = getattr(error, "strerror", None) or type(error).__name__
        raise Unsupported(f"The service cannot write the policy file: {problem}.", "Change the file by hand.")

    def refuse(self, collection: Collection, *, to: Policy) -> None:
        """Refuse a new collection that could not be appended to the file as it is now. Nothing is written."""
        with suppress(OSError, UnicodeDecodeError):  # `add` reports these
            self._extend(collection, to)

    def _extend(self, collection: Collection, to: Policy) -> tuple[str, Policy]:
        """Return the text of the file with a new collection, and the resulting policy."""
        text = self.path.read_bytes().decode("utf-8")
        if self._parse(text) != to:
            raise StalePolicy("The policy file was changed in the meantime.", "Check the file and try again.")
        extended = _with_section(text, write_collection(collection))
        policy = replace(to, collections={**to.collections, collection.name: collection})
        with suppress(PolicyUnreadable):  # for example, a file with all collections in one line
            if self._parse(extended) == policy:
                return extended, policy
        raise Unsupported("The section cannot be appended to this policy file.", "Add it to the file by hand.")

    def _parse(self, text: str) -> Policy:
        return parse_policy(text, folder=self.path.resolve().parent, name=self.path.stem)


def _with_section(text: str, section: str) -> str:
    return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}\n{section}"


def _replace(path: Path, text: str, agree: Callable[[], None]) -> None:
    """Write a temporary file and flush it to disk; then call `agree` and rename."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, temporary)
        agree()
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


if TYPE_CHECKING:
    from tidegate.collect.survey import Survey

T = TypeVar("T")
CACHED_TABLES = 4  # sets of synthetic tables; others are regenerated
CACHED_RESULTS = 64  # estimates from reports, so that a page that is opened again is not computed again


class ServedDataset:
    """One data set under one policy, with its open desks and surveys. `file` is the policy file, if there is one."""

    def __init__(self, session: Session, file: PolicyFile | None = None, mark: Mark | None = None) -> None:
        self.session, self.policy, self.name = session, session.policy, session.policy.dataset.name
        self.file, self.mark = file, mark
        self._turn, self._cache_lock = threading.Lock(), threading.Lock()
        self._opened: dict[tuple[str, str], Any] = {}
        self.simulations: dict[str, dict[str, Any]] = {}  # the last one of each release desk in this process
        self._tables: OrderedDict[str, Any] = OrderedDict()
        self._results: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

    def planned(self, sql: str) -> SqlPlan:
        """Return the plan of SQL."""
        return plan_sql(sql, self.policy)

    def desk(self, promise: str) -> Any:
        """Return the release desk of a promise (Desk or HidingDesk). Opening the former first takes some seconds."""
        if promise not in self.policy.release_promises:
            raise NotThere("This data set has no release promise of that name.", "See GET /v1/data/{name}.")
        return self._open_once("desk", promise, lambda: self.session.release(promise))

    def survey(self, collection: str) -> Survey:
        """Return the survey of a collection."""
        if collection not in self.policy.collections:
            raise NotThere("This data set has no collection of that name.")
        return self._open_once("survey", collection, lambda: self.session.collect(collection))

    def is_open(self, promise: str) -> bool:
        """Return whether the release desk of a promise is open in this process."""
        return ("desk", promise) in self._opened

    def add(self, collection: Collection, *, user: str) -> None:
        """Add a new collection to the policy file and its promise to the ledger. See `PolicyFile.add`."""
        file = self.refuse_new(collection)
        file.add(collection, to=self.policy, agree=lambda policy: self._promise(policy, collection, user))

    def refuse_new(self, collection: Collection) -> PolicyFile:
        """Refuse a collection that cannot be added to the policy file; return the file. Nothing is written."""
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
        return self.file

    def _promise(self, policy: Policy, collection: Collection, user: str) -> None:
        from tidegate.collect.run import open_collection

        location = self.session.reports_location()
        open_collection(self.session.ledger, collection, dataset=policy.dataset.name, location=location, user=user)

    def cached_tables(self, name: str, generate: Callable[[], T]) -> T:
        """Return the synthetic tables of a job, from the cache or regenerated."""
        with self._cache_lock:
            if name not in self._tables:
                self._tables[name] = generate()
            self._tables.move_to_end(name)
            while len(self._tables) > CACHED_TABLES:
                self._tables.popitem(last=False)
            tables: T = self._tables[name]
            return tables

    def cached(self, name: tuple[Any, ...], compute: Callable[[], T]) -> T:
        """Return a cached result or compute it. `name` must contain everything that the result depends on."""
        missing = object()
        stored: Any = self._results.get(name, missing)
        if stored is missing:
            stored = compute()  # outside the lock: a slow computation must not block others, even if it runs twice
            with self._cache_lock:
                self._results[name] = stored
                while len(self._results) > CACHED_RESULTS:
                    self._results.popitem(last=False)
        result: T = stored
        return result

    def _open_once(self, kind: str, name: str, make: Callable[[], T]) -> T:
        opened: T | None = self._opened.get((kind, name))
        if opened is None:
            with self._turn:
                opened = self._opened.get((kind, name)) or make()
                self._opened[kind, name] = opened
        return opened


class ServedDatasets(Mapping[str, ServedDataset]):
    """All data sets of a service, by name, over one ledger."""

    def __init__(
        self,
        sessions: Iterable[Session],
        *,
        files: Mapping[str, PolicyFile] | None = None,
        ledger: str = "",
        folder: ServiceFolder | None = None,
    ) -> None:
        """`files` are the policy files of the sessions by data set name; `ledger` overrides the policies' ledger.

        With a `folder`, its policies are served as well, there can be no session, and `ledger` must be an absolute address.
        """
        opened = list(sessions)
        if not opened and folder is None:
            raise Unsupported(
                "There is no data set to serve.",
                "Name a policy: tidegate serve people.toml. Or start with an empty folder: tidegate serve --folder DIR",
            )
        addresses = {session.ledger_address for session in opened}
        if len(addresses) > 1:
            raise Unsupported(
                "These policies name different ledgers, but a service needs a single one.",
                "Specify the ledger: --ledger all.ledger, or --ledger postgresql://host/database.",
            )
        self.ledger: Ledger = opened[0].ledger if opened else Ledger(ledger)
        self._turn, self._address, self.folder = threading.RLock(), ledger, folder
        self.refused: dict[str, str] = {}  # policy files of the folder that cannot be served, with the reason
        self._refused_marks: dict[str, Mark | None] = {}
        self._seen: int | None = None
        self._served: dict[str, ServedDataset] = {}
        for session in opened:
            name = session.policy.dataset.name
            if name in self._served:
                raise Unsupported(f'Two policies have the name "{name}".', "Serve one of them.")
            self._served[name] = self._serve(session, (files or {}).get(name))
        self.refresh()

    @classmethod
    def from_files(cls, policies: Iterable[str], *, ledger: str = "", folder: str = "") -> ServedDatasets:
        """Open policies from files, and those of a folder.

        A ledger path is relative to the first policy's folder, as with other commands, or else to the service's folder. A
        service without policies has its ledger in its folder.
        """
        names, own = list(policies), ServiceFolder.open(folder) if folder else None
        start = Path(names[0]).parent if names else own.path if own else Path()
        if ledger and "://" not in ledger:
            ledger = str((start / Path(ledger).expanduser()).absolute())
        if own and not ledger:
            ledger = open_session(names[0]).ledger_address if names else str(own.ledger)
        sessions = [open_session(name, ledger=ledger) for name in names]
        pairs = zip(sessions, names, strict=True)
        files = {session.policy.dataset.name: PolicyFile(Path(path).absolute()) for session, path in pairs}
        return cls(sessions, files=files, ledger=ledger, folder=own)

    @property
    def address(self) -> str:
        """The address of the ledger."""
        return self._address

    def refresh(self) -> None:
        """Serve the policies that were added to the folder since the last call. Costs one look at the folder's time."""
        changed = self.folder.changed_at() if self.folder else None
        if self.folder is None or (changed is not None and changed == self._seen):
            return
        with self._turn:
            paths = {served.file.path for served in self._served.values() if served.file}
            for path in self.folder.policies():
                if path not in paths:
                    self._serve_new(PolicyFile(path))
            self._seen = changed

    def _serve_new(self, file: PolicyFile) -> None:
        """Serve a policy file of the folder. One that cannot be served is logged, and tried again when it changes."""
        name, mark = file.path.name, file.mark()
        if name in self.refused and self._refused_marks[name] == mark:
            return
        try:
            session = open_session(file.path, ledger=self._address)
            if session.policy.dataset.name in self._served:
                raise Unsupported(f'Another policy has the name "{session.policy.dataset.name}".')
        except TidegateError as error:
            self.refused[name], self._refused_marks[name] = error.what, mark
            log_event("policy-not-taken", file=name, problem=error.code)
            return
        self.refused.pop(name, None)
        self._served[session.policy.dataset.name] = self._serve(session, file, mark)

    def __getitem__(self, name: str) -> ServedDataset:
        if name not in self._served:
            self.refresh()
        served = self._served[name]
        if served.file is None or served.file.mark() == served.mark:
            return served
        return self._reopen(name)

    def __contains__(self, name: object) -> bool:
        if name not in self._served:
            self.refresh()
        return name in self._served

    def _serve(self, session: Session, file: PolicyFile | None, mark: Mark | None = None) -> ServedDataset:
        session.share_ledger(self.ledger)  # one connection pool and one queue of writers
        return ServedDataset(session, file, mark)  # without a mark the file is read again: it may have changed since

    def _reopen(self, name: str) -> ServedDataset:
        """Reopen a data set whose file changed; keep the old one if the file cannot be served."""
        with self._turn:
            served = self._served[name]
            if served.file is None or (mark := served.file.mark()) == served.mark:
                return served  # another thread was faster
            session = self._open_changed(served)
            if session is None or session.policy == served.policy:
                served.mark = mark
            else:
                self._served[name] = self._serve(session, served.file, mark)
            return self._served[name]

    def _open_changed(self, served: ServedDataset) -> Session | None:
        try:
            session = open_session(served.file.path if served.file else "", ledger=self._address)
        except TidegateError as error:
            log_event("policy-not-taken", dataset=served.name, problem=error.code)
            return None
        same = session.policy.dataset.name == served.name and session.ledger_address == served.session.ledger_address
        if not same:
            log_event(
                "policy-not-taken", dataset=served.name, problem="The file names another data set or another ledger."
            )
        return session if same else None

    def __iter__(self) -> Any:
        self.refresh()
        return iter(list(self._served))

    def __len__(self) -> int:
        self.refresh()
        return len(self._served)

    def close(self) -> None:
        self.ledger.close()
