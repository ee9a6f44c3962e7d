"""What an engine says when it fails may quote a row. Only the kind of failure gets past here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tidegate.errors import SourceGone, SourceUnreadable, TableError, TidegateError

T = TypeVar("T")

GONE = (
    "OperationalError",
    "InterfaceError",
    "AdminShutdown",
    "ConnectionException",
    "Py4JNetworkError",
    "ConnectionRefusedError",
)


def ask_engine(run: Callable[[], T], *, what: str) -> T:
    """The result of `run`; an engine's exception becomes a plain sentence, with no cause attached."""
    try:
        return run()
    except TidegateError:
        raise
    except Exception as error:  # every engine has its own tree; whatever it is, its text stays here
        names = [kind.__name__ for kind in type(error).__mro__]
        problem = _problem(names, what)
    raise problem  # outside of the except block: the engine's message is not even in __context__


def _problem(names: list[str], what: str) -> TableError:
    if any(name in GONE for name in names):
        return SourceGone(
            f"the engine stopped answering while {what}.",
            "Try again when it is back. A charge already made stands for this question: asking it again costs nothing more.",
        )
    return SourceUnreadable(
        f"the engine could not finish {what} ({names[0]}).",
        "Check that the rows fit the columns that the policy declares; the engine's own words are withheld, they may quote a row.",
    )
