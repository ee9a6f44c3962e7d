"""Simulated observers of a release desk: how often they find a sensitive group, and the last simulation of a policy."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path
from pydantic import ConfigDict, Field

from tidegate.errors import Infeasible, Unsupported
from tidegate.ledger.upkeep import note_simulation, read_simulation
from tidegate.policy import Hiding
from tidegate.policy.hiding import join_hidings
from tidegate.service.datasets import ServedDataset
from tidegate.service.models.releases import ReleaseAudit
from tidegate.service.routes.dependencies import NAMED, Described, Form, Served, router
from tidegate.service.routes.selections import open_selections

if TYPE_CHECKING:
    from tidegate.audit import Observation

routes = router()
MOST_RECORDS = 5000  # of a simulated data set
UNCONTROLLED, HIDING = "none", "hiding"  # observations without any test, and under a hiding promise


class Audit(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"worlds": 20, "records": 400, "profile": [1, 1, 2, 4]}})
    worlds: int = Field(20, ge=2, le=60, description="The number of simulated pairs of data sets.")
    records: int = Field(400, ge=10, le=MOST_RECORDS, description="The number of records in each data set.")
    profile: list[Annotated[float, Field(ge=0, le=1e9)]] = Field(
        [],
        max_length=1000,
        description="The distribution of values in a sensitive group; by default the policy's first profile, or the "
        "first half of the values three times as likely under a hiding promise.",
    )
    seed: int = Field(1, ge=0, le=2**31)


@routes.post("/data/{name}/desks/{promise}/audits", response_model=ReleaseAudit)
def audit_release(
    served: Served, promise: Annotated[str, Path(pattern=NAMED, examples=["headquarters"])], body: Audit
) -> Described:
    size: dict[str, Any] = {"worlds": body.worlds, "records": body.records, "seed": body.seed}
    simulate = _observe_hiding if promise in served.policy.hidings else _observe_concealment
    observations = simulate(served, promise, body.profile, size)
    shown = [_without_nan(observation.to_dict()) for observation in observations]
    simulation = _summary(shown, size, of=HIDING if promise in served.policy.hidings else "")
    served.simulations[promise] = simulation
    note_simulation(served.session.ledger, served.name, promise, {**simulation, "policy": served.policy.fingerprint})
    return {"observations": shown, "simulation": simulation, **size}


def _summary(observations: list[Described], size: dict[str, Any], *, of: str) -> Described:
    """Return how many observers find the group under the promise of the desk, and how often the best one is right.

    `of` is the control to count: that of a hiding promise, or (empty) the tests of a concealment promise.
    """
    counted = [
        observation
        for observation in observations
        if (observation["test"] == of if of else observation["test"] not in (UNCONTROLLED, HIDING))
        and observation["auc"] is not None
    ]
    best = max(counted, key=lambda observation: abs(observation["auc"] - 0.5), default=None)
    summary: Described = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "worlds": size["worlds"],
        "records": size["records"],
        "observers": len(counted),
        "successful": sum(observation["betrayed"] for observation in counted),
        "right": best and max(best["auc"], 1 - best["auc"]),  # far below one half reveals as much as far above
        "released": best and best["released"],
    }
    return {**summary, "says": _sentences(summary, best)}


def _sentences(summary: Described, best: Described | None) -> list[str]:
    """Return what a simulation shows, the verdict first."""
    if best is None:
        return ["The simulation released too few records to say anything. Simulate more records per data set."]
    successful, observers, pairs = summary["successful"], summary["observers"], summary["worlds"]
    if successful:
        verdict = f"{successful} of {observers} simulated observers find the sensitive group."
    else:
        verdict = (
            f"None of {observers} simulated observers finds the sensitive group, as far as {pairs} pairs can show."
        )
    return [
        verdict,
        f"The best of them ({best['observer']}) picks it over an ordinary group in {summary['right']:.0%} of comparisons; "
        f"a coin flip has 50%. {summary['released']:.0%} of the requested records are released.",
    ]


def last_simulation(served: ServedDataset, promise: str) -> Described | None:
    """Return the summary of the last simulation of a promise under the present policy; None if there is none.

    It is stored beside a ledger's file; a ledger in a database has none, and each process remembers its own.
    """
    stored = read_simulation(served.session.ledger, served.name, promise)
    if stored is None or stored.pop("policy", "") != served.policy.fingerprint:
        return served.simulations.get(promise)
    return stored


def _observe_concealment(
    served: ServedDataset, promise: str, profile: list[float], size: dict[str, Any]
) -> list[Observation]:
    from tidegate.audit import observe  # here: numba is slow to import
    from tidegate.audit.releases.comparison import observe_hiding
    from tidegate.audit.releases.worlds import Everything

    plan = served.desk(promise).plans[promise]
    weights = profile or _profile(served, promise)
    _check_profile(weights, plan.values)
    hiding = Hiding(reveals=plan.promise.reveals, about=plan.promise.about, mix="table")
    return [
        *observe(plan, weights, control=Everything, **size),
        *observe(plan, weights, **size),
        *observe_hiding(plan, hiding, weights, **size, same_data_set=True),
    ]


def _observe_hiding(
    served: ServedDataset, promise: str, profile: list[float], size: dict[str, Any]
) -> list[Observation]:
    """Compare both kinds of promises. Ordinary groups have the values of the open selection's mix."""
    from tidegate.audit.releases.comparison import compare  # here: numba is slow to import

    selections = open_selections(served)
    if not selections:
        raise Infeasible(
            "The selection is not open yet, so there is no mix to simulate with.", "Open the selection first."
        )
    quotas = selections[0].quotas
    if profile:
        _check_profile(profile, len(quotas.mix))
    return compare(join_hidings(served.policy.hidings).promise, quotas.mix, quotas.sizes, profile, **size)


def _check_profile(profile: list[float], values: int) -> None:
    if len(profile) != values or not sum(profile):
        raise Unsupported(
            f"The profile must have {values:,} weights, one per value, and not all can be 0.",
            "Specify the distribution of values in a sensitive group.",
        )


def _profile(served: ServedDataset, promise: str) -> list[float]:
    profiles = list(served.policy.concealments[promise].profiles.values())
    return [float(weight) for weight in profiles[0].values] if profiles else []


def _without_nan(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }
