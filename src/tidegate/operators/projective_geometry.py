"""Projective geometry response (PGR): a report of about twenty bits about one of up to a million categories.

Values and reports are points of a projective space over a prime field. A point is its canonical vector, whose first
nonzero coordinate is 1. The vector of code i is the base-`prime` number q**j + (i - (q**j - 1) / (q - 1)), where j is the
largest integer with (q**j - 1) / (q - 1) <= i: code 0 is (0, ..., 0, 1), and codes of one j share the position of the leading 1.
A report supports a value if their vectors are orthogonal.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from tidegate.operators.channel import Support
from tidegate.operators.exact_draws import ONE, WHOLE, Bytes, below, coin, exp_below
from tidegate.operators.operator import EPSILON, Pure, Report, code

if TYPE_CHECKING:
    from tidegate.arrays import Floats, Ints

MOST_VECTORS = 1 << 26  # of the space; decoding takes this many steps
RESIDUE = 0.05  # the largest distance of a decoded count from an integer


class ProjectiveGeometry(Pure):
    """With probability keep / 2**48 a point of the hyperplane orthogonal to the value's point, else any point.

    Guarantee:
        Local loss at most epsilon, in integer arithmetic: keep is rounded down. A report that supports the value is
        1 + keep points / ((2**48 - keep) in_hyperplane) times as likely as one that does not.

    Needs:
        At most 2**20 values.

    Reference:
        Feldman, Nelson, Nguyen, Talwar 2022 (ICML), "Private frequency estimation via projective geometry".
    """

    name = "projective-geometry"
    parameters = (EPSILON,)
    most_values: ClassVar[int] = 1 << 20
    supports_several: ClassVar[bool] = True

    def __init__(self, values: int, *, epsilon: Fraction) -> None:
        self.values = values
        power = exp_below(epsilon)
        self.prime, self.dimension = best_space(values, power)
        self.report_size = point_count(self.prime, self.dimension)
        self.in_hyperplane = point_count(self.prime, self.dimension - 1)
        common = point_count(self.prime, self.dimension - 2)
        odds = (power - ONE) * self.in_hyperplane
        self.keep = WHOLE * odds // (self.report_size * ONE + odds)
        self.outside = (1 - Fraction(self.keep, WHOLE)) / self.report_size
        self.inside = self.outside + Fraction(self.keep, WHOLE) / self.in_hyperplane
        self.p = self.inside * self.in_hyperplane
        self.q = self.inside * common + self.outside * (self.in_hyperplane - common)

    @property
    def gamma(self) -> Fraction:
        return self.inside / self.outside

    def vector(self, point: int) -> list[int]:
        """Return the canonical vector of a code."""
        return vector_of(point, self.prime, self.dimension)

    def point(self, vector: list[int]) -> int:
        """Return the code of the point of any nonzero vector."""
        number, size, start = 0, 1, 0
        for coordinate in canonical(vector, self.prime):
            number = number * self.prime + coordinate
        while 2 * size <= number and size * self.prime <= number:
            start, size = start + size, size * self.prime
        return start + number - size

    def is_supported(self, report: int, value: int) -> bool:
        """Return whether the report supports the value."""
        pairs = zip(self.vector(report), self.vector(value), strict=True)
        return sum(a * b for a, b in pairs) % self.prime == 0

    def probability(self, report: Report, value: int) -> Fraction:
        return self.inside if self.is_supported(code(report), value) else self.outside

    def sample(self, value: int, source: Bytes) -> Report:
        """Draw a coin, then a point. In the hyperplane, one integer gives all coordinates but that of the value's leading 1."""
        if not coin(self.keep, source):
            return below(self.report_size, source)
        number = 1 + below(self.prime ** (self.dimension - 1) - 1, source)
        free, own = digits_of(number, self.prime, self.dimension - 1), self.vector(value)
        lead = own.index(1)  # all coordinates before it are 0
        dot = sum(a * b for a, b in zip(free[lead:], own[lead + 1 :], strict=True))
        return self.point([*free[:lead], -dot % self.prime, *free[lead:]])

    def reports(self) -> Iterator[Report]:
        return iter(range(self.report_size))

    def likeliest(self, report: Report) -> tuple[int, int, Fraction]:
        supported = self.supported_count(code(report))
        if not supported:
            return 0, self.values, Fraction(1, self.values)
        first = next(value for value in range(self.values) if self.is_supported(code(report), value))
        total = supported * self.inside + (self.values - supported) * self.outside
        return first, supported, self.inside / total

    def supported_count(self, report: int) -> int:
        """Return how many values a report supports, without looking at each."""
        vector = self.vector(report)
        zeros = next(index for index, coordinate in enumerate(reversed(vector)) if coordinate)
        whole, levels, digits, prefix = self._parts()
        counted = _in_levels(self.prime, zeros, levels)
        if zeros >= levels:
            return counted + (whole if zeros > levels else 0)
        lead = vector[-1 - zeros]
        dot = sum(a * b for a, b in zip(vector[: -1 - zeros], prefix[: -1 - zeros], strict=True))
        chosen = -dot * pow(lead, -1, self.prime) % self.prime
        return counted + _in_part(self.prime, zeros, digits, chosen, whole)

    def _parts(self) -> tuple[int, int, list[int], list[int]]:
        """Return the values beyond the last complete level, that level, their number in digits, and as a vector."""
        levels, size, rest = 0, 1, self.values
        while rest >= size and levels < self.dimension:
            rest, size, levels = rest - size, size * self.prime, levels + 1
        digits = digits_of(rest, self.prime, self.dimension)
        prefix = list(digits)
        if levels < self.dimension:
            prefix[-1 - levels] = 1
        return rest, levels, digits, prefix

    def member_chances(self) -> dict[int, float]:
        """Return the probability of each number of supported values, for equally likely values.

        Reports are grouped by the number of zeros at the end of their vectors. In a group, everything but one inner
        product is the same, and this product is uniform.
        """
        q, t, k = self.prime, self.dimension, self.values
        whole, levels, digits, _ = self._parts()
        points: dict[int, int] = {}
        for zeros in range(t):
            group, base = q ** (t - zeros - 1), _in_levels(q, zeros, levels)
            cases: dict[int, int] = {}
            if zeros >= levels or not whole:
                cases[base + (whole if zeros > levels else 0)] = group
            else:
                for chosen in range(q):
                    count = base + _in_part(q, zeros, digits, chosen, whole)
                    cases[count] = cases.get(count, 0) + group // q
            for count, number in cases.items():
                points[count] = points.get(count, 0) + number
        inside, outside = float(self.inside), float(self.outside)
        return {count: n * (count * inside + (k - count) * outside) / k for count, n in points.items() if n}

    def member_counts(self) -> range:
        return range(min(self.member_chances()), max(self.member_chances()) + 1)

    def pick_chance(self) -> float:
        """Return the chance that one value picked from the report is the true one; any value if it supports none."""
        g, k = float(self.gamma), self.values
        chances = self.member_chances().items()
        return sum(chance * (g / (c * g + k - c) if c else 1 / k) for c, chance in chances)

    def support(self) -> Support:
        """Return the probabilities of support; that of two other values is its mean over all third values."""
        lines, q, t = point_count(self.prime, self.dimension - 2), self.prime, self.dimension
        on_line = Fraction(q - 1, self.report_size - 2)  # the third value is on the line of the two
        three = point_count(q, t - 3)
        apart = self.inside * three + self.outside * (lines - three)
        without = on_line * self.inside * lines + (1 - on_line) * apart
        return Support(float(self.p), float(self.q), float(self.inside * lines), float(without))

    def column(self, value: int) -> Floats:
        import numpy as np

        own, q = self.vector(value), self.prime
        dots, tails = [], np.zeros(1, np.int64)
        for level in range(self.dimension):
            dots.append((own[-1 - level] + tails) % q)
            tails = ((own[-1 - level] * np.arange(q))[:, None] + tails).ravel() % q
        return np.where(np.concatenate(dots) == 0, float(self.inside), float(self.outside))

    def supports(self, counts: Ints) -> Floats:
        """Return the number of reports that support each value, from the number of each report.

        For values whose leading 1 has j coordinates behind it, this is a Fourier transform over (Z_q)**j of the reports,
        each at all of its multiples. The cost depends on the space, not on the number of reports.

        Raises:
            ArithmeticError: A count is too far from an integer.
        """
        import numpy as np

        q, top, total = self.prime, self.dimension - 1, int(counts.sum())
        placed = _at_their_vectors(np.asarray(counts, np.float64), q, top)
        columns, decoded = np.array(placed), []  # (coordinate at the leading 1, coordinates behind it)
        for level in range(top, -1, -1):
            decoded.append(_orthogonal(columns, q, level, total))
            if level:
                columns = columns.sum(axis=0).reshape(q, -1)
        return np.asarray(np.concatenate(decoded[::-1])[: self.values])

    def recipe(self) -> dict[str, Any]:
        space = {"prime": self.prime, "dimension": self.dimension}
        return {"draw": self.name, "values": self.values, **space, "keep": self.keep}


