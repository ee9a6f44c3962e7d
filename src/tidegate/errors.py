"""The exception tree. Every message states what happened, why, and what to do.

    TidegateError
      PolicyError
        PolicyUnreadable     the file is not a policy (syntax, unknown key, wrong type)
        PolicyIncomplete     a decision that a person must make is still open
        UnknownColumn        a name that the policy does not declare
        Infeasible           a promise that no mechanism could keep
        PolicyLoosened       a change that would weaken a promise already relied on
      TableError
        SourceMissing        no such file, table or server
        SourceUnreadable     rows or types that do not fit the declared columns
        SourceGone           the engine stopped responding during a query
        TooManyCells         a grouping with more cells than fit into memory
      RequestError
        Unsupported          a query of an unsupported form; the message names a supported one
          InvalidNumber      a value that is not a finite number, or is too long
          SecondAccount      a source that has another account, perhaps in another ledger
        BudgetExceeded       the remaining budget is too small; the amounts spent, requested and remaining are given
        NotWaiting           a withdrawal of a request that is not waiting
        JobStopped           a job that was cancelled, given up, or above a limit; its charge stays
        StaleQuote           a quote that has expired, or whose policy or price has changed
        NameTaken            a saved question or dashboard with a name that is in use
      LedgerError
        LedgerUnavailable    locked, read-only or unreachable
        LedgerBroken         the chain does not verify
        LedgerNewer          written by a newer version
        StalePolicy          another user changed the policy in the meantime
        KeyReused            one idempotency key for two different requests
        KeyInUse             a request with the same idempotency key is running
      MissingExtra           an optional package is not installed; the extra that provides it is named
      AccessError            access to a served data set
        NotSignedIn          no token, or one that is not valid
        NotAllowed           a token without this permission
        NotThere             nothing exists at this address
        TooLarge             a request above the size limit
        TooOften             a request above the rate limit
        Unreachable          no response from the service, or not a valid one

Error texts and error objects are outputs: they can quote the policy and the request, but never a private row. They are
raised outside of ``except`` blocks wherever an engine's own message could contain a value, so that no traceback carries
that value along.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

PACKAGE = Path(__file__).parent  # where its own frames are


class TidegateError(Exception):
    """What happened and why (`what`), what to do about it (`do`), and the numbers as data (`facts`).

    `code` is the name of the error in JSON. It never changes, even if the class is renamed.
    """

    code: ClassVar[str] = "tidegate-error"

    def __init__(self, what: str, do: str = "", **facts: Any) -> None:
        super().__init__(what)
        self.what = what
        self.do = do
        self.facts = facts

    def __str__(self) -> str:
        return f"{self.what}\n  {self.do}" if self.do else self.what

    def _render_traceback_(self) -> list[str]:
        """Return what notebooks show: the caller's lines and the message, without the frames inside of this package."""
        from traceback import extract_tb

        lines = []
        for frame in extract_tb(self.__traceback__):
            path = Path(frame.filename)
            if path.is_relative_to(PACKAGE):
                break
            if not {"IPython", "ipykernel"} & {*path.parts}:
                lines += [f"{path if path.is_file() else 'This cell'}, line {frame.lineno}:", f"    {frame.line}"]
        return [*lines, f"{type(self).__name__}: {self}"]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object that all errors share."""
        return {"error": {"code": self.code, "what": self.what, "do": self.do, "facts": self.facts}}

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.what, self.do, self.facts)


def _rebuild(kind: type[TidegateError], what: str, do: str, facts: dict[str, Any]) -> TidegateError:
    return kind(what, do, **facts)


class PolicyError(TidegateError):
    code = "policy-error"


class PolicyUnreadable(PolicyError):
    code = "policy-unreadable"


class PolicyIncomplete(PolicyError):
    code = "policy-incomplete"


class UnknownColumn(PolicyError):
    code = "unknown-column"


class Infeasible(PolicyError):
    code = "infeasible"


class PolicyLoosened(PolicyError):
    code = "policy-loosened"


class MissingExtra(TidegateError):
    code = "missing-extra"


class TableError(TidegateError):
    code = "table-error"


class SourceMissing(TableError):
    code = "source-missing"


class SourceUnreadable(TableError):
    code = "source-unreadable"


class SourceGone(TableError):
    code = "source-gone"


class TooManyCells(TableError):
    code = "too-many-cells"


class RequestError(TidegateError):
    code = "request-error"


class Unsupported(RequestError):
    code = "unsupported"


class InvalidNumber(Unsupported, ValueError, TypeError):
    code = "invalid-number"


class SecondAccount(Unsupported):
    code = "second-account"  # its text names another ledger, so it is for the data holder


class BudgetExceeded(RequestError):
    code = "budget-exceeded"


class NotWaiting(RequestError):
    code = "not-waiting"


class LedgerError(TidegateError):
    code = "ledger-error"


class LedgerUnavailable(LedgerError):
    code = "ledger-unavailable"


class LedgerBroken(LedgerError):
    code = "ledger-broken"


class LedgerNewer(LedgerError):
    code = "ledger-newer"


class StalePolicy(LedgerError):
    code = "stale-policy"


class KeyReused(LedgerError):
    code = "key-reused"


class KeyInUse(LedgerError):
    code = "key-in-use"


class JobStopped(RequestError):
    code = "job-stopped"


class StaleQuote(RequestError):
    code = "stale-quote"


class NameTaken(RequestError):
    code = "name-taken"


class AccessError(TidegateError):
    code = "access-error"


class NotSignedIn(AccessError):
    code = "not-signed-in"


class NotAllowed(AccessError):
    code = "not-allowed"


class NotThere(AccessError):
    code = "not-there"


class TooLarge(AccessError):
    code = "too-large"


class TooOften(AccessError):
    code = "too-often"


class Unreachable(AccessError):
    code = "unreachable"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``Did you mean "hours_per_week"?``, or the list of known names if none is similar."""
    names = list(known)
    folded = {item.lower(): item for item in names}
    near = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    near = near or [item for item in folded if len(name) > 2 and name.lower() in item][:1]
    if near:
        return f'Did you mean "{folded[near[0]]}"?'
    return f"Known: {', '.join(names)}." if names else ""
