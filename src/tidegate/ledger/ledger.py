"""The durable record: charge before a row is read, record before a result leaves.

    receipt = ledger.charge(policy, event, question=...)      committed: the most it can cost
    value = ...                                               run, where receipt.stored holds nothing yet
    return receipt.record(value)                              committed: the result; only then may it leave

A crash between the two wastes the charge, unless the same request comes again: it finds its charge, runs again, and
costs nothing more. Only one result of a request is ever recorded, and only a recorded result leaves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlalchemy import Connection, select

from tidegate.accounting import ZERO, Amount, Event, budget_of
from tidegate.errors import BudgetExceeded, KeyReused, StalePolicy, Unsupported
from tidegate.ledger import arrivals, file, queries, shares, sources
from tidegate.ledger.chain import append, ends, unchanged
from tidegate.ledger.entry import ANSWERED, CHARGED, GENESIS, OPENED, REPEATED, Entry, canonical, entry_from, sha256
from tidegate.ledger.schema import entries, results
from tidegate.ledger.source_states import ReadState, SourceStates
from tidegate.ledger.store import Store
from tidegate.ledger.verify import Verdict, verify
from tidegate.policy import Policy
from tidegate.policy.changes import changes, refuse_loosening
from tidegate.policy.toml import policy_from_dict

# What is known of the source since a stored result: Postgres only counts changes, and other sources may tell nothing.
SourceChange = Literal["unchanged", "changed", "may have changed", "unknown"]


@dataclass(frozen=True)
class Account:
    """What a data set has spent, may spend, and has left, at one moment."""

    name: str
    spent: Amount
    ceiling: Amount
    policy: str

    @property
    def left(self) -> Amount:
        return self.ceiling.minus(self.spent)


@dataclass(frozen=True)
class Receipt:
    """Proof of a charge. `stored` is the result, where this request was answered before."""

    ledger: Ledger
    entry: Entry
    account: Account
    stored: Any = None
    fresh: bool = True
    source_index: int = 0  # of the state of the source that the result describes; 0 where it is not known
    source: SourceChange = "unknown"

    @property
    def cost(self) -> Amount:
        """What this request cost now: nothing where it was charged before."""
        return Amount.parse(self.entry.amount) if self.fresh else ZERO

    def record(self, result: Any) -> Any:
        """Store the result with its entry and return what is stored: the first result of a request wins."""
        return self.ledger._record(self.entry, canonical(result))


ADD_RESULT = results.insert()


class Ledger:
    """Append-only entries, chained by hash, in a SQLite file or a Postgres database."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.store = Store(url, read_only=read_only)
        self._answered: dict[str, list[tuple[Entry, Any]]] = {}
        self._read_up_to: dict[str, int] = {}
        self._source_states = SourceStates(self.store)

    def close(self) -> None:
        self.store.close()

    def watch_source(self, account: str, read: ReadState) -> None:
        """Note the state of an account's source with every charge, and compare it with every stored result."""
        self._source_states.watch(account, read)

    def source_index(self, account: str) -> int:
        """Return the index of the source as it is now, as charges hold it; 0 where it is not known."""
        state = self._source_states.state(account)
        return state[0] if state else 0

    def open_account(self, policy: Policy) -> Account:
        """Open the account of a policy's data set. A new or changed policy is an entry of its own.

        Guarantee:
            The ceiling of an account never rises: a changed policy can lower it, and nothing gives budget back. A policy that
            promises less than one under which something was spent is refused.
        """
        account = self.account(policy.dataset.name)
        if account and account.policy == policy.fingerprint:
            return account
        with self.store.writing() as connection:
            end, head = ends(connection, policy.dataset.name)
            if head and head.policy == policy.fingerprint:
                return _account(head)
            return _account(append(connection, end, **_opening(connection, policy, head)))

    def account(self, name: str) -> Account | None:
        """The account as of now, or None where there is none yet."""
        with self.store.reading() as connection:
            head = queries.head(connection, name)
        return _account(head) if head else None

    def asked_before(self, policy: Policy, *, question: Any, request: str = "") -> Receipt | None:
        """The receipt of a question that was answered before; None where it must be charged or run."""
        hashed = sha256(canonical(question))
        with self.store.reading() as connection:
            found = queries.find(connection, policy.dataset.name, CHARGED, request) if request else None
            earlier = found or queries.asked(connection, policy.dataset.name, hashed)
            if earlier is None or earlier.question != hashed or (request and not found):
                return None
            receipt = self._again(connection, earlier)
        return self._compared(receipt) if receipt.stored is not None else None

    def charge(
        self,
        policy: Policy,
        event: Event,
        *,
        question: Any,
        says: str = "",
        request: str = "",
        fresh: bool = False,
        who: str = "",
        share: Amount | None = None,
    ) -> Receipt:
        """Commit the most that a request can cost, or find that it was charged before.

        Args:
            request: An idempotency key.
            fresh: Answer an answered question again, at its full price. It needs an idempotency key.
            says: The question in words.
            who: The user.
            share: The most that this user may spend in total.

        Guarantee:
            After any number of processes have called this, spent <= ceiling, and what was charged to `who` is <= `share`
            wherever one was given. A question is charged once, and a request is charged once, however often they arrive.
        """
        if fresh and not request:
            raise Unsupported(
                "asking afresh needs an idempotency key, so that a repeated request is not charged twice."
            )
        asked = canonical(question)
        name, hashed = request or sha256(asked), sha256(asked)
        with self.store.writing() as connection:
            earlier = self._earlier(connection, policy.dataset.name, request, hashed, fresh)
            end, head = ends(connection, policy.dataset.name)
            if earlier is not None:
                receipt = self._again(connection, earlier)
            elif head is None or head.policy != policy.fingerprint:
                raise StalePolicy(
                    f'the policy of "{policy.dataset.name}" is not the one in the ledger: somebody changed it meanwhile.',
                    "Open the data set again.",
                )
            else:
                spent = shares.spent_by(connection, policy.dataset.name, who)
                if share is not None:
                    shares.refuse_beyond(share, spent, policy.dataset.name, who=who, price=event.price)
                body = {"event": event.to_dict(), "question": question, "says": says, "who": who}
                names = {"request": name, "question": hashed, "body": canonical(body)}
                entry = append(connection, end, **_charging(policy, head, event.price), **names)
                shares.put(connection, entry.account, who, spent + event.price)
                receipt = Receipt(self, entry, _account(entry))
        return self._compared(receipt)

    def _compared(self, receipt: Receipt) -> Receipt:
        """The receipt of a stored result with what became of its source since."""
        state = self._source_states.state(receipt.account.name) if receipt.source_index else None
        if state is None:
            return receipt
        index, is_exact = state
        change: SourceChange = "changed" if is_exact else "may have changed"
        return replace(receipt, source="unchanged" if index == receipt.source_index else change)

    def spent_by(self, account: str, who: str) -> Amount:
        """What was charged to one name so far."""
        with self.store.reading() as connection:
            return shares.spent_by(connection, account, who)

    def _earlier(self, connection: Connection, account: str, request: str, question: str, fresh: bool) -> Entry | None:
        """The charge that a request stands for already: by its key, else by its question; the key is then noted."""
        known = request and (
            queries.find(connection, account, CHARGED, request) or queries.find(connection, account, REPEATED, request)
        )
        if known and known.question != question:
            raise KeyReused("this idempotency key was used for another question.", "Use a new key for a new question.")
        if known and known.kind == CHARGED:
            return known
        earlier = None if fresh and not known else queries.asked(connection, account, question)
        if earlier and request and not known:
            end, head = ends(connection, account)
            names = {"request": request, "question": question, "body": canonical({"charge": earlier.number})}
            append(connection, end, kind=REPEATED, amount="0", **names, **unchanged(head or earlier))
        return earlier

    def _again(self, connection: Connection, earlier: Entry) -> Receipt:
        found = queries.find(connection, earlier.account, ANSWERED, earlier.request)
        account = _account(queries.head(connection, earlier.account) or earlier)
        stored = json.loads(queries.payload(connection, found.number)) if found else None
        described = found.content().get("source", 0) if found else 0
        return Receipt(self, earlier, account, stored, fresh=False, source_index=described)

    def _record(self, charge: Entry, payload: str) -> Any:
        source = self.source_index(charge.account)
        with self.store.writing() as connection:
            found = queries.find(connection, charge.account, ANSWERED, charge.request)
            if found:
                return json.loads(queries.payload(connection, found.number))
            body = {"charge": charge.number, "sha256": sha256(payload)} | ({"source": source} if source else {})
            end, head = ends(connection, charge.account)
            names = {"request": charge.request, "question": charge.question, "body": canonical(body)}
            entry = append(connection, end, kind=ANSWERED, amount="0", **names, **unchanged(head or charge))
            connection.execute(ADD_RESULT, {"number": entry.number, "payload": payload})
            sources.put(connection, charge, entry.number)
        return json.loads(payload)

    def entries(self, account: str | None = None) -> Iterator[Entry]:
        """Every entry in order, of one account or of all."""
        query = select(entries).order_by(entries.c.number)
        if account:
            query = query.where(entries.c.account == account)
        with self.store.reading() as connection:
            for row in connection.execution_options(yield_per=1000).execute(query).mappings():
                yield entry_from(dict(row))

    def answered(self, account: str, *, since: int = 0) -> list[tuple[Entry, Any]]:
        """Every answered charge of an account with its stored result, but for the first `since`. Entries never change:
        only new ones are read."""
        with self.store.cache_turn:
            known = self._answered.setdefault(account, [])
            with self.store.reading() as connection:
                seen = self._read_up_to.get(account, 0)
                rows = connection.execute(queries.RESULTS_SINCE, {"account": account, "since": seen}).mappings()
                for row in rows:
                    known.append((entry_from(dict(row)), json.loads(row["payload"])))
                    self._read_up_to[account] = row["answer"]
            return known[since:]

    def payloads(self) -> dict[Any, str]:
        """Every stored result by the number of its entry."""
        with self.store.reading() as connection:
            return queries.payloads(connection)

    def sources(self, account: str, name: str) -> list[tuple[int, int, Entry, Any]]:
        """The least noisy answer to a question, by the name of the question (see `tidegate.ledger.sources`)."""
        with self.store.reading() as connection:
            return list(sources.find(connection, sources.BY_NAME, account=account, name=name))

    def folding(self, account: str, *, since: int = 0) -> list[tuple[int, int, Entry, Any]]:
        """The least noisy counts of all rows that were recorded after an entry, in order."""
        with self.store.reading() as connection:
            return list(sources.find(connection, sources.FOLDING, account=account, since=since))

    def snapshot(self) -> queries.Snapshot:
        """All that `verify` needs, as it is at one moment, while others write."""
        with self.store.reading() as connection:
            return queries.snapshot(connection)

    def verify(self, *, head: str = "") -> Verdict:
        """Verify all that decides: entries, stored results, requests, counts, report ids, secrets and totals; of a SQLite
        file also its pages and indexes, and who can open it."""
        with self.store.reading() as connection:
            verdict = verify(*queries.snapshot(connection), head=head)
            verdict.problems += arrivals.problems(connection)
            verdict.problems += queries.integrity(connection) if self.store.sqlite else []
        verdict.notes += file.wide(self.store.path) if self.store.path else []
        return verdict

    def head(self) -> str:
        """The hash of the last entry: write it down elsewhere, and a cut-off tail can be found."""
        with self.store.reading() as connection:
            last = queries.last(connection)
        return last.hash if last else GENESIS


