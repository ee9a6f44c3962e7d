"""Many reports at once, drawn and counted: the same exact distributions as on the client, from a ChaCha20 stream.

For simulations and trusted curators.
"""

from __future__ import annotations

import hashlib
import math
import os
from functools import singledispatch
from typing import Any

import numpy as np

from tidegate.arrays import Array, Ints, Ints32, Words
from tidegate.errors import Unsupported
from tidegate.operators import (
    LaplaceNoise,
    Operator,
    RandomizedResponse,
    SquareWave,
    SubsetSelection,
    Unary,
)
from tidegate.operators.additive import AdditiveNoise, EvenNoise
from tidegate.operators.exact_draws import WHOLE
from tidegate_papers.simulation import _kernels
from tidegate_papers.simulation._chacha import state_of

BUFFER = 4096  # words; fits the first-level cache
SMALL = (np.uint8, np.uint16, np.uint32, np.int32)
AT_ONCE = 1 << 30  # reports; a 32-bit counter cannot overflow


class BulkBits:
    """A ChaCha20 stream: keyed by the operating system, or by a seed (FOR TESTS AND SIMULATIONS ONLY)."""

    def __init__(self, seed: str | None = None) -> None:
        key = os.urandom(32) if seed is None else hashlib.sha256(seed.encode()).digest()
        self._state, self._counter = state_of(key), np.uint64(0)
        self._buffer = np.empty(BUFFER, np.uint32)

    def run(self, kernel: Any, codes: Ints32, out: Array, *parameters: Any) -> Array:
        """Let a kernel fill `out`, and continue after the bits that it used."""
        self._counter = kernel(codes, out, self._state, self._counter, self._buffer, *parameters)
        return out

    def run_baskets(self, kernel: Any, starts: Array, items: Ints32, out: Array, *parameters: Any) -> Array:
        """Run a kernel on baskets, as `run` does."""
        self._counter = kernel(starts, items, out, self._state, self._counter, self._buffer, *parameters)
        return out


def sample_many(operator: Operator, codes: Array, bits: BulkBits) -> Array:
    """Draw reports of many values.

    They are 32-bit codes, or for sets rows of 64-bit words (value v is bit v % 64 of word v // 64).
    """
    checked = np.ascontiguousarray(codes, np.int32)
    if checked.size and not (int(checked.min()) >= 0 and int(checked.max()) < operator.values):
        raise Unsupported(f"Codes for {operator.name} must be from 0 to {operator.values - 1:,}.")
    reports: Array = _sample(operator, checked, bits)
    return reports


@singledispatch
def _sample(operator: Operator, codes: Ints32, bits: BulkBits) -> Array:
    raise Unsupported(f"{operator.name} has no bulk form.", "Use sample() for one value at a time.")


@_sample.register
def _(operator: EvenNoise, codes: Ints32, bits: BulkBits) -> Array:
    return bits.run(_kernels.even_noise, codes, np.empty_like(codes), len(operator.weights))


@_sample.register
def _(operator: AdditiveNoise, codes: Ints32, bits: BulkBits) -> Array:
    cut = operator.reach if isinstance(operator, LaplaceNoise) else 0
    slots, keep, alias = alias_table(operator.weights)
    last = operator.report_size - 1
    return bits.run(_kernels.table_noise, codes, np.empty_like(codes), slots, keep, alias, -cut, last)


@_sample.register
def _(operator: SquareWave, codes: Ints32, bits: BulkBits) -> Array:
    wide = 2 * operator.half + 1
    return bits.run(_kernels.square_wave, codes, np.empty_like(codes), operator.near, wide, operator.values)


@_sample.register
def _(operator: RandomizedResponse, codes: Ints32, bits: BulkBits) -> Array:
    _one_layer(operator.again)
    return bits.run(_kernels.response, codes, np.empty_like(codes), operator.keep, operator.values)


@_sample.register
def _(operator: Unary, codes: Ints32, bits: BulkBits) -> Array:
    _one_layer(operator.stay)
    return bits.run(_kernels.unary, codes, _rows(operator, codes), operator.rare, operator.values)


