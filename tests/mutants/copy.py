"""A temporary copy of the source with one fault in it: other processes import the fault too."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mutants.faults import Fault, with_fault

COMPILED = ("*.nbi", "*.nbc")  # numba's cache checks the file of a caller, not those of its callees


@contextmanager
def plant_fault(source: Path, fault: Fault | None) -> Iterator[Path]:
    """Yield a temporary folder like `source` with the fault in it, or without any."""
    with tempfile.TemporaryDirectory(prefix="mutant", ignore_cleanup_errors=True) as folder:
        copy = Path(folder, "src")
        text = (source / fault.file).read_text("utf-8") if fault else ""
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns(*(COMPILED if "njit" in text else ())))
        if fault:
            (copy / fault.file).write_text(with_fault(text, fault), "utf-8")
        yield copy
