"""demo: sample data, policies, and a local service with its console."""

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
SHARE = "0.5"  # the analyst's budget share of each data set
DAYS = 7
PAGES = {  # of the console, with what they show
    "people/ask": "answers: nobody's age is guessed with more than 5%",
    "clinic/ask": "answers by date, under the average guarantee",
    "soldiers/desks/headquarters": "records under a concealment promise",
    "barracks/desks/headquarters": "the same records under a hiding promise",
    "shop/collections/shoppers": "randomized baskets and the rules in them",
    "office/polls/commute/results": "the results of a poll",
    "people/syntheses": "a synthetic table",
}


def demo(
    folder: Path = typer.Option(
        Path("tidegate-demo"), "--folder", help="The folder for sample data, policies and the ledger."
    ),
    port: int = typer.Option(PORT, "--port", min=0, max=65535, help="The port to listen on, or the next free one."),
    serve: bool = typer.Option(
        True, "--serve/--no-serve", help="Start the service, or show a tour in the terminal instead."
    ),
    json: bool = JSON,
) -> None:
    """Try all functions on sample data: a local console with a sign-in link for each role."""
    from tidegate import demo as samples

    _write(folder)
    if not serve:
        return _tour(folder, json=json)
    return _serve(folder, _listen(port), missed=port, json=json, policies=list(samples.policies(folder).values()))


@dataclass(frozen=True)
class SignIn:
    """A sign-in link for one role. The token is after the #, which browsers do not send."""

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
    from tidegate.service.datasets import ServedDatasets
    from tidegate.service.logs import to_stream
    from tidegate.service.server import run
    from tidegate.service.settings import Settings

    settings = Settings(tuple(str(path.absolute()) for path in policies), samples.LEDGER)
    datasets = ServedDatasets.from_files(settings.policies, ledger=settings.ledger)
    sign_ins, missing = _create_sign_ins(datasets), history.missing(datasets.ledger)
    port = int(listening.getsockname()[1])
    with (
        (folder / "service.log").open("a", encoding="utf-8", buffering=1) as log,
        _history_writer(folder, json) as begin,
    ):
        to_stream(log)

        def ready() -> None:
            _tell(folder, f"http://{HOST}:{port}", sign_ins, missing, missed=missed if port != missed else 0, json=json)
            if missing:
                begin()
            _order_table(datasets)

        run(lambda: create_app(settings, datasets), listening=listening, ready=ready)
    if not json:
        say("", f"Stopped. Everything is stored in {folder}. Run tidegate demo to continue.")


def _tell(folder: Path, address: str, sign_ins: list[SignIn], missing: list[str], *, missed: int, json: bool) -> None:
    form = f"{address}/forms/office/canteen"
    if json:
        about = {"address": address, "folder": str(folder), "form": form, "history_to_come": missing}
        emit({**about, "sign_in": {sign_in.role: sign_in.to_dict(address) for sign_in in sign_ins}})
        sys.stdout.flush()
        return
    say(f"Tidegate is running at {address}" + (f" (port {missed} was in use)." if missed else "."), "", "Sign in:")
    for sign_in in sign_ins:
        say(f"  {sign_in.role:<10} {sign_in.name:<5} {sign_in.says}", f"    {sign_in.link(address)}")
    say(f"  {'public':<16} answers a poll; the browser randomizes the answers", f"    {form}", "", "See as the owner:")
    for page, text in PAGES.items():
        say(f"  {text:<58} {address}/console/data/{page}")
    say("")
    say(
        f"These links are shown only once; the next run creates new ones. Data, policies, ledger and log are in {folder}"
    )
    say("Press Ctrl-C to stop.", "")
    if missing:
        say("Creating sample history (up to a minute the first time):")
    sys.stdout.flush()


def _order_table(datasets: Any) -> None:
    """Let the service make a synthetic table, once."""
    from tidegate.demo.history import OWNER
    from tidegate.ledger.jobs import Jobs
    from tidegate.service.jobs import new_job
    from tidegate.service.routes.syntheses import Synthesis

    order = new_job("people", Synthesis.model_validate({"epsilon": "0.3"}).options(), user=OWNER, request="demo")
    Jobs(datasets.ledger.store).add(order)