def _opening(connection: Connection, policy: Policy, head: Entry | None) -> dict[str, Any]:
    """The fields of a policy's own entry. The ceiling is the lowest that any policy of the data set ever gave."""
    budget = budget_of(policy)
    budget.refuse_infeasible()
    ceiling, spent, told = budget.ceiling, ZERO, []
    if head:
        old = policy_from_dict(queries.last_policy(connection, policy.dataset.name)["policy"])
        spent = Amount.parse(head.spent)
        if spent or queries.desk(connection, policy.dataset.name):
            refuse_loosening(old, policy)
        if spent:
            ceiling = min(ceiling, Amount.parse(head.ceiling))
        told = changes(old, policy)
    targets = {target.name: {"worlds": str(target.worlds), "rho": str(target.rho)} for target in budget.targets}
    body = {
        "policy": policy.public_dict(),
        "changes": told,
        "targets": targets,
        "allows": str(budget.ceiling),
    }
    return {
        "account": policy.dataset.name,
        "kind": OPENED,
        "policy": policy.fingerprint,
        "request": f"{policy.fingerprint}/{head.number if head else 0}",
        "question": "",
        "amount": "0",
        "spent": str(spent),
        "ceiling": str(ceiling),
        "body": canonical(body),
    }


def _what_fits(account: Account) -> str:
    if account.left:
        return f"Ask for at most {account.left.say_below()}."
    if account.ceiling:
        return "Nothing more can be asked of this data set."
    return "Its policy promises nothing for answers: add [promise.identification] or [promise.loss]."


def _charging(policy: Policy, head: Entry, price: Amount) -> dict[str, Any]:
    """The totals after a charge, or BudgetExceeded."""
    account = _account(head)
    if account.spent + price > account.ceiling:
        raise BudgetExceeded(
            f'this needs epsilon {price.say()}; "{account.name}" has {account.left.say()} left of {account.ceiling.say()} '
            f"({account.spent.say()} spent).",
            _what_fits(account),
            asked=str(price),
            spent=str(account.spent),
            left=str(account.left),
            ceiling=str(account.ceiling),
        )
    return {
        "account": account.name,
        "kind": CHARGED,
        "policy": policy.fingerprint,
        "amount": str(price),
        "spent": str(account.spent + price),
        "ceiling": str(account.ceiling),
    }


def _account(entry: Entry) -> Account:
    return Account(entry.account, Amount.parse(entry.spent), Amount.parse(entry.ceiling), entry.policy)
