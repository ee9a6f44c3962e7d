"""Frequent texts from reports about prefixes: short prefixes first, then each frequent one is extended (PEM).

Each person reports one prefix length, so the reports of one length are independent of those by which candidates were chosen. The
shares are estimated from the reports of the whole length alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.arrays import Array, Floats, Ints
from tidegate.collect.encoding import text_of
from tidegate.collect.poisoning import SHARE, Scores, honest_range
from tidegate.errors import Unsupported
from tidegate.exact import Number, exact, say
from tidegate.extras import extra
from tidegate.frames import Row, Rows
from tidegate.operators.operator import LARGEST_EPSILON
from tidegate.operators.prefix import TEXT_BYTES, Level, Prefix

with extra("collect", "Estimating from randomized reports"):
    from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from tidegate.collect.survey import Survey

SURVIVORS = 32  # prefixes of one length that are extended
LEAST, FINAL = 2.0, 3.5  # standard errors of a prefix that is extended, and of a text that is reported
VISIBLE = 4.0  # standard errors from which a text is found with high probability
AT_ONCE = 8_192  # reports that are compared with all candidates at once


@dataclass(frozen=True, eq=False)
class StringTable(Rows):
    """The frequent texts, the most frequent first.

    raw, errors                    the unbiased share, and its standard error for a population of which the people are a sample
    low, high                      its interval; of all intervals in the table, the stated fraction covers its share on average
    low_poisoned, high_poisoned    the range of the honest reports' share if 1% of the reports were false
    invisible                      texts of a smaller share are probably not found
    tested                         the number of candidates of the whole length, of which those far above 0 are in the table
    """

    question: str
    attribute: str
    reports: int
    confidence: float
    texts: tuple[str, ...]
    raw: Floats
    errors: Floats
    low: Floats
    high: Floats
    low_poisoned: Floats
    high_poisoned: Floats
    invisible: float
    tested: int

    @property
    def sure(self) -> str:
        """The limits of the table, as a sentence."""
        false = self.tested * float(ndtr(-FINAL))
        return (
            f"texts below about {say(100 * self.invisible, 2)}% stay invisible; of {self.tested:,} candidates, {say(false, 2)} are expected to "
            "be here by chance"
        )

    def __str__(self) -> str:
        rows = (f"{row['text']}: {row['share']:.1%} ({row['low']:.1%} to {row['high']:.1%})" for row in self.rows())
        return "\n".join([f"{self.question}: {self.reports:,} reports; {self.sure}.", *rows])

    def rows(self) -> list[Row]:
        """Return one dictionary per text: its share, its interval, the unclipped estimate and the range if 1% were false."""
        columns = {"low": self.low, "high": self.high, "raw": self.raw}
        columns |= {"low_poisoned": self.low_poisoned, "high_poisoned": self.high_poisoned}
        return [
            {"text": text, "share": min(float(self.raw[index]), 1.0)}
            | {name: float(values[index]) for name, values in columns.items()}
            for index, text in enumerate(self.texts)
        ]

    def _kinds(self) -> dict[str, type]:
        return {"text": str, **dict.fromkeys(("share", *COLUMNS), float)}

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        about = {"question": self.question, "attribute": self.attribute, "reports": self.reports}
        limits = {"confidence": self.confidence, "invisible": self.invisible, "tested": self.tested, "sure": self.sure}
        return {**about, **limits, "rows": self.rows(), "errors": self.errors.tolist()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StringTable:
        """Return the table that `to_dict` wrote."""
        columns: dict[str, Any] = {name: np.array([row[name] for row in data["rows"]], np.float64) for name in COLUMNS}
        about = {name: data[name] for name in ("question", "attribute", "reports", "confidence", "invisible", "tested")}
        texts, errors = tuple(row["text"] for row in data["rows"]), np.array(data["errors"], np.float64)
        return cls(texts=texts, errors=errors, **columns, **about)


COLUMNS = ("raw", "low", "high", "low_poisoned", "high_poisoned")


def estimate_strings(
    survey: Survey, name: str, *, confidence: float = 0.95, dictionary: Iterable[str] = ()
) -> StringTable:
    """Find the frequent texts of a question and estimate their shares, from all counted reports.

    Args:
        dictionary: The public list in which hashed texts are frequent. Others are shown as hexadecimal digits.

    Raises:
        Unsupported: The question is not about text, or there is no report.
    """
    if not 0 < confidence < 1:
        raise Unsupported(f"`confidence` must be between 0 and 1; it is {confidence:g}.", "Use 0.95, for example.")
    operator = survey.operators[name]
    if not isinstance(operator, Prefix):
        raise Unsupported(f'"{name}" is not about text.', f'Call survey.distribution("{name}").')
    parts = [part[name] for part in survey.batches(name)] if survey.reports else []
    if not sum(map(len, parts)):
        raise Unsupported(f'There is no counted report yet, so the texts of "{name}" cannot be estimated.')
    lengths, points = read_points(operator, np.concatenate(parts))
    frequent = find_texts(operator, lengths, points)
    words = _words(dictionary) if operator.hashed else {}
    readable = [code for code in frequent.codes if operator.hashed or text_of(code) is not None]
    texts = [words.get(code, f"{code:016x}") if operator.hashed else str(text_of(code)) for code in readable]
    rows = [frequent.codes.index(code) for code in readable]
    return _table(survey, name, operator, frequent, np.array(rows, np.int64), texts, confidence)


@dataclass(frozen=True, eq=False)
class FrequentTexts:
    """The codes that are far above 0, the most frequent first, with their shares; of so many reports and candidates."""

    codes: list[int]
    raw: Floats
    reports: int
    tested: int


def find_texts(operator: Prefix, lengths: Ints, points: Array) -> FrequentTexts:
    """Find frequent texts: extend the best prefixes of every length by all continuations.

    Args:
        lengths: The number of the prefix length of every report.
        points: The vector of every report, one row each; coordinates beyond its dimension are 0.
    """
    candidates, before = [0], 0
    raw, reports = np.zeros(1), 0
    for number, level in enumerate(operator.levels):
        more = level.length - before
        candidates = [prefix << more | ending for prefix in candidates for ending in range(1 << more)]
        own = points[lengths == number, : level.dimension]
        reports = len(own)
        if not reports:
            return FrequentTexts([], np.zeros(0), 0, len(candidates))
        vectors = np.array([operator.vector(prefix, level) for prefix in candidates], np.float32)
        raw = (count_supports(own, vectors, operator.prime) / reports - float(level.q)) / float(level.p - level.q)
        is_last = number == len(operator.levels) - 1
        least = (FINAL if is_last else LEAST) * sqrt(level.variance / reports)
        order = [index for index in np.argsort(-raw, kind="stable") if raw[index] >= least]
        tested = len(candidates)
        order = order if is_last else order[:SURVIVORS]
        candidates, raw, before = [candidates[index] for index in order], raw[order], level.length
        if not candidates:
            return FrequentTexts([], np.zeros(0), reports, tested)
    return FrequentTexts(candidates, np.asarray(raw), reports, tested)


def count_supports(points: Array, vectors: Array, prime: int) -> Floats:
    """Return how many points are orthogonal to each vector. Products of 32-bit floats are exact: they stay below 2**24."""
    counts = np.zeros(len(vectors))
    turned = np.ascontiguousarray(vectors.T)
    for start in range(0, len(points), AT_ONCE):
        quotients = points[start : start + AT_ONCE].astype(np.float32) @ turned
        quotients /= prime
        counts += (quotients == np.floor(quotients)).sum(axis=0)
    return counts


def read_points(operator: Prefix, packed: Array) -> tuple[Ints, Array]:
    """Return the number of the prefix length and the vector of every stored report."""
    lengths, points = [], []
    for start in range(0, len(packed), AT_ONCE):
        bits = np.unpackbits(packed[start : start + AT_ONCE], axis=1, bitorder="little")[:, : operator.report_size]
        lengths.append(bits[:, : len(operator.levels)].argmax(axis=1))
        coordinates = bits[:, len(operator.levels) :].reshape(len(bits), -1, operator.width)
        points.append((coordinates * (1 << np.arange(operator.width))).sum(axis=2).astype(np.uint8))
    return np.concatenate(lengths), np.concatenate(points)


def smallest_visible(operator: Prefix, reports: int) -> float:
    """Return the share from which a text is found with high probability: 4 sqrt(V G / N)."""
    return VISIBLE * sqrt(operator.levels[-1].variance * len(operator.levels) / reports)


def advise_strings(*, clients: int, epsilon: Number) -> str:
    """Return the line for a policy and what this number of reports about free text can show."""
    total = exact(epsilon)
    if clients < 1 or not 0 < total <= LARGEST_EPSILON:
        raise Unsupported(f"Specify at least 1 client, and an `epsilon` above 0 and up to {LARGEST_EPSILON}.")
    share = smallest_visible(Prefix(epsilon=total), clients)
    line = f'operator = "{Prefix.name}", epsilon = {say(total)}'
    if share >= 1:
        return f"{clients:,} reports with epsilon {say(total)} show no text. Ask at least {ceil(clients * share**2):,} people."
    return f"Write {line}. Of {clients:,} reports, texts below about {say(100 * share, 2)}% stay invisible."


def _words(dictionary: Iterable[str]) -> dict[int, str]:
    return {int.from_bytes(sha256(word.encode()).digest()[:TEXT_BYTES], "big"): word for word in dictionary}


def _table(
    survey: Survey,
    name: str,
    operator: Prefix,
    frequent: FrequentTexts,
    rows: Ints,
    texts: Sequence[str],
    confidence: float,
) -> StringTable:
    level, raw, total = operator.levels[-1], frequent.raw[rows], survey.asked(name)
    errors, wide = errors_of(level, raw, frequent.reports, tested=frequent.tested, confidence=confidence)
    p, q = float(level.p), float(level.q)
    scores = Scores((1 - q) / (p - q), -q / (p - q))
    poisoned = honest_range(raw, frequent.reports, ceil(SHARE * total), scores)
    low, high, low_poisoned, high_poisoned = (
        np.clip(ends, 0, 1) for ends in (raw - wide, raw + wide, poisoned[0], poisoned[1])
    )
    question = survey.collection.questions[name]
    return StringTable(
        name, question.attribute, total, confidence, tuple(texts), raw, errors, low, high, low_poisoned, high_poisoned,
        smallest_visible(operator, total), frequent.tested,
    )  # fmt: skip


def errors_of(level: Level, raw: Floats, reports: int, *, tested: int, confidence: float) -> tuple[Floats, Floats]:
    """Return the standard errors of selected shares, and the half-widths of their intervals.

    Only the largest of all candidates are shown. With R of m candidates, intervals of confidence 1 - R (1 - confidence) / m keep
    the expected share of intervals in the table that miss their value at 1 - confidence.

    Reference:
        Benjamini, Yekutieli 2005, "False discovery rate-adjusted multiple confidence intervals for selected parameters".
    """
    p, q = float(level.p), float(level.q)
    seen = np.clip(q + (p - q) * np.clip(raw, 0, 1), 0, 1)
    errors = np.asarray(np.sqrt(seen * (1 - seen) / max(reports, 1)) / (p - q))
    outside = max(len(raw), 1) * (1 - confidence) / max(tested, 1)
    return errors, np.asarray(-float(ndtri(outside / 2)) * errors)
