"""Bulk randomization: the stream is ChaCha20, the tables are exact, and every kernel equals its reference."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from golden.papers import paper
from hypothesis import given
from hypothesis import strategies as st
from reference import bulk as slow
from tidegate_papers.simulation._chacha import fill, state_of
from tidegate_papers.simulation.values import BulkBits, alias_table, count_many, sample_many

from tidegate.errors import Unsupported
from tidegate.operators import (
    GaussianNoise,
    LaplaceNoise,
    Operator,
    RandomizedResponse,
    SquareWave,
    SubsetSelection,
    Unary,
    UniformNoise,
)
from tidegate.operators.exact_draws import WHOLE

F = Fraction
RFC_KEY = bytes(range(32))
RFC_NONCE = (0x09000000, 0x4A000000, 0)
RFC_BLOCK = bytes.fromhex(
    "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
    "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
)


def blocks(state: np.ndarray, counter: int, count: int = 16) -> list[bytes]:
    out = np.empty(256 * -(-count // 16), np.uint32)
    fill(state, np.uint64(counter), out)
    return [group[:, lane].astype("<u4").tobytes() for group in out.reshape(-1, 16, 16) for lane in range(16)][:count]


@paper("RFC 8439, 2.3.2")
def test_stream_is_chacha20() -> None:
    high = 1 | RFC_NONCE[0] << 32  # the second word of our counter is the first of the RFC's nonce
    assert blocks(state_of(RFC_KEY, RFC_NONCE[1:]), high)[0] == RFC_BLOCK


@pytest.mark.parametrize("counter", [0, 2**32 - 3, 2**40])
def test_all_lanes_equal_the_blocks_of_the_reference(counter: int) -> None:
    ours = blocks(state_of(RFC_KEY), counter, 40)
    for lane in range(40):
        assert ours[lane] == np.array(slow.block(RFC_KEY, counter + lane), "<u4").tobytes()


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=70))
def test_alias_table_gives_every_index_exactly_its_weight(parts: list[int]) -> None:
    weights = [part * WHOLE // sum(parts) for part in parts]
    weights[0] += WHOLE - sum(weights)
    slots, keep, alias = alias_table(weights)
    full = WHOLE >> slots
    assigned = [0] * 2**slots
    for slot in range(2**slots):
        assigned[slot] += int(keep[slot])
        assigned[int(alias[slot])] += full - int(keep[slot])
    assert assigned == [*weights, *([0] * (2**slots - len(weights)))]


OPERATORS = [
    UniformNoise(45, half_width=24),
    UniformNoise(3, half_width=60_000),
    GaussianNoise(45, sigma=F(12)),
    LaplaceNoise(45, epsilon=F(2)),
    SquareWave(45, epsilon=F(2)),
    SquareWave(2, epsilon=F(1)),
    RandomizedResponse(2, epsilon=F(1)),
    RandomizedResponse(300, epsilon=F(4)),
    Unary(5, epsilon=F(1)),
    Unary(64, epsilon=F(1, 2)),
    Unary(130, epsilon=F(3)),
    SubsetSelection(2, epsilon=F(1)),
    SubsetSelection(64, epsilon=F(1)),
    SubsetSelection(130, epsilon=F(1)),
    SubsetSelection(300, epsilon=F(4)),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: f"{operator.name} {operator.values}")
def test_kernel_draws_equal_those_of_the_reference(operator: Operator) -> None:
    codes = np.arange(3000 if operator.form == "code" else 400) * 7 % operator.values
    fast = sample_many(operator, codes, BulkBits("twin"))
    stream, alias = slow.Stream("twin"), None
    if isinstance(operator, GaussianNoise | LaplaceNoise):
        slots, keep, other = alias_table(operator.weights)
        alias = slots, keep.tolist(), other.tolist()
    assert [as_set(row) if operator.form == "set" else int(row) for row in fast] == [
        slow.report(operator, int(code), stream, alias) for code in codes
    ]


@pytest.mark.parametrize("size", [0, 1, 3, 10_001])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int32, np.int64])
def test_counts_of_codes_equal_those_of_bincount(kind: type, size: int) -> None:
    operator = SquareWave(45, epsilon=F(2))
    reports = sample_many(operator, np.arange(size) % 45, BulkBits("counted")).astype(kind)
    assert count_many(operator, reports).tolist() == np.bincount(reports, minlength=operator.report_size).tolist()


@pytest.mark.parametrize("operator", [Unary(5, epsilon=F(1)), SubsetSelection(130, epsilon=F(1))])
def test_counts_of_sets_equal_those_of_their_members(operator: Operator) -> None:
    reports = sample_many(operator, np.arange(1003) % operator.values, BulkBits("counted"))
    expected = [sum(value in members for members in map(as_set, reports)) for value in range(operator.values)]
    assert count_many(operator, reports).tolist() == expected


@pytest.mark.parametrize("reports", [np.array([77]), np.array([-1]), np.array([[1]]), np.array([200], np.uint8)])
def test_impossible_codes_are_not_counted(reports: np.ndarray) -> None:
    with pytest.raises(Unsupported, match="must be codes from 0 to"):
        count_many(SquareWave(45, epsilon=F(2)), reports)


def test_impossible_sets_are_not_counted() -> None:
    with pytest.raises(Unsupported, match="must have values from 0 to 4"):
        count_many(Unary(5, epsilon=F(1)), np.array([[1 << 5]], np.uint64))
    with pytest.raises(Unsupported, match="rows of 1 64-bit words"):
        count_many(Unary(5, epsilon=F(1)), np.zeros((3, 2), np.uint64))


def as_set(row: np.ndarray) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


def test_no_bit_and_no_key_is_used_twice() -> None:
    operator, codes, seeded = SquareWave(45, epsilon=F(2)), np.zeros(1000, int), BulkBits("same")
    first, second = sample_many(operator, codes, seeded), sample_many(operator, codes, seeded)
    assert (first != second).any()
    assert (sample_many(operator, codes, BulkBits("same")) == first).all()
    assert (sample_many(operator, codes, BulkBits()) != sample_many(operator, codes, BulkBits())).any()


def test_codes_outside_and_second_layers_are_refused() -> None:
    with pytest.raises(Unsupported, match="must be from 0 to 4"):
        sample_many(Unary(5, epsilon=F(1)), np.array([5]), BulkBits("x"))
    with pytest.raises(Unsupported, match="second layer"):
        sample_many(Unary(5, epsilon=F(2), each=F(1)), np.array([1]), BulkBits("x"))
