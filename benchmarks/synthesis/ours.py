"""Our own synthetic tables: a session in a temporary folder, its time and its memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from time import perf_counter

import pandas as pd

from benchmarks.measure import peak_memory
from benchmarks.synthesis.exchange import Case


def synthesize(case: Case, epsilon: float) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return a synthetic table as large as the true one, with its seconds and the peak memory in MB.

    Its noise comes from the operating system, so every call is a new draw.
    """
    import tidegate as tg

    with (
        tempfile.TemporaryDirectory(prefix="tgbench") as folder,
        tg.open(case.policy, table=case.rows, ledger=str(Path(folder, "synthesis.ledger"))) as session,
    ):
        clock, cpu = perf_counter(), _cpu()
        synthetic = session.synthesize(epsilon=epsilon)[0].to_pandas()
        return synthetic, {"seconds": perf_counter() - clock, "cpu": _cpu() - cpu, "peak_mb": peak_memory()}


def _cpu() -> float:
    """Return the CPU seconds of this process and of finished children."""
    return sum(os.times()[:4])
