"""Compile the kernels that tests of several folders need, once, before several processes share the tests.

numba caches compiled kernels in NUMBA_CACHE_DIR. Without this, several processes would compile the same kernel.
The kernels of a single folder are compiled by its tests, which run in one process (`BY_FOLDER` in conftest.py).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from support.towns import open_session

from tidegate.audit import observe
from tidegate.demo.soldiers import BASELINE, HEADQUARTERS, SHARES, concealment
from tidegate.release.plan import make_plan


def compile_release() -> None:
    """Compile the decision loop of released records."""
    observe(make_plan(concealment(), BASELINE, SHARES), HEADQUARTERS, worlds=1, records=50)


def compile_synthesis() -> None:
    """Compile the forest of marginals."""
    with tempfile.TemporaryDirectory() as folder, open_session(Path(folder)) as session:
        session.synthesize(epsilon=1)


if __name__ == "__main__":
    compile_release()
    compile_synthesis()
