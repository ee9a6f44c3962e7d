"""The result of a comparison: as values, as JSON, as text, and as a page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tidegate.errors import TidegateError, Unsupported
from tidegate.frames import Frames, arrow_table
from tidegate.html.render import percent, times
from tidegate.synthesize.quality.columns import Margin
from tidegate.synthesize.quality.dependencies import Dependency
from tidegate.synthesize.quality.page import fragment, page
from tidegate.synthesize.quality.pairs import Pair
from tidegate.synthesize.quality.regression import Regression
from tidegate.synthesize.quality.separation import Separation
from tidegate.synthesize.quality.text import CAUTION, READS, WHY, describe
from tidegate.synthesize.quality.utility import Prediction, Queries

FORMAT = "tidegate-quality/2"
CLASSIFIERS = {"boosted trees": "Boosted trees distinguish", "CART": "A single tree (CART) distinguishes"}
ROW: dict[str, type] = {"measure": str, "of": str, "and": str, "value": float, "expected": float}


class Report(Frames):
    """A report as values, text, JSON and a page. `stem` is the name of its files in a folder."""

    stem: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        raise NotImplementedError

    def to_html(self) -> str:
        """Return one page that needs nothing else."""
        raise NotImplementedError

    def says(self) -> str:
        """Return the report for a terminal."""
        raise NotImplementedError

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def __str__(self) -> str:
        return self.says()

    def save(self, path: str | Path) -> tuple[Path, ...]:
        """Write the page (.html), the numbers (.json), or both into a folder, and return the paths."""
        target = Path(path)
        if target.suffix.lower() in (".html", ".htm"):
            return (_write(target, self.to_html()),)
        if target.suffix.lower() == ".json":
            return (_write(target, self.to_json()),)
        if target.suffix and not target.is_dir():
            raise Unsupported(f'A report is a .html or .json file, or a folder; this path ends in "{target.suffix}".')
        contents = {".html": self.to_html(), ".json": self.to_json()}
        return tuple(_write(target / f"{self.stem}{ending}", text) for ending, text in contents.items())


@dataclass(frozen=True)
class Quality(Report):
    """Synthetic tables compared with the original. FOR THE DATA HOLDER ONLY: computed from true rows and not paid for."""

    stem = "quality"
    name: str
    banner: str
    rows: int
    synthetic_rows: tuple[int, ...]
    columns: tuple[str, ...]
    left_out: Mapping[str, str]
    margins: tuple[Margin, ...]
    pairs: tuple[Pair, ...]
    dependencies: tuple[Dependency, ...]
    separations: tuple[Separation, ...]
    prediction: Prediction | None
    queries: Queries | None
    regression: Regression | None
    notes: tuple[str, ...]

    @property
    def margin_distance(self) -> float:
        """The mean total variation of single columns."""
        return _mean([margin.distance for margin in self.margins])

    @property
    def pair_distance(self) -> float:
        """The mean total variation of pairs of columns."""
        return _mean([pair.distance for pair in self.pairs])

    @property
    def worst_margins(self) -> tuple[Margin, ...]:
        return tuple(sorted(self.margins, key=lambda margin: -(margin.distance or 0.0)))

    @property
    def worst_pairs(self) -> tuple[Pair, ...]:
        return tuple(sorted(self.pairs, key=lambda pair: -(pair.distance or 0.0)))

    @property
    def margin_finding(self) -> str:
        """The column that differs most, as a title; only columns that differ by more than chance are named."""
        worst = [
            margin for margin in self.worst_margins if margin.distance and margin.distance > (margin.expected or 0.0)
        ]
        if worst:
            return f"{worst[0].column} differs most: {percent(worst[0].distance)} of the rows would have to change"
        if any(margin.distance for margin in self.margins):
            return "No column differs by more than chance"
        return "All columns agree to the row"

    @property
    def findings(self) -> tuple[str, ...]:
        """The report in a few sentences."""
        findings = [_separation_sentence(separation) for separation in self.separations]
        if worst := [margin for margin in self.worst_margins if margin.distance is not None]:
            findings.append(
                f"Single columns differ by {percent(self.margin_distance)} of the rows on average. {self.margin_finding}."
                if worst[0].distance
                else "Every single column agrees to the row."
            )
        if pairs := [pair for pair in self.worst_pairs if pair.distance is not None]:
            findings.append(
                f"Pairs of columns differ by {percent(self.pair_distance)} on average, "
                f"most in {' and '.join(pairs[0].columns)} ({percent(pairs[0].distance)})."
                if pairs[0].distance
                else "Every pair of columns agrees to the row."
            )
        if broken := [of for of in self.dependencies if of.broken]:
            worst_of = max(broken, key=lambda of: of.broken or 0.0)
            findings.append(
                f"{worst_of.column} follows from {worst_of.by} in {percent(worst_of.holds)} of the original rows; "
                f"{percent(worst_of.broken)} of the synthetic rows break this."
            )
        if self.prediction:
            findings.append(
                f"Predicting {self.prediction.target} in original rows reaches {_measure(self.prediction)} "
                f"{self.prediction.synthetic:.3f} after training on synthetic rows, {self.prediction.original:.3f} on original rows."
            )
        if self.queries:
            findings.append(
                f"The shares of rows in {self.queries.count} random ranges have a mean error of {percent(self.queries.error)}; "
                f"the sampling error of {self.rows:,} rows is {percent(self.queries.sampling)}."
            )
        if self.regression and self.regression.overlap is not None:
            findings.append(
                f"In {self.regression.formula} the intervals overlap by {self.regression.overlap:.2f} on average."
            )
        return tuple(findings)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        report: dict[str, Any] = _finite(
            {
                "format": FORMAT,
                "caution": CAUTION,
                "why": WHY,
                "banner": self.banner,
                "data_set": self.name,
                "rows": {"original": self.rows, "synthetic": list(self.synthetic_rows)},
                "columns": list(self.columns),
                "left_out": dict(self.left_out),
                "findings": list(self.findings),
                "margins": {
                    "mean_total_variation": self.margin_distance,
                    "finding": self.margin_finding,
                    "reads": READS["margin"],
                    "columns": [margin.to_dict() for margin in self.margins],
                },
                "pairs": {
                    "mean_total_variation": self.pair_distance,
                    "reads": f"{READS['pair']} {READS['association']}",
                    "pairs": [pair.to_dict() for pair in self.pairs],
                },
                "dependencies": {
                    "reads": READS["dependency"],
                    "dependencies": [dependency.to_dict() for dependency in self.dependencies],
                },
                "separation": [
                    {**separation.to_dict(), "reads": READS[separation.kind]} for separation in self.separations
                ],
                "prediction": _with_reads(self.prediction, "prediction"),
                "queries": _with_reads(self.queries, "queries"),
                "regression": self._regression(),
                "notes": list(self.notes),
            }
        )
        return report

    def _regression(self) -> dict[str, Any] | None:
        if self.regression is None:
            return None
        return {**self.regression.to_dict(), "reads": f"{READS['regression']} {READS[self.regression.rule]}"}

    def to_arrow(self) -> pa.Table:
        """Return one row per measure of columns, pairs, dependencies, classifiers, queries and coefficients.

        `expected` is what chance, a bootstrap or the original gives. FOR THE DATA HOLDER ONLY, like everything here.
        """
        rows: list[tuple[Any, ...]] = [("pMSE", of.kind, None, of.value, of.bootstrap) for of in self.separations]
        rows += [("total variation", of.column, None, of.distance, of.expected) for of in self.margins]
        rows += [("total variation", *of.columns, of.distance, of.expected) for of in self.pairs]
        rows += [("broken dependency", of.column, of.by, of.broken, 1 - of.holds) for of in self.dependencies]
        if task := self.prediction:
            rows.append((task.measure, task.target, None, task.synthetic, task.original))
        if self.queries:
            rows.append(("query error", "random ranges", None, self.queries.error, self.queries.sampling))
        if self.regression:
            rows += [("interval overlap", of.name, None, of.overlap, None) for of in self.regression.coefficients]
        return arrow_table([dict(zip(ROW, row, strict=True)) for row in rows], ROW)

    def to_html(self) -> str:
        """Return one page that needs nothing else: no script and no link, with the charts inside."""
        return page(self)

    def _repr_html_(self) -> str:
        return fragment(self)

    def says(self) -> str:
        """Return the report for a terminal."""
        return describe(self)


def _separation_sentence(separation: Separation) -> str:
    times_as = "" if separation.ratio is None else f" ({times(separation.ratio)} times)"
    return (
        f"{CLASSIFIERS[separation.kind]} the tables with pMSE {separation.value:.2g} of at most {separation.most:.2g}; "
        f"a bootstrap of the original rows gives {separation.bootstrap:.2g}{times_as}."
    )


def _measure(prediction: Prediction) -> str:
    return {"AUC": "an AUC of", "rank correlation": "a rank correlation of"}[prediction.measure]


def _with_reads(result: Prediction | Queries | None, kind: str) -> dict[str, Any] | None:
    return None if result is None else {**result.to_dict(), "reads": READS[kind]}


def _mean(values: list[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else 0.0


def _finite(value: Any) -> Any:
    """Replace infinity and NaN by null, which JSON can represent."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write(path: Path, text: str) -> Path:
    problem = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise TidegateError(f'"{path}" cannot be written: {problem}.', "Choose another file or folder.")
    return path
