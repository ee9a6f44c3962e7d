"""Our own synthetic tables: a session in a folder that is gone afterwards, its time and its memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from time import perf_counter

import pandas as pd

from benchmarks.measure import peak_memory
from benchmarks.synthesis.exchange import Case


def synthesized(case: Case, epsilon: float) -> tuple[pd.DataFrame, dict[str, float]]:
    """One synthetic table as large as the true one, its seconds, and the most memory (MB) held until then.

    Its noise comes from the operating system, so every call is a fresh draw.
    """
    import tidegate as tg

    with (
        tempfile.TemporaryDirectory(prefix="tgbench") as folder,
        tg.open(case.policy, table=case.rows, ledger=str(Path(folder, "synthesis.ledger"))) as session,
    ):
        clock, cpu = perf_counter(), _cpu()
        made = session.synthesize(epsilon=epsilon)[0].to_pandas()
        return made, {"seconds": perf_counter() - clock, "cpu": _cpu() - cpu, "peak_mb": peak_memory()}


def _cpu() -> float:
    """Seconds of this process's processors and of the children that are done."""
    return sum(os.times()[:4])