@_sample.register
def _(operator: SubsetSelection, codes: Ints32, bits: BulkBits) -> Array:
    digits = np.array([-digit for digit in head_start(operator)], np.int64).view(np.uint64)
    limits = operator.keep, operator.size, operator.values
    return bits.run(_kernels.subset, codes, _rows(operator, codes), *limits, digits)


def _rows(operator: Operator, codes: Ints32) -> Words:
    return np.empty((codes.size, (operator.values + 63) // 64), np.uint64)


def _one_layer(second: int) -> None:
    if second != WHOLE:
        raise Unsupported("A second layer is drawn on the client, report by report.", "Leave out `each`.")


def head_start(operator: SubsetSelection) -> list[int]:
    """Return the binary digits (lowest first) of the probability with which every other value enters the set at first.

    The size is corrected afterwards. Any digits give the same distribution; these take the least time (measured on one core:
    2.5 ns per word and digit, 8 ns to add a value, three times as much to remove one).
    """
    others, words = operator.values - 1, (operator.values + 63) // 64
    mean = operator.size - float(operator.p)
    below = max(0.0, mean - 0.6 * math.sqrt(mean * (1 - mean / others)))  # low enough that removals are rare

    def cost(count: int) -> float:
        return 2.5 * count * words + 8 * (mean - math.floor(below / others * 2.0**count) * others / 2.0**count)

    count = min(range(9), key=cost)
    chance = math.floor(below / others * 2.0**count)
    return [chance >> index & 1 for index in range(count)]


def alias_table(weights: list[int]) -> tuple[int, Words, Words]:
    """Return Walker's alias table of integer weights that sum to 2**48, with 2**slots slots of equal capacity: exact."""
    slots = max(1, (len(weights) - 1).bit_length())
    full = WHOLE >> slots
    weights_left = [*weights, *([0] * (2**slots - len(weights)))]
    keep, alias = list(weights_left), list(range(2**slots))
    poor = [index for index, weight in enumerate(weights_left) if weight < full]
    rich = [index for index, weight in enumerate(weights_left) if weight >= full]
    while poor and rich:
        low, high = poor.pop(), rich[-1]
        keep[low], alias[low] = weights_left[low], high
        weights_left[high] -= full - weights_left[low]
        if weights_left[high] < full:
            poor.append(rich.pop())
    for index in (*poor, *rich):  # the rest is exactly full
        keep[index] = full
    return slots, np.array(keep, np.uint64), np.array(alias, np.uint64)


def count_many(operator: Operator, reports: Array) -> Ints:
    """Count the reports with each code, or for sets (rows of 64-bit words from `sample_many`) the reports with each value.

    Codes can be stored in one byte or two if they fit: counting is then nearly as fast as reading them.
    """
    if operator.form == "set":
        return _count_sets(operator, reports)
    codes = np.ascontiguousarray(reports if reports.dtype in SMALL else reports.astype(np.int64))
    if codes.ndim != 1 or (codes.size and not (int(codes.min()) >= 0 and int(codes.max()) < operator.report_size)):
        raise Unsupported(f"Reports of {operator.name} must be codes from 0 to {operator.report_size - 1:,}.")
    counts = np.zeros(operator.report_size, np.int64)
    for start in range(0, codes.size, AT_ONCE):
        tables = np.zeros((4, operator.report_size), np.uint32)
        _kernels.count_codes(codes[start : start + AT_ONCE], tables)
        counts += tables.sum(axis=0, dtype=np.int64)
    return counts


def _count_sets(operator: Operator, reports: Array) -> Ints:
    words = (operator.values + 63) // 64
    if reports.ndim != 2 or reports.shape[1] != words or reports.dtype != np.uint64:
        raise Unsupported(f"Reports of {operator.name} must be rows of {words:,} 64-bit words.")
    counts = np.zeros(64 * words, np.int64)
    _kernels.count_rows(np.ascontiguousarray(reports), counts)
    if counts[operator.values :].any():
        raise Unsupported(f"Reports of {operator.name} must have values from 0 to {operator.values - 1:,}.")
    return counts[: operator.values]
