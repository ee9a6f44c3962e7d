"""The code of one machine: a service with its own folder and working directory, on a shared ledger.

    python machine.py FOLDER LEDGER PORT [STAGE]

With STAGE, the process kills itself at the boundary before this stage of a synthesis, as a power failure would.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from tidegate.service import runner
from tidegate.service.app import create_app
from tidegate.service.logs import to_stream
from tidegate.service.server import run
from tidegate.service.settings import Settings


def die_at(stage: str) -> None:
    """Kill this process before a stage of any synthesis."""
    show = runner.Work._progress_now

    def kill(self: Any, name: str, done: int, of: int) -> None:
        if name == stage:
            os.kill(os.getpid(), signal.SIGKILL)
        show(self, name, done, of)

    runner.Work._progress_now = kill  # type: ignore[method-assign]


if __name__ == "__main__":
    folder, ledger, port, *stage = sys.argv[1:]
    os.chdir(folder)
    if stage:
        die_at(stage[0])
    to_stream()
    settings = Settings((str(Path(folder) / "people.toml"),), ledger, job_beat=0.1, job_patience=1.0, job_attempts=20)
    run(lambda: create_app(settings), port=int(port))
