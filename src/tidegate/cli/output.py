"""Output of commands: sentences for people, one JSON value for programs, errors with exit code 2."""

from __future__ import annotations

import json
import logging
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NoReturn

import typer

from tidegate.errors import BudgetExceeded, TidegateError, Unsupported

INTERRUPTED = 130  # the convention of shells
JSON = typer.Option(False, "--json", help="Print one JSON value instead of sentences.")


class Notices(logging.Handler):
    """Prints notices of the ledger to standard error; reports a new ledger in the JSON value as well."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.created: list[str] = []
        self.pending: list[str] = []  # kinds of entries that are being written
        self.written: list[str] = []  # kinds of committed entries

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
        """Describe what an interrupted command has left in the ledger."""
        if "charge" in self.written:
            return "A charge was recorded. Repeating the same query costs nothing more."
        if "charge" in self.pending:
            return (
                "A charge was being written. Run tidegate ledger show POLICY to see whether it was recorded. Repeating the same query "
                "is charged only once."
            )
        if self.written or self.pending:
            return "Nothing was charged, but entries were written. Run tidegate ledger show POLICY to see them."
        return "Nothing was charged."


NOTICES = Notices()
NOTICED = ("tidegate.ledger", "tidegate.tables")


def listen() -> None:
    """Print notices of the ledger and of the tables."""
    NOTICES.created, NOTICES.pending, NOTICES.written = [], [], []
    for name in NOTICED:
        log = logging.getLogger(name)
        log.setLevel(logging.DEBUG)
        log.propagate = False
        if NOTICES not in log.handlers:
            log.addHandler(NOTICES)


def stop_listening() -> None:
    """Stop printing notices: the process can continue after a command."""
    for name in NOTICED:
        logging.getLogger(name).removeHandler(NOTICES)
    NOTICES.created = []


def emit(value: Any) -> None:
    """Print a JSON value, with the ledger's address if this command created a ledger."""
    if NOTICES.created and isinstance(value, dict):
        value = {**value, "ledger_created": NOTICES.created[0]}
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def say(*lines: str) -> None:
    """Print sentences at once: a service that runs for weeks would otherwise leave its sign-in link in a buffer."""
    print("\n".join(lines), flush=True)


def table(
    headers: list[str], rows: list[list[str]], *, right: set[int] | None = None, whole: set[int] | None = None
) -> None:
    """Print a small table. Cells of the columns `whole` are never broken: they are there to be copied."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, header in enumerate(headers):
        is_whole, is_right = number in (whole or set()), number in (right or set())
        grid.add_column(header, justify="right" if is_right else "left", overflow="fold", no_wrap=is_whole)
    for row in rows:
        grid.add_row(*row)
    Console(highlight=False).print(grid)


def write_whole(path: Path, text: str, *, do: str = "Name another file.") -> None:
    """Write a file atomically."""
    temporary = path.with_name(f".{path.name}.part")
    with writing(path, do=do):
        temporary.write_text(text, "utf-8", newline="")
        os.replace(temporary, path)


@contextmanager
def writing(path: Path, *, do: str = "Name another file.") -> Iterator[None]:
    """Turn an OSError of the block into an error that gives the reason."""
    problem = ""
    try:
        yield
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise Unsupported(f"Cannot write {path}: {problem}.", do)


def working(what: str) -> Any:
    """Return a spinner with the elapsed time on standard error, shown only in a terminal."""
    if not sys.stderr.isatty() and "FORCE_COLOR" not in os.environ:
        return nullcontext()  # without loading what draws it
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
    """Show a progress bar with the remaining time on standard error; call the result with (done, total)."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*parts, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def guarded(run: Callable[[], Any]) -> NoReturn:
    """Run a command. Errors exit with 2 and a message; internal errors exit with 1 and show no value."""
    listen()
    try:
        run()
        code = 0
    except TidegateError as error:
        code = _refused(error)
    except KeyboardInterrupt:
        code = _stopped()
    except SystemExit as ending:
        if ending.code != INTERRUPTED:
            raise
        code = _stopped()  # typer turns a KeyboardInterrupt into this
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    except Exception as error:  # report the location only: the message could hold a private value
        code = _defect(error)
    sys.exit(code)


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: 1 report, 2,000 reports."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _refused(error: TidegateError) -> int:
    if isinstance(error, BudgetExceeded) and error.facts.get("ceiling") != "0":
        error.do = f"{error.do} See what was spent: tidegate ledger show POLICY".lstrip()
    error.do = _with_policy(error.do, sys.argv[1:])
    if "--json" in sys.argv:
        emit(error.to_dict())
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return 2


def _with_policy(advice: str, words: list[str]) -> str:
    """Replace POLICY in advice with the policy file of this command, if there is one."""
    path = next((word for word in words if word.endswith(".toml") and not word.startswith("-")), "")
    return advice.replace("ledger show POLICY", f"ledger show {shlex.quote(path)}") if path else advice


def _stopped() -> int:
    print(_with_policy(f"Stopped. {NOTICES.stopped()}", sys.argv[1:]), file=sys.stderr)
    return INTERRUPTED


def _defect(error: Exception) -> int:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{frame.filename.rpartition('tidegate/')[2]}:{frame.lineno}"
    print(
        f"Tidegate failed ({type(error).__name__} at {where}). This is a bug. Please report this line.",
        file=sys.stderr,
    )
    return 1
