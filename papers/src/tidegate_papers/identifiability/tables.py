"""Section 5, Tables 3 and 4: sensitive ranges, scales, and the true statistics of Adult."""

from __future__ import annotations

import math
from fractions import Fraction

from tidegate.risk import equation_15
from tidegate_papers.identifiability.adult import Adult
from tidegate_papers.identifiability.paper import ATTRIBUTES, FACTS, RHOS, ROWS, Attribute, printed
from tidegate_papers.item import Result

STATISTICS = {"mean": "mean", "sd": "standard deviation"}  # of Table 4
RESIDENTS = 260_000_000  # of the United States in 1994, roughly


def mean_range(attribute: Attribute) -> Fraction:
    """Return S(f) of the mean: one row changes it by at most this, whatever the other rows are."""
    return Fraction(attribute.span, ROWS)


def deviation_range(attribute: Attribute) -> float:
    """Return S(f) of the sample standard deviation over every database with this number of rows.

    Its slope in one row is |x - mean| / ((n - 1) sd) <= 1 / sqrt(n), reached where all other rows are equal.
    """
    return attribute.span / math.sqrt(ROWS)


def scale(sensitivity: float, attribute: Attribute, rho: str) -> float:
    """Return the scale of equation (15)."""
    return equation_15(sensitivity, worlds=attribute.worlds, rho=float(rho))


def section_5() -> dict[str, Result]:
    """Return the worked example: mean of hours-per-week, rho = 1/10."""
    hours = ATTRIBUTES["HW"]
    sensitivity = mean_range(hours)
    printed_scale = printed("s5_lambda_hw_1e4") * 1e-4
    implied = 1 + 9 * math.exp(float(sensitivity) / printed_scale)
    residents = equation_15(float(sensitivity), worlds=RESIDENTS, rho=0.1)
    kinds = " and ".join(STATISTICS[kind] for kind in FACTS["responses"])
    return {
        "s5_S_hw": Result(float(sensitivity)),
        "s5_S_hw_exact": Result(sensitivity),
        "s5_lambda_hw_1e4": Result(scale(float(sensitivity), hours, "0.1") * 1e4),
        "s5_universe": Result(
            f"{implied:.0f} values", f"{RESIDENTS:,} worlds would ask for {residents * 1e4:.3f} x 10^-4"
        ),
        "s5_statistics": Result(f"{kinds} of {len(ATTRIBUTES)} attributes"),
    }


def table_4() -> dict[str, Result]:
    """Return sensitive ranges, scales and the responses' spread: all that needs no data."""
    results: dict[str, Result] = {}
    for code, attribute in ATTRIBUTES.items():
        results[f"t4_mean_{code}_S"] = Result(float(mean_range(attribute)))
        results[f"t4_sd_{code}_S"] = Result(deviation_range(attribute))
        for rho in RHOS:
            results[f"t4_mean_{code}_lam_{rho}"] = Result(scale(float(mean_range(attribute)), attribute, rho))
            results[f"t4_sd_{code}_lam_{rho}"] = _deviation_scale(attribute, rho)
    return {**results, **_responses(results)}


def _deviation_scale(attribute: Attribute, rho: str) -> Result:
    as_printed = scale(printed(f"t4_sd_{attribute.code}_S"), attribute, rho)
    sound = scale(deviation_range(attribute), attribute, rho)
    return Result(as_printed, f"for every database it would be {sound:.4f}" if math.isfinite(sound) else "")


def _responses(results: dict[str, Result]) -> dict[str, Result]:
    """Return how far the printed responses are from the printed truth, in our scales, and the size of the others.

    |noise| / scale of a Laplace draw has mean 1 and deviation 1.
    """
    ratios, others = [], []
    for statistic, rows in FACTS["responses"].items():
        for code, responses_by_rho in rows.items():
            truth = printed(f"t4_{statistic}_{code}_f")
            for rho, responses in responses_by_rho.items():
                noise = results[f"t4_{statistic}_{code}_lam_{rho}"].value
                if math.isfinite(noise):
                    ratios += [abs(response - truth) / noise for response in responses]
                else:
                    others += [abs(response) for response in responses]
    spread = sum(ratios) / len(ratios)
    return {
        "t4_responses": Result(1.0, published=round(spread, 3), error=len(ratios) ** -0.5, size=len(ratios)),
        "t4_responses_infinite": Result(
            "refused", f"{len(others)} responses", published=round(sum(others) / len(others))
        ),
    }


def with_data(adult: Adult) -> dict[str, Result]:
    """Return what needs the table itself: its rows and columns, the ends of Table 3, the true statistics of Table 4."""
    numbers, others = adult.columns()
    results = {"s5_rows": Result(adult.rows), "s5_numerical": Result(numbers), "s5_categorical": Result(others)}
    for code, attribute in ATTRIBUTES.items():
        spread, (low, high) = adult.spread(attribute), adult.ends(attribute)
        results |= {f"t3_{code}_min": Result(low), f"t3_{code}_max": Result(high)}
        results |= {f"t4_mean_{code}_f": Result(float(spread.mean)), f"t4_sd_{code}_f": Result(spread.deviation)}
        example = FACTS["deviations"][code]
        apart = spread.after(*example["first"]).deviation - spread.after(*example["second"]).deviation
        results[f"t4_sd_{code}_S"] = Result(
            deviation_range(attribute),
            f"the printed one is {apart:.7f} cut: how far apart this table's deviation lies {example['words']}",
        )
    return results
