"""The folder of a service: policies that it serves, uploaded data, drafts of new data sets, and by default the ledger.

    DIR/*.toml            policies; each one is served      DIR/data/      uploaded tables, and tables that an operator put there
    DIR/tidegate.ledger   the ledger, if no other is named  DIR/drafts/    unfinished data sets

Only the service's user can read what it writes here. Several processes can share a folder.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tidegate.collect.memory import alone
from tidegate.errors import Unsupported
from tidegate.ledger.file import replace_file

LEDGER = "tidegate.ledger"
SETTLED = 2.0  # seconds: a file that is added later cannot have the same time of change


@dataclass(frozen=True)
class ServiceFolder:
    """A folder that exists, with its parts."""

    path: Path

    @classmethod
    def open(cls, path: str | Path) -> ServiceFolder:
        """Return a folder; create it and its parts if they do not exist."""
        folder, problem = cls(Path(path).expanduser().absolute()), ""
        try:
            for part in (folder.path, folder.data, folder.drafts):
                part.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise Unsupported(f'The folder "{path}" cannot be used: {problem}.', "Name another one with --folder.")
        return folder

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def drafts(self) -> Path:
        return self.path / "drafts"

    @property
    def ledger(self) -> Path:
        return self.path / LEDGER

    def policies(self) -> list[Path]:
        """Return the policy files, in the order of their names."""
        return sorted(path for path in self.path.glob("*.toml") if not path.name.startswith("."))

    def changed_at(self) -> int | None:
        """Return the time of the last change of the list of files; None if it is too recent to be relied on."""
        with suppress(OSError):
            changed = self.path.stat().st_mtime_ns
            return changed if time.time() - changed / 1e9 > SETTLED else None
        return None

    def write_new(self, name: str, text: str) -> Path:
        """Write a new policy file.

        Guarantee:
            The file is complete or does not exist, and no file is replaced.
        """
        path, problem = self.path / f"{name}.toml", ""
        try:
            with alone(self.path / ".policies.lock"):
                if any(other.name.casefold() == path.name.casefold() for other in self.path.glob("*.toml")):
                    raise Unsupported("The folder already has a policy of that name.", "Choose another name.")
                replace_file(path, text.encode())
            return path
        except OSError as error:
            problem = error.strerror or type(error).__name__
        raise Unsupported(f"The service cannot write the policy file: {problem}.", "Ask the operator of the service.")
