"""Bitsets: every count equals the reference implementation, in memory and on disk, for each basket size."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import baskets as slow
from tidegate_papers.simulation._kernels import count_rows
from tidegate_papers.simulation.baskets import Baskets, randomize_baskets
from tidegate_papers.simulation.values import BulkBits

from tidegate.collect.baskets import bitsets as stored
from tidegate.collect.baskets import cut_and_paste, mask
from tidegate.collect.baskets.bitsets import BitsetFolder, Bitsets
from tidegate.errors import Unsupported


def some_rows(reports: int, items: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    return Baskets.of([np.flatnonzero(random.random(items) < 0.4) for _ in range(reports)]).rows(-(-items // 64))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 700), st.integers(1, 140), st.integers(0, 99))
def test_item_counts_equal_the_reference(reports: int, items: int, seed: int) -> None:
    rows = some_rows(reports, items, seed)
    expected = slow.counts(slow.members(rows), [(item,) for item in range(items)])
    out = np.zeros(64 * rows.shape[1], np.int64)
    count_rows(rows, out)
    assert out[:items].tolist() == expected
    assert Bitsets.of(rows, vocabulary_size=items).item_counts().tolist() == expected


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("reports", "items"), [(1, 2), (63, 5), (130, 9), (600, 70), (40_000, 6)])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_counts_of_pairs_and_larger_itemsets_equal_the_reference(reports: int, items: int, threads: int) -> None:
    rows = some_rows(reports, items, 3)
    bitsets, members = Bitsets.of(rows, vocabulary_size=items), slow.members(rows)
    few = range(min(items, 9))
    pairs = bitsets.pair_counts(threads=threads)
    assert np.array_equal(pairs, pairs.T)
    assert pairs.diagonal().tolist() == bitsets.item_counts().tolist()
    for size in (1, 2, 3, 4):
        itemsets = np.array(list(combinations(few, size)), np.int64).reshape(-1, size)
        expected = slow.counts(members, itemsets.tolist())
        assert bitsets.counts(itemsets, threads=threads).tolist() == expected
        if size == 2:
            assert [pairs[first, second] for first, second in itemsets] == expected


def test_empty_itemset_is_in_every_report() -> None:
    assert Bitsets.of(some_rows(77, 5, 1), vocabulary_size=5).counts(np.zeros((2, 0), int)).tolist() == [77, 77]


def test_unknown_item_is_refused() -> None:
    with pytest.raises(Unsupported, match="item code outside"):
        Bitsets.of(some_rows(7, 5, 1), vocabulary_size=5).counts(np.array([[0, 5]]))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("where", ["folder", "memory"])
def test_stored_chunks_count_every_size_separately(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "CHUNK", 100)
    path = str(tmp_path / "bits") if where == "folder" else f"memory://{tmp_path.name}"
    operator = cut_and_paste(2, "0.1", range(4), vocabulary_size=63)
    random = np.random.default_rng(5)
    baskets = Baskets.of([random.choice(63, random.integers(0, 4), replace=False) for _ in range(1000)])
    rows = randomize_baskets(operator, baskets, BulkBits("stored"))
    for part in np.array_split(rows, 3):
        BitsetFolder(path, operator).append(part)
    counters = BitsetFolder(path, operator).counters()
    itemsets = list(combinations(range(8), 2))
    assert set(counters) == {0, 1, 2, 3}
    for size, counter in counters.items():
        members = slow.members(rows[baskets.sizes == size])
        assert counter.reports == len(members)
        assert counter.counts(np.array(itemsets)).tolist() == slow.counts(members, itemsets)
        assert [counter.pair_counts()[pair] for pair in itemsets] == slow.counts(members, itemsets)
        assert counter.item_counts().tolist() == slow.counts(members, [(item,) for item in range(63)])


def test_reports_without_a_size_are_counted_together(tmp_path: Path) -> None:
    operator = mask("0.9", vocabulary_size=40)
    folder = BitsetFolder(str(tmp_path), operator)
    folder.append(randomize_baskets(operator, Baskets.of([[1, 2], [3], []]), BulkBits("some")))
    assert {size: counter.reports for size, counter in folder.counters().items()} == {0: 3}
    with pytest.raises(Unsupported, match="another operator"):
        BitsetFolder(str(tmp_path), mask("0.9", vocabulary_size=41))


@pytest.mark.parametrize("where", ["folder", "memory"])
def test_concurrent_writers_lose_no_report(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All chunks have the same size and number of reports: names that count the chunks would be written over."""
    monkeypatch.setattr(stored, "CHUNK", 10)
    path = str(tmp_path / "bits") if where == "folder" else f"memory://{tmp_path.name}"
    operator = mask("0.9", vocabulary_size=40)
    rows = randomize_baskets(operator, Baskets.of([[1, 2]] * 200), BulkBits("some"))
    BitsetFolder(path, operator)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: BitsetFolder(path, operator).append(rows), range(8)))
    assert BitsetFolder(path, operator).counters()[0].reports == 1600


def test_incomplete_chunk_is_never_counted(tmp_path: Path) -> None:
    """As a writer that was killed leaves it."""
    operator = mask("0.9", vocabulary_size=40)
    folder = BitsetFolder(str(tmp_path), operator)
    folder.append(randomize_baskets(operator, Baskets.of([[1, 2], [3], []]), BulkBits("some")))
    (tmp_path / ".size=0-0123456789abcdef-7.bits").write_bytes(b"half")
    assert folder.counters()[0].reports == 3
    assert folder.counters()[0].item_counts().sum() > 0