def point_count(prime: int, dimension: int) -> int:
    """Return the number of points of the projective space of vectors with `dimension` coordinates."""
    return (prime**dimension - 1) // (prime - 1) if dimension > 0 else 0


@lru_cache(maxsize=256)
def best_space(values: int, power: int) -> tuple[int, int]:
    """Return the prime and the dimension with the least variance; `power` is e**epsilon over `ONE`.

    The dimension is the smallest, from 2, that has a point for every value. The space has at most `MOST_VECTORS` vectors.
    """
    best = (1, 0, 0, 0)  # numerator and denominator of the variance (infinite at first), prime, dimension
    for prime in _primes():
        dimension = 2
        while point_count(prime, dimension) < values:
            dimension += 1
        if prime**dimension > MOST_VECTORS:
            continue
        over, under = _variance(prime, dimension, power)
        if over * best[1] < best[0] * under:
            best = over, under, prime, dimension
    return best[2], best[3]


def _variance(prime: int, dimension: int, power: int) -> tuple[int, int]:
    """Return numerator and denominator of a number proportional to the variance of a rare value's share."""
    inside, common = point_count(prime, dimension - 1), point_count(prime, dimension - 2)
    total = point_count(prime, dimension) * ONE + (power - ONE) * inside
    false = power * common + (inside - common) * ONE
    return false * (total - false), (inside - common) ** 2


