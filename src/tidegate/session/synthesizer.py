"""Synthetic tables with `fit` and `sample`, as scikit-learn and other libraries have them, on a session and its ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from tidegate.errors import Unsupported
from tidegate.exact import Number
from tidegate.policy import Policy
from tidegate.session.local import open_session
from tidegate.synthesize.result import SyntheticTable, SyntheticTables


class Synthesizer:
    """Learns one synthetic table: ``Synthesizer("people.toml", epsilon=1).fit(frame).sample(1_000)``.

    `fit` charges the loss to the ledger, like every other request: the one in `ledger`, else that of the policy, else a file named
    after the data set, in the policy file's folder or the current one. After `fit`, `ledger_` is its address. Keep that file:
    without it, nobody knows what was spent.

    Args:
        policy: A policy, or the path of its file.
        epsilon, rho, z, share, delta, target, columns: As in `Session.synthesize`.
        ledger: A path or an address, instead of the policy's.
    """

    ledger_: str  # set by `fit`
    tables_: SyntheticTables

    def __init__(
        self,
        policy: str | Path | Policy,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        z: Number | None = None,
        share: Number | None = None,
        delta: Number | None = None,
        target: str = "",
        columns: Iterable[str] = (),
        ledger: str = "",
    ) -> None:
        self.policy, self.ledger = policy, ledger
        self.epsilon, self.rho, self.z, self.share, self.delta = epsilon, rho, z, share, delta
        self.target, self.columns = target, columns
        self._kind = "pandas"

    def fit(self, frame: Any, y: None = None) -> Self:
        """Learn the rows of a pandas, polars or Arrow table, or of a file. Charged before a row is read."""
        with open_session(self.policy, table=frame, ledger=self.ledger) as session:
            self.tables_ = session.synthesize(
                self.epsilon,
                rho=self.rho,
                z=self.z,
                share=self.share,
                delta=self.delta,
                target=self.target,
                columns=self.columns,
            )
            address = session.ledger_address
        self.ledger_ = address if "://" in address else str(Path(address).absolute())
        self._kind = type(frame).__module__.partition(".")[0]
        return self

    def sample(
        self, rows: int | None = None, *, seed: int | None = None, where: Mapping[str, Any] | None = None
    ) -> Any:
        """Return artificial rows at no cost, as the kind of table that was fitted (pandas for a file). See `SyntheticTable.draw`."""
        table = self._table.draw(rows, seed=seed, where=where)
        if self._kind == "polars":
            return table.to_polars()
        return table.to_arrow() if self._kind == "pyarrow" else table.to_pandas()

    def save(self, path: str | Path) -> Path:
        """Write the model to a file for `tidegate.load_model`."""
        return self._table.save(path)

    @property
    def _table(self) -> SyntheticTable:
        if "tables_" not in self.__dict__:
            raise Unsupported("Nothing was learned yet.", "Call `fit` with the original table first.")
        return self.tables_[0]
