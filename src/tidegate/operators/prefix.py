"""Prefix response: free texts of eight bytes, found again by their prefixes (prefix extending method, PEM).

A text is 64 bits. A person draws one of 15 public prefix lengths, independently of the text, and reports the prefix of this length by
projective geometry response: a prefix x has the vector (1, digits of x in base `prime`), a report is any point of the space, and it
supports the prefixes whose vectors are orthogonal to it. The space is never written down, so it can have more than 2**64 points.

A report is stored as a set of bits: bit l for the length number l, then `width` bits for every coordinate of the point's canonical
vector, least significant bit first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self

from tidegate.errors import Unsupported
from tidegate.exact import say
from tidegate.operators.exact_draws import ONE, WHOLE, Bytes, below, coin, exp_below
from tidegate.operators.operator import EPSILON, Operator, Parameter, Report, is_set, members
from tidegate.operators.projective_geometry import canonical, digits_of, point_count, vector_of

TEXT_BYTES = 8
LENGTHS = (*range(10, 8 * TEXT_BYTES, 4), 8 * TEXT_BYTES)  # 10, 14, ..., 62, 64
MOST_LISTED = 4_096  # texts
LARGEST_PRIME = 251  # a coordinate is one byte
HASHED = Parameter(
    "hashed",
    "1: a text is the first 8 bytes of its SHA-256, and is found in a public list. 0: its own first 8 bytes.",
    kind="count",
    least=Fraction(0),
    most=Fraction(1),
    optional=True,
    example="1",
)


@dataclass(frozen=True)
class Level:
    """One prefix length: the dimension of its space, the probability of a point of the hyperplane, and the channel."""

    length: int
    dimension: int
    points: int
    keep: int
    inside: Fraction
    outside: Fraction
    p: Fraction
    q: Fraction

    @property
    def variance(self) -> float:
        """N times the variance of a rare prefix's share, for the N reports of this length."""
        p, q = float(self.p), float(self.q)
        return q * (1 - q) / (p - q) ** 2


