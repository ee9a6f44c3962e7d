"""The process that tests kill: a synthesis with a pause before every number."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from support.towns import open_session
from synthesize.margins import Independent, Margins

from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Facts
from tidegate.synthesize.model import Progress, Rows

PAUSE = 0.03
LIMIT = "100000"  # of epsilon, for several hundred requests


class Slow(Margins):
    """The same model, with a pause between any two numbers for a kill."""

    def learn(self, facts: Facts, rows: Rows, diary: Diary, *, bits: Any, progress: Progress) -> Independent:
        def paused(stage: str, done: int, of: int) -> None:
            time.sleep(PAUSE)

        return super().learn(facts, rows, diary, bits=bits, progress=paused)


def synthesize_on(pipe: Any, url: str, folder: Path, number: int) -> None:
    """Request three tables and send them through the pipe."""
    with open_session(folder, ledger=url, epsilon=LIMIT) as session:
        session.account, session.table
        pipe.send("ready")
        tables = session.synthesize(epsilon=number, tables=3, model=Slow())
        pipe.send(json.dumps([table.to_arrow().to_pydict() for table in tables]))
