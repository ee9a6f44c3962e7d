"""Synthetic tables, from afar: a job that is waited for, and its tables."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from tidegate.exact import say
from tidegate.session.http import ServiceClient, error_of
from tidegate.session.remote_answers import Told, cost_in_words

POLLS = (0.1, 0.3, 0.5, 1.0)  # seconds between two looks at a job; the last one from then on
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class RemoteTable:
    """A synthetic table, downloaded when it is first looked at."""

    _client: ServiceClient
    _place: str
    _kept: dict[str, Any] = field(default_factory=dict)

    def to_arrow(self) -> Any:
        """The rows as an Arrow table."""
        import pyarrow.parquet as pq

        if "table" not in self._kept:
            content = self._client.call("GET", self._place, again=True, params={"kind": "parquet"}).content
            self._kept["table"] = pq.read_table(io.BytesIO(content))
        return self._kept["table"]

    def to_pandas(self) -> Any:
        """The rows as a pandas data frame."""
        return self.to_arrow().to_pandas()


@dataclass(frozen=True)
class RemoteSynthesis(Told):
    """A synthesis that was asked for: its state, and its tables when it is done."""

    client: ServiceClient
    place: str

    @property
    def id(self) -> str:
        return str(self.told["id"])

    @property
    def state(self) -> str:
        """Waiting, running, done, failed."""
        return str(self.told["state"])

    @property
    def wanted(self) -> dict[str, Any]:
        """What was asked for."""
        return dict(self.told["wanted"])

    def tables(self, progress: Progress | bool | None = None) -> list[RemoteTable]:
        """Its tables, at no new cost; waits until the job is done."""
        job = waited_for(self.client, self.place, dict(self.told), progress)
        return [RemoteTable(self.client, f"{self.place}/tables/{n + 1}") for n in range(job["wanted"]["tables"])]

    def paid_quality(self, *, epsilon: Any, key: str = "") -> RemotePaidQuality:
        """How far its tables are from the original, in two noisy numbers: charged and recorded, once for one epsilon."""
        asked = {"epsilon": epsilon if isinstance(epsilon, int | float | str) else str(epsilon)}
        return RemotePaidQuality(self.client.post(f"{self.place}/paid-quality", asked, key=key, again=True))

    def __str__(self) -> str:
        return f"synthesis {self.id}: {self.state}"


@dataclass(frozen=True)
class RemotePaidQuality(Told):
    """Mean total variations with noise: of single columns, of pairs."""

    def __str__(self) -> str:
        return str(self.told["says"])


@dataclass(frozen=True)
class RemoteSynthesisPreview(Told):
    """What synthetic tables would cost, by which model, and how the loss would be shared. Nothing was spent."""

    @property
    def fits(self) -> bool:
        return bool(self.told["fits"])

    @property
    def model(self) -> str:
        return str(self.told["model"])

    @property
    def why(self) -> str:
        return str(self.told["why"])

    def __str__(self) -> str:
        lines = [
            cost_in_words(self.told),
            f"would learn  {', '.join(self.told['columns'])}, by {self.model} ({self.why})",
            *(f"             {note}" for note in self.told["notes"]),
            f"would share  {self.told['shares']}:",
            *(
                f"             {say(100 * one['share']):>5}%  {one['name']}: {one['says']}"
                for one in self.told["stages"]
            ),
        ]
        return "\n".join([*lines, "nothing was asked, nothing was spent."])


def waited_for(
    client: ServiceClient, place: str, job: dict[str, Any], progress: Progress | bool | None
) -> dict[str, Any]:
    """A job when it is done; its refusal where it failed. See `RemoteSession.synthesize` for `progress`."""
    looks = 0
    with _shown(progress) as tell:
        while job["state"] in ("waiting", "running"):
            tell(*(job["progress"][name] for name in ("stage", "done", "of")))
            time.sleep(POLLS[min(looks, len(POLLS) - 1)])
            looks, job = looks + 1, client.get(place)
    if job["state"] != "done":
        raise error_of(job["problem"])
    return job


@contextmanager
def _shown(progress: Progress | bool | None) -> Iterator[Progress]:
    """Where progress is told: to whom was named, else on a terminal, in one line that is taken away at the end."""
    if callable(progress):
        yield progress
    elif progress is False or not sys.stderr.isatty():
        yield lambda stage, done, of: None
    else:
        bar = _Bar(sys.stderr)
        try:
            yield bar
        finally:
            bar.clear()


class _Bar:
    """One line of a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._width = stream, 0

    def __call__(self, stage: str, done: int, of: int) -> None:
        text = f"synthesis: {stage or 'waiting for its turn'}" + (f" {done:,} of {of:,}" if of else "")
        self._write(text)

    def clear(self) -> None:
        self._write("")
        self._write("")

    def _write(self, text: str) -> None:
        self._stream.write(f"\r{text.ljust(self._width)}")
        self._stream.flush()
        self._width = len(text)
