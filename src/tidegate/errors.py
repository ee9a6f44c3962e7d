"""One exception tree. Every message says what happened, the numbers, and what to do.

    TidegateError
      PolicyError
        PolicyUnreadable     the file is not a policy (syntax, unknown key, wrong type)
        PolicyIncomplete     a place that a person must decide is still open
        UnknownColumn        a name that the policy does not declare
        Infeasible           a promise that nobody could keep
        PolicyLoosened       a change that would weaken a promise already relied on
      TableError
        SourceMissing        no such file, table or server
        SourceUnreadable     rows or types that do not fit the declared columns
        SourceGone           the engine stopped answering in the middle
        TooManyCells         a grouping with more cells than can be held
      RequestError
        Unsupported          a question of a form that is not answered; the supported form is named
          InvalidNumber      what should be a finite number is none, or is too long
        BudgetExceeded       not enough is left; spent, asked and left are named
        NotWaiting           a request to withdraw that does not wait
      LedgerError
        LedgerUnavailable    locked, read-only or unreachable
        LedgerBroken         the chain does not verify
        LedgerNewer          written by a newer version
        StalePolicy          the policy was changed by somebody else meanwhile
        KeyReused            one idempotency key for two different questions
      AccessError            of a served data set
        NotSignedIn          no token, or one that opens nothing
        NotAllowed           a token that does not open this
        NotThere             nothing has this address
        TooLarge             more than is read
        TooOften             slower, please
        Unreachable          the service does not answer, or not as one

Error text and error objects are outputs: they may quote the policy and the request, never a private row.
They are raised outside of ``except`` blocks wherever an engine's own message could hold a value, so that no
traceback carries it along.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, ClassVar


class TidegateError(Exception):
    """What happened (`what`), what to do about it (`do`), and the numbers as data (`facts`).

    `code` is the name of the error in JSON. It never changes, whatever the class is called.
    """

    code: ClassVar[str] = "tidegate-error"

    def __init__(self, what: str, do: str = "", **facts: Any) -> None:
        super().__init__(what)
        self.what = what
        self.do = do
        self.facts = facts

    def __str__(self) -> str:
        return f"{self.what}\n  {self.do}" if self.do else self.what

    def to_dict(self) -> dict[str, Any]:
        """The one JSON shape of all errors."""
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


class StaleQuote(RequestError):
    code = "stale-quote"


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
    """``Did you mean "hours_per_week"?``, or the list of known names where none is near."""
    names = list(known)
    folded = {item.lower(): item for item in names}
    near = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    near = near or [item for item in folded if len(name) > 2 and name.lower() in item][:1]
    if near:
        return f'Did you mean "{folded[near[0]]}"?'
    return f"Known: {', '.join(names)}." if names else ""