@lru_cache(maxsize=1)
def _primes() -> tuple[int, ...]:
    """Return the primes whose plane has at most `MOST_VECTORS` vectors."""
    most = int(MOST_VECTORS**0.5)
    return tuple(n for n in range(2, most + 1) if all(n % d for d in range(2, int(n**0.5) + 1)))


def vector_of(point: int, prime: int, dimension: int) -> list[int]:
    """Return the canonical vector of a code."""
    size, start = 1, 0  # q**j and (q**j - 1) / (q - 1)
    while start + size <= point:
        start, size = start + size, size * prime
    return digits_of(size + point - start, prime, dimension)


def canonical(vector: list[int], prime: int) -> list[int]:
    """Return the multiple of a nonzero vector whose first nonzero coordinate is 1."""
    inverse = pow(next(coordinate for coordinate in vector if coordinate), -1, prime)
    return [coordinate * inverse % prime for coordinate in vector]


def digits_of(number: int, base: int, count: int) -> list[int]:
    """Return the last `count` digits of a number, the most significant first."""
    digits = []
    for _ in range(count):
        number, digit = divmod(number, base)
        digits.append(digit)
    return digits[::-1]


def _in_levels(prime: int, zeros: int, levels: int) -> int:
    """Return how many values of the complete levels a report supports whose vector ends with this number of zeros."""
    orthogonal = sum(int(prime**level) for level in range(min(zeros, levels)))
    return orthogonal + sum(int(prime ** (level - 1)) for level in range(zeros + 1, levels))


def _in_part(prime: int, zeros: int, digits: list[int], chosen: int, whole: int) -> int:
    """Return the same for the values of an incomplete level; `chosen` is the digit that makes the product 0."""
    size, digit = int(prime**zeros), digits[-1 - zeros]
    longer = whole // (size * prime) * size  # values that differ before this digit
    if chosen < digit:
        return longer + size
    return longer + (whole % size if chosen == digit else 0)


def _at_their_vectors(counts: Floats, prime: int, top: int) -> tuple[Floats, Floats]:
    """Return the counts of reports whose first coordinate is 0, and is 1, by their other coordinates as one number."""
    import numpy as np

    rest, start = np.zeros(prime**top), 0
    for level in range(top):
        size = prime**level
        rest[size : 2 * size] = counts[start : start + size]
        start += size
    return rest, counts[start:]


def _orthogonal(columns: Floats, prime: int, level: int, total: int) -> Floats:
    """Return how many reports are orthogonal to (1, x), for all x of `level` coordinates.

    `columns` counts reports by their coordinate at the 1 (rows; missing rows are empty) and by those behind it.
    """
    import numpy as np

    if not level:
        return np.asarray(columns[0])
    spread = np.zeros(prime**level, np.complex128)
    for multiple in range(1, prime):
        turns = np.exp(-2j * np.pi / prime * (multiple * np.arange(len(columns)) % prime))
        spread += (turns @ columns)[_multiples(pow(multiple, -1, prime), prime, level)]
    exact = (np.fft.fftn(spread.reshape((prime,) * level)).real.ravel() + total) / prime
    rounded = np.rint(exact)
    if float(np.abs(exact - rounded).max()) > RESIDUE:
        raise ArithmeticError("A decoded count is not an integer: there are too many reports for 64-bit numbers.")
    return rounded


def _multiples(by: int, prime: int, level: int) -> Ints:
    """Return the index of `by` times each vector of `level` coordinates."""
    import numpy as np

    indexes = np.zeros(1, np.int64)
    for position in range(level):
        indexes = ((np.arange(prime) * by % prime * prime**position)[:, None] + indexes).ravel()
    return indexes
