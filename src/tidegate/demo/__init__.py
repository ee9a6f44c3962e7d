"""Sample data: generated, the same in every run, nobody's.

people.py     10,000 people of five towns                    people.toml     answers and synthetic tables
soldiers.py   the soldiers of the release paper              soldiers.toml   records, one by one
shop.py       what shoppers would say                        shop.toml       a collection: randomized before it is sent
history.py    what was asked of all three before today, through sessions as anybody's
even.py       numbers that look drawn
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from tidegate.demo import people, soldiers

NAMES = ("people", "soldiers", "shop")
LEDGER = "demo.ledger"  # one for all three; their policies name it
TABLES: dict[str, Callable[[], str]] = {"people.csv": people.as_csv, "soldiers.csv": soldiers.as_csv}


def policies(folder: Path) -> dict[str, Path]:
    """The policy of each data set."""
    return {name: folder / f"{name}.toml" for name in NAMES}


def write(folder: Path) -> list[str]:
    """Put tables and policies into a folder, where they are not there yet; the names of those that were not."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {**TABLES, **{f"{name}.toml": _policy(name) for name in NAMES}}
    written = [name for name in texts if not (folder / name).exists()]
    for name in written:
        (folder / name).write_text(texts[name](), "utf-8")
    return written


def _policy(name: str) -> Callable[[], str]:
    return files(__name__).joinpath(f"{name}.toml").read_text
