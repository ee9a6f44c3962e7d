"""Leaks besides the noisy numbers: low bits of original values, the seed, unpriced numbers, original values in files.

The original contains sentinels: values that no correct synthetic table contains (outside the lists and bounds, off the
grid, names of persons), and exact values in a column with so many codes that none is met by chance.
"""

from __future__ import annotations

import json
import struct
import tempfile
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegate.audit.bounds import lower_bound
from tidegate.audit.fake_data import simulated_dataset
from tidegate.audit.finding import Finding, judge
from tidegate.audit.syntheses.neighbors import CutShort, limit_average, temporary_ledger
from tidegate.audit.syntheses.prices import check_prices
from tidegate.errors import LedgerBroken
from tidegate.policy import (
    Attribute,
    Category,
    Date,
    EachPerson,
    Grid,
    Integer,
    Key,
    Loss,
    Moment,
    Numeric,
    Policy,
    Shapes,
)
from tidegate.session import Session
from tidegate.synthesize.columns import columns_of, values_of
from tidegate.synthesize.diary import Loss as Spent
from tidegate.synthesize.files import write_tables
from tidegate.synthesize.request import DEFAULT
from tidegate.synthesize.result import SyntheticTables

Arguments = dict[str, Any]
ROWS = 60
EXACT, FINE = 8, 10_000_000  # sentinels of the fine column, and its codes
DRAWN = 20_000  # rows that are searched
WORD = "zq7sentinel"  # in names of persons and in categories outside their list
HUGE = 8_765_432_109_871  # a number outside all bounds
OFF_GRID = 0.123456789012345  # of a step
OFF_CELL = 123_457  # microseconds after the start of a cell


def look_for_leaks(
    policy: Policy,
    names: Sequence[str],
    *,
    epsilon: Fraction = Fraction(1),
    z: Fraction | None = None,
    model: Any = DEFAULT,
    alpha: float,
    seed: int,
) -> list[Finding]:
    """Run all checks on one table with sentinels, at a pure loss or at Z."""
    started = time.monotonic()
    small, fine = _policy(policy, names)
    truth = _table(small, fine)
    arguments: Arguments = {**({"epsilon": epsilon} if z is None else {"z": z}), "model": model, "seed": seed}
    small = small if z is None else limit_average(small, units=ROWS)
    with (
        tempfile.TemporaryDirectory() as first_folder,
        tempfile.TemporaryDirectory() as second_folder,
        tempfile.TemporaryDirectory() as third_folder,
        _open_session(small, truth, first_folder) as session,
        _open_session(small, truth, second_folder) as again,
        _open_session(small, truth, third_folder) as killed,
    ):
        cut_short = interrupt_run(killed, Path(third_folder), arguments)
        first, second = (opened.synthesize(**arguments, progress=False) for opened in (session, again))
        findings = [
            check_grid(first[0].to_arrow(), small),
            check_copies(first, truth, fine, alpha=alpha),
            check_seeds(first, second, session, arguments),
            check_prices(_stored(session, first), charged_loss(first), first.plan),
            check_files(first, Path(first_folder), cut_short),
        ]
    each = (time.monotonic() - started) / len(findings)
    return [replace(finding, seconds=each) for finding in findings]


