"""demo: sample data, policies, and the service with its console on this machine, in one go."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.output import JSON, emit, say
from tidegate.errors import Unsupported

WRITE_HISTORY = "from tidegate.cli.output import guarded; from tidegate.demo.history import main; guarded(main)"

HOST, PORT, PORTS_TRIED = "127.0.0.1", 8480, 100
SHARE = "0.5"  # the most that the analyst may spend of each data set
DAYS = 7


def demo(
    folder: Path = typer.Option(Path("tidegate-demo"), "--folder", help="Where sample data, policies and ledger are."),
    port: int = typer.Option(
        PORT, "--port", min=0, max=65535, help="The port to listen on; the next free one where it is taken."
    ),
    serve: bool = typer.Option(True, "--serve/--no-serve", help="Serve; or show a tour in the terminal instead."),
    json: bool = JSON,
) -> None:
    """Try everything on sample data: the console on this machine, with a sign-in for each role."""
    from tidegate import demo as samples

    _write(folder)
    if not serve:
        return _tour(folder, json=json)
    return _serve(folder, _listening(port), missed=port, json=json, policies=list(samples.policies(folder).values()))


@dataclass(frozen=True)
class Door:
    """A sign-in for one role. The token is behind the #, which a browser keeps to itself."""

    role: str
    name: str
    token: str
    says: str

    def link(self, address: str) -> str:
        return f"{address}/console/sign-in#{self.token}"

    def to_dict(self, address: str) -> dict[str, Any]:
        return {"name": self.name, "token": self.token, "link": self.link(address), "says": self.says}


def _serve(folder: Path, listening: socket.socket, *, missed: int, json: bool, policies: list[Path]) -> None:
    from tidegate import demo as samples
    from tidegate.demo import history
    from tidegate.service.app import create_app
    from tidegate.service.datasets import Holdings
    from tidegate.service.logs import to_stream
    from tidegate.service.server import run
    from tidegate.service.settings import Settings

    settings = Settings(tuple(str(path.absolute()) for path in policies), samples.LEDGER)
    held = Holdings.from_files(settings.policies, ledger=settings.ledger)
    doors, missing = _doors(held), history.missing(held.ledger)
    port = int(listening.getsockname()[1])
    with (folder / "service.log").open("a", encoding="utf-8", buffering=1) as log, _beside(folder, json) as begin:
        to_stream(log)

        def ready() -> None:
            _tell(folder, f"http://{HOST}:{port}", doors, missing, missed=missed if port != missed else 0, json=json)
            if missing:
                begin()

        run(lambda: create_app(settings, held), listening=listening, ready=ready)
    if not json:
        say("", f"Stopped. All is kept in {folder}; tidegate demo goes on with it.")


def _tell(folder: Path, address: str, doors: list[Door], missing: list[str], *, missed: int, json: bool) -> None:
    form = f"{address}/forms/shop/shoppers"
    if json:
        about = {"address": address, "folder": str(folder), "form": form, "history_to_come": missing}
        emit({**about, "sign_in": {door.role: door.to_dict(address) for door in doors}})
        sys.stdout.flush()
        return
    say(f"Tidegate is at {address}" + (f" (port {missed} was taken)." if missed else "."), "", "Sign in:")
    for door in doors:
        say(f"  {door.role:<10} {door.name:<5} {door.says}", f"    {door.link(address)}")
    say(f"  {'everybody':<16} fills in the form of the shop", f"    {form}", "")
    say(f"These sign-ins are shown this once; the next run makes new ones. Data, policies, ledger and log: {folder}")
    say("Ctrl-C stops it.", "")
    if missing:
        say("Some history is being written (up to a minute, the first time):")
    sys.stdout.flush()


def _doors(held: Any) -> list[Door]:
    """A new token for each role; those of earlier runs open nothing any more."""
    from tidegate.demo.history import ANALYST, OWNER, RESPONDENT
    from tidegate.demo.soldiers import WAITS
    from tidegate.ledger.tokens import Tokens
    from tidegate.service.access.tokens import make_token

    tokens = Tokens(held.ledger.store)
    wanted: list[tuple[str, str, str, dict[str, Any]]] = [
        ("owner", OWNER, "sees and does everything", {}),
        ("analyst", ANALYST, f"asks questions; may spend {SHARE} of each data set", {"share": SHARE}),
        (
            "respondent",
            RESPONDENT,
            f'asked for the own record, "{WAITS}", and waits',
            {"dataset": "soldiers", "record": WAITS},
        ),
    ]
    names = {(role, name) for role, name, _, _ in wanted}
    for kept in tokens.all():
        if (kept.role, kept.name) in names and not kept.revoked:
            tokens.revoke(kept.id)
    return [
        Door(role, name, make_token(tokens, role=role, name=name, days=DAYS, **more)[0], says)
        for role, name, says, more in wanted
    ]


