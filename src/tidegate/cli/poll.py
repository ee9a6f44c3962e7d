"""poll new|preview|open|status|close|results: ask people questions, and show what can be said about the answers."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.output import JSON, emit, plural, say, working, write_whole, writing
from tidegate.cli.poll_dialog import new
from tidegate.cli.poll_preview import FILE, POLL, form_link, preview
from tidegate.errors import Unsupported
from tidegate.extras import extra

poll = typer.Typer(help="Run a poll: each person's device randomizes the answers.", no_args_is_help=True)
poll.command("new", short_help="Write a new poll, by a dialog.")(new)
poll.command("preview", short_help="Show questions, expected errors, and what respondents read.")(preview)

LEDGER = typer.Option("", "--ledger", help="A ledger other than the policy's: a path or postgresql://...")
SERVICE = typer.Option("", "--service", help="The address of a service that runs the poll, instead of the ledger here.")
TOKEN = typer.Option("", "--token", envvar="TIDEGATE_TOKEN", help="The token for the service.")
URL = "http://127.0.0.1:8480"
CODE_COLUMNS = ("code", "link")


@contextmanager
def open_poll(file: Path, name: str, ledger: str, service: str, token: str) -> Iterator[Any]:
    """Yield the survey of a poll that was opened before, here or by a service."""
    import tidegate as tg
    from tidegate.ledger.collection_book import CollectionBook
    from tidegate.policy import read_policy
    from tidegate.session.protocol import choose_poll

    policy = read_policy(file)
    chosen = choose_poll(policy, name)
    if service:
        with tg.connect(service, token, dataset=policy.dataset.name) as remote:
            yield remote.poll(chosen)
        return
    with tg.open(file, ledger=ledger) as session:
        collection = session.policy.collections[chosen]
        if not CollectionBook(session.ledger, collection, dataset=policy.dataset.name).is_published:
            raise Unsupported(f'The poll "{chosen}" is not open yet.', f"Run tidegate poll open {file}.")
        survey = session.poll(chosen)
        survey.flush_if_due()  # a poll closes at its time, whoever looks first
        yield survey


@poll.command("open", short_help="Open a poll, and create invitation codes.")
def open_command(
    file: Path = FILE,
    name: str = POLL,
    invite: int = typer.Option(0, "--invite", min=0, help="The number of invitation codes to create."),
    out: Path | None = typer.Option(None, "--out", help="The file for the codes: one code and one link per line."),
    qr: Path | None = typer.Option(None, "--qr", help="A folder for QR codes of the links, as SVG."),
    url: str = typer.Option("", "--url", help=f"The public address of the service (default: {URL})."),
    ledger: str = LEDGER,
    service: str = SERVICE,
    token: str = TOKEN,
    json: bool = JSON,
) -> None:
    """Open a poll in the ledger. For an invited poll, write its key into the file and create single-use codes.

    Run it again with --invite to create more codes.
    """
    address = (url or service or URL).rstrip("/")
    with _opened(file, name, ledger, service, token) as (survey, dataset, collection):
        _check_codes(collection, invite, out)
        links = _codes(survey, dataset, collection, address, invite, out)
        state = survey.state()
    named = links or [("", form_link(address, dataset, collection.name))]
    if qr is not None:
        _write_qr(qr, [link for _, link in named])
    form = form_link(address, dataset, collection.name)
    if json:
        files = {"codes": str(out) if out else None, "qr": str(qr) if qr else None}
        about = {"poll": collection.name, "version": collection.version, "fingerprint": collection.fingerprint}
        return emit({**about, "form": form, "invited": len(links), **files, "status": state["status"]})
    say(f'"{collection.name}" ({state["status"][0].lower()}{state["status"][1:-1]}).', f"The form: {form}")
    if links:
        say(
            f"{out}: {plural(len(links), 'code')}. Each can be used once. They are shown only in this file: keep it secret."
        )
    if qr is not None:
        say(f"{qr}: {plural(len(named), 'QR code')}, in the order of the codes.")
    if not service:
        say(f"Serve it: tidegate serve {file}")
    return None


@contextmanager
def _opened(file: Path, name: str, ledger: str, service: str, token: str) -> Iterator[tuple[Any, str, Any]]:
    """Yield the survey of a poll, its data set and its definition; a new poll is opened with a new key."""
    import tidegate as tg
    from tidegate.policy import read_policy
    from tidegate.session.protocol import choose_poll

    policy = read_policy(file)
    chosen = choose_poll(policy, name)
    if service:
        with tg.connect(service, token, dataset=policy.dataset.name) as remote:
            yield remote.poll(chosen), policy.dataset.name, remote.policy.collections[chosen]
        return
    collection = policy.collections[chosen]
    if collection.poll is not None and collection.poll.invited and not collection.poll.invitation_key:
        _write_key(file, policy, chosen, ledger)
    with tg.open(file, ledger=ledger) as session:
        survey = session.poll(chosen)
        yield survey, policy.dataset.name, survey.collection


def _write_key(file: Path, policy: Any, name: str, ledger: str) -> None:
    """Create the key of the invitations and write it into the file, if the poll can be opened with it."""
    import tidegate as tg
    from tidegate.collect.invitations import create_key
    from tidegate.collect.polls.draft import with_invitation_key

    collection = policy.collections[name]
    with tg.open(file, ledger=ledger) as session:
        key = create_key(session.ledger, dataset=policy.dataset.name, poll=name)
    replace(collection, poll=replace(collection.poll, invitation_key=key)).refuse_new(datetime.now(UTC))
    path = file.resolve()  # keep a symbolic link
    mode = path.stat().st_mode
    write_whole(path, with_invitation_key(path.read_bytes().decode("utf-8"), name, key))
    path.chmod(mode)


def _check_codes(collection: Any, invite: int, out: Path | None) -> None:
    if invite and not collection.poll.invited:
        raise Unsupported(
            "An open poll has no invitations: anyone can answer.", "Leave out --invite, and publish the link."
        )
    if bool(invite) != (out is not None):
        raise Unsupported(
            "Codes are written to a file, and only there.",
            "Use --invite and --out together: --invite 250 --out codes.csv.",
        )


def _codes(
    survey: Any, dataset: str, collection: Any, address: str, invite: int, out: Path | None
) -> list[tuple[str, str]]:
    """Create codes and write them with their links to a new file that only its owner can read."""
    if out is None:
        return []
    with _private_file(out) as file, working("creating codes"):  # first the file: a code that cannot be written is lost
        links = [(code, form_link(address, dataset, collection.name, code)) for code in survey.invite(invite)]
        lines = csv.writer(file, lineterminator="\n")
        lines.writerows([CODE_COLUMNS, *links])
    return links


@contextmanager
def _private_file(path: Path) -> Iterator[io.TextIOWrapper]:
    """Yield a new file with mode 0600; it is removed if nothing could be written."""
    if path.exists():
        raise Unsupported(f"Cannot write {path}: it already exists.", "Name another file.")
    with writing(path):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _write_qr(folder: Path, links: Sequence[str]) -> None:
    """Write a QR code for each link: 001.svg, 002.svg, ..."""
    with extra("collect", "QR codes"):
        import segno

    digits = max(3, len(str(len(links))))
    with writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number, link in enumerate(links, 1):
            path = folder / f"{number:0{digits}}.svg"
            segno.make(link, micro=False).save(str(path), scale=6, title=None)
            path.chmod(0o600)


@poll.command("status", short_help="Show how many reports are counted, and until when the poll is open.")
def status(
    file: Path = FILE,
    name: str = POLL,
    ledger: str = LEDGER,
    service: str = SERVICE,
    token: str = TOKEN,
    json: bool = JSON,
) -> None:
    """Show counted reports, and waiting ones rounded down: an exact number would reveal when people answered."""
    from tidegate.collect.state import time_text

    with open_poll(file, name, ledger, service, token) as survey:
        state = survey.state()
    if json:
        return emit(state)
    title, waiting, least = next(iter(state["title"].values())), state["waiting"], state["at_least"]
    say(f'{title} ("{state["collection"]}", version {state["version"]}). {state["status"]}')
    if not state["closed"]:
        say(f"Waiting: {f'{waiting:,} or more' if waiting else f'fewer than {least:,}'}.")
        say(f"It closes on {time_text(state['closes'])}.")
    return say(f"{state['says'][0].upper()}{state['says'][1:]}.")


@poll.command("close", short_help="Close a poll permanently, and count the waiting reports.")
def close(
    file: Path = FILE,
    name: str = POLL,
    ledger: str = LEDGER,
    service: str = SERVICE,
    token: str = TOKEN,
    json: bool = JSON,
) -> None:
    """Accept no more reports, permanently. Waiting reports are counted as the last batch."""
    with open_poll(file, name, ledger, service, token) as survey, working("counting the waiting reports"):
        survey.close()
        state = survey.state()
    if json:
        return emit(state)
    return say(f'"{state["collection"]}" is closed. {plural(state["reports"], "report")} counted.', _next(file))


def _next(file: Path) -> str:
    return f"Next: tidegate poll results {file}"


@poll.command("results", short_help="Show the results of all questions.")
def results(
    file: Path = FILE,
    name: str = POLL,
    csv_file: Path | None = typer.Option(None, "--csv", help="Write the results to this CSV file."),
    plot: Path | None = typer.Option(None, "--plot", help="Write a chart to this file (.svg, .png)."),
    language: str = typer.Option("", "--lang", help="The language of the labels (default: the poll's first one)."),
    confidence: float = typer.Option(0.95, "--confidence", help="The confidence of the intervals."),
    ledger: str = LEDGER,
    service: str = SERVICE,
    token: str = TOKEN,
    json: bool = JSON,
) -> None:
    """Show what can be said about each question, from counted reports only: shares with intervals, and clear differences."""
    with open_poll(file, name, ledger, service, token) as survey, working("estimating"):
        estimated = survey.results(confidence=confidence)
    estimated.checked(language)
    if csv_file is not None:
        write_whole(csv_file, estimated.to_csv(language=language))
    if plot is not None:
        estimated.plot(plot, language=language)
    if json:
        return emit(estimated.to_dict())
    say(estimated.describe(language))
    return say(*(f"Written: {path}" for path in (csv_file, plot) if path)) if csv_file or plot else None
