"""The stored result of a synthesis: every number of its diary has a price, and nothing else about the rows is in it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from tidegate.audit.finding import Finding
from tidegate.errors import TidegateError
from tidegate.synthesize.diary import NOTHING, Loss, Step
from tidegate.synthesize.learn import learn_again
from tidegate.synthesize.plan import Plan

STORED = {"model", "rows", "tables", "fitted"}  # of a synthesis, in the ledger: names, public numbers, diaries, models


def check_prices(stored: Any, limit: Loss, plan: Plan | None = None) -> Finding:
    """Check that only integers are stored, and each number of a diary with a price.

    The prices of each table must add up to at most its limit. With a plan, every stored model must be the one that its diary
    gives again without the rows: it then contains nothing else about them.
    """
    wrong = []
    if plan is not None and not _follow_from_diaries(stored, plan):
        wrong.append("a stored model does not follow from its diary")
    if others := set(stored) - STORED:
        wrong.append(f"the stored result also contains {', '.join(sorted(others))}")
    steps = [step for table in stored["tables"] for step in table]
    if any(set(step) - {"name", "epsilon", "z", "zcdp", "shape", "value"} for step in steps):
        wrong.append("a step contains more than its name, its price and its numbers")
    if any(not Loss.from_dict(step).z and len(step["value"]) for step in steps):
        wrong.append("numbers without a price are stored")
    if not all(isinstance(number, int) for step in steps for number in step["value"]) or _has_float(stored):
        wrong.append("numbers that are not whole are stored")
    totals = [sum((Loss.from_dict(step) for step in table), NOTHING) for table in stored["tables"]]
    spent, charged = (max((_amount(total, limit) for total in totals), default=0.0), _amount(limit, limit))
    if any(total.exceeds(limit) for total in totals):
        wrong.append(f"its prices add up to {spent:.6g}")
    unit = "Z" if limit.pure is None else "epsilon"
    return Finding(
        verb="synthesize",
        promise="the diary contains only numbers with a price, and the prices add up to at most the charge",
        attack="diary",
        knows="the ledger",
        bound=spent,
        promised=charged,
        alpha=0.0,
        tries=len(steps),
        verdict="broken" if wrong else "held",
        says="; ".join(wrong) + "."
        if wrong
        else f"the diary has {len(steps)} steps; their prices add up to {unit} {spent:.6g} "
        f"of {charged:g} charged for each table.",
    )


def _follow_from_diaries(stored: Any, plan: Plan) -> bool:
    """Return whether every stored model is rebuilt from its diary alone."""
    for diary, fitted in zip(stored["tables"], stored.get("fitted", ()), strict=False):
        rebuilt: Any = None
        with suppress(TidegateError):  # the model asks for rows
            rebuilt = learn_again(plan, [Step.from_dict(step) for step in diary], stored["rows"]).learnt
        if rebuilt is None or json.loads(json.dumps(rebuilt.to_dict())) != fitted["model"]:
            return False
    return True


def _amount(loss: Loss, limit: Loss) -> float:
    """Return a loss in the unit of the limit."""
    return float(loss.z) if limit.pure is None or loss.pure is None else float(loss.pure)


def _has_float(content: Any) -> bool:
    """Return whether a number that is not whole is anywhere in JSON content."""
    if isinstance(content, dict):
        return any(_has_float(value) for name, value in content.items() if name != "summary")
    return any(map(_has_float, content)) if isinstance(content, list) else isinstance(content, float)
