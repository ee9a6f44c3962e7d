"""Where the rows of a synthetic table come from: a model on this machine, or a download."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tidegate.arrays import Ints
from tidegate.errors import Unsupported
from tidegate.synthesize.columns import Columns
from tidegate.synthesize.condition import Conditions, Where, read_conditions, refuse_rare
from tidegate.synthesize.diary import Step
from tidegate.synthesize.learn import LearnedTable
from tidegate.synthesize.model import Condition, Fitted, Summary
from tidegate.synthesize.request import MOST_ROWS, check_whole

CHUNK = 100_000  # rows that are drawn at once if finished rows are filtered
LEAST_SHARE = 1e-4  # of the model's rows that must fit the conditions of a draw


class TableSource(Protocol):
    """The rows of a synthetic table."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        ...

    @property
    def steps(self) -> tuple[Step, ...]:
        """The diary, where it is on this machine."""
        ...

    @property
    def summary(self) -> Summary | None:
        """What is public about the model; None for a model of an earlier version."""
        ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows in batches of limited size."""
        ...

    def draw(self, rows: int | None, seed: int | None, where: Where | None) -> TableSource:
        """Return a source of other rows of the same table."""
        ...

    def content(self) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """Return what a file needs to draw from the same model: about the request, and about this table."""
        ...


@dataclass(frozen=True)
class Drawn:
    """Rows drawn from a learned model. `about` returns what a file states about the request."""

    columns: Columns
    _learn: Callable[[], LearnedTable]
    about: Callable[[], Mapping[str, Any]]
    number: int = 0
    requested: int | None = None
    seed: int = 0
    where: Where = field(default_factory=dict)

    @cached_property
    def learned(self) -> LearnedTable:
        """The model: as it is stored, or rebuilt from the diary of an earlier version."""
        return self._learn()

    @property
    def rows(self) -> int:
        return self.learned.rows if self.requested is None else self.requested

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.learned.steps

    @property
    def summary(self) -> Summary | None:
        learnt = self.learned.learnt
        return learnt.summary if isinstance(learnt, Fitted) else None

    def draw(self, rows: int | None, seed: int | None, where: Where | None) -> Drawn:
        learned = self.learned
        other = replace(
            self,
            _learn=lambda: learned,
            requested=self.requested if rows is None else check_whole(rows, "rows", most=MOST_ROWS),
            seed=self.seed if seed is None else check_whole(seed, "seed", least=0, most=2**63 - 1),
            where=self.where if where is None else dict(where),
        )
        other.refuse_rare()
        return other

    def refuse_rare(self) -> None:
        """Refuse conditions that name unknown values, or that too few of the model's rows fit."""
        refuse_rare(self._conditions, self._share, LEAST_SHARE)

    def batches(self) -> Iterator[pa.RecordBatch]:
        start, stream = 0, _stream(self.seed, self.number)
        is_decided = isinstance(self.learned.learnt, Fitted) and not self._conditions.tests
        is_decided = is_decided or not self.where
        for table in self._drawn(self.rows, stream) if is_decided else self._filtered(stream):
            for name in self.columns.numbered:
                numbers = pa.array(np.arange(start + 1, start + len(table) + 1))
                table = table.set_column(table.schema.get_field_index(name), name, numbers)
            start += len(table)
            yield from table.combine_chunks().to_batches()

    def content(self) -> tuple[Mapping[str, Any], dict[str, Any]]:
        learned = self.learned
        if not isinstance(learned.learnt, Fitted):
            raise Unsupported(
                "Tables of an earlier model cannot be saved as a model.",
                "Draw their rows from the ledger, or synthesize again.",
            )
        drawn = {"number": self.number, "seed": self.seed, "requested": self.requested, "rows": learned.rows}
        fitted = learned.learnt
        return self.about(), {**drawn, "summary": fitted.summary.to_dict(), "fitted": fitted.to_dict()}

    @cached_property
    def _conditions(self) -> Conditions:
        return read_conditions(self.where, self.columns)

    @cached_property
    def _share(self) -> float:
        """The model's share of rows with the codes that the conditions need."""
        learnt, codes = self.learned.learnt, self._conditions.codes
        return learnt.share(codes) if codes and isinstance(learnt, Fitted) else 1.0

    def _drawn(self, rows: int, stream: int) -> Iterator[pa.Table]:
        """Yield rows with the codes that the conditions need."""
        learnt, codes = self.learned.learnt, self._conditions.codes
        chunks = learnt.chunks(rows, seed=stream, where=codes) if isinstance(learnt, Fitted) else None
        first = 0
        for index, chunk in enumerate(chunks or _fitting(learnt.draw(rows, seed=stream), codes)):
            yield self.columns.to_arrow(chunk, seed=_stream(stream, index) if index else stream, first=first)
            first += len(chunk)

    def _filtered(self, stream: int) -> Iterator[pa.Table]:
        """Yield finished rows that fit, until there are enough."""
        missing, turn = self.rows, 0
        while missing:
            drawn = self._drawn(CHUNK, _stream(stream, turn))
            table = pa.concat_tables([self._conditions.filter(part) for part in drawn])
            if not turn:
                refuse_rare(self._conditions, self._share * len(table) / CHUNK, LEAST_SHARE)
            yield table.slice(0, missing)
            missing, turn = missing - min(missing, len(table)), turn + 1


def _fitting(codes: Ints, where: Condition) -> Iterator[Ints]:
    """Yield the rows with the codes of a condition; for models that cannot draw them."""
    for column, listed in where.items():
        codes = codes[np.isin(codes[:, column], listed)]
    yield codes


@dataclass(frozen=True)
class Downloaded:
    """Rows that a service sends when they are first read."""

    rows: int
    _download: Callable[[], pa.Table]
    steps: tuple[Step, ...] = ()
    summary: Summary | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._download().to_batches()

    def draw(self, rows: int | None, seed: int | None, where: Where | None) -> TableSource:
        raise Unsupported(
            "Only the service can draw other rows of a downloaded table.",
            "Synthesize again with the same loss and other `rows` or another `seed`, at no cost.",
        )

    def content(self) -> tuple[Mapping[str, Any], dict[str, Any]]:
        raise Unsupported(
            "The model of a downloaded table is on the service.", "Read the rows with `to_arrow()` or `to_pandas()`."
        )


def _stream(seed: int, number: int) -> int:
    """Return a seed for each table and chunk, so that no two draw the same rows."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{number}".encode()).digest()[:6])
