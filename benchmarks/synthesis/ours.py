"""Our own synthetic tables: the model of the product, with its own noise, on codes in memory.

pure   epsilon, one row replaced
z      the zCDP amount of (epsilon, 1e-5), one row replaced: every step is charged at its pairwise price
"""

from __future__ import annotations

from fractions import Fraction
from inspect import signature
from time import process_time
from typing import Any

from benchmarks.measure import peak_memory
from benchmarks.synthesis.tables import TABLES
from tidegate.accounting.amount import Amount
from tidegate.accounting.average import epsilon_at_delta
from tidegate.noise import SecureBits
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Facts
from tidegate.synthesize.mechanisms.forest import Forest
from tidegate.synthesize.private_rows import ArrayRows

DELTA = Fraction(1, 10**5)
MODES = ("pure", "z")


def modes() -> tuple[str, ...]:
    """Return the modes that the model has: forest/1 has pure losses only."""
    return MODES[:1] if Forest.name == "forest/1" else MODES


def limit_of(epsilon: float, mode: str) -> Loss:
    """Return the limit of a run. The zCDP amount of (epsilon, 1e-5) is rounded down to nine digits."""
    if mode == "pure":
        return Loss.of_pure(Fraction(str(epsilon)))
    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_at_delta(Amount.up(Fraction(middle)), DELTA) <= epsilon else (low, middle)
    zcdp = Fraction(int(low * 10**9), 10**9)
    return Loss(None, zcdp / 2, zcdp)


def synthesize(name: str, epsilon: float, mode: str, seed: int) -> dict[str, Any]:
    """Return a synthetic table as large as the true one, with CPU seconds and the peak memory in MB.

    `seed` is that of the draw. The noise comes from the operating system, so every call is a new table.
    """
    table = TABLES[name]()
    columns, train = table.columns.learnt, table.train
    facts = Facts(columns, len(train))
    rows = ArrayRows(train[:, table.learnt()], columns)
    split: dict[str, Any] = {"split": {}} if "split" in signature(Forest.learn).parameters else {}
    began = process_time()
    learnt = Forest().learn(facts, rows, Diary(limit_of(epsilon, mode)), bits=SecureBits(), progress=_ignore, **split)
    fitted = process_time() - began
    codes = learnt.draw(len(train), seed=seed)
    return {
        "codes": table.with_followers(codes),
        "seconds": process_time() - began,
        "learn_s": fitted,
        "MB": peak_memory(),
        "model": Forest.name,
    }


def _ignore(stage: str, done: int, of: int) -> None:
    """Progress is not shown."""
