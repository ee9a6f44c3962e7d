"""A filter for engine errors: their messages can quote a row, so only the kind of failure passes."""

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
    """Return the result of `run`. An engine's exception becomes a plain sentence without a cause."""
    try:
        return run()
    except TidegateError:
        raise
    except Exception as error:  # every engine has its own exception tree; the text of the exception stays here
        names = [kind.__name__ for kind in type(error).__mro__]
        problem = _problem(names, what)
    raise problem  # outside of the except block: the engine's message is not even in __context__


def _problem(names: list[str], what: str) -> TableError:
    if any(name in GONE for name in names):
        return SourceGone(
            f"The engine stopped responding while {what}.",
            "Try again when it is available. If this query was already charged, repeating it costs nothing more.",
        )
    return SourceUnreadable(
        f"The engine failed while {what} ({names[0]}).",
        "Check that the rows fit the columns that the policy declares. The engine's message is withheld because it can quote a row.",
    )
