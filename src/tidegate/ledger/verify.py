"""Does the record hold? Every entry is hashed again, chained again, priced again and added up again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.accounting import ZERO, Amount, budget_of, event_from_dict
from tidegate.errors import LedgerBroken, TidegateError
from tidegate.ledger.entry import (
    ANSWERED,
    CHARGED,
    CLOSED,
    COLLECTING,
    DECIDED,
    DESK,
    GENESIS,
    OPENED,
    REPEATED,
    REPORTED,
    WITHDRAWN,
    Entry,
    canonical,
    sha256,
)
from tidegate.ledger.recount import Collections
from tidegate.ledger.replay import Releases, compare
from tidegate.policy.toml import policy_from_dict


@dataclass
class Verdict:
    """What was found: `problems` is empty where the record holds."""

    entries: int = 0
    head: str = GENESIS
    spent: dict[str, Amount] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.problems

    def refuse(self) -> None:
        """Raise LedgerBroken where the record does not hold."""
        if self.problems:
            raise LedgerBroken(
                f"the ledger does not verify: {self.problems[0]}"
                + (f" ({len(self.problems):,} problems)" if self.problems[1:] else ""),
                "Somebody changed it. Keep this copy as evidence, restore the last good one, and answer nothing until then.",
                problems=self.problems[:20],
            )


@dataclass
class _State:
    """An account as the replay has it."""

    spent: Amount = ZERO
    ceiling: Amount = ZERO
    policy: str = ""


def verify(
    entries: Iterable[Entry],
    payloads: Mapping[int, str],
    requests: Iterable[Mapping[str, Any]] | None = None,
    counts: Iterable[Mapping[str, Any]] | None = None,
    *,
    head: str = "",
) -> Verdict:
    """Replay a chain. With `head`, a hash noted earlier, a tail that was cut off is found as well. `requests` are the
    rows of the requests for records, `counts` those of collected reports: each must stand as the entries say.

    Guarantee  Any change, deletion, insertion or swap of entries, or change of a stored result, is found, unless all
               hashes after it were made again; a noted head finds that too.
    """
    replay = _Replay(dict(payloads))
    for entry in entries:
        replay.take(entry)
    return replay.finish(head, requests, counts)


class _Replay:
    def __init__(self, payloads: dict[int, str]) -> None:
        self.verdict = Verdict()
        self.payloads = payloads
        self.accounts: dict[str, _State] = {}
        self.charges: dict[tuple[str, str], Entry] = {}
        self.answered: set[tuple[str, str]] = set()
        self.hashes: set[str] = {GENESIS}
        self.releases: dict[str, Releases] = {}
        self.collections = Collections()

    def take(self, entry: Entry) -> None:
        expected = self.verdict.entries + 1
        for problem in self._problems(entry, expected):
            self.verdict.problems.append(f"entry {expected:,}: {problem}.")
        self.verdict.entries = expected
        self.verdict.head = str(entry.hash)
        self.hashes.add(str(entry.hash))

    def _problems(self, entry: Entry, expected: int) -> list[str]:
        if type(entry.number) is not int or any(
            not isinstance(v, str) for k, v in entry.__dict__.items() if k != "number"
        ):
            return ["a field is not of its type"]
        found = []
        if entry.number != expected:
            found.append(f"its number is {entry.number}, an entry is missing or was put in")
        if entry.previous != self.verdict.head:
            found.append("it does not follow from the entry before")
        if entry.digest() != entry.hash:
            found.append("its content does not match its hash")
        return found or self._replayed(entry)

    def _replayed(self, entry: Entry) -> list[str]:
        state = self.accounts.setdefault(entry.account, _State())
        try:
            wrong = KINDS[entry.kind](self, entry, state)
            state.spent, state.ceiling, state.policy = (
                Amount.parse(entry.spent),
                Amount.parse(entry.ceiling),
                entry.policy,
            )
        except (
            LookupError,
            TypeError,
            ValueError,
            ArithmeticError,
            RecursionError,
            AttributeError,
            TidegateError,
        ) as error:
            return [f"it cannot be read ({type(error).__name__})"]
        self.verdict.spent[entry.account] = state.spent
        return wrong

    def _policy(self, entry: Entry, state: _State) -> list[str]:
        body = entry.content()
        policy = policy_from_dict(body["policy"])
        allows = budget_of(policy).ceiling
        ceiling = min(allows, state.ceiling) if state.spent else allows
        return _wrong(
            ("its policy is another data set's", policy.dataset.name == entry.account),
            (
                "its fingerprint is not the policy's",
                entry.policy == sha256(canonical(body["policy"])) == policy.fingerprint,
            ),
            ("it allows another amount than its policy", body["allows"] == str(allows)),
            ("its ceiling does not follow", entry.ceiling == str(ceiling)),
            ("it changes what was spent", entry.spent == str(state.spent) and entry.amount == "0"),
        )

    def _charge(self, entry: Entry, state: _State) -> list[str]:
        body = entry.content()
        price = event_from_dict(body["event"]).price
        again = (entry.account, entry.request) in self.charges
        self.charges[entry.account, entry.request] = entry
        return _wrong(
            ("its amount is not the price of its event", entry.amount == str(price)),
            ("its total does not add up", entry.spent == str(state.spent + price)),
            ("it spends more than was allowed", state.spent + price <= state.ceiling),
            (
                "its ceiling or policy is not the account's",
                (entry.ceiling, entry.policy) == (str(state.ceiling), state.policy),
            ),
            (
                "its question is not the one that it names",
                entry.question == sha256(canonical(body["question"])),
            ),
            ("its request was charged before", not again),
        )

    def _repeated(self, entry: Entry, state: _State) -> list[str]:
        number = entry.content()["charge"]
        charged = any(
            c.number == number and c.question == entry.question
            for c in self.charges.values()
            if c.account == entry.account
        )
        return _wrong(
            ("it repeats a charge that is not there", charged),
            ("it changes the account", _still(entry, state)),
        )

    def _result(self, entry: Entry, state: _State) -> list[str]:
        body, name = entry.content(), (entry.account, entry.request)
        charge, payload = self.charges.get(name), self.payloads.pop(entry.number, None)
        again = name in self.answered
        self.answered.add(name)
        return _wrong(
            ("it answers a charge that is not there", charge is not None and charge.number == body["charge"]),
            ("its request was answered before", not again),
            ("its stored result is gone", payload is not None),
            ("its stored result was changed", payload is None or _hash(payload) == body["sha256"]),
            ("it changes the account", _still(entry, state)),
        )

    def _desk(self, entry: Entry, state: _State) -> list[str]:
        payload = self.payloads.pop(entry.number, None)
        return _wrong(
            ("its plans are gone", payload is not None),
            ("its plans were changed", payload is None or _hash(payload) == entry.content()["sha256"]),
            ("it changes the account", _still(entry, state)),
        )

    def _decided(self, entry: Entry, state: _State) -> list[str]:
        wrong = self.releases.setdefault(entry.account, Releases()).decide(entry.content())
        return [*wrong, *_wrong(("it changes the account", _still(entry, state)))]

    def _withdrawn(self, entry: Entry, state: _State) -> list[str]:
        wrong = self.releases.setdefault(entry.account, Releases()).withdraw(entry.content())
        return [*wrong, *_wrong(("it changes the account", _still(entry, state)))]

    def _collecting(self, entry: Entry, state: _State) -> list[str]:
        nothing = (entry.amount, entry.spent, entry.ceiling) == ("0", "0", "0")
        return [*self.collections.open(entry), *_wrong(("a collection spends nothing of an account", nothing))]

    def _reported(self, entry: Entry, state: _State) -> list[str]:
        wrong = self.collections.take(entry, self.payloads.pop(entry.number, None))
        return [*wrong, *_wrong(("it changes the account", _still(entry, state)))]

    def _closed(self, entry: Entry, state: _State) -> list[str]:
        return [*self.collections.close(entry), *_wrong(("it changes the account", _still(entry, state)))]

    def finish(
        self,
        head: str,
        requests: Iterable[Mapping[str, Any]] | None,
        counts: Iterable[Mapping[str, Any]] | None,
    ) -> Verdict:
        if requests is not None:
            self.verdict.problems += compare(self.releases, requests)
        if counts is not None:
            self.verdict.problems += self.collections.compare(counts)
        for number in self.payloads:
            self.verdict.problems.append(f"a stored result belongs to no entry (number {number}).")
        if head and head not in self.hashes:
            self.verdict.problems.append(
                f"the noted head {head[:12]} is not in the chain: entries were cut off or written anew."
            )
        return self.verdict


def _still(entry: Entry, state: _State) -> bool:
    totals = (entry.amount, entry.spent, entry.ceiling, entry.policy)
    return totals == ("0", str(state.spent), str(state.ceiling), state.policy)


def _hash(payload: Any) -> str:
    return sha256(payload) if isinstance(payload, str) else ""


def _wrong(*checks: tuple[str, bool]) -> list[str]:
    return [problem for problem, holds in checks if not holds]


KINDS = {
    OPENED: _Replay._policy,
    CHARGED: _Replay._charge,
    REPEATED: _Replay._repeated,
    ANSWERED: _Replay._result,
    DESK: _Replay._desk,
    DECIDED: _Replay._decided,
    WITHDRAWN: _Replay._withdrawn,
    COLLECTING: _Replay._collecting,
    REPORTED: _Replay._reported,
    CLOSED: _Replay._closed,
}
