"""release: open a selection, request records, check or withdraw a request, list released records."""

from __future__ import annotations

import csv
import getpass
import io
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.output import JSON, counted, emit, plural, say, table, working, write_whole, writing
from tidegate.errors import SourceMissing, SourceUnreadable, Unsupported

OPEN = "open"  # in place of a policy file


def release(
    policy: Path = typer.Argument(
        help='A policy file. Or "open" and then a policy file: choose the records that its hiding promises release.'
    ),
    promise: str = typer.Argument("", help="The concealment or hiding promise (optional if the policy has only one)."),
    requests: Path | None = typer.Option(None, "--requests", help="A CSV file of keys to request, in this order."),
    key: list[str] = typer.Option([], "--key", help="Request the record of this key."),
    status: str = typer.Option("", "--status", help="Show the status of the request for this key."),
    withdraw: str = typer.Option("", "--withdraw", help="Withdraw the waiting request for this key."),
    since: int = typer.Option(0, "--since", help="With --out: only records released after this cursor."),
    out: Path | None = typer.Option(None, "--out", help="Write the released records to this CSV file."),
    plot: Path | None = typer.Option(
        None, "--plot", help="Write charts of exposure, proportions and distributions to this folder."
    ),
    sensitive_file: Path | None = typer.Option(
        None, "--sensitive-file", help="With open: a private file of the groups to hide, one per line."
    ),
    later: bool = typer.Option(
        False, "--later", help="With open: choose among the records that were added since the last selection."
    ),
    ledger: str = typer.Option("", "--ledger", help="A ledger other than the policy's: a path or postgresql://..."),
    json: bool = JSON,
) -> None:
    """Request true records. Under a concealment promise each record is released, or waits while it would reveal a group.
    Under a hiding promise it is released at once or never; the data holder first runs `tidegate release open POLICY`. An
    interrupted run can be repeated: nothing is decided twice."""
    import tidegate as tg

    if str(policy) == OPEN:
        return _open(promise, sensitive_file, later=later, ledger=ledger, json=json)
    if sensitive_file is not None or later:
        raise Unsupported("`--sensitive-file` and `--later` belong to `tidegate release open POLICY`.")
    if sum((requests is not None or bool(key), bool(status), bool(withdraw))) > 1:
        raise Unsupported("Specify only one of `--requests` or `--key`, `--status`, or `--withdraw`.")
    with tg.open(policy, ledger=ledger) as session:
        with working("opening the release desk (the first time, code is compiled and critical values are simulated)"):
            desk = session.release(promise)
        result: dict[str, Any] = {}
        if withdraw:
            desk.withdraw(withdraw, user=getpass.getuser())
            result["withdrawn"] = True
        if status:
            result["status"] = desk.status(status).to_dict()
        if requests is not None or key:
            keys = [*(_keys(requests, session) if requests else []), *key]
            result |= _request(desk, keys, show_outcome=len(key) == 1 and not requests)
        if out is not None:
            result |= _write_records(desk, out, since)
        if plot is not None:
            with writing(plot, do="Name another folder. No decision is lost."):
                result["pictures"] = _save_charts(desk, plot)
        result |= _state(desk)
        emit(result) if json else _show(result, desk)
    if _is_refused(result):
        raise typer.Exit(2)
    return None


def _open(policy: str, sensitive_file: Path | None, *, later: bool, ledger: str, json: bool) -> None:
    """Open the selection of the hiding promises of a policy."""
    import tidegate as tg
    from tidegate.accounting.explain import explain_hiding
    from tidegate.release.hiding import read_sensitive_groups

    if not policy:
        raise Unsupported("`tidegate release open` needs a policy file.", "tidegate release open POLICY.toml")
    groups = None if sensitive_file is None else read_sensitive_groups(_read_text(sensitive_file))
    with tg.open(policy, ledger=ledger) as session:
        with working("choosing the records that can be released"):
            selection = session.open_release(sensitive=groups, later=later, show_short=_show_short)
        if json:
            return emit(selection.to_dict())
        say(str(selection))
        for name, promise in session.policy.hidings.items():
            count = session.policy.cells(promise.about)
            for finding in explain_hiding(name, promise, groups=count, selection=selection.summary):
                say(f"  {finding.about}: {finding.says}")
        return say(
            f"tidegate release {policy} {next(iter(session.policy.hidings))} --requests KEYS.csv --out RELEASED.csv"
        )


def _show_short(cells: list[tuple[str, str]]) -> None:
    """Show the cells with too few records to the data holder: on the terminal only, never in a file or a log."""
    print(f"For the data holder only: {plural(len(cells), 'cell')} with too few records.", file=sys.stderr)
    for group, value in cells:
        print(f"  {group}: {value}", file=sys.stderr)


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        problem = "it does not exist"
    except (OSError, UnicodeDecodeError):
        problem = "it is not a readable UTF-8 file"
    raise SourceMissing(f"Cannot read {path}: {problem}.", "Name a text file with one group per line.")


def _is_refused(result: dict[str, Any]) -> bool:
    """Return whether the only record, or all requested records, were refused. A partly refused batch is a success."""
    outcome = result.get("status") or result.get("outcome") or {}
    return outcome.get("outcome") == "refused" or 0 < result.get("asked", 0) == result.get("refused")


