"""risk worlds: what an adversary who knows all rows but one concludes from a noisy answer."""

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
    universe: str = typer.Option(..., help="Who could be in the data, by value: 1,2,3 or 1..10, one entry per person."),
    known: str = typer.Option("", help="The rows that the adversary knows: all but the missing one."),
    statistic: str = typer.Option("mean", help="mean, sum, median, min, max, std, or count (with --at-least)."),
    scale: str = typer.Option(..., help="The scale of the Laplace noise that was added."),
    response: str | None = typer.Option(None, help="The noisy answer; without it only the worst of all is told."),
    prior: str | None = typer.Option(None, help="How likely each world is beforehand, in the universe's order."),
    at_least: str | None = typer.Option(None, "--at-least", help="What count counts: rows of at least this value."),
    may_repeat: bool = typer.Option(
        False, "--may-repeat", help="The universe lists values, and the missing row may have a value that is known."
    ),
    json: bool = JSON,
) -> None:
    """The probability of every possible world after a noisy answer, and the worst over all answers."""
    from tidegate.risk.worlds import missing_rows, outputs

    everyone, knows = _numbers(universe, "universe"), _numbers(known, "known")
    missing = missing_rows(everyone, knows, may_repeat=may_repeat)
    _refuse(everyone, knows, missing, may_repeat)
    answers = outputs(_statistic(statistic, at_least, rows=len(knows) + 1), missing, knows)
    told = {"statistic": statistic, "scale": _above_0(scale)}
    heard = None if response is None else float(_number(response, "response"))
    result = {**told, "response": heard, **_judged(missing, list(map(float, answers)), told["scale"], heard, prior)}
    return emit(result) if json else _show(result)


def _judged(
    missing: list[Fraction], answers: list[float], scale: Any, heard: float | None, prior: str | None
) -> dict[str, Any]:
    """Every world with its answer without noise, its probability before and after, and the most that any answer gives it."""
    from tidegate.risk import posterior, worst_risk

    before = _prior(prior, len(missing))
    rows = [
        {"missing": str(row), "answer": own, "before": p} for row, own, p in zip(missing, answers, before, strict=True)
    ]
    after: Any = [] if heard is None else posterior(answers, heard, scale=scale, prior=before)
    for row, probability in zip(rows, after, strict=False):
        row["after"] = float(probability)
    for place, row in enumerate(rows):
        row["at_worst"] = float(posterior(answers, answers[place], scale=scale, prior=before)[place])
    return {"worlds": rows, "worst_risk": worst_risk(answers, scale=scale, prior=before)}


def _show(result: dict[str, Any]) -> None:
    rows, asked = result["worlds"], "after" in result["worlds"][0]
    headers = ["missing", result["statistic"], "before", *(["after"] if asked else []), "at worst"]
    keys = ["before", *(["after"] if asked else []), "at_worst"]
    cells = [[row["missing"], f"{row['answer']:.6g}", *(f"{row[key]:.4f}" for key in keys)] for row in rows]
    table(headers, cells, right=set(range(len(headers))))
    if asked:
        best = max(rows, key=lambda row: row["after"])
        say(
            f"The best guess after {result['response']:g} is {best['missing']}: {best['after']:.4f}, before {best['before']:.4f}."
        )
    worst = max(rows, key=lambda row: row["at_worst"])
    say(
        f"No answer makes any world likelier than {result['worst_risk']:.4f}; {worst['answer']:.6g} does, for {worst['missing']}."
    )


def _refuse(universe: list[Fraction], known: list[Fraction], missing: list[Fraction], may_repeat: bool) -> None:
    strange = sorted(set(known) - set(universe))
    if strange:
        raise Unsupported(
            f"{strange[0]} is known but is not in the universe.", "Add it to --universe, or take it out of --known."
        )
    if not may_repeat and len(missing) != len(universe) - len(known):
        raise Unsupported(
            "something is known more often than the universe holds it.",
            "Name it once for every person who has it, or say --may-repeat where the universe lists values.",
        )
    if not missing:
        raise Unsupported("everybody is known: there is no possible world left.", "Leave somebody out of --known.")
    if len(missing) > MOST_WORLDS or len(missing) * (len(known) + 1) > MOST_WORK:
        raise Unsupported(
            f"{len(missing):,} worlds of {len(known) + 1:,} rows are more than are listed ({MOST_WORLDS:,} worlds).",
            "tidegate risk convert --worlds N bounds the risk among any number of worlds.",
        )


def _statistic(name: str, at_least: str | None, *, rows: int) -> Any:
    from tidegate.risk.worlds import STATISTICS
    from tidegate.risk.worlds import at_least as counting

    if name == "count":
        if at_least is None:
            raise Unsupported("count needs to be told what it counts.", "Add --at-least 4 to count rows of 4 or more.")
        return counting(_number(at_least, "at-least"))
    if at_least is not None:
        raise Unsupported("--at-least goes with --statistic count.", f"Leave it out for {name}.")
    if name not in STATISTICS:
        raise Unsupported(f'there is no statistic "{name}".', did_you_mean(name, [*STATISTICS, "count"]))
    if name == "std" and rows < 2:
        raise Unsupported("a standard deviation needs two rows.", "Name at least one row in --known.")
    return STATISTICS[name]


def _numbers(text: str, name: str) -> list[Fraction]:
    """Numbers between commas; 1..10 stands for the whole numbers from 1 to 10."""
    found: list[Fraction] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dots, last = part.partition("..")
        low = _number(first, name)
        high = _number(last, name) if dots else low
        if dots and (low.denominator != 1 or high.denominator != 1 or not 0 <= high - low <= LARGEST):
            raise Unsupported(f"--{name}: {part} is no range of whole numbers.", "Write 1..10.")
        if high - low > MOST_WORK:
            raise Unsupported(f"--{name}: {part} holds more numbers than can be listed.", "Name fewer.")
        found += [low + step for step in range(int(high - low) + 1)]
    if not found and name == "universe":
        raise Unsupported("the universe is empty.", EXAMPLE)
    return found


def _number(text: str, name: str) -> Fraction:
    from tidegate.exact import exact

    value = None
    try:
        rough = abs(float(Fraction(text))) if "/" in text else abs(float(text))
        value = exact(text) if rough <= LARGEST else None
    except (ValueError, ZeroDivisionError, OverflowError):
        pass
    if value is None:
        raise Unsupported(f"--{name}: a number is needed (at most {LARGEST:,} in size).", EXAMPLE)
    return value


def _above_0(text: str) -> float:
    value = float(_number(text, "scale"))
    if value <= 0:
        raise Unsupported(
            "the scale of the noise must be above 0.", "Without noise every different answer is told apart."
        )
    return value


def _prior(text: str | None, many: int) -> list[float]:
    if text is None:
        return [1 / many] * many
    given = [float(value) for value in _numbers(text, "prior")]
    if len(given) != many or min(given) <= 0:
        raise Unsupported(
            f"{len(given)} prior probabilities were given for {many} worlds; each world needs one above 0.",
            "Name one for each entry of the universe that is not known, in its order; leave out who cannot be the missing one.",
        )
    if not math.isclose(sum(given), 1, abs_tol=1e-6):
        raise Unsupported(f"the prior sums to {sum(given):.6g}, not to 1.", "Write thirds as 1/3,1/3,1/3.")
    return given
