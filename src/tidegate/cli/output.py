"""How commands speak: sentences for people, one JSON value for programs, errors with exit code 2."""

from __future__ import annotations

import json
import logging
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer

from tidegate.errors import TidegateError, Unsupported

INTERRUPTED = 130  # as shells have it
JSON = typer.Option(False, "--json", help="Print one JSON value instead of sentences.")


class Notices(logging.Handler):
    """What the ledger has to say besides: on the error stream, and a new ledger also in the JSON value."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.created: list[str] = []
        self.pending: list[str] = []  # kinds of entries that are being written
        self.written: list[str] = []  # and of those that are committed

    def emit(self, record: logging.LogRecord) -> None:
        if created := getattr(record, "created_ledger", ""):
            self.created.append(created)
        if kind := getattr(record, "entry_kind", ""):
            self.pending.append(kind)
        if getattr(record, "is_committed", False):
            self.written, self.pending = [*self.written, *self.pending], []
        if record.levelno >= logging.INFO:
            print(record.getMessage(), file=sys.stderr)

    def stopped(self) -> str:
        """What a command that was stopped has left in the ledger."""
        if "charge" in self.written:
            return "A charge was made and stands for its question: asking it again costs nothing more."
        if "charge" in self.pending:
            return (
                "A charge was being written: tidegate ledger show POLICY says whether it was made. Asking the same question "
                "again charges it once."
            )
        if self.written or self.pending:
            return "Nothing was charged, but entries were written: see tidegate ledger show POLICY."
        return "Nothing was charged."


NOTICES = Notices()


def listen() -> None:
    """Show what the ledger has to say."""
    log = logging.getLogger("tidegate.ledger")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    NOTICES.created, NOTICES.pending, NOTICES.written = [], [], []
    if NOTICES not in log.handlers:
        log.addHandler(NOTICES)


def stop_listening() -> None:
    """Leave what the ledger says to others: a process may go on after a command."""
    logging.getLogger("tidegate.ledger").removeHandler(NOTICES)
    NOTICES.created = []


def emit(value: Any) -> None:
    """Print a JSON value; where this command created a ledger, with its address."""
    if NOTICES.created and isinstance(value, dict):
        value = {**value, "ledger_created": NOTICES.created[0]}
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def say(*lines: str) -> None:
    """Print sentences."""
    print("\n".join(lines))


def table(headers: list[str], rows: list[list[str]], *, right: set[int] | None = None) -> None:
    """Print a small table."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, header in enumerate(headers):
        shown.add_column(header, justify="right" if number in (right or set()) else "left", overflow="fold")
    for row in rows:
        shown.add_row(*row)
    Console(highlight=False).print(shown)


def write_whole(path: Path, text: str, *, do: str = "Name another file.") -> None:
    """A file that appears whole or not at all."""
    beside = path.with_name(f".{path.name}.part")
    with writing(path, do=do):
        beside.write_text(text, "utf-8", newline="")
        os.replace(beside, path)


@contextmanager
def writing(path: Path, *, do: str = "Name another file.") -> Iterator[None]:
    """Write here; a place that cannot be written is a refusal that says why."""
    problem = ""
    try:
        yield
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise Unsupported(f"cannot write {path}: {problem}.", do)


def working(what: str) -> Any:
    """A spinner with the time it has taken, on the error stream, where somebody is looking."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    progress.add_task(what, total=None)
    return progress


@contextmanager
def counted(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with how far it has come and the time left, on the error stream; call it with (done, of how many)."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*parts, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def guarded(run: Callable[[], Any]) -> NoReturn:
    """Run a command. Refusals exit with 2 and one clear sentence; a defect of ours exits with 1 and shows no value."""
    listen()
    try:
        run()
        code = 0
    except TidegateError as error:
        code = _refused(error)
    except KeyboardInterrupt:
        code = _stopped()
    except SystemExit as left:
        if left.code != INTERRUPTED:
            raise
        code = _stopped()  # what typer makes of a KeyboardInterrupt
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    except Exception as error:  # its message could hold a private value: show where, not what
        code = _defect(error)
    sys.exit(code)


def plural(number: int, one: str) -> str:
    """1 report, 2,000 reports."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def _refused(error: TidegateError) -> int:
    error.do = _with_policy(error.do, sys.argv[1:])
    if "--json" in sys.argv:
        emit(error.to_dict())
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return 2


def _with_policy(advice: str, words: list[str]) -> str:
    """Advice that names the policy of this command, where it was given as a file."""
    given = next((word for word in words if word.endswith(".toml") and not word.startswith("-")), "")
    return advice.replace("ledger show POLICY", f"ledger show {shlex.quote(given)}") if given else advice


def _stopped() -> int:
    print(_with_policy(f"Stopped. {NOTICES.stopped()}", sys.argv[1:]), file=sys.stderr)
    return INTERRUPTED


def _defect(error: Exception) -> int:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{frame.filename.rpartition('tidegate/')[2]}:{frame.lineno}"
    print(
        f"Tidegate failed ({type(error).__name__} at {where}). This is a defect; please report this line.",
        file=sys.stderr,
    )
    return 1
