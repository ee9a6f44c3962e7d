"""release: request records, check or withdraw a request, list released records."""

from __future__ import annotations

import csv
import getpass
import io
import math
from collections import Counter
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.output import JSON, counted, emit, plural, say, table, working, write_whole, writing
from tidegate.errors import SourceMissing, SourceUnreadable, Unsupported


def release(
    policy: Path = typer.Argument(help="A policy file."),
    promise: str = typer.Argument("", help="The concealment promise (optional if the policy has only one)."),
    requests: Path | None = typer.Option(None, "--requests", help="A CSV file of keys to request, in this order."),
    key: list[str] = typer.Option([], "--key", help="Request the record of this key."),
    status: str = typer.Option("", "--status", help="Show the status of the request for this key."),
    withdraw: str = typer.Option("", "--withdraw", help="Withdraw the waiting request for this key."),
    since: int = typer.Option(0, "--since", help="With --out: only records released after this cursor."),
    out: Path | None = typer.Option(None, "--out", help="Write the released records to this CSV file."),
    plot: Path | None = typer.Option(
        None, "--plot", help="Write charts of exposure, proportions and distributions to this folder."
    ),
    ledger: str = typer.Option("", "--ledger", help="A ledger other than the policy's: a path or postgresql://..."),
    json: bool = JSON,
) -> None:
    """Request true records. Each record is released, or waits while it would reveal a group. An interrupted run can be
    repeated: nothing is decided twice."""
    import tidegate as tg

    if sum((requests is not None or bool(key), bool(status), bool(withdraw))) > 1:
        raise Unsupported("Specify only one of `--requests` or `--key`, `--status`, or `--withdraw`.")
    with tg.open(policy, ledger=ledger) as session:
        with working("opening the release desk (the first time, code is compiled and critical values are simulated)"):
            desk = session.release(promise)
        told: dict[str, Any] = {}
        if withdraw:
            desk.withdraw(withdraw, user=getpass.getuser())
            told["withdrawn"] = True
        if status:
            told["status"] = desk.status(status).to_dict()
        if requests is not None or key:
            told |= _asked(
                desk, [*(_keys(requests, session) if requests else []), *key], one=len(key) == 1 and not requests
            )
        if out is not None:
            told |= _written(desk, out, since)
        if plot is not None:
            with writing(plot, do="Name another folder. No decision is lost."):
                told["pictures"] = _drawn(desk, plot)
        told |= _state(desk)
        emit(told) if json else _show(told, desk)
    if _is_refused(told):
        raise typer.Exit(2)


def _is_refused(told: dict[str, Any]) -> bool:
    """Return whether the only record, or all requested records, were refused. A partly refused batch is a success."""
    outcome = told.get("status") or told.get("outcome") or {}
    return outcome.get("outcome") == "refused" or 0 < told.get("asked", 0) == told.get("refused")


def _asked(desk: Any, keys: list[str], *, one: bool) -> dict[str, Any]:
    with counted("requesting") as progress:
        outcomes = desk.request_many(keys, user=getpass.getuser(), progress=progress)
    found = Counter(outcome.to_dict()["outcome"] for outcome in outcomes.values())
    reasons = Counter(outcome.reason for outcome in outcomes.values() if hasattr(outcome, "reason"))
    asked: dict[str, Any] = {
        "asked": len(outcomes),
        **{name: found[name] for name in ("released", "deferred", "refused")},
    }
    if reasons:
        asked["reasons"] = dict(reasons)
    return (
        {
            **asked,
            "outcome": desk.status(keys[0]).to_dict() if found["deferred"] else next(iter(outcomes.values())).to_dict(),
        }
        if one
        else asked
    )


def _keys(path: Path, session: Any) -> list[str]:
    """Read the keys from a CSV file: the column with the name of the policy's key, or the only column."""
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise SourceMissing(f"The file {path} does not exist.", "Name a CSV file of keys.") from None
    except (OSError, UnicodeDecodeError):
        text = ""
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    name = session.table.key_column
    if not rows or (name not in rows[0] and len(rows[0]) > 1):
        raise SourceUnreadable(
            f'{path} has no column "{name}".',
            "Write the column names into the first line, or use a file with one key per line.",
        )
    if name not in rows[0]:
        return [row[0] for row in rows]
    index = rows[0].index(name)
    return [row[index] for row in rows[1:] if len(row) > index]


