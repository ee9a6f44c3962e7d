"""A policy's file while it is served: whether it changed, and a collection added to it.

A file is only ever added to: what stands in it stays as it was written, comments and all. Several processes may serve one
file; they take turns, and whoever reads it sees it whole, as before or as after.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tidegate.collect.memory import alone
from tidegate.errors import PolicyUnreadable, StalePolicy, Unsupported
from tidegate.policy import Policy
from tidegate.policy.collection import Collection
from tidegate.policy.toml import parse_policy, write_collection

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
