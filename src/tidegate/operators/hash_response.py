"""Hash response (LOLOHA with two cells): each person hashes values to two cells, and responds with a randomized cell.

A function of the public family is given by a seed of 1 + `digits` bits. It sends value v to the parity of the bits that
`seed // 2` and v share, plus the last bit of the seed. A report is the code 2 * seed + cell. It supports the values that the seed
sends to the cell.

Over a uniform seed, the cells of any three values are independent and uniform: their vectors (1, bits of v) are linearly independent
over the field of two elements. So p, q and the covariances are exact and not those of an ideal hash function, and the family is as
small as the list of values allows. A small family also makes it harder to link the reports of one person by their seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from tidegate.operators.channel import Support
from tidegate.operators.exact_draws import Bytes, below
from tidegate.operators.operator import EACH, EPSILON, Pure, Report, code
from tidegate.operators.randomized_response import RandomizedResponse

if TYPE_CHECKING:
    from tidegate.arrays import Floats, Ints

CELLS = 2


class HashResponse(Pure):
    """A seed that a person draws once, and the cell of the value: kept with probability keep / 2**48, else the other cell.

    Permanent answers belong to cells, not to values, so one person has at most two of them, whatever values they answer.

    Guarantee:
        Local loss at most epsilon, in integer arithmetic: keep is rounded down. With `each`, the permanent cell goes
        through a second response for every report, and a single report loses at most `each`. All reports of values in
        one cell together lose at most epsilon; two permanent answers, 2 epsilon, are the most that a person ever
        uses. As for every permanent answer, this is not a bound for the rounds in which an answer changed: only the
        second layer hides them from an adversary who can link one person's reports.

    Reference:
        Arcolezi, Pinzon, Palamidessi, Gambs 2023 (EDBT), "Frequency estimation of evolving data under local differential
        privacy"; local hashing: Bassily, Smith 2015; Wang, Blocki, Li, Jha 2017.
    """

    name = "hash-response"
    parameters = (EPSILON, EACH)
    has_seed: ClassVar[bool] = True
    most_answers: ClassVar[int | None] = CELLS
    supports_several: ClassVar[bool] = True

    def __init__(self, values: int, *, epsilon: Fraction, each: Fraction | None = None) -> None:
        self.values = values
        self.digits = (values - 1).bit_length()
        self.seeds = 2 << self.digits
        self.report_size = CELLS * self.seeds
        self.cells = RandomizedResponse(CELLS, epsilon=epsilon, each=each)
        self.p, self.q = self.cells.p, Fraction(1, CELLS)

    @property
    def gamma(self) -> Fraction:
        return self.cells.gamma

    @property
    def lifetime_gamma(self) -> Fraction:
        return self.cells.lifetime_gamma

    def cell(self, value: int, seed: int) -> int:
        """Return the cell of a value."""
        return ((seed >> 1 & value).bit_count() + seed) & 1

    def is_supported(self, report: int, value: int) -> bool:
        """Return whether the report supports the value."""
        return self.cell(value, report >> 1) == report & 1

    def probability(self, report: Report, value: int) -> Fraction:
        return (self.p if self.is_supported(code(report), value) else 1 - self.p) / self.seeds

    def draw_seed(self, source: Bytes) -> int:
        return below(self.seeds, source)

    def memory_code(self, value: int, seed: int) -> int:
        """Return 2 * seed + cell: values of one cell share a permanent answer."""
        return CELLS * seed + self.cell(value, seed)

    def sample_permanent(self, memory_code: int, source: Bytes) -> Report:
        seed, cell = divmod(memory_code, CELLS)
        return CELLS * seed + code(self.cells.sample(cell, source))

    def sample(self, value: int, source: Bytes) -> Report:
        """Draw a seed, then a coin for the cell."""
        return self.sample_permanent(self.memory_code(value, self.draw_seed(source)), source)

    def repeated(self, report: Report, source: Bytes) -> Report:
        seed, cell = divmod(code(report), CELLS)
        return CELLS * seed + code(self.cells.repeated(cell, source))

    def likeliest(self, report: Report) -> tuple[int, int, Fraction]:
        supported = self.supported_count(code(report))
        if not supported:
            return 0, self.values, Fraction(1, self.values)
        mask = code(report) >> 2
        first = (
            0 if self.is_supported(code(report), 0) else mask & -mask
        )  # the first value with another cell than 0 has
        return first, supported, self.p / (supported * self.p + (self.values - supported) * (1 - self.p))

    def supported_count(self, report: int) -> int:
        """Return how many values a report supports, without looking at each."""
        mask = report >> 2
        if not mask:
            return self.values if self.is_supported(report, 0) else 0
        first, second = self._halves((mask & -mask).bit_length() - 1)
        rest = self.values >> (mask & -mask).bit_length() << (mask & -mask).bit_length()
        return first if self.is_supported(report, rest) else second

    def _halves(self, lowest: int) -> tuple[int, int]:
        """Return how many values are in either cell, if the lowest bit that decides about cells is this one.

        Whole runs of 2**(lowest + 1) values are split evenly. Of an incomplete last run, the first 2**lowest values are in the
        first cell.
        """
        half = 1 << lowest
        runs, rest = divmod(self.values, 2 * half)
        return runs * half + min(rest, half), runs * half + max(rest - half, 0)

    def member_chances(self) -> dict[int, float]:
        """Return the probability of each number of supported values, for equally likely values."""
        numbers = {self.values: 2, 0: 2}  # reports by the number of values that they support; the mask 0 first
        for lowest in range(self.digits):
            for count in self._halves(lowest):
                numbers[count] = numbers.get(count, 0) + (2 << (self.digits - 1 - lowest))
        p, k = float(self.p), self.values
        return {count: n * (count * p + (k - count) * (1 - p)) / k / self.seeds for count, n in numbers.items()}

    def member_counts(self) -> range:
        return range(self.values + 1)

    def pick_chance(self) -> float:
        """Return the chance that one value picked from the report is the true one; any value if it supports none."""
        g, k = float(self.gamma), self.values
        chances = self.member_chances().items()
        return sum(chance * (g / (c * g + k - c) if c else 1 / k) for c, chance in chances)

    def support(self) -> Support:
        return Support(float(self.p), 0.5, float(self.p) / 2, 0.25)

    def column(self, value: int) -> Floats:
        import numpy as np

        parities = np.zeros(1, np.int64)
        for digit in range(self.digits):
            parities = np.concatenate([parities, parities ^ (value >> digit & 1)])
        cells = parities[:, None] ^ np.arange(CELLS)  # (masks, last bit of the seed)
        agrees = cells[:, :, None] == np.arange(CELLS)
        return np.where(agrees.ravel(), float(self.p), float(1 - self.p)) / self.seeds

    def supports(self, counts: Ints) -> Floats:
        """Return the number of reports that support each value: a Walsh-Hadamard transform over the masks, in integers."""
        import numpy as np

        table = np.asarray(counts, np.int64).reshape(-1, CELLS, CELLS)  # (masks, last bit of the seed, cell)
        agree = (
            table[:, 0, 0] + table[:, 1, 1] - table[:, 0, 1] - table[:, 1, 0]
        )  # for parity 0; the negative for parity 1
        for digit in range(self.digits):
            pairs = agree.reshape(-1, 2, 1 << digit)
            agree = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
        return np.asarray((agree[: self.values] + table.sum()) // 2, np.float64)

    def reports(self) -> Iterator[Report]:
        return iter(range(self.report_size))

    def recipe(self) -> dict[str, Any]:
        draws = {"keep": self.cells.keep, "again": self.cells.again}
        return {"draw": self.name, "values": self.values, "seeds": self.seeds, **draws}