def _written(desk: Any, out: Path, since: int) -> dict[str, Any]:
    """Write all released records, or those after a cursor, atomically."""
    records, cursor = desk.released(since=since)
    columns = desk.policy.concealments[desk.name].releases
    file = io.StringIO()
    writer = csv.DictWriter(file, columns)
    writer.writeheader()
    writer.writerows(records)
    write_whole(out, file.getvalue(), do="Name another file. No decision is lost.")
    return {"out": str(out), "written": len(records), "cursor": cursor}


def _state(desk: Any) -> dict[str, Any]:
    names = desk.layout.target_names(desk.name)
    readings = {
        test: [
            {
                "group": "all" if reading.target is None else names[reading.target],
                "value": reading.value,
                "critical": None if math.isinf(reading.critical) else reading.critical,
            }
            for reading in found
        ]
        for test, found in desk.readings().items()
    }
    released = dict(zip(names, desk.counts().sum(axis=0).tolist(), strict=True))
    return {"desk": desk.name, "out_in_all": released, "waiting": desk.waiting, "tests": readings}


def _drawn(desk: Any, folder: Path) -> list[str]:
    from tidegate.release import charts
    from tidegate.release.tracks import tracks

    folder.mkdir(parents=True, exist_ok=True)
    plan, history = desk.plans[desk.name], desk.history()
    names, values = desk.layout.target_names(desk.name), desk.layout.value_names(desk.name)
    drawn = {}
    for test in plan.promise.tests:
        found = [track for track in tracks(plan, history) if track.test == test]
        if found:
            drawn[f"exposure-{test}"] = charts.exposure(found, targets=names)
    counts = desk.counts()
    drawn["shares"] = charts.shares(desk.asked_for().sum(axis=0).tolist(), counts.sum(axis=0).tolist(), targets=names)
    drawn["distributions"] = charts.distributions(plan, counts, values=values, targets=names)
    paths = []
    for name, chart in drawn.items():
        paths.append(str(chart.save(folder / f"{name}.png")))
    return paths


def _show(told: dict[str, Any], desk: Any) -> None:
    if "withdrawn" in told:
        say("The request was withdrawn, and its record was deleted from the queue.")
    if "status" in told or "outcome" in told:
        say(_sentence(told.get("status") or told["outcome"]))
    elif "asked" in told:
        say(
            f"{plural(told['asked'], 'record')} requested: {told['released']:,} released, {told['deferred']:,} waiting, {told['refused']:,} refused."
        )
    for reason, times in told.get("reasons", {}).items():
        say(f"  {times:,} refused: {reason}.")
    if "out" in told:
        say(
            f"{told['out']}: {told['written']:,} records; cursor {told['cursor']:,} (use --since {told['cursor']} to list later releases)."
        )
    for path in told.get("pictures", ()):
        say(path)
    say(
        f"{desk.name}: {plural(sum(told['out_in_all'].values()), 'record')} released in total, {plural(told['waiting'], 'request')} waiting. {desk.policy.concealments[desk.name]}."
    )
    rows = [
        [
            test,
            reading["group"],
            f"{reading['value']:.6f}",
            "too few to test" if reading["critical"] is None else f"{reading['critical']:.6f}",
        ]
        for test, found in told["tests"].items()
        for reading in found
    ]
    if rows:
        table(["test", "group", "measure", "critical value"], rows, right={2, 3})


def _sentence(outcome: dict[str, Any]) -> str:
    from tidegate.release.result import Deferred, Refused

    if outcome["outcome"] == "released":
        return "Released: " + ", ".join(f"{name} {value}" for name, value in outcome["record"].items())
    if outcome["outcome"] == "refused":
        return f"Refused: {Refused(outcome['reason']).reason}."
    return str(Deferred(outcome["number"], outcome["ahead"]))
