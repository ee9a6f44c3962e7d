"""The durable record: charge before a row is read, record before a result is returned.

    receipt = ledger.charge(policy, event, question=...)      committed: the highest possible cost
    value = ...                                               run, unless receipt.stored has a result
    return receipt.record(value)                              committed: the result; only then it can be returned

A crash between the two wastes the charge, unless the same request is sent again: it finds its charge, runs again, and
costs nothing more. Only one result of a request is ever recorded, and only a recorded result is returned.
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

# The state of the source since a stored result. Postgres only counts changes, and other sources can report nothing.
SourceChange = Literal["unchanged", "changed", "may have changed", "unknown"]


@dataclass(frozen=True)
class Account:
    """The spent, allowed and remaining budget of a data set at one moment."""

    name: str
    spent: Amount
    ceiling: Amount
    policy: str

    @property
    def left(self) -> Amount:
        return self.ceiling.minus(self.spent)


@dataclass(frozen=True)
class Receipt:
    """Proof of a charge. `stored` is the result if this request was answered before."""

    ledger: Ledger
    entry: Entry
    account: Account
    stored: Any = None
    fresh: bool = True
    source_index: int = 0  # index of the source state that the result describes; 0 if unknown
    source: SourceChange = "unknown"

    @property
    def cost(self) -> Amount:
        """The cost of this request now: zero if it was charged before."""
        return Amount.parse(self.entry.amount) if self.fresh else ZERO

    def record(self, result: Any) -> Any:
        """Store the result with its entry and return the stored one: the first result of a request wins."""
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
        """Record the state of an account's source with every charge, and compare it with every stored result."""
        self._source_states.watch(account, read)

    def source_index(self, account: str) -> int:
        """Return the index of the current source state; 0 if unknown."""
        state = self._source_states.state(account)
        return state[0] if state else 0

    def open_account(self, policy: Policy) -> Account:
        """Open the account of a policy's data set. A new or changed policy gets its own entry.

        Guarantee:
            The limit of an account never rises: a changed policy can lower it, and nothing restores budget. A policy
            that promises less than one under which something was spent is refused.
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
        """Return the current account, or None if there is none yet."""
        with self.store.reading() as connection:
            head = queries.head(connection, name)
        return _account(head) if head else None

    def asked_before(self, policy: Policy, *, question: Any, request: str = "") -> Receipt | None:
        """Return the receipt of a query that was answered before; None if it must be charged or run."""
        hashed = sha256(canonical(question))
        with self.store.reading() as connection:
            by_key = queries.find(connection, policy.dataset.name, CHARGED, request) if request else None
            earlier = by_key or queries.asked(connection, policy.dataset.name, hashed)
            if earlier is None or earlier.question != hashed or (request and not by_key):
                return None
            receipt = self._again(connection, earlier)
        return self._compare_source(receipt) if receipt.stored is not None else None

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
        """Commit the highest possible cost of a request, or find its earlier charge.

        Args:
            question: The canonical query. Equal queries are charged once.
            says: The query as text.
            request: An idempotency key.
            fresh: Answer the query again at its full price. This requires an idempotency key.
            who: The user.
            share: The largest total that this user can spend.

        Guarantee:
            After any number of processes have called this, spent <= ceiling, and the total of `who` is <= `share`
            wherever one was set. A query and a request are charged once each, regardless of repetitions.
        """
        if fresh and not request:
            raise Unsupported(
                "A fresh answer requires an idempotency key, so that a repeated request is not charged twice.",
                "Pass a key that is unique to this request.",
            )
        canonical_question = canonical(question)
        name, hashed = request or sha256(canonical_question), sha256(canonical_question)
        with self.store.writing() as connection:
            earlier = self._earlier(connection, policy.dataset.name, request, hashed, fresh)
            end, head = ends(connection, policy.dataset.name)
            if earlier is not None:
                receipt = self._again(connection, earlier)
            elif head is None or head.policy != policy.fingerprint:
                raise StalePolicy(
                    f'The policy of "{policy.dataset.name}" differs from the one in the ledger: it was changed in the meantime.',
                    "Open the data set again.",
                )
            else:
                spent = shares.spent_by(connection, policy.dataset.name, who)
                if share is not None:
                    shares.refuse_beyond(share, spent, policy.dataset.name, user=who, price=event.price)
                body = {"event": event.to_dict(), "question": question, "says": says, "who": who}
                names = {"request": name, "question": hashed, "body": canonical(body)}
                entry = append(connection, end, **_charging(policy, head, event.price), **names)
                shares.put(connection, entry.account, who, spent + event.price)
                receipt = Receipt(self, entry, _account(entry))
        return self._compare_source(receipt)

    def _compare_source(self, receipt: Receipt) -> Receipt:
        """Return the receipt of a stored result with the change of its source since."""
        state = self._source_states.state(receipt.account.name) if receipt.source_index else None
        if state is None:
            return receipt
        index, is_exact = state
        change: SourceChange = "changed" if is_exact else "may have changed"
        return replace(receipt, source="unchanged" if index == receipt.source_index else change)

    def spent_by(self, account: str, who: str) -> Amount:
        """Return the total that was charged to a user so far."""
        with self.store.reading() as connection:
            return shares.spent_by(connection, account, who)

    def _earlier(self, connection: Connection, account: str, request: str, question: str, fresh: bool) -> Entry | None:
        """Return the earlier charge of a request: by its key, or by its query; in that case the key is recorded."""
        known = request and (
            queries.find(connection, account, CHARGED, request) or queries.find(connection, account, REPEATED, request)
        )
        if known and known.question != question:
            raise KeyReused("This idempotency key was used for another query.", "Use a new key for a new query.")
        if known and known.kind == CHARGED:
            return known
        earlier = None if fresh and not known else queries.asked(connection, account, question)
        if earlier and request and not known:
            end, head = ends(connection, account)
            names = {"request": request, "question": question, "body": canonical({"charge": earlier.number})}
            append(connection, end, kind=REPEATED, amount="0", **names, **unchanged(head or earlier))
        return earlier

    def _again(self, connection: Connection, earlier: Entry) -> Receipt:
        result = queries.find(connection, earlier.account, ANSWERED, earlier.request)
        account = _account(queries.head(connection, earlier.account) or earlier)
        stored = json.loads(queries.payload(connection, result.number)) if result else None
        described = result.content().get("source", 0) if result else 0
        return Receipt(self, earlier, account, stored, fresh=False, source_index=described)

    def _record(self, charge: Entry, payload: str) -> Any:
        source = self.source_index(charge.account)
        with self.store.writing() as connection:
            earlier = queries.find(connection, charge.account, ANSWERED, charge.request)
            if earlier:
                return json.loads(queries.payload(connection, earlier.number))
            body = {"charge": charge.number, "sha256": sha256(payload)} | ({"source": source} if source else {})
            end, head = ends(connection, charge.account)
            names = {"request": charge.request, "question": charge.question, "body": canonical(body)}
            entry = append(connection, end, kind=ANSWERED, amount="0", **names, **unchanged(head or charge))
            connection.execute(ADD_RESULT, {"number": entry.number, "payload": payload})
            sources.put(connection, charge, entry.number)
        return json.loads(payload)

    def entries(self, account: str | None = None) -> Iterator[Entry]:
        """Yield every entry in order, of one account or of all."""
        query = select(entries).order_by(entries.c.number)
        if account:
            query = query.where(entries.c.account == account)
        with self.store.reading() as connection:
            for row in connection.execution_options(yield_per=1000).execute(query).mappings():
                yield entry_from(dict(row))

    def answered(self, account: str, *, since: int = 0) -> list[tuple[Entry, Any]]:
        """Return every answered charge of an account with its stored result, except the first `since`.

        Entries never change, so only new ones are read.
        """
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
        """Return every stored result by the number of its entry."""
        with self.store.reading() as connection:
            return queries.payloads(connection)

    def sources(self, account: str, name: str) -> list[tuple[int, int, Entry, Any]]:
        """Return the least noisy answer to a query, by the name of the query (see `tidegate.ledger.sources`)."""
        with self.store.reading() as connection:
            return list(sources.find(connection, sources.BY_NAME, account=account, name=name))

    def folding(self, account: str, *, since: int = 0) -> list[tuple[int, int, Entry, Any]]:
        """Return the least noisy counts of all rows that were recorded after an entry, in order."""
        with self.store.reading() as connection:
            return list(sources.find(connection, sources.FOLDING, account=account, since=since))

    def snapshot(self) -> queries.Snapshot:
        """Return everything that `verify` needs, at one moment, while others write."""
        with self.store.reading() as connection:
            return queries.snapshot(connection)

    def verify(self, *, head: str = "") -> Verdict:
        """Verify entries, stored results, requests, counts, report ids, secrets and totals.

        For a SQLite file, verify its pages, indexes and permissions too.
        """
        with self.store.reading() as connection:
            verdict = verify(*queries.snapshot(connection), head=head)
            verdict.problems += arrivals.problems(connection)
            verdict.problems += queries.integrity(connection) if self.store.sqlite else []
        verdict.notes += file.wide(self.store.path) if self.store.path else []
        return verdict

    def head(self) -> str:
        """Return the hash of the last entry. Store it elsewhere: it detects a truncated ledger."""
        with self.store.reading() as connection:
            last = queries.last(connection)
        return last.hash if last else GENESIS


def _opening(connection: Connection, policy: Policy, head: Entry | None) -> dict[str, Any]:
    """Return the fields of a policy entry. The limit is the lowest of all policies of the data set."""
    budget = budget_of(policy)
    budget.refuse_infeasible()
    ceiling, spent, descriptions = budget.ceiling, ZERO, []
    if head:
        old = policy_from_dict(queries.last_policy(connection, policy.dataset.name)["policy"])
        spent = Amount.parse(head.spent)
        if spent or queries.desk(connection, policy.dataset.name):
            refuse_loosening(old, policy)
        if spent:
            ceiling = min(ceiling, Amount.parse(head.ceiling))
        descriptions = changes(old, policy)
    targets = {target.name: {"worlds": str(target.worlds), "rho": str(target.rho)} for target in budget.targets}
    body = {
        "policy": policy.public_dict(),
        "changes": descriptions,
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
        return f"Request at most {account.left.say_below()}."
    if account.ceiling:
        return "The budget of this data set is spent: only stored answers are available."
    return "Its policy has no promise for answers: add [promise.identification] or [promise.loss]."


def _charging(policy: Policy, head: Entry, price: Amount) -> dict[str, Any]:
    """Return the totals after a charge, or raise BudgetExceeded."""
    account = _account(head)
    if account.spent + price > account.ceiling:
        raise BudgetExceeded(
            f'The request costs epsilon {price.say()}, but "{account.name}" has {account.left.say()} remaining of {account.ceiling.say()} '
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
