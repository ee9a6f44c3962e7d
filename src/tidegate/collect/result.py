"""The result of one question: the estimated distribution and its error bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from tidegate.arrays import Floats
from tidegate.charts import Chart
from tidegate.collect.comparison import MOST_COMPARED, Difference, difference_errors, differences, too_few
from tidegate.collect.encoding import code_of, words_of
from tidegate.collect.poisoning import Poisoning, poisoning
from tidegate.collect.reconstruct import METHODS, Reconstruction, build_channel, reconstruct, shares, with_heaping
from tidegate.collect.validation import has_distribution
from tidegate.errors import Unsupported, did_you_mean
from tidegate.exact import say
from tidegate.extras import extra
from tidegate.frames import Row, Rows
from tidegate.ledger.counts import Counted
from tidegate.noise.differences import MOST_GROUPS, larger_ones
from tidegate.operators import Operator, Pure, Support
from tidegate.policy import Policy
from tidegate.policy.attributes import Numeric
from tidegate.policy.calendar import Moment
from tidegate.policy.collection import Question

with extra("collect", "Estimating from randomized reports"):
    from scipy.special import ndtri  # type: ignore[import-untyped]

SHARES = "shares"  # of categories, by inversion
MOST_RUNS = 20  # the default number of rows of a long distribution
Band: TypeAlias = Literal["default", "strict"]


@dataclass(frozen=True)
class Run:
    """One value, or neighboring values together. The last two are the ends if 1% of the reports were false (categories)."""

    label: str
    mass: float
    low: float | None
    high: float | None
    low_poisoned: float | None = None
    high_poisoned: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


@dataclass(frozen=True, eq=False)
class Distribution(Rows):
    """Estimated shares of all values, in the order of the attribute.

    masses      the estimate: not negative, sums to one       low, high   its band; None if the method has none
    raw         the raw reports: the share of each report (numbers), or of reports that contain each value; raw[0]
                is at index `first`, which is below zero if noise can move a number out of its range
    unbiased    of categories: the unbiased shares (can be negative), with their standard `errors`
    mean        of numbers: the mean and its interval; of dates and times as ISO 8601 text
    poisoning   of categories: the effect of false reports       support   how a report supports its category
    """

    question: str
    attribute: str
    method: str
    reports: int
    labels: tuple[str, ...]
    masses: Floats
    low: Floats | None
    high: Floats | None
    confidence: float
    raw: Floats
    first: int = 0
    unbiased: Floats | None = None
    errors: Floats | None = None
    mean: tuple[float, float, float] | tuple[str, str, str] | None = None
    scale: tuple[float, float] | None = None  # of numbers without bins: the value at place 0, and the step
    warnings: tuple[str, ...] = ()
    support: Support | None = None
    poisoning: Poisoning | None = None
    _found: Reconstruction | None = field(default=None, repr=False)
    _band: str = field(default="default", repr=False)
    _runs: tuple[Run, ...] = field(default=(), repr=False)  # of a long distribution that came as JSON

    @property
    def sure(self) -> str:
        """The error bounds, as a sentence."""
        confidence = f"{say(100 * self.confidence)}%"
        if self.errors is not None:
            worst = float(ndtri((1 + self.confidence) / 2) * self.errors.max())
            return f"each share is within {say(100 * worst)} percentage points ({confidence}, each by itself)"
        if self.low is None:
            return f"the method {self.method} has no error bounds"
        between = ""
        if self.mean is not None:
            middle, low, high = map(_said, self.mean)
            between = f"the mean is {middle}, between {low} and {high}; "
        return f"{between}each share is in its band ({confidence}, measured, not proven)"

    @property
    def finding(self) -> str:
        """The main finding, as a title. A value is called more frequent only if that exceeds the noise, jointly over all pairs."""
        if self.too_few:
            return self.too_few.removesuffix(".")
        if self.mean is not None:
            middle, low, high = map(_said, self.mean)
            return f"The mean {self.attribute} is {middle}, between {low} and {high}"
        if self.unbiased is None or self.errors is None or not 2 <= len(self.labels) <= MOST_GROUPS:
            return f"The shares of {len(self.labels):,} values of {self.attribute}"
        higher, (low_ends, high_ends) = larger_ones(self._apart, len(self.labels), least=0.0)
        if not higher.any():
            return f"All values of {self.attribute} are equally frequent within the noise"
        best = int(higher.sum(axis=1).argmax())
        if higher[best].sum() == len(self.labels) - 1:
            share = f"{say(100 * self.masses[best])}%"
            if self.low is not None and self.high is not None:
                share += f", between {say(100 * self.low[best])}% and {say(100 * self.high[best])}%"
            return f"The most frequent {self.attribute} is {self.labels[best]}: {share}"
        more, less = max(np.argwhere(higher).tolist(), key=lambda pair: low_ends[pair[0], pair[1]])
        between = f"{say(100 * low_ends[more, less])} to {say(100 * high_ends[more, less])} points"
        return f"{self.labels[more]} is more frequent than {self.labels[less]} (difference {between}, 95%)"

    @property
    def too_few(self) -> str:
        """Why there are too few answers to show shares: below 30 reports, or an interval above 60 points; empty if enough."""
        if self.errors is not None:
            return too_few(self.reports, 2 * float(ndtri((1 + self.confidence) / 2) * self.errors.max()))
        return too_few(
            self.reports, 0.0 if self.low is None or self.high is None else float((self.high - self.low).max())
        )

    def differences(self, most: int = MOST_COMPARED) -> list[Difference]:
        """Return the differences of all pairs of the `most` largest shares of categories; empty for numbers.

        Options may be ranked only if their difference is clear (`is_clear`). The intervals hold for all pairs together.
        """
        if self.unbiased is None or len(self.labels) < 2:
            return []
        largest = np.sort(np.argsort(-self.unbiased, kind="stable")[: min(most, MOST_GROUPS)])
        errors = self._difference_errors(largest)
        return differences(self.unbiased[largest], errors, [self.labels[index] for index in largest])

    def _apart(self, tail: float) -> tuple[Floats, Floats]:
        """Return intervals of all differences of shares."""
        shares = np.asarray(self.unbiased)
        wide = float(ndtri(1 - tail)) * self._difference_errors(np.arange(shares.size))
        apart = shares[:, None] - shares[None, :]
        return apart - wide, apart + wide

    def _difference_errors(self, chosen: Any) -> Floats:
        """Return the errors of differences; at most the sum of both errors if nothing else is known."""
        if self.support is not None:
            return difference_errors(self.masses[chosen], self.reports, self.support)
        errors = np.asarray(self.errors)[chosen]
        return np.asarray(errors[:, None] + errors[None, :])

    def runs(self, most: int = MOST_RUNS) -> list[Run]:
        """Return at most `most` rows: single values, or merged neighbors (numbers), or the largest shares (categories)."""
        if len(self.labels) <= most:
            return self._rows(np.arange(len(self.labels)))
        if self.errors is not None:
            return self._rows(np.argsort(-self.masses, kind="stable")[:most])
        if self._found is None and self.low is not None:
            return self._sent(most)
        starts = np.linspace(0, len(self.labels), most + 1).astype(int)
        groups, names = np.zeros((most, len(self.labels))), []
        for group, (start, end) in enumerate(pairwise(starts)):
            groups[group, start:end] = 1
            names.append(_between(self.labels[start], self.labels[end - 1]))
        if self.low is None or self._found is None:
            return [Run(name, float(mass), None, None) for name, mass in zip(names, groups @ self.masses, strict=True)]
        band = self._found.band(self._band, confidence=self.confidence, of=groups)
        each = zip(names, groups @ self.masses, band.low, band.high, strict=True)
        return [Run(name, float(mass), float(low), float(high)) for name, mass, low, high in each]

    def rows(self) -> list[Row]:
        """Return one dictionary per value: its estimated share, its band, and of categories its standard error."""
        return [
            {
                "value": label,
                "share": float(self.masses[index]),
                **{name: None if of is None else float(of[index]) for name, of in self._bounds().items()},
            }
            for index, label in enumerate(self.labels)
        ]

    def _bounds(self) -> dict[str, Floats | None]:
        bounds = {"low": self.low, "high": self.high, "error": self.errors}
        if self.poisoning is not None:
            bounds |= {"low_poisoned": self.poisoning.low, "high_poisoned": self.poisoning.high}
        return bounds

    def _kinds(self) -> dict[str, type]:
        return dict.fromkeys(self._bounds(), float)

    def _sent(self, most: int) -> list[Run]:
        """Return the rows of a distribution that came as JSON: bands of merged neighbors need the fitted model."""
        if most != MOST_RUNS:
            raise Unsupported(
                f"A distribution from a service has its band for {MOST_RUNS} rows, not for {most}.",
                f"Call runs({MOST_RUNS}), or use `low` and `high`, which have one number for each value.",
            )
        return list(self._runs)

    def _rows(self, places: Any) -> list[Run]:
        if self.low is None or self.high is None:
            return [Run(self.labels[p], float(self.masses[p]), None, None) for p in places]
        ends = [self.low, self.high, *((self.poisoning.low, self.poisoning.high) if self.poisoning else ())]
        return [Run(self.labels[p], float(self.masses[p]), *(float(end[p]) for end in ends)) for p in places]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        arrays = {name: getattr(self, name) for name in ("masses", "low", "high", "raw", "unbiased", "errors")}
        return {
            "question": self.question,
            "attribute": self.attribute,
            "method": self.method,
            "reports": self.reports,
            "confidence": self.confidence,
            "labels": list(self.labels),
            **{name: None if array is None else array.tolist() for name, array in arrays.items()},
            "first": self.first,
            "mean": None if self.mean is None else dict(zip(("estimate", "low", "high"), self.mean, strict=True)),
            "sure": self.sure,
            "finding": self.finding,
            "warnings": list(self.warnings),
            "scale": None if self.scale is None else {"start": self.scale[0], "step": self.scale[1]},
            "runs": [run.to_dict() for run in self.runs()],
            "support": None if self.support is None else dict(self.support.__dict__),
            "poisoning": None if self.poisoning is None else self.poisoning.to_dict(),
            "too_few": self.too_few or None,
            "differences": [difference.to_dict() for difference in self.differences()],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy | None = None) -> Distribution:
        """Return the distribution that `to_dict` wrote."""
        names = ("masses", "low", "high", "raw", "unbiased", "errors")
        arrays = {name: None if data[name] is None else np.array(data[name], np.float64) for name in names}
        mean, scale = data["mean"], data["scale"]
        return cls(
            question=data["question"],
            attribute=data["attribute"],
            method=data["method"],
            reports=data["reports"],
            labels=tuple(data["labels"]),
            masses=np.array(data["masses"], np.float64),
            low=arrays["low"],
            high=arrays["high"],
            confidence=data["confidence"],
            raw=np.array(data["raw"], np.float64),
            first=data["first"],
            unbiased=arrays["unbiased"],
            errors=arrays["errors"],
            mean=None if mean is None else (mean["estimate"], mean["low"], mean["high"]),
            scale=None if scale is None else (scale["start"], scale["step"]),
            warnings=tuple(data["warnings"]),
            support=None if data.get("support") is None else Support(**data["support"]),
            poisoning=None if data.get("poisoning") is None else Poisoning.from_dict(data["poisoning"]),
            _runs=tuple(Run(**run) for run in data["runs"]),
        )

    def plot(self, path: str | Path | None = None) -> Chart:
        """Return a chart of the raw reports, the distribution and its band; also write it to `path` (.svg or .png)."""
        from tidegate.collect.charts import chart

        plotted = chart(self)
        if path is not None:
            plotted.save(path)
        return plotted

    def _repr_svg_(self) -> str:
        return self.plot()._repr_svg_()


def estimate(
    name: str,
    question: Question,
    operator: Operator,
    counted: Counted,
    *,
    method: str = "",
    confidence: float = 0.95,
    band: Band = "default",
    values: Sequence[Any] | None = None,
    atoms: bool = False,
    progress: Any = None,
) -> Distribution:
    """Estimate the distribution from the counts of one question. Counts of randomized reports cost no privacy."""
    if not 0 < confidence < 1:
        raise Unsupported(f"`confidence` must be between 0 and 1; it is {confidence:g}.", "Use 0.95, for example.")
    if operator.only_mean:
        raise Unsupported(
            f'Reports of "{name}" by {operator.name} estimate a mean and no distribution.',
            f'Call survey.mean("{name}").',
        )
    if not has_distribution(operator):
        raise Unsupported(
            f'"{name}" is about a set of items, which has no distribution of single values.',
            f'Call survey.shares("{name}") for the share of each item.',
        )
    known = METHODS if operator.ordered else (SHARES,)
    if method and method not in known:
        raise Unsupported(f'Unknown method for "{name}": "{method}".', did_you_mean(method, known))
    if isinstance(operator, Pure):
        return _of_categories(name, question, operator, counted, confidence)
    listed = None if values is None else [code_of(question, value) for value in values]
    widths = _widths(question) if listed is None else None
    reconstruction = reconstruct(
        counted.counts,
        build_channel(operator.channel()),
        method=method or "bank",
        values=listed,
        atoms=atoms,
        widths=widths,
        progress=progress,
    )
    if listed is None and not atoms:
        channel = build_channel(operator.channel())
        reconstruction = with_heaping(reconstruction, counted.counts.astype(np.float64), channel, _numbers(question))
    return _of_numbers(name, question, operator, counted, reconstruction, band, confidence)


def _of_categories(name: str, question: Question, operator: Pure, counted: Counted, confidence: float) -> Distribution:
    supports = operator.supports(counted.counts)
    estimated = shares(supports, total=counted.reports, support=operator.support())
    wide = float(ndtri((1 + confidence) / 2)) * estimated.errors
    inside = np.clip(estimated.raw, 0, 1)  # around both: an estimate below zero does not prove a share of zero
    return Distribution(
        name,
        question.attribute,
        SHARES,
        counted.reports,
        _labels(question),
        estimated.masses,
        np.clip(np.minimum(np.minimum(estimated.raw, inside) - wide, estimated.masses), 0, 1),
        np.clip(np.maximum(np.maximum(estimated.raw, inside) + wide, estimated.masses), 0, 1),
        confidence,
        supports / counted.reports,
        unbiased=estimated.raw,
        errors=estimated.errors,
        support=estimated.support,
        poisoning=poisoning(estimated, _labels(question)),
    )


def _of_numbers(
    name: str,
    question: Question,
    operator: Operator,
    counted: Counted,
    reconstruction: Reconstruction,
    band: str,
    confidence: float,
) -> Distribution:
    sure = reconstruction.method.startswith(("bank", "inversion")) or band != "default"
    ends = reconstruction.band(band, confidence=confidence) if sure else None
    scale = _scale(question)
    has_mean = scale is not None or isinstance(question.universe, Moment)
    return Distribution(
        name,
        question.attribute,
        reconstruction.method,
        counted.reports,
        _labels(question),
        reconstruction.masses,
        ends.low if ends else None,
        ends.high if ends else None,
        confidence,
        counted.counts / counted.reports,
        first=-((operator.report_size - operator.values) // 2),
        mean=_mean(reconstruction, band, confidence, question.universe) if ends and has_mean else None,
        scale=scale,
        warnings=reconstruction.warnings,
        _found=reconstruction,
        _band=band,
    )


def _mean(
    reconstruction: Reconstruction, band: str, confidence: float, grid: Any
) -> tuple[float, float, float] | tuple[str, str, str]:
    places = np.arange(reconstruction.masses.size, dtype=np.float64)
    ends = reconstruction.band(band, confidence=confidence, of=places)
    low, middle, high = float(ends.low[0]), float(places @ reconstruction.masses), float(ends.high[0])
    if isinstance(grid, Moment):
        middle, low, high = (grid.shown(position) for position in (middle, low, high))
        return str(middle), str(low), str(high)
    start, step = float(grid.low), float(grid.width)
    return start + step * middle, start + step * low, start + step * high


def _said(number: float | str) -> str:
    return number if isinstance(number, str) else say(number)


def _scale(question: Question) -> tuple[float, float] | None:
    grid = question.universe
    if isinstance(grid, Moment) or not isinstance(grid, Numeric) or grid.cuts:
        return None
    return float(grid.low), float(grid.width)


def _numbers(question: Question) -> list[int]:
    """Return the values of a grid in steps, for which multiples of 5 and 10 are round; empty if they are not."""
    grid = question.universe
    if isinstance(grid, Moment) or not isinstance(grid, Numeric) or grid.cuts or grid.low % grid.width:
        return []
    return [int(grid.low / grid.width) + index for index in range(question.size)]


def _widths(question: Question) -> Floats | None:
    """Return the width of each bin if the attribute has bins."""
    grid = question.universe
    if not isinstance(grid, Numeric) or not grid.cuts:
        return None
    return np.diff(np.array([*grid.bin_starts(), grid.size], np.float64))


def _labels(question: Question) -> tuple[str, ...]:
    return tuple(words_of(question, code) for code in range(question.size))


def _between(first: str, last: str) -> str:
    return f"{first.partition(' to ')[0]} to {last.rpartition(' to ')[2]}" if first != last else first
