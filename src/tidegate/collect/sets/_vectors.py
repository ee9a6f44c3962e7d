"""Eight words of 64 bits at a time, on whatever machine numba compiles for: coins thrown side by side, bits counted."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

EIGHT = 8
_VECTOR = ir.VectorType(ir.IntType(64), EIGHT)


def _at(context: Any, build: Any, kind: Any, array: Any, place: Any) -> Any:
    """Where eight words of an array begin."""
    data = context.make_array(kind)(context, build, array).data
    return build.bitcast(build.gep(data, [place]), _VECTOR.as_pointer())


def _throw(context: Any, build: Any, signature: Any, args: Any) -> Any:
    stream, place, digit, coins = args
    zero, eight = (ir.Constant(ir.IntType(64), number) for number in (0, EIGHT))
    random = build.load(_at(context, build, signature.args[0], stream, place), align=8)
    open_at, heads_at = (_at(context, build, signature.args[3], coins, start) for start in (zero, eight))
    undecided, heads = build.load(open_at, align=8), build.load(heads_at, align=8)
    one = build.insert_element(ir.Constant(_VECTOR, ir.Undefined), digit, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), EIGHT), [0] * EIGHT)
    digits = build.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), mask)
    less = build.and_(build.not_(random), digits)
    left = build.and_(undecided, build.not_(build.xor(random, digits)))
    build.store(build.or_(heads, build.and_(undecided, less)), heads_at, align=8)
    build.store(left, open_at, align=8)
    some = build.icmp_unsigned("!=", left, ir.Constant(_VECTOR, [0] * EIGHT))
    return build.zext(build.bitcast(some, ir.IntType(EIGHT)), ir.IntType(64))


def throw(typing: Any, stream: Any, place: Any, digit: Any, coins: Any) -> Any:
    """Compare one more random digit of 512 coins with theirs: `coins` holds eight words of undecided, eight of heads.

    `digit` is all ones or all zeros: the digit of the probability. Returns 0 where every coin is decided.
    """
    return types.int64(stream, types.int64, types.uint64, coins), _throw


def popcount(typing: Any, word: Any) -> Any:
    """How many bits of a word are set."""

    def made(context: Any, build: Any, signature: Any, args: Any) -> Any:
        return build.ctpop(args[0])

    return types.uint64(types.uint64), made


throw_digit: Any = intrinsic(throw)
bits_in: Any = intrinsic(popcount)
