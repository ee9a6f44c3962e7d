"""The steward's home: who spent what, what waits, what runs, and what needs attention, for every data set of an owner."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request

from tidegate.accounting import Amount
from tidegate.accounting.amount import ZERO
from tidegate.accounting.budget import SHORT
from tidegate.charts import Axis, Band, Chart, Rule, Table
from tidegate.errors import TidegateError
from tidegate.ledger import Ledger
from tidegate.ledger.explain import page as ledger_page
from tidegate.ledger.jobs import Jobs
from tidegate.ledger.spending import (
    Charge,
    Spending,
    has_released,
    source_of_last_answer,
    totals_by_user,
    waiting_since,
)
from tidegate.ledger.tokens import Tokens
from tidegate.ledger.upkeep import read_work
from tidegate.service.access.callers import Caller
from tidegate.service.access.permissions import ANALYST
from tidegate.service.datasets import ServedDataset
from tidegate.service.jobs import job_to_dict
from tidegate.service.models.access import Home
from tidegate.service.routes.collection_drafts import list_collections
from tidegate.service.routes.datasets import summary
from tidegate.service.routes.dependencies import CurrentCaller, Described, router
from tidegate.service.routes.health import witness_states

routes = router()
RECENT, WEEK = 5, timedelta(days=7)
ALMOST_SPENT = 0.8
TONES: Any = ("accent", "soft", "quiet")  # of the users who spent most; the others are one area
MOST_DAYS = 400  # of daily steps; a longer time has weekly ones
NOBODY = "unknown user"


@routes.get("/home", response_model=Home)
def home(
    request: Request,
    caller: CurrentCaller,
    charts: Annotated[bool, Query(description="Also return the charts of spending, as SVG.")] = False,
) -> Described:
    content = home_content(request, caller, charts=charts)
    sets = [{**part, "chart": part["chart"].to_dict() if part["chart"] else None} for part in content["datasets"]]
    return {**content, "datasets": sets}


def home_content(request: Request, caller: Caller, *, charts: bool) -> Described:
    """Return the home of every data set of an owner; charts are `Chart` values."""
    names = [name for name in request.app.state.datasets if caller.dataset in ("", name)]
    spending: Spending = request.app.state.spending
    tokens: Tokens = request.app.state.guard.callers.tokens
    limits = {(token.dataset, token.name): token.share for token in tokens.all() if token.role == ANALYST}
    sets = [dataset_home(request.app.state.datasets[name], caller, spending, limits, charts=charts) for name in names]
    return {"datasets": sets, "warnings": service_warnings(request, caller)}


def dataset_home(
    served: ServedDataset, caller: Caller, spending: Spending, limits: dict[tuple[str, str], str], *, charts: bool
) -> Described:
    """Return the home of one data set."""
    ledger, now = served.session.ledger, datetime.now(UTC)
    content = summary(served, caller)
    charges = spending.charges(served.name) if content["account"] else []
    users = people(served.name, charges, limits, now)
    count, since = waiting_since(ledger, served.name) if served.policy.release_promises else (0, "")
    chart = spending_chart(charges, content["account"], now) if charts and charges else None
    return {
        **content,
        "users": users,
        "recent": recent_queries(ledger, served.name),
        "waiting": {"count": count, "since": since or None, "days": _days(since, now) if since else None},
        "reports": reports_of(served),
        "jobs": [job_to_dict(job) for job in Jobs(ledger.store).unfinished(served.name)],
        "alerts": dataset_warnings(served, content),
        "chart": chart,
    }


def people(
    dataset: str, charges: list[Charge], limits: dict[tuple[str, str], str], now: datetime
) -> list[dict[str, Any]]:
    """Return what each user spent in the last seven days and in total, with the number of charged queries."""
    week = [charge for charge in charges if charge.at > now - WEEK]
    this_week = totals_by_user(week)
    lines = []
    for user, total in totals_by_user(charges).items():
        share = limits.get((dataset, user)) or limits.get(("", user)) or None
        lines.append(
            {
                "user": user or NOBODY,
                "week": str(this_week.get(user, ZERO)),
                "week_queries": sum(charge.user == user for charge in week),
                "total": str(total),
                "queries": sum(charge.user == user for charge in charges),
                "share": share,
                "url": f"/console/ledger?{urlencode({'dataset': dataset, 'kind': 'charge', 'who': user})}",
            }
        )
    return sorted(lines, key=lambda line: Amount.parse(str(line["week"])).value, reverse=True)


def recent_queries(ledger: Ledger, dataset: str) -> list[Described]:
    latest = ledger_page(ledger, dataset=dataset, kind="charge", newest=True, limit=RECENT)
    return [{"number": entry.number, "at": entry.at, "says": says} for entry, says in latest]


def reports_of(served: ServedDataset) -> list[Described]:
    """Return the received and the expected reports of each collection."""
    return [
        {name: collection[name] for name in ("collection", "reports", "clients", "closed", "problem")}
        for collection in (list_collections(served)["collections"] if served.policy.collections else [])
    ]


def _days(since: str, now: datetime) -> int:
    return max(0, (now - datetime.fromisoformat(since)).days)


def dataset_warnings(served: ServedDataset, content: Described) -> list[Described]:
    """Return what needs attention in a data set, each with the page that shows it."""
    warnings, account = [], content["account"]
    if account and float(account["ceiling"]) > 0:
        part = float(account["spent"]) / float(account["ceiling"])
        if part >= ALMOST_SPENT:
            text = f"{part:.0%} of the budget is spent."
            warnings.append(_warning(text, "Plan the last queries.", f"/console/data/{served.name}/ask"))
    if account and _source_changed(served):
        warnings.append(
            _warning(
                "The source has changed since the last answer.",
                "Stored answers describe the earlier state. Declare a new edition if queries should be answered again.",
                f"/console/data/{served.name}/policy",
            )
        )
    return warnings


def _warning(what: str, do: str, url: str) -> Described:
    return {"what": what, "do": do, "url": url}


def _source_changed(served: ServedDataset) -> bool:
    described = source_of_last_answer(served.session.ledger, served.name)
    if not described:
        return False
    try:
        present = served.session.ledger.source_index(served.name)
    except TidegateError:
        return False
    return bool(present) and present != described


def service_warnings(request: Request, caller: Caller) -> list[Described]:
    """Return what needs attention in the ledger and the folder; for owners of all data sets."""
    if caller.dataset:
        return []
    datasets, now = request.app.state.datasets, datetime.now(UTC)
    work = read_work(datasets.ledger)
    warnings = [
        _warning(f"{name} is not served. {problem}", "Correct the file.", "/console/drafts")
        for name, problem in datasets.refused.items()
    ]
    warnings += [
        _warning(f"The witness {state.address} is behind: {state.problem.rstrip('.')}.", WITNESS, LEDGER)
        for state in witness_states(request)
        if state.problem
    ]
    ledger = datasets.ledger  # one in a database has its own backups, and no record beside a file
    if ledger.store.path is None or not has_released(ledger):
        return warnings
    verified, saved = work.get("verification"), work.get("backup")
    if verified and not verified.get("holds"):
        warnings.append(_warning("The last verification of the ledger failed.", "Compare it with a backup.", LEDGER))
    elif not verified or _days(verified["at"], now) >= 1:
        age = f"was last verified {_ago(verified['at'], now)}" if verified else "was never verified"
        warnings.append(_warning(f"The ledger {age}.", "Verify all entries.", LEDGER))
    if not saved or _days(saved["at"], now) >= WEEK.days:
        age = f"was last backed up {_ago(saved['at'], now)}" if saved else "was never backed up"
        warnings.append(_warning(f"The ledger {age}.", BACKUP, LEDGER))
    return warnings


LEDGER = "/console/ledger"
BACKUP = "Ask the operator of the service to run: tidegate ledger backup LEDGER NEW-FILE"
WITNESS = "Charges continue. Check its address and its disk: tidegate ledger witness LEDGER"


def _ago(at: str, now: datetime) -> str:
    days = _days(at, now)
    return "today" if not days else "yesterday" if days == 1 else f"{days:,} days ago"


def spending_chart(charges: list[Charge], account: Described, now: datetime) -> Chart:
    """Return cumulative spending by user over time, stacked, with the limit."""
    unit, limit = SHORT[account["unit"]], float(account["ceiling"])
    totals = totals_by_user(charges)
    shown = list(totals)[: len(TONES)]
    groups = {user or NOBODY: [user] for user in shown}
    rest = [user for user in totals if user not in shown]
    if rest:
        groups["others" if len(rest) > 1 else rest[0] or NOBODY] = rest
    start = charges[0].at.date()
    days = (now.date() - start).days + 1
    step = 1 if days <= MOST_DAYS else 7
    count = -(-days // step)
    edges = tuple(float(index * step) for index in range(count + 1))
    marks, base = [], [0.0] * count
    for index, (label, users) in enumerate(groups.items()):
        sums = _cumulative([charge for charge in charges if charge.user in users], start, step, count)
        top = [low + value for low, value in zip(base, sums, strict=True)]
        tone: Any = TONES[index] if index < len(TONES) else "ink"
        marks.append(Band(label, edges, tuple(base), tuple(top), tone, steps=True))
        base = top
    middle = step / 2  # of a step: the date stands below it
    names = [
        (position + middle, (start + timedelta(days=int(position))).strftime("%-d %b")) for position in _ticks(edges)
    ]
    spent = sum(totals.values(), ZERO)
    rows = tuple((user or NOBODY, float(amount)) for user, amount in totals.items())
    return Chart(
        f"{spent.say()} of {Amount.parse(account['ceiling']).say()} {unit} spent since {start:%-d %b %Y}",
        (*marks, Rule("limit", (limit,))),
        Axis(ticks=tuple(names), low=0.0, high=edges[-1]),
        Axis(f"spent, {unit}", low=0.0),
        Table(("user", f"spent, {unit}"), rows),
        height=200,
    )


def _cumulative(charges: list[Charge], start: Any, step: int, count: int) -> list[float]:
    sums = [0.0] * count
    for charge in charges:
        sums[min(count - 1, max(0, (charge.at.date() - start).days // step))] += float(charge.amount)
    total, result = 0.0, []
    for value in sums:
        total += value
        result.append(total)
    return result


def _ticks(edges: tuple[float, ...]) -> list[float]:
    """Return at most five positions for dates."""
    last = len(edges) - 1
    return sorted({edges[round((last - 1) * part / 4)] for part in range(5)}) if last > 4 else list(edges[:-1])