def interrupt_run(session: Session, folder: Path, arguments: Arguments) -> set[str]:
    """Return the files with original values of a run that is interrupted while its diary is in the ledger."""
    calls = 0

    def stop(stage: str, done: int, of: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise CutShort

    with suppress(CutShort):
        session.synthesize(**arguments, progress=stop)
    return files_with_sentinels(folder)


def charged_loss(tables: SyntheticTables) -> Spent:
    """Return what a new account was charged for each table: the limit of its diary, whatever was requested."""
    total, count = tables.charge.account.totals, len(tables)
    pure = None if total.pure is None else total.pure.value / count
    return Spent(pure, total.z.value / count, total.zcdp.value / count)


def _open_session(policy: Policy, truth: pa.Table, folder: str) -> Session:
    session = Session(policy, table=truth, folder=Path(folder))
    session.share_ledger(temporary_ledger(Path(folder)))
    return session


def _policy(policy: Policy, names: Sequence[str]) -> tuple[Policy, str]:
    """Build a policy from two columns of the original, a fine column of our own, and names of persons."""
    fine, name = "sentinel", "named"
    while fine in policy.attributes or name in policy.attributes:
        fine, name = f"{fine}_", f"{name}_"
    attributes: dict[str, Attribute] = {column: policy.attributes[column] for column in names}
    attributes |= {fine: Integer(0, FINE - 1), name: Key()}
    unit = policy.dataset.unit
    if isinstance(unit, EachPerson):
        unit = replace(unit, key=name)
    shapes = Shapes({column: shape for column, shape in policy.synthesis.columns.items() if column in names})
    dataset = simulated_dataset(policy, rows=None, unit=unit)
    return Policy(dataset, attributes, loss=Loss(1_000_000), synthesis=shapes), fine


def _table(policy: Policy, fine: str) -> pa.Table:
    """Build a table in which every row contains a sentinel."""
    columns: dict[str, pa.Array] = {}
    for name, attribute in policy.attributes.items():
        if isinstance(attribute, Key):
            columns[name] = pa.array([f"{WORD}-{n}" for n in range(ROWS)])
        elif name == fine:
            columns[name] = pa.array([_exact_code(n % EXACT) for n in range(ROWS)])
        else:
            columns[name] = _sentinels(attribute)
    return pa.table(columns)


def _exact_code(number: int) -> int:
    """Return a code of the fine column, spread over the universe."""
    return (2 * number + 1) * FINE // (2 * EXACT) + 137 * number + 41


def _sentinels(attribute: Attribute) -> pa.Array:
    if isinstance(attribute, Category):
        listed = values_of(attribute, np.arange(ROWS) % attribute.size)
        kinds = {str: f"{WORD}-value", int: HUGE, bool: None}
        strange = pa.array([kinds[attribute.value_type]] * ROWS, listed.type)
        return pa.array(
            [
                s if n % 3 == 0 else v
                for n, (v, s) in enumerate(zip(listed.to_pylist(), strange.to_pylist(), strict=True))
            ],
            listed.type,
        )
    if not isinstance(attribute, Numeric):
        raise TypeError("Only columns that can be learned have sentinels")
    if isinstance(attribute, Moment):
        cells = values_of(attribute, np.arange(ROWS) % attribute.size, within=np.full(ROWS, 0.9))
        return cells if isinstance(attribute, Date) else pc.add(cells.cast(pa.int64()), OFF_CELL).cast(cells.type)
    numbers = [float(attribute.low + (n % min(attribute.size, ROWS)) * attribute.width) for n in range(ROWS)]
    if isinstance(attribute, Integer):
        return pa.array([HUGE if n % 3 == 0 else int(v) for n, v in enumerate(numbers)])
    step = float(attribute.width)
    return pa.array([float(HUGE) if n % 5 == 0 else v + OFF_GRID * step for n, v in enumerate(numbers)])


# The checks


def check_grid(table: pa.Table, policy: Policy) -> Finding:
    """Check that every value is on its public list or grid, to the last bit."""
    looked = off = 0
    for name in table.column_names:
        attribute = policy.attributes[name]
        if not isinstance(attribute, Key):
            values = [value for value in table.column(name).to_pylist() if value is not None]
            looked, off = looked + len(values), off + sum(not _public(attribute, value) for value in values)
    return _exact(
        "every value of a synthetic table is on its public grid or list, to the last bit",
        "low bits",
        off / max(1, looked),
        looked,
        f"{off:,} of {looked:,} synthetic values are outside the public grid; the true values had distinctive low bits.",
    )


def _public(attribute: Attribute, value: Any) -> bool:
    if isinstance(attribute, Category):
        return value in attribute.values
    if not isinstance(attribute, Numeric):
        return False
    if isinstance(attribute, Moment):
        position = attribute.position(value)
        whole = isinstance(attribute, Date) or (position is not None and position.denominator == 1)
        return whole and position is not None and 0 <= position < attribute.size
    code = round((Fraction(value) - attribute.low) / attribute.width)
    inside = 0 <= code < attribute.size
    return inside and (
        value == float(attribute.value(code)) if isinstance(attribute, Grid) else value == attribute.value(code)
    )


def check_copies(tables: SyntheticTables, truth: pa.Table, fine: str, *, alpha: float) -> Finding:
    """Check that original values occur no more often than by chance.

    Values are uniform within a cell, so the chance follows from the widths of the cells.
    """
    column = next(column for column in columns_of(tables.plan.policy).learnt if column.name == fine)
    codes = tables[0].draw(DRAWN, seed=1).to_arrow().column(fine).to_numpy()
    true = np.unique(truth.column(fine).to_numpy())
    widths = np.diff(np.append(column.firsts, column.size))
    chances = np.bincount(column.cell_of(true), minlength=widths.size) / widths
    expected, hits = float(chances[column.cell_of(codes)].mean()), int(np.isin(codes, true).sum())
    bound = lower_bound(hits, codes.size, alpha=alpha)
    return Finding(
        verb="synthesize",
        promise="no synthetic row is a copy: exact values of the original occur no more often than by chance",
        attack="copied rows",
        knows="the synthetic table, and some exact values of the original",
        unit="probability",
        bound=bound,
        promised=expected,
        alpha=alpha,
        tries=int(codes.size),
        verdict=judge(bound, expected),
        says=f"{hits:,} of {codes.size:,} synthetic rows contain an exact value of the original in a column of {FINE:,} codes; by chance "
        f"{expected * codes.size:.3g} would.",
    )


def check_seeds(first: SyntheticTables, second: SyntheticTables, session: Session, arguments: Arguments) -> Finding:
    """Check that the seed draws only rows: the same rows again at no cost, different noise in another ledger."""
    again = session.synthesize(**arguments, progress=False)
    other = session.synthesize(**{**arguments, "seed": arguments["seed"] + 1}, progress=False)
    spent = session.account.spent
    wrong = []
    try:
        if not again[0].to_arrow().equals(first[0].to_arrow()) or _numbers(again) != _numbers(first):
            wrong.append("the same seed gives different rows from the same diary")
    except LedgerBroken:
        wrong.append("the diary alone does not reproduce the table: it contains something else")
    if _numbers(other) != _numbers(first) or spent != first.charge.account.spent:
        wrong.append("another seed learns a new model")
    if _numbers(second) == _numbers(first):
        wrong.append("the noise depends on the seed: two ledgers have the same diary")
    return _exact(
        "the seed is public and does not affect the noise",
        "seed",
        float(len(wrong)),
        4,
        "; ".join(wrong) + "."
        if wrong
        else "with one seed two ledgers contain different noise, and one ledger gives the same rows again "
        "at no cost; another seed draws different rows from the same diary.",
    )


def _numbers(tables: SyntheticTables) -> list[Any]:
    return [step.to_dict() for table in tables for step in table.steps]


def _stored(session: Session, tables: SyntheticTables) -> Any:
    receipt = session.ledger.asked_before(session.policy, question=tables.plan.question(), request="")
    return json.loads(json.dumps(receipt.stored)) if receipt is not None else {}


def check_files(tables: SyntheticTables, folder: Path, cut_short: Set[str] = frozenset()) -> Finding:
    """Check that ledger, diary, synthetic files and their page contain no sentinel, byte by byte."""
    for kind in ("parquet", "csv"):
        write_tables(tables, folder / f"out-{kind}", kind=kind)
    (folder / "said.txt").write_text(f"{tables.says()}\n{json.dumps(tables.to_dict())}", "utf-8")
    files = [path for path in folder.rglob("*") if path.is_file()]
    names = sorted({*files_with_sentinels(folder), *cut_short})
    return _exact(
        "no original value is in the ledger, in the diary or in any released file",
        "sentinels",
        len(names) / max(1, len(files)),
        len(files),
        f"values that occur only in the original were searched in {len(files)} files, and in those of an interrupted run: "
        + (f"found in {', '.join(names)}." if names else "none was found."),
    )


def files_with_sentinels(folder: Path) -> set[str]:
    """Return the names of the files below a folder that contain a sentinel, as text or binary; Parquet is also parsed."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    names = {path.name for path in files for token in _tokens() if token in path.read_bytes()}
    return names | {path.name for path in files if path.suffix == ".parquet" and _parquet_has_sentinel(path)}


def _parquet_has_sentinel(path: Path) -> bool:
    table = pq.read_table(path)
    texts = {str(value) for name in table.column_names for value in table.column(name).unique().to_pylist()}
    return any(WORD in text or str(HUGE) in text for text in texts)


def _tokens() -> Iterator[bytes]:
    yield WORD.encode()
    yield str(HUGE).encode()
    yield struct.pack("<q", HUGE)
    yield struct.pack("<d", float(HUGE))


def _exact(promise: str, attack: str, bound: float, tries: int, says: str) -> Finding:
    """Return the finding of an exact check: anything above zero is broken."""
    return Finding(
        verb="synthesize",
        promise=promise,
        attack=attack,
        knows="the synthetic table, the ledger and all files that were written",
        unit="probability",
        bound=min(1.0, bound),
        promised=0.0,
        alpha=0.0,
        tries=tries,
        verdict=judge(bound, 0.0),
        says=says,
    )
