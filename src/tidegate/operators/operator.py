"""The interface of an operator, the randomization of one value.

An operator works on codes 0 .. values-1. Its report is a code 0 .. report_size-1 (`form` "code") or a list of value
codes, ascending (`form` "set"). One operator is one class in one file, registered in `tidegate.operators.OPERATORS`.
Modules here import the standard library only; methods that return arrays import numpy themselves, so that a client
device does not need it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias

from tidegate.errors import Unsupported
from tidegate.operators.channel import LONGEST_DENSE, ChannelSpec, Support
from tidegate.operators.exact_draws import Bytes

if TYPE_CHECKING:
    from tidegate.arrays import Floats, Ints

Report: TypeAlias = int | list[int]
EXACT_CELLS = 1_000_000
CERTAIN = Fraction(19, 20)  # of every interval
MOST_VALUES = 65_536  # of a question


@dataclass(frozen=True)
class Parameter:
    """One parameter of an operator, as policies, commands, forms, the HTTP schema and the adviser use it.

    Args:
        kind: "number": without a unit; "length": in the attribute's units; "probability": from 0 to 1; "count": a number of
            items; "counts": one probability for each number of items.
        text: The meaning, used as the help of its option.
        least: The smallest value; of a length, in steps of the attribute.
        most: The largest value; of a length, in ranges of the attribute.
        optional: Whether it can be left out.
        below: Another parameter that must be larger.
        search: Where the adviser searches, from the least to the most private value.
        example: A value to show.
    """

    name: str
    text: str
    kind: Literal["number", "length", "probability", "count", "counts"] = "number"
    least: Fraction = Fraction(0)
    most: Fraction = Fraction(1)
    optional: bool = False
    below: str = ""
    search: tuple[Fraction, Fraction] | None = None
    example: str = ""

    @property
    def is_list(self) -> bool:
        """Whether it is a list of probabilities."""
        return self.kind == "counts"

    @property
    def shown(self) -> Any:
        """The example as a JSON value."""
        if self.is_list:
            return [float(part) for part in self.example.split(",")]
        return int(self.example) if self.kind == "count" else float(Fraction(self.example))

    def bounds(self, values: int, step: Fraction) -> tuple[Fraction, Fraction]:
        """Return the smallest and largest value for an attribute of `values` values, `step` apart."""
        if self.kind == "length":
            return self.least * step, self.most * values * step
        return self.least, min(self.most, Fraction(values)) if self.kind == "count" else self.most


LARGEST_EPSILON = 20
EPSILON = Parameter(
    "epsilon",
    "The local loss.",
    least=Fraction(1, 1000),
    most=Fraction(LARGEST_EPSILON),
    search=(Fraction(LARGEST_EPSILON), Fraction(1, 100)),
    example="2",
)
RANDOM = Parameter(
    "random",
    "The share of reports that are a uniform draw instead of the answer.",
    kind="probability",
    least=Fraction(1, 1000),
    most=Fraction(999, 1000),
    example="1/3",
)
EACH = Parameter(
    "each",
    "The loss of each fresh report of a memoised answer.",
    least=Fraction(1, 1000),
    most=Fraction(LARGEST_EPSILON),
    optional=True,
    below="epsilon",
)


class Operator:
    """One way to randomize one value. Subclasses state `values`, `report_size`, `gamma`, `probability` and `sample`."""

    name: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]] = ()  # a policy sets exactly one of those that are not optional
    form: ClassVar[Literal["code", "set"]] = "code"
    ordered: ClassVar[bool] = False
    of_sets: ClassVar[bool] = False
    unlimited: ClassVar[bool] = False  # some report rules out some value, whatever the parameters
    most_values: ClassVar[int] = MOST_VALUES
    only_mean: ClassVar[bool] = False  # reports of numbers from which no distribution is reconstructed
    of_texts: ClassVar[bool] = False  # reports of free texts, from which frequent ones are found
    has_seed: ClassVar[bool] = False  # a device draws a seed once, and all reports depend on it (`draw_seed`)
    most_answers: ClassVar[int | None] = (
        None  # permanent answers that one device can ever have, if not one for each value
    )
    values: int
    report_size: int

    @classmethod
    def from_parameters(
        cls, values: int, step: Fraction, chosen: Mapping[str, Fraction], plans: Iterable[Any] = ()
    ) -> Self:
        """Build the operator for an attribute of `values` values, `step` apart, from a policy's parameters."""
        return cls(values, **chosen)  # type: ignore[call-arg]

    @property
    def gamma(self) -> Fraction | None:
        """The largest ratio of a report's probabilities under two values, exact; None if it is unlimited."""
        raise NotImplementedError

    @property
    def epsilon(self) -> float:
        """The actual local loss, log gamma; infinite if some report rules out a value."""
        return math.inf if self.gamma is None else math.log(self.gamma)

    @property
    def lifetime_gamma(self) -> Fraction | None:
        """As `gamma`, for all reports that a client ever makes of one value together."""
        return self.gamma

    @property
    def lifetime_epsilon(self) -> float:
        """As `epsilon`, for all reports that a client ever makes of one value together."""
        return math.inf if self.lifetime_gamma is None else math.log(self.lifetime_gamma)

    def probability(self, report: Report, value: int) -> Fraction:
        """Return P(report | value), exactly as the client draws it."""
        raise NotImplementedError

    def sample(self, value: int, source: Bytes) -> Report:
        """Draw a randomized report of a value."""
        raise NotImplementedError

    def draw_seed(self, source: Bytes) -> int:
        """Draw the seed of a device, if the operator has one. Seeds are public: reports contain them."""
        raise Unsupported(f"{self.name} has no seed.")

    def memory_code(self, value: int, seed: int) -> int:
        """Return what the permanent answer of a device with this seed belongs to: the value, or its cell."""
        return value

    def sample_permanent(self, memory_code: int, source: Bytes) -> Report:
        """Draw the permanent answer for a `memory_code`."""
        return self.sample(memory_code, source)

    def repeated(self, report: Report, source: Bytes) -> Report:
        """Return a fresh report of a memoised one: the same unless the operator has a second layer."""
        return report

    def reports(self) -> Iterator[Report]:
        """Yield every possible report; for sets only if there are few."""
        return iter(range(self.report_size))

    def accepts(self, report: Any) -> bool:
        """Return whether a report could have come from this operator."""
        return isinstance(report, int) and not isinstance(report, bool) and 0 <= report < self.report_size

    def recipe(self) -> dict[str, Any]:
        """Return the integers that a client in any language draws with; probabilities are over 2**48."""
        raise NotImplementedError

    def likelihoods(self, report: Report) -> list[Fraction]:
        """Return P(report | value) for every value: the basis of any conclusion from the report."""
        return [self.probability(report, value) for value in range(self.values)]

    def likeliest(self, report: Report) -> tuple[int, int, Fraction]:
        """Return the first of the likeliest values after a report, how many there are, and the probability of each.

        All values are equally likely before.
        """
        likelihoods = self.likelihoods(report)
        best = max(range(self.values), key=likelihoods.__getitem__)
        return best, likelihoods.count(likelihoods[best]), likelihoods[best] / sum(likelihoods, Fraction(0))

    def exact_channel(self) -> list[list[Fraction]]:
        """Return the exact matrix, one row for each report (in the order of `reports`), one column for each value."""
        rows = self.report_size if self.form == "code" else 2**self.values
        if rows * self.values > EXACT_CELLS:
            raise Unsupported(
                f"The exact channel of {self.name} on {self.values:,} values has more than {EXACT_CELLS:,} cells.",
                "Call channel_array(), which returns floating-point numbers.",
            )
        return [self.likelihoods(report) for report in self.reports()]

    def column(self, value: int) -> Floats:
        """Return P(report | value) for all reports, as an array."""
        import numpy as np

        return np.array([float(self.probability(report, value)) for report in self.reports()])

    def channel_array(self, *, merge: int = 1) -> Floats:
        """Return the channel (reports, values). With `merge` > 1, runs of that many reports are summed and of values averaged.

        Memory holds at most one full column besides the result, so long grids can be merged.
        """
        import numpy as np

        if self.form == "set":
            raise Unsupported(
                f"A report of {self.name} is a set, and there are too many sets to list as rows.",
                "Count the reports that support each value; p and q of the operator are the probabilities of support.",
            )
        starts = np.arange(0, self.report_size, merge)
        cells = -(-self.values // merge)
        merged, sizes = np.zeros((starts.size, cells)), np.zeros(cells)
        for value in range(self.values):
            merged[:, value // merge] += np.add.reduceat(self.column(value), starts)
            sizes[value // merge] += 1
        return np.asarray(merged / sizes)

    def channel(self) -> ChannelSpec:
        """Return P(report | value) for reconstruction: a matrix, or shifted copies of one kernel for long grids."""
        if self.values <= LONGEST_DENSE or not self.ordered:
            return ChannelSpec(self.values, matrix=self.channel_array())
        return self.long_channel()

    def long_channel(self) -> ChannelSpec:
        """Return the channel of a long grid, without a matrix if the operator has a kernel."""
        return ChannelSpec(self.values, matrix=self.channel_array())

    def variance(self) -> float:
        """Return the variance of one report as an unbiased estimate of its value, in squared steps (numbers only)."""
        raise NotImplementedError

    def support(self) -> Support:
        """Return the probabilities that a report supports the true value, another value, and two values at once."""
        raise Unsupported(f"A report of {self.name} does not support single values.", "Call `channel` and reconstruct.")

    def interval(self) -> float | None:
        """Return the shortest run of reports, in steps, that contains a value's report with 95% certainty; None if unordered."""
        return None


def code(report: Report) -> int:
    """Return a report that must be a code."""
    if not isinstance(report, int):
        raise TypeError("The report must be a code.")
    return report


def members(report: Report) -> list[int]:
    """Return a report that must be a set."""
    if not isinstance(report, list):
        raise TypeError("The report must be a list of codes.")
    return report


def is_set(report: Any, values: int) -> bool:
    """Return whether a report is a strictly ascending list of codes."""
    if not isinstance(report, list) or any(isinstance(code, bool) or not isinstance(code, int) for code in report):
        return False
    inside = all(0 <= code < values for code in report)
    return inside and all(code < next_code for code, next_code in pairwise(report))


class Pure(Operator):
    """A report supports some of the values: the true one with probability p, any other with probability q.

    An unbiased count of a value is (supports - N q) / (p - q); with a share f its variance is
    N (q (1 - q) + f (p - q) (1 - p - q)) / (p - q)**2.

    Reference:
        Wang, Blocki, Li, Jha 2017 (USENIX Security).
    """

    p: Fraction
    q: Fraction
    supports_several: ClassVar[bool] = False  # a report can support several values; `member_chances` has how many

    def supports(self, counts: Ints) -> Floats:
        """Return the number of reports that support each value, from the counts of reports."""
        return counts.astype("float64")

    def variance(self, share: float = 0.0) -> float:
        """Return N times the exact variance of a value's estimated share, if its true share is `share`."""
        p, q = float(self.p), float(self.q)
        return (q * (1 - q) + share * (p - q) * (1 - p - q)) / (p - q) ** 2

    def support(self) -> Support:
        return Support(float(self.p), float(self.q), 0.0, 0.0)

    def pick_chance(self) -> float:
        """Return the chance that one value picked from the report is the true one, if all reports support equally many."""
        p, q = float(self.p), float(self.q)
        return p / (p + (self.values - 1) * q)

    def member_counts(self) -> range:
        """Return the numbers of values that a report can support."""
        return range(1, 2)

    def member_chances(self) -> dict[int, float]:
        """Return the probability of each number of supported values."""
        return {1: 1.0}