def _request(desk: Any, keys: list[str], *, show_outcome: bool) -> dict[str, Any]:
    with counted("requesting") as progress:
        outcomes = desk.request_many(keys, user=getpass.getuser(), progress=progress)
    counts = Counter(outcome.to_dict()["outcome"] for outcome in outcomes.values())
    reasons = Counter(outcome.reason for outcome in outcomes.values() if hasattr(outcome, "reason"))
    result: dict[str, Any] = {"asked": len(outcomes)}
    result |= {name: counts[name] for name in ("released", "deferred", "refused")}
    if desk.policy.hidings:
        result["withheld"] = counts["withheld"]
    if reasons:
        result["reasons"] = dict(reasons)
    if show_outcome:
        outcome = desk.status(keys[0]) if counts["deferred"] else next(iter(outcomes.values()))
        result["outcome"] = outcome.to_dict()
    return result


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


def _write_records(desk: Any, out: Path, since: int) -> dict[str, Any]:
    """Write all released records, or those after a cursor, atomically."""
    records, cursor = desk.released(since=since)
    columns = desk.policy.release_promises[desk.name].releases
    file = io.StringIO()
    writer = csv.DictWriter(file, columns)
    writer.writeheader()
    writer.writerows(records)
    write_whole(out, file.getvalue(), do="Name another file. No decision is lost.")
    return {"out": str(out), "written": len(records), "cursor": cursor}


def _state(desk: Any) -> dict[str, Any]:
    names = desk.layout.target_names(desk.name)
    if desk.policy.hidings:
        released = dict(zip(names, desk.counts().sum(axis=0).tolist(), strict=True))
        selections = [selection.to_dict() for selection in desk.selections]
        return {"desk": desk.name, "out_in_all": released, "withheld_in_all": desk.withheld, "selections": selections}
    readings = {
        test: [
            {
                "group": "all" if reading.target is None else names[reading.target],
                "value": reading.value,
                "critical": None if math.isinf(reading.critical) else reading.critical,
            }
            for reading in test_readings
        ]
        for test, test_readings in desk.readings().items()
    }
    released = dict(zip(names, desk.counts().sum(axis=0).tolist(), strict=True))
    return {"desk": desk.name, "out_in_all": released, "waiting": desk.waiting, "tests": readings}


def _save_charts(desk: Any, folder: Path) -> list[str]:
    from tidegate.release import charts
    from tidegate.release.tracks import tracks

    folder.mkdir(parents=True, exist_ok=True)
    plan, history = desk.plans[desk.name], desk.history()
    names, values = desk.layout.target_names(desk.name), desk.layout.value_names(desk.name)
    plots = {}
    for test in plan.promise.tests:
        of_test = [track for track in tracks(plan, history) if track.test == test]
        if of_test:
            plots[f"exposure-{test}"] = charts.exposure(of_test, targets=names)
    counts = desk.counts()
    plots["shares"] = charts.shares(desk.asked_for().sum(axis=0).tolist(), counts.sum(axis=0).tolist(), targets=names)
    plots["distributions"] = charts.distributions(plan, counts, values=values, targets=names)
    return [str(chart.save(folder / f"{name}.png")) for name, chart in plots.items()]


def _show(result: dict[str, Any], desk: Any) -> None:
    if "withdrawn" in result:
        say("The request was withdrawn, and its record was deleted from the queue.")
    if "status" in result or "outcome" in result:
        say(_sentence(result.get("status") or result["outcome"]))
    elif "asked" in result:
        withheld = f"{result['withheld']:,} withheld, " if "withheld" in result else ""
        say(
            f"{plural(result['asked'], 'record')} requested: {result['released']:,} released, {withheld}{result['deferred']:,} "
            f"{'deferred' if withheld else 'waiting'}, {result['refused']:,} refused."
        )
    for reason, count in result.get("reasons", {}).items():
        say(f"  {count:,} refused: {reason}.")
    if "out" in result:
        say(
            f"{result['out']}: {result['written']:,} records; cursor {result['cursor']:,} (use --since {result['cursor']} to list later releases)."
        )
    for path in result.get("pictures", ()):
        say(path)
    released = plural(sum(result["out_in_all"].values()), "record")
    if desk.policy.hidings:
        say(
            f"{desk.name}: {released} released in total, {result['withheld_in_all']:,} withheld. {desk.policy.hidings[desk.name]}."
        )
        return
    say(
        f"{desk.name}: {released} released in total, {plural(result['waiting'], 'request')} waiting. {desk.policy.concealments[desk.name]}."
    )
    rows = [
        [
            test,
            reading["group"],
            f"{reading['value']:.6f}",
            "too few to test" if reading["critical"] is None else f"{reading['critical']:.6f}",
        ]
        for test, readings in result["tests"].items()
        for reading in readings
    ]
    if rows:
        table(["test", "group", "measure", "critical value"], rows, right={2, 3})


def _sentence(outcome: dict[str, Any]) -> str:
    from tidegate.release.result import outcome_from_dict

    if outcome["outcome"] == "released":
        return "Released: " + ", ".join(f"{name} {value}" for name, value in outcome["record"].items())
    return str(outcome_from_dict(outcome))
