"""Syntheses that run on a service: the job, and the tables that it produces."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidegate.accounting import Amount
from tidegate.policy import Policy
from tidegate.session.http import ServiceClient, error_of, read_response
from tidegate.synthesize.progress import progress_display

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.synthesize.model import Progress
    from tidegate.synthesize.result import SyntheticTables

POLLS = (0.1, 0.3, 0.5, 1.0)  # seconds between polls of a job; the last one repeats
PolicyOf = Callable[[Mapping[str, Any]], Policy]


@dataclass(frozen=True)
class SynthesisJob:
    """A synthesis requested from a service: its state, and its tables once it is done."""

    data: Mapping[str, Any]
    _client: ServiceClient
    _path: str
    _policy_of: PolicyOf

    @property
    def id(self) -> str:
        return str(self.data["id"])

    @property
    def state(self) -> str:
        """One of waiting, running, done, failed, cancelled."""
        return str(self.data["state"])

    @property
    def request(self) -> dict[str, Any]:
        """The parameters of `synthesize`, as JSON values."""
        return dict(self.data["wanted"])

    def tables(self, progress: Progress | bool | None = None) -> SyntheticTables:
        """Wait until the job is done and return its tables, at no cost. See `RemoteSession.synthesize` for `progress`."""
        return self._tables(self._describe(progress))

    def bought_tables(self, progress: Progress | bool | None = None) -> SyntheticTables:
        """Return its tables with `cost` set to what the job was charged."""
        data = self._describe(progress)
        tables, charged = self._tables(data), Amount.parse(data["charged"])
        if not charged.grains:
            return tables
        return replace(tables, charge=replace(tables.charge, cost=charged, stored="", source="unknown"))

    def cancel(self) -> SynthesisJob:
        """Cancel the job and return its new state. Its charge stays; the same request later continues at no cost."""
        return replace(self, data=self._client.post(f"{self._path}/cancellation", {}))

    def to_dict(self) -> dict[str, Any]:
        """Return the job as the service sent it."""
        return dict(self.data)

    def __str__(self) -> str:
        return f"synthesis {self.id}: {self.state}"

    def _describe(self, progress: Progress | bool | None) -> dict[str, Any]:
        wait_for(self._client, self._path, self.data, progress)
        return dict(self._client.get(f"{self._path}/tables"))

    def _tables(self, data: Mapping[str, Any]) -> SyntheticTables:
        from tidegate.synthesize.result import SyntheticTables  # here: models take long to load

        policy = self._policy_of(data)
        return read_response(lambda: SyntheticTables.from_dict(data, policy, fetch=self._download, job=self.id))

    def _download(self, index: int) -> pa.Table:
        import pyarrow.parquet as pq

        path = f"{self._path}/tables/{index + 1}"
        content = self._client.call("GET", path, again=True, params={"kind": "parquet"}).content
        return pq.read_table(io.BytesIO(content))


def wait_for(client: ServiceClient, path: str, job: Mapping[str, Any], progress: Progress | bool | None) -> None:
    """Wait until a job is done; raise its error if it failed."""
    polls = 0
    with progress_display(progress, work="synthesis") as show:
        while job["state"] in ("waiting", "running"):
            stage, done, of = (job["progress"][name] for name in ("stage", "done", "of"))
            show(stage, done, of)
            time.sleep(POLLS[min(polls, len(POLLS) - 1)])
            polls, job = polls + 1, client.get(path)
    if job["state"] != "done":
        raise error_of(job["problem"])
