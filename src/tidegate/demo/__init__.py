"""Sample data: generated, the same in every run, about no real person.

people.py has 10,000 people of five towns, for answers and synthetic tables. clinic.py has stays with dates, for many answers
under the average guarantee. soldiers.py has the soldiers of the release paper, for the release of records under a
concealment promise; barracks.py has them under a hiding promise, with other names. shop.py has what shoppers would answer,
for a collection, and office.py what employees would answer, for two polls. Each has a policy beside it. history.py fills the
ledger of all through sessions, and deterministic.py generates the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from tidegate.demo import barracks, clinic, people, soldiers
from tidegate.ledger.known_sources import BESIDE_POLICY

NAMES = ("people", "clinic", "soldiers", "barracks", "shop", "office")
LEDGER = "demo.ledger"  # one for all; their policies name it
TABLES: dict[str, Callable[[], str]] = {
    "people.csv": people.as_csv,
    "clinic.csv": clinic.as_csv,
    "soldiers.csv": soldiers.as_csv,
    "barracks.csv": barracks.as_csv,
}


def policies(folder: Path) -> dict[str, Path]:
    """Return the path of each data set's policy."""
    return {name: folder / f"{name}.toml" for name in NAMES}


def write(folder: Path) -> list[str]:
    """Write tables and policies into a folder unless they exist; return the names of new files."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {**TABLES, **{f"{name}.toml": _policy(name) for name in NAMES}}
    written = [name for name in texts if not (folder / name).exists()]
    for name in written:
        (folder / name).write_text(texts[name](), "utf-8")
    (folder / BESIDE_POLICY).touch(0o600)  # another demo has the same data: it must not be in the user's registry
    return written


def _policy(name: str) -> Callable[[], str]:
    return files(__name__).joinpath(f"{name}.toml").read_text