class Prefix(Operator):
    """A prefix length, uniform and public, and the prefix of the text by projective geometry response.

    Order of the draws: the length; a coin; a point of the hyperplane (all coordinates but the first, not all 0), or any point.

    Guarantee:
        Local loss at most epsilon between any two texts, in integer arithmetic: keep is rounded down for every length.
        The length does not depend on the text.

    Reference:
        Wang, Li, Jha 2019 (IEEE TDSC), "Locally differentially private heavy hitter identification"; the response: Feldman,
        Nelson, Nguyen, Talwar 2022.
    """

    name = "prefix"
    parameters = (EPSILON, HASHED)
    form: ClassVar[Literal["code", "set"]] = "set"
    of_texts: ClassVar[bool] = True
    most_values: ClassVar[int] = 1 << 8 * TEXT_BYTES

    def __init__(
        self, *, epsilon: Fraction, hashed: Fraction = Fraction(0), lengths: tuple[int, ...] = LENGTHS
    ) -> None:
        self.values, self.hashed = 1 << lengths[-1], bool(hashed)
        power = exp_below(epsilon)
        self.prime = best_prime(power)
        self.levels = tuple(_level(length, self.prime, power) for length in lengths)
        self.width = (self.prime - 1).bit_length()
        self.report_size = len(lengths) + self.levels[-1].dimension * self.width

    @classmethod
    def from_parameters(
        cls, values: int, step: Fraction, chosen: Mapping[str, Fraction], plans: Iterable[Any] = ()
    ) -> Self:
        return cls(epsilon=chosen["epsilon"], hashed=chosen.get("hashed", Fraction(0)))

    @property
    def gamma(self) -> Fraction:
        return max(level.inside / level.outside for level in self.levels)

    def rare_variance(self) -> float:
        """Return N times the variance of a rare text's share: one report in as many as there are lengths has the whole text."""
        return len(self.levels) * self.levels[-1].variance

    def prefix(self, value: int, level: Level) -> int:
        """Return the first bits of a value."""
        return value >> (self.levels[-1].length - level.length)

    def vector(self, prefix: int, level: Level) -> list[int]:
        """Return the vector of a prefix of this length."""
        return [1, *digits_of(prefix, self.prime, level.dimension - 1)]

    def probability(self, report: Report, value: int) -> Fraction:
        index, point = self.read(report)
        level = self.levels[index]
        pairs = zip(point, self.vector(self.prefix(value, level), level), strict=True)
        is_supported = sum(a * b for a, b in pairs) % self.prime == 0
        return (level.inside if is_supported else level.outside) / len(self.levels)

    def sample(self, value: int, source: Bytes) -> Report:
        index = below(len(self.levels), source)
        level = self.levels[index]
        if not coin(level.keep, source):
            return self.written(index, vector_of(below(level.points, source), self.prime, level.dimension))
        own = self.vector(self.prefix(value, level), level)
        free = digits_of(1 + below(self.prime ** (level.dimension - 1) - 1, source), self.prime, level.dimension - 1)
        dot = sum(a * b for a, b in zip(free, own[1:], strict=True))
        return self.written(index, canonical([-dot % self.prime, *free], self.prime))

    def written(self, index: int, point: list[int]) -> Report:
        """Return a length number and a canonical vector as a report."""
        start, width = len(self.levels), self.width
        bits = (
            start + position * width + bit
            for position, coordinate in enumerate(point)
            for bit in range(width)
            if coordinate >> bit & 1
        )
        return [index, *bits]

    def read(self, report: Report) -> tuple[int, list[int]]:
        """Return the length number and the vector of a report."""
        index, *bits = members(report)
        point = [0] * self.levels[index].dimension
        for bit in bits:
            position, digit = divmod(bit - len(self.levels), self.width)
            point[position] |= 1 << digit
        return index, point

    def accepts(self, report: Any) -> bool:
        """Return whether a report is one length and the canonical vector of a point."""
        start = len(self.levels)
        if not is_set(report, self.report_size) or len(report) < 2 or not report[0] < start <= report[1]:
            return False
        if report[-1] >= start + self.levels[report[0]].dimension * self.width:
            return False
        _, point = self.read(report)
        return max(point) < self.prime and next(coordinate for coordinate in point if coordinate) == 1

    def reports(self) -> Iterator[Report]:
        for index, level in enumerate(self.levels):
            for point in range(level.points):
                yield self.written(index, vector_of(point, self.prime, level.dimension))

    def sent_words(self, report: Report) -> str:
        """Return a report as text."""
        index, point = self.read(report)
        bits = f"the first {self.levels[index].length} of {self.levels[-1].length} bits of your text"
        return f"the numbers {' '.join(map(str, point))} about {bits}"

    def concluded(self) -> str:
        """Return what a holder can conclude from a report, as a sentence."""
        share = sum((level.p for level in self.levels), Fraction(0)) / len(self.levels)
        return (
            f"The number of bits was drawn at random. A report fits your text with probability {say(share, 2)}; from it no odds between "
            f"two texts change more than {say(self.gamma)} times."
        )

    def likelihoods(self, report: Report) -> list[Fraction]:
        if self.values > MOST_LISTED:
            raise Unsupported(f"There are 2**{self.levels[-1].length} texts, too many to list.", "Call `probability`.")
        return super().likelihoods(report)

    def exact_channel(self) -> list[list[Fraction]]:
        return [self.likelihoods(report) for report in self.reports()]

    def recipe(self) -> dict[str, Any]:
        levels = [{"length": o.length, "dimension": o.dimension, "keep": o.keep} for o in self.levels]
        return {"draw": self.name, "prime": self.prime, "width": self.width, "levels": levels}


def _level(length: int, prime: int, power: int) -> Level:
    dimension = 2
    while prime ** (dimension - 1) < 1 << length:
        dimension += 1
    points, hyperplane = point_count(prime, dimension), point_count(prime, dimension - 1)
    common, odds = point_count(prime, dimension - 2), (power - ONE) * hyperplane
    keep = WHOLE * odds // (points * ONE + odds)
    outside = (1 - Fraction(keep, WHOLE)) / points
    inside = outside + Fraction(keep, WHOLE) / hyperplane
    p, q = inside * hyperplane, inside * common + outside * (hyperplane - common)
    return Level(length, dimension, points, keep, inside, outside, p, q)


@lru_cache(maxsize=256)
def best_prime(power: int) -> int:
    """Return the prime with the least variance in a large space, (g + q - 1)**2 / (q - 1); `power` is g over `ONE`."""
    best = 2
    for prime in range(3, LARGEST_PRIME + 1, 2):
        is_prime = all(prime % divisor for divisor in range(3, int(prime**0.5) + 1, 2))
        if is_prime and (power + (prime - 1) * ONE) ** 2 * (best - 1) < (power + (best - 1) * ONE) ** 2 * (prime - 1):
            best = prime
    return best