def _create_sign_ins(datasets: Any) -> list[SignIn]:
    """Create a token for each role and revoke those of earlier runs."""
    from tidegate.demo.history import ANALYST, OWNER, RESPONDENT
    from tidegate.demo.soldiers import WAITS
    from tidegate.ledger.tokens import Tokens
    from tidegate.service.access.tokens import make_token

    tokens = Tokens(datasets.ledger.store)
    roles: list[tuple[str, str, str, dict[str, Any]]] = [
        ("owner", OWNER, "can see and do everything", {}),
        ("analyst", ANALYST, f"can run queries; the budget share is {SHARE} of each data set", {"share": SHARE}),
        (
            "respondent",
            RESPONDENT,
            f'requested their own record ("{WAITS}"); the request is waiting',
            {"dataset": "soldiers", "record": WAITS},
        ),
    ]
    names = {(role, name) for role, name, _, _ in roles}
    for token in tokens.all():
        if (token.role, token.name) in names and not token.revoked:
            tokens.revoke(token.id, user="demo")
    return [
        SignIn(role, name, make_token(tokens, role=role, name=name, days=DAYS, maker="demo", **more)[0], says)
        for role, name, says, more in roles
    ]


def _listen(port: int) -> socket.socket:
    """Return a socket that listens on a local port, or on the next free one."""
    for candidate in range(port, min(port + PORTS_TRIED, 65536)):
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, candidate))
            listening.listen()
            return listening
        except OSError:
            listening.close()
    raise Unsupported(f"No port from {port} on is free on {HOST}.", "Choose another: tidegate demo --port 9000")


def _write(folder: Path) -> None:
    from tidegate import demo as samples

    problem = ""
    try:
        samples.write(folder)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise Unsupported(f"Cannot write to {folder}: {problem}.", "Choose another: tidegate demo --folder FOLDER")


@contextlib.contextmanager
def _history_writer(folder: Path, quiet: bool) -> Iterator[Any]:
    """Yield a function that writes the history in its own process: compiling would block the service.

    The process ends with the service; the next run writes the rest."""
    running: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        command = [sys.executable, "-P", "-c", WRITE_HISTORY, str(folder)]
        how: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "start_new_session": True,
        }  # Ctrl-C stops the service only
        running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL if quiet else None, **how))  # noqa: S603

    try:
        yield begin
    finally:
        for process in running:
            process.terminate()
            process.wait()


def _tour(folder: Path, *, json: bool) -> None:
    """Run some queries, exceed the budget, and verify the ledger, in the terminal."""
    import tidegate as tg
    from tidegate import demo as samples
    from tidegate.demo import people
    from tidegate.errors import BudgetExceeded
    from tidegate.ledger import explain_entries

    path = samples.policies(folder)["people"]
    with tg.open(path, ledger=samples.LEDGER) as session:
        question = tg.count().by("town")
        before = session.preview(question, epsilon="0.2")
        answer = session.answer(question, epsilon="0.2", user="the demo")
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
            answers = {"answer": answer.to_dict(), "again": again.to_dict(), "mean": mean.to_dict()}
            free = follows.to_dict() if follows else None
            return emit(
                {"preview": before.to_dict(), **answers, "free": free, "refused": refused, "verified": verdict.holds}
            )
        say(
            f"{people.PEOPLE:,} people in {folder / 'people.csv'}; {path} promises: {session.policy.identification}", ""
        )
        say(f"1. Preview the cost of {question.says()}.", f"{before}", "")
        say(
            "2. Run the query.",
            *(f"   {row['town']:<6} {row['count']:>6,}" for row in answer.rows()),
            f"   {answer.charge.says()}",
            "",
        )
        say("3. Run the same query again: the stored answer is free.", f"   {again.charge.says()}", "")
        say(
            "4. Query the mean age with an error of at most half a year (95% confidence). The cost follows from the error.",
            f"   {mean.line()}",
            f"   {mean.charge.says()}",
            "",
        )
        say("5. Results derived from earlier answers are free.", f"   {follows}", "")
        say(
            "6. A query that exceeds the remaining budget is refused, and nothing is charged.",
            "   " + refused.replace("\n", "\n   "),
            "",
        )
        say(
            "7. Show the ledger.",
            *(f"   {entry.number:>2}  {text}" for entry, text in explain_entries(session.ledger.entries())),
        )
        say(
            f"   {verdict.entries} entries {'are valid' if verdict.holds else 'ARE NOT VALID'}, head {verdict.head[:16]}...",
            "",
        )
        return say(
            "Next steps:",
            f"   tidegate check {path}",
            f'   tidegate answer {path} "SELECT sex, AVG(age) FROM people GROUP BY sex" --rho 0.02 --preview',  # noqa: S608
            f"   tidegate ledger show {path}",
        )
