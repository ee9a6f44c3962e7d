"""The counts of a collection and the ids of its counted reports, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection, bindparam, select, text
from sqlalchemy.exc import IntegrityError

from tidegate.extras import late
from tidegate.ledger.schema import counts

if TYPE_CHECKING:
    import numpy as np

    from tidegate.arrays import Ints
else:
    np = late("numpy")

AT_ONCE = 10_000  # ids per statement
_COUNTS = select(counts).where(counts.c.opened == bindparam("opened"))
_ADD_COUNTS = counts.insert()
# There are hundreds of thousands of ids: use an array in one statement, or the driver's fastest form.
_KNOWN_ARRAY = text("SELECT id FROM tidegate_report_ids WHERE opened = :opened AND id = ANY(CAST(:ids AS bytea[]))")
_ADD_ARRAY = text("INSERT INTO tidegate_report_ids (opened, id) SELECT :opened, unnest(CAST(:ids AS bytea[]))")
_KNOWN_LIST = "SELECT id FROM tidegate_report_ids WHERE opened = ? AND id IN ({})"
_ADD_LIST = "INSERT INTO tidegate_report_ids (opened, id) VALUES (?, ?)"
_SET_COUNTS = (
    counts.update()
    .where(counts.c.opened == bindparam("of"), counts.c.question == bindparam("asked"))
    .values(reports=bindparam("all"), counts=bindparam("packed"))
)


class Overtaken(Exception):
    """Another process counted one of these reports, or closed the collection, in the meantime. Read again."""


@dataclass(frozen=True, eq=False)
class Counted:
    """The counts of one question: of each report code, or of the reports that contain each value."""

    reports: int
    counts: Ints


def known_ids(connection: Connection, opened: int, ids: Sequence[bytes]) -> set[bytes]:
    """Return the ids that were counted."""
    counted_ids: set[bytes] = set()
    for start in range(0, len(ids), AT_ONCE):
        part = list(ids[start : start + AT_ONCE])
        if connection.dialect.name == "sqlite":
            rows = connection.exec_driver_sql(_KNOWN_LIST.format(",".join("?" * len(part))), (opened, *part))
        else:
            rows = connection.execute(_KNOWN_ARRAY, {"opened": opened, "ids": part})
        counted_ids |= {bytes(report_id) for (report_id,) in rows}
    return counted_ids


def add_ids(connection: Connection, opened: int, ids: Iterable[bytes]) -> None:
    """Add ids, or raise `Overtaken` if one exists.

    Ids are added in ascending order: with a million ids, this is three times as fast as random order. (It also hides the
    order of arrival.)
    """
    is_known = False
    try:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(_ADD_LIST, [(opened, report_id) for report_id in sorted(ids)])
        else:
            connection.execute(_ADD_ARRAY, {"opened": opened, "ids": sorted(ids)})
    except IntegrityError:
        is_known = True
    if is_known:
        raise Overtaken


def add_counts(connection: Connection, opened: int, adds: Mapping[str, Ints], *, reports: int) -> dict[str, Counted]:
    """Add the counts of a number of reports; return the totals."""
    before, added_reports = counted(connection, opened), reports
    after = {
        name: Counted(before[name].reports + added_reports, before[name].counts + added)
        if before
        else Counted(added_reports, added)
        for name, added in adds.items()
    }
    if before:
        rows = [{"of": opened, "asked": n, "all": c.reports, "packed": packed(c.counts)} for n, c in after.items()]
        connection.execute(_SET_COUNTS, rows)
    else:
        rows = [
            {"opened": opened, "question": n, "reports": c.reports, "counts": packed(c.counts)}
            for n, c in after.items()
        ]
        connection.execute(_ADD_COUNTS, rows)
    return after


def counted(connection: Connection, opened: int) -> dict[str, Counted]:
    """Return the counts of every question."""
    rows = connection.execute(_COUNTS, {"opened": opened}).mappings()
    return {
        row["question"]: Counted(row["reports"], np.frombuffer(row["counts"], "<i8").astype(np.int64)) for row in rows
    }


def packed(values: Ints) -> bytes:
    """Return counts as they are stored: 64-bit little-endian integers."""
    return np.ascontiguousarray(values, "<i8").tobytes()
