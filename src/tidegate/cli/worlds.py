"""risk worlds: the conclusions of an adversary who knows all rows except one from a noisy answer."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import typer

from tidegate.cli.output import JSON, emit, say, table
from tidegate.errors import Unsupported, did_you_mean

MOST_WORLDS, MOST_WORK, LARGEST = 2_000, 1_000_000, 10**12
EXAMPLE = "tidegate risk worlds --universe 1,2,3,4,5,10 --known 1,2,3 --statistic mean --scale 1.125 --response 5.041"


def worlds(
    universe: str = typer.Option(
        ..., help="The values of everybody who could be in the data: 1,2,3 or 1..10, one entry per person."
    ),
    known: str = typer.Option("", help="The rows that the adversary knows: all except the missing one."),
    statistic: str = typer.Option("mean", help="mean, sum, median, min, max, std, or count (with --at-least)."),
    scale: str = typer.Option(..., help="The scale of the Laplace noise that was added."),
    response: str | None = typer.Option(None, help="The noisy answer; without it, only the worst case is shown."),
    prior: str | None = typer.Option(
        None, help="The prior probability of each possible value, in the universe's order."
    ),
    at_least: str | None = typer.Option(None, "--at-least", help="With count: count rows of at least this value."),
    may_repeat: bool = typer.Option(
        False, "--may-repeat", help="The universe lists values, and the missing row can have the value of a known row."
    ),
    json: bool = JSON,
) -> None:
    """Calculate the probability of every possible value after a noisy answer, and the worst case over all answers."""
    from tidegate.risk.worlds import missing_rows, outputs

    everyone, knows = _numbers(universe, "universe"), _numbers(known, "known")
    missing = missing_rows(everyone, knows, may_repeat=may_repeat)
    _refuse(everyone, knows, missing, may_repeat)
    answers = outputs(_statistic(statistic, at_least, rows=len(knows) + 1), missing, knows)
    noise_scale = _above_0(scale)
    observed = None if response is None else float(_number(response, "response"))
    result = {"statistic": statistic, "scale": noise_scale, "response": observed}
    result |= _probabilities(missing, list(map(float, answers)), noise_scale, observed, prior)
    return emit(result) if json else _show(result)


def _probabilities(
    missing: list[Fraction], answers: list[float], scale: Any, observed: float | None, prior: str | None
) -> dict[str, Any]:
    """Return every possible value with its exact answer, its probability before and after, and in the worst case."""
    from tidegate.risk import posterior, worst_risk

    before = _prior(prior, len(missing))
    rows = [
        {"missing": str(row), "answer": own, "before": p} for row, own, p in zip(missing, answers, before, strict=True)
    ]
    after: Any = [] if observed is None else posterior(answers, observed, scale=scale, prior=before)
    for row, probability in zip(rows, after, strict=False):
        row["after"] = float(probability)
    for index, row in enumerate(rows):
        row["at_worst"] = float(posterior(answers, answers[index], scale=scale, prior=before)[index])
    return {"worlds": rows, "worst_risk": worst_risk(answers, scale=scale, prior=before)}


def _show(result: dict[str, Any]) -> None:
    rows, has_answer = result["worlds"], "after" in result["worlds"][0]
    headers = ["missing", result["statistic"], "before", *(["after"] if has_answer else []), "worst case"]
    keys = ["before", *(["after"] if has_answer else []), "at_worst"]
    cells = [[row["missing"], f"{row['answer']:.6g}", *(f"{row[key]:.4f}" for key in keys)] for row in rows]
    table(headers, cells, right=set(range(len(headers))))
    if has_answer:
        best = max(rows, key=lambda row: row["after"])
        say(
            f"The best guess after {result['response']:g} is {best['missing']}, with probability {best['after']:.4f} (before: {best['before']:.4f})."
        )
    worst = max(rows, key=lambda row: row["at_worst"])
    say(
        f"No answer gives any value a probability above {result['worst_risk']:.4f}. The answer {worst['answer']:.6g} gives it to {worst['missing']}."
    )


def _refuse(universe: list[Fraction], known: list[Fraction], missing: list[Fraction], may_repeat: bool) -> None:
    unknown = sorted(set(known) - set(universe))
    if unknown:
        raise Unsupported(
            f"{unknown[0]} is in `--known` but not in `--universe`.",
            "Add it to --universe, or remove it from --known.",
        )
    if not may_repeat and len(missing) != len(universe) - len(known):
        raise Unsupported(
            "`--known` contains a value more often than `--universe`.",
            "List it once per person in --universe, or add --may-repeat if the universe lists values.",
        )
    if not missing:
        raise Unsupported("All rows are known, so no possible value remains.", "Remove a row from --known.")
    if len(missing) > MOST_WORLDS or len(missing) * (len(known) + 1) > MOST_WORK:
        raise Unsupported(
            f"{len(missing):,} possible values with {len(known) + 1:,} rows are too many (at most {MOST_WORLDS:,} values).",
            "Use tidegate risk convert --worlds N, which works for any number of possible values.",
        )


def _statistic(name: str, at_least: str | None, *, rows: int) -> Any:
    from tidegate.risk.worlds import STATISTICS
    from tidegate.risk.worlds import at_least as counting

    if name == "count":
        if at_least is None:
            raise Unsupported("`--statistic count` needs `--at-least`.", "Add --at-least 4 to count rows of 4 or more.")
        return counting(_number(at_least, "at-least"))
    if at_least is not None:
        raise Unsupported("`--at-least` works only with `--statistic count`.", f"Remove it for {name}.")
    if name not in STATISTICS:
        raise Unsupported(f'Unknown statistic: "{name}".', did_you_mean(name, [*STATISTICS, "count"]))
    if name == "std" and rows < 2:
        raise Unsupported("A standard deviation needs at least two rows.", "Add a row to --known.")
    return STATISTICS[name]


def _numbers(text: str, name: str) -> list[Fraction]:
    """Parse numbers separated by commas; 1..10 means the whole numbers from 1 to 10."""
    numbers: list[Fraction] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dots, last = part.partition("..")
        low = _number(first, name)
        high = _number(last, name) if dots else low
        if dots and (low.denominator != 1 or high.denominator != 1 or not 0 <= high - low <= LARGEST):
            raise Unsupported(f"`--{name}`: {part} is not a range of whole numbers.", "Write a range such as 1..10.")
        if high - low > MOST_WORK:
            raise Unsupported(f"`--{name}`: {part} contains more than {MOST_WORK:,} numbers.", "Use a smaller range.")
        numbers += [low + step for step in range(int(high - low) + 1)]
    if not numbers and name == "universe":
        raise Unsupported("`--universe` is empty.", EXAMPLE)
    return numbers


def _number(text: str, name: str) -> Fraction:
    from tidegate.exact import exact

    value = None
    try:
        rough = abs(float(Fraction(text))) if "/" in text else abs(float(text))
        value = exact(text) if rough <= LARGEST else None
    except (ValueError, ZeroDivisionError, OverflowError):
        pass
    if value is None:
        raise Unsupported(f"`--{name}` must be a number of at most {LARGEST:,} in size.", EXAMPLE)
    return value


def _above_0(text: str) -> float:
    value = float(_number(text, "scale"))
    if value <= 0:
        raise Unsupported(
            "`--scale` must be above 0: without noise, all different answers can be distinguished.",
            "Use, for example, --scale 1.125.",
        )
    return value


def _prior(text: str | None, count: int) -> list[float]:
    if text is None:
        return [1 / count] * count
    prior = [float(value) for value in _numbers(text, "prior")]
    if len(prior) != count or min(prior) <= 0:
        raise Unsupported(
            f"`--prior` has {len(prior)} probabilities for {count} possible values; each value needs one above 0.",
            "List one for each entry of the universe that is not known, in its order. Remove impossible values from --universe.",
        )
    if not math.isclose(sum(prior), 1, abs_tol=1e-6):
        raise Unsupported(f"`--prior` has the sum {sum(prior):.6g} instead of 1.", "Write thirds as 1/3,1/3,1/3.")
    return prior
