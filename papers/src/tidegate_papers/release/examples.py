"""Examples 3.2 to 5.13: the measures of the printed tables against their critical values."""

from __future__ import annotations

from functools import cache

import numpy as np

from tidegate.demo.soldiers import BASELINE, LOCATIONS, SHARES, concealment
from tidegate.release.mechanisms import REGISTERED, Reading
from tidegate.release.plan import Plan, make_plan
from tidegate.risk.exposure import dixon_coefficient, kullback_leibler, mutual_information, pearson
from tidegate_papers.item import Result
from tidegate_papers.release.paper import EXPECTED, TABLES, TESTS, printed

WHOLE = TABLES["2"]
AS_PUBLISHED = {"small_samples": "published", "dixon_table": "printed", "merging": "smallest-first"}


@cache
def plan_of(test: str, level: str) -> Plan:
    """Return the soldiers under one of the paper's tests, as published; bins are merged smallest first."""
    promise = concealment(tests=[TESTS[test]], significance=level, **AS_PUBLISHED)
    return make_plan(promise, promise.baseline, promise.shares)


def readings(test: str, level: str, figure: str) -> list[Reading]:
    """Compare a printed table with the critical values of a test."""
    plan = plan_of(test, level)
    return REGISTERED[TESTS[test]](plan).readings(TABLES[figure])


def verdict(compared: list[Reading]) -> str:
    """Return the verdict in the paper's words."""
    return "safe" if all(reading.value < reading.critical for reading in compared) else "not safe"


def by_location(prefix: str, values: list[float]) -> dict[str, Result]:
    """Return one item for each location."""
    return {f"{prefix}_{name}": Result(value) for name, value in zip(LOCATIONS, values, strict=True)}


def example_3_2() -> dict[str, Result]:
    """Return the statements about Figure 2."""
    total, first, youngest = sum(SHARES), SHARES[0], BASELINE[0]
    return {
        "ex32_total": Result(total),
        "ex32_L1": Result(first),
        "ex32_young": Result(youngest),
        "ex32_young_L1_percent": Result(100 * int(WHOLE[0, 0]) / first),
        "ex32_young_percent": Result(100 * youngest / total),
        "ex32_share_L1_percent": Result(100 * first / total),
    }


def section_4() -> dict[str, Result]:
    """Return Examples 4.1 to 4.3: the measures of the whole table."""
    return {
        "ex41_information": Result(mutual_information(WHOLE, EXPECTED)),
        **by_location("ex42", kullback_leibler(WHOLE, EXPECTED).tolist()),
        **by_location("ex43", [pearson(column, EXPECTED, rule="smallest-first")[0] for column in WHOLE.T]),
    }


def example_5_4() -> dict[str, Result]:
    """Return mutual information: a safe release, and the whole table."""
    (some,), (all_,) = readings("MIS", "0.2", "6"), readings("MIS", "0.05", "2")
    return {
        "ex53_freedom": Result((len(BASELINE) - 1) * len(SHARES)),
        "ex54_information": Result(some.value),
        "ex54_critical": Result(some.critical),
        "ex54_verdict": Result(verdict([some])),
        "ex54_T_critical": Result(all_.critical),
        "ex54_T_verdict": Result(verdict([all_])),
    }


def example_5_8() -> dict[str, Result]:
    """Return distances: a safe release, and the whole table."""
    return _per_location("ex58", "distance", "KLD", "8")


def example_5_11() -> dict[str, Result]:
    """Return Pearson's statistic: a safe release, and the whole table."""
    return _per_location("ex511", "statistic", "CST", "9")


def _per_location(example: str, measure: str, test: str, figure: str) -> dict[str, Result]:
    some, all_ = readings(test, "0.2", figure), readings(test, "0.05", "2")
    return {
        **by_location(f"{example}_{measure}", [reading.value for reading in some]),
        **by_location(f"{example}_critical", [reading.critical for reading in some]),
        f"{example}_verdict": Result(verdict(some)),
        **by_location(f"{example}_T_critical", [reading.critical for reading in all_]),
        f"{example}_T_verdict": Result(verdict(all_)),
    }


def example_5_13() -> dict[str, Result]:
    """Return Dixon's coefficient: a safe release, and the whole table."""
    (some,), (all_,) = readings("DQT", "0.2", "11"), readings("DQT", "0.05", "2")
    distances = kullback_leibler(WHOLE, EXPECTED)
    rounded = sorted(distances.round(6))
    wrong = (rounded[-1] - rounded[-2]) / (rounded[-1] - printed("ex513_least"))
    return {
        **by_location("ex513_distance", kullback_leibler(TABLES["11"], EXPECTED).tolist()),
        "ex513_coefficient": Result(some.value),
        "ex513_critical": Result(some.critical),
        "ex513_verdict": Result(verdict([some])),
        "ex513_least": Result(float(np.min(distances)), f"it would be {wrong:.4f}"),
        "ex513_T_coefficient": Result(all_.value, f"from those it is {dixon_coefficient(rounded)[0]:.6f}"),
        "ex513_T_critical": Result(all_.critical),
        "ex513_T_verdict": Result(verdict([all_])),
    }