def _listening(port: int) -> socket.socket:
    """A socket that listens on a port of this machine, or on the next one that is free."""
    for one in range(port, min(port + PORTS_TRIED, 65536)):
        found = socket.socket()
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((HOST, one))
            found.listen()
            return found
        except OSError:
            found.close()
    raise Unsupported(f"no port from {port} on is free on {HOST}.", "Name another: tidegate demo --port 9000")


def _write(folder: Path) -> None:
    from tidegate import demo as samples

    problem = ""
    try:
        samples.write(folder)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise Unsupported(f"cannot write into {folder}: {problem}.", "Name another: tidegate demo --folder FOLDER")


@contextlib.contextmanager
def _beside(folder: Path, quiet: bool) -> Iterator[Any]:
    """Call what is given to write the history in a process of its own: compiling would keep the service from answering.
    It ends with the service; the next run goes on with what is missing."""
    running: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        command = [sys.executable, "-P", "-c", WRITE_HISTORY, str(folder)]
        how: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "start_new_session": True,
        }  # Ctrl-C is for the service alone
        running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL if quiet else None, **how))  # noqa: S603

    try:
        yield begin
    finally:
        for process in running:
            process.terminate()
            process.wait()


def _tour(folder: Path, *, json: bool) -> None:
    """Ask the people some questions, run out of budget, and verify the ledger, in the terminal."""
    import tidegate as tg
    from tidegate import demo as samples
    from tidegate.demo import people
    from tidegate.errors import BudgetExceeded
    from tidegate.ledger import told

    path = samples.policies(folder)["people"]
    with tg.open(path, ledger=samples.LEDGER) as session:
        question = tg.count().by("town")
        before = session.preview(question, epsilon="0.2")
        given = session.answer(question, epsilon="0.2", user="the demo")
        again = session.answer(question, epsilon="0.2", user="the demo")
        mean = session.answer(tg.mean("age"), error="0.5", user="the demo")
        follows = session.derive(tg.count().where(tg.col("town") == "Aby"))
        try:
            session.answer(tg.histogram("age"), epsilon="2", user="the demo")
            refused = ""
        except BudgetExceeded as error:
            refused = str(error)
        verdict = session.ledger.verify()
        if json:
            answers = {"answer": given.to_dict(), "again": again.to_dict(), "mean": mean.to_dict()}
            free = follows.to_dict() if follows else None
            return emit(
                {"preview": before.to_dict(), **answers, "free": free, "refused": refused, "verified": verdict.holds}
            )
        say(
            f"{people.PEOPLE:,} people in {folder / 'people.csv'}; {path} promises: {session.policy.identification}", ""
        )
        say(f"1. What would {question.says()} cost?", f"{before}", "")
        say(
            "2. Ask.",
            *(f"   {row['town']:<6} {row['count']:>6,}" for row in given.rows()),
            f"   {given.charge.says()}",
            "",
        )
        say("3. Ask the same again: the stored answer, free.", f"   {again.charge.says()}", "")
        say(
            "4. The mean age, right to half a year 95 times in 100; the cost follows.",
            f"   {mean.line()}",
            f"   {mean.charge.says()}",
            "",
        )
        say("5. What follows from answers already given is free.", f"   {follows}", "")
        say("6. Ask for more than is left: refused, nothing is spent.", "   " + refused.replace("\n", "\n   "), "")
        say("7. The ledger:", *(f"   {entry.number:>2}  {text}" for entry, text in told(session.ledger.entries())))
        say(
            f"   {verdict.entries} entries {'hold' if verdict.holds else 'DO NOT HOLD'}, head {verdict.head[:16]}...",
            "",
        )
        return say(
            "Go on:",
            f"   tidegate check {path}",
            f'   tidegate answer {path} "SELECT sex, AVG(age) FROM people GROUP BY sex" --rho 0.02 --preview',  # noqa: S608
            f"   tidegate ledger show {path}",
        )
