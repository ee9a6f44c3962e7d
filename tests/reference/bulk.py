"""Reference implementations of bulk randomization: ChaCha20 in Python integers, and every report drawn word by word."""

from __future__ import annotations

import hashlib

from tidegate_papers.simulation.values import head_start

from tidegate.operators import Operator, RandomizedResponse, SquareWave, SubsetSelection, Unary
from tidegate.operators.additive import AdditiveNoise, EvenNoise
from tidegate.operators.laplace import LaplaceNoise

MASK = 2**32 - 1
BUFFER = 4096


def block(key: bytes, counter: int, nonce: tuple[int, int] = (0, 0)) -> list[int]:
    """One block of ChaCha20 (RFC 8439, with a counter of 64 bits)."""
    words = [key[i : i + 4] for i in range(0, 32, 4)]
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *(int.from_bytes(word, "little") for word in words)]
    start += [counter & MASK, counter >> 32, *nonce]
    x = list(start)

    def turn(value: int, places: int) -> int:
        return ((value << places) | (value >> (32 - places))) & MASK

    def quarter(a: int, b: int, c: int, d: int) -> None:
        x[a] = (x[a] + x[b]) & MASK
        x[d] = turn(x[d] ^ x[a], 16)
        x[c] = (x[c] + x[d]) & MASK
        x[b] = turn(x[b] ^ x[c], 12)
        x[a] = (x[a] + x[b]) & MASK
        x[d] = turn(x[d] ^ x[a], 8)
        x[c] = (x[c] + x[d]) & MASK
        x[b] = turn(x[b] ^ x[c], 7)

    for _ in range(10):
        for q in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)):
            quarter(*q)
        for q in ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            quarter(*q)
    return [(word + initial) & MASK for word, initial in zip(x, start, strict=True)]


class Stream:
    """Words in the order of the fast one: sixteen blocks lie lane by lane; a need that does not fit drops the rest."""

    def __init__(self, seed: str) -> None:
        self.key, self.counter = hashlib.sha256(seed.encode()).digest(), 0
        self.words: list[int] = []
        self.at = BUFFER

    def need(self, count: int) -> None:
        if self.at + count > BUFFER:
            self._refill()

    def _refill(self) -> None:
        self.words, self.at = [], 0
        for _ in range(BUFFER // 256):
            blocks = [block(self.key, self.counter + lane) for lane in range(16)]
            self.words += [blocks[lane][word] for word in range(16) for lane in range(16)]
            self.counter += 16

    def word(self) -> int:
        self.need(1)
        self.at += 1
        return self.words[self.at - 1]

    def whole(self) -> int:
        return (self.word() << 16) | (self.word() >> 16)

    def below(self, bound: int) -> int:
        while True:
            product = self.word() * bound
            if product & MASK >= 2**32 % bound:
                return product >> 32


def report(operator: Operator, value: int, stream: Stream, alias: tuple[int, list[int], list[int]] | None) -> object:
    """One report, as the fast kernel draws it; sets as Python sets."""
    return DRAWS[kind_of(operator)](operator, value, stream, alias)


def kind_of(operator: Operator) -> type:
    return next(kind for kind in DRAWS if isinstance(operator, kind))


def even(operator: EvenNoise, value: int, stream: Stream, _: object) -> int:
    return value + stream.below(2 * operator.reach + 1)


def table(operator: AdditiveNoise, value: int, stream: Stream, alias: tuple[int, list[int], list[int]]) -> int:
    slots, keep, other = alias
    stream.need(2)
    drawn = stream.whole()
    slot, rest = drawn >> (48 - slots), drawn & (2 ** (48 - slots) - 1)
    index = slot if rest < keep[slot] else other[slot]
    if isinstance(operator, LaplaceNoise):
        return min(max(value + index - operator.reach, 0), operator.values - 1)
    return value + index


def wave(operator: SquareWave, value: int, stream: Stream, _: object) -> int:
    stream.need(3)
    if stream.whole() < operator.near:
        return value + stream.below(2 * operator.half + 1)
    far = stream.below(operator.values - 1)
    return far if far < value else far + 2 * operator.half + 1


def response(operator: RandomizedResponse, value: int, stream: Stream, _: object) -> int:
    stream.need(3)
    stays, other = stream.whole() < operator.keep, stream.below(operator.values - 1)
    return value if stays else other + (other >= value)


def unary(operator: Unary, value: int, stream: Stream, _: object) -> set[int]:
    """Coin by coin: bit b of the k-th random word is digit k of the number that coin b compares with the threshold."""
    members = set()
    for start in range(0, operator.values, 64):
        numbers, undecided, digit = [0] * 64, set(range(64)), 47
        stream.need(96)
        while digit > 39 or (undecided and digit >= 0 and operator.rare % 2 ** (digit + 1)):
            random = stream.word() << 32 | stream.word()
            for coin in list(undecided):
                numbers[coin] = numbers[coin] * 2 + (random >> coin & 1)
                if numbers[coin] != operator.rare >> digit:
                    undecided.discard(coin)
                    if numbers[coin] < operator.rare >> digit:
                        members.add(start + coin)
            digit -= 1
    members = {code for code in members if code < operator.values} - {value}
    return members | ({value} if stream.word() & 1 else set())


def subset(operator: SubsetSelection, value: int, stream: Stream, _: object) -> set[int]:
    """A coin for each other value (less than the chance, digit by digit), then others until the size is right."""
    stream.need(2)
    stays = stream.whole() < operator.keep
    digits, members = head_start(operator), set()
    for start in range(0, operator.values, 64):
        stream.need(2 * len(digits))
        words = [stream.word() << 32 | stream.word() for _ in digits]
        for coin in range(64):
            number = sum((1 - (word >> coin & 1)) << power for power, word in enumerate(words))
            if number < sum(digit << power for power, digit in enumerate(digits)):
                members.add(start + coin)
    members = {code for code in members if code < operator.values} - {value}
    while len(members) != operator.size - stays:
        other = stream.below(operator.values - 1)
        other += other >= value
        if (other in members) == (len(members) > operator.size - stays):
            members ^= {other}
    return members | ({value} if stays else set())


DRAWS = {
    EvenNoise: even,
    AdditiveNoise: table,
    SquareWave: wave,
    RandomizedResponse: response,
    Unary: unary,
    SubsetSelection: subset,
}
