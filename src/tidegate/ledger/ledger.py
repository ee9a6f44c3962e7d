"""The durable record: charge before a row is read, record before a result is returned.

    receipt = ledger.charge(policy, event, question=...)      committed: the highest possible cost
    value = ...                                               run, unless receipt.stored has a result
    return receipt.record(value)                              committed: the result; only then it can be returned

A crash between the two wastes the charge, unless the same request is sent again: it finds its charge, runs again, and
costs nothing more. Only one result of a request is ever recorded, and only a recorded result is returned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, select

from tidegate.accounting import (
    FREE,
    ZERO,
    Amount,
    Event,
    Price,
    Target,
    budget_of,
    event_from_dict,
)
from tidegate.errors import KeyReused, SourceUnreadable, StalePolicy, Unsupported
from tidegate.frames import Row, Rows
from tidegate.ledger import (
    access,
    arrivals,
    charge_state,
    diaries,
    file,
    invitations,
    partners,
    proof,
    queries,
    remarks,
    shares,
    sources,
    totals,
    verification,
    witness,
)
from tidegate.ledger.account import Account, account_at, refuse_beyond
from tidegate.ledger.chain import add_result, append, ends, unchanged
from tidegate.ledger.charge_state import ChargeState
from tidegate.ledger.entry import (
    AMOUNTS,
    ANSWERED,
    CHARGED,
    GENESIS,
    OPENED,
    REPEATED,
    Entry,
    canonical,
    entry_from,
    sha256,
)
from tidegate.ledger.known_sources import SourceGuard
from tidegate.ledger.schema import entries
from tidegate.ledger.source_states import ReadState, SourceStates
from tidegate.ledger.store import Store, file_of
from tidegate.ledger.verify import Verdict
from tidegate.policy import Policy
from tidegate.policy.changes import changes, refuse_loosening
from tidegate.policy.toml import policy_from_dict

# The state of the source since a stored result. Postgres only counts changes, and other sources can report nothing.
SourceChange = Literal["unchanged", "changed", "may have changed", "unknown"]


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
        """The cost of this request now, in the account's unit: zero if it was charged before."""
        return Amount.parse(self.entry.amount) if self.fresh else ZERO

    @property
    def price(self) -> Price:
        """The cost of this request now, in all units."""
        return event_from_dict(self.entry.content()["event"]).price if self.fresh else FREE

    def run(self, compute: Callable[[], Any]) -> Any:
        """Return the result of reading the source. Any failure is recorded, and its message is always the same.

        Raises:
            SourceUnreadable: Reading failed. The charge stands, and a repetition costs nothing.
        """
        try:
            return compute()
        except Exception:  # noqa: S110 - whatever it says can depend on a row
            pass
        remarks.note_failure(self.ledger.store, self.entry)
        raise SourceUnreadable(remarks.FAILURE)

    def record(self, result: Any) -> Any:
        """Store the result with its entry and return the stored one: the first result of a request wins."""
        return self.ledger._record(self.entry, canonical(result))


class Ledger(Rows):
    """Append-only entries, chained by hash, in a SQLite file or a Postgres database."""

    def __init__(
        self, url: str, *, read_only: bool = False, witnesses: Sequence[str] = (), is_witnessed: bool = True
    ) -> None:
        """Open or create a ledger.

        Args:
            read_only: Neither create nor migrate it.
            witnesses: Addresses for its checkpoints, in addition to those in its settings.
            is_witnessed: False for a copy that is not in use: it is not compared with a witness, and none receives its checkpoints.
        """
        is_witnessed &= not read_only
        addresses = witness.named_addresses(witnesses) if is_witnessed else ()
        if addresses:
            witness.refuse_missing(file_of(url), addresses)
        self.store = Store(url, read_only=read_only)
        self.witnesses = witness.Witnesses(self.store, addresses) if is_witnessed else None
        self._answered: dict[str, list[tuple[Entry, Any]]] = {}
        self._read_up_to: dict[str, int] = {}
        self._source_states = SourceStates(self.store)
        self._guards: dict[str, SourceGuard] = {}  # of accounts that were not opened yet

    def close(self) -> None:
        if self.witnesses is not None:
            self.witnesses.close()
        self.store.close()

    def add_witnesses(self, addresses: Sequence[str]) -> None:
        """Add addresses for the ledger's signed checkpoints to its settings."""
        if self.witnesses is not None:
            self.witnesses.add(addresses)

    def prove(self, entry: str) -> dict[str, Any]:
        """Return the proof that the ledger contains an entry, by its number or hash (`tidegate.ledger.proof`)."""
        return proof.prove(self.store, entry)

    def watch_source(self, account: str, read: ReadState, *, guard: SourceGuard | None = None) -> None:
        """Record the state of an account's source with every charge, and compare it with every stored result.

        With a guard, the account is not opened if its source has another one.
        """
        self._source_states.watch(account, read)
        self._guards.pop(account, None)
        if guard is not None:
            self._guards[account] = guard

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
        name = policy.dataset.name
        guard = self._guards.get(name)
        if guard is None:
            return self._open_account(policy)
        record = guard.admit(self, policy, self._source_states.read(name))
        account = self._open_account(policy)
        record()
        self._guards.pop(name, None)
        return account

    def _open_account(self, policy: Policy) -> Account:
        account = self.account(policy.dataset.name)
        if account and account.policy == policy.fingerprint:
            return account
        with self.store.writing() as connection:
            end, head = ends(connection, policy.dataset.name)
            if not head or head.policy != policy.fingerprint:
                head = _open(connection, policy, end, head)
            return account_at(head, *partners.read(connection, head.account))

    def preview_account(self, policy: Policy) -> Account:
        """Return the account as `open_account` would leave it, without an entry.

        Raises:
            PolicyLoosened: Something was spent under a policy that promises more.
        """
        name = policy.dataset.name
        with self.store.reading() as connection:
            fields, after = _opening(connection, policy, queries.head(connection, name))
            group: partners.Group = {}
            for other in (*policy.dataset.shares_persons_with, name):
                own, others = self._totals(connection, other)
                group |= {**others, other: own}
        group.pop(name)
        spent, limits = Amount.parse(fields["spent"]), after.ceilings
        return Account(name, spent, limits.main, policy.fingerprint, after.spent, limits, tuple(sorted(group.items())))

    def policies(self, name: str) -> list[Entry]:
        """Return the entries that opened or changed the policy of an account, in order."""
        with self.store.reading() as connection:
            return queries.policies(connection, name)

    def account(self, name: str) -> Account | None:
        """Return the current account, or None if there is none yet."""
        with self.store.reading() as connection:
            head = queries.head(connection, name)
            return account_at(head, *self._totals(connection, name)) if head else None

    def _totals(self, connection: Connection, account: str) -> tuple[totals.Totals, partners.Group]:
        """Return the totals of an account and its group. A ledger of an earlier schema that is only read lacks tables."""
        if self.store.has_partners:
            return partners.read(connection, account)
        if self.store.has_totals:
            return totals.read(connection, account), {}
        own = [entry for entry in queries.every(connection) if entry.account == account]
        return totals.replay(own).get(account, totals.NOTHING), {}

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

    def find_answer(self, account: str, question: str) -> Receipt | None:
        """Return the receipt of an answered query by the hash of its question; None if there is no stored result."""
        with self.store.reading() as connection:
            entry = queries.asked(connection, account, question)
            receipt = self._again(connection, entry) if entry else None
        return self._compare_source(receipt) if receipt and receipt.stored is not None else None

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
        account = policy.dataset.name
        reads = charge_state.reads(account, question=hashed, request=request, user=who)
        with self.store.deciding(reads) as (connection, rows):
            state = ChargeState.from_rows(rows, account)
            earlier = self._earlier(connection, state, request, hashed, fresh)
            if earlier is not None:
                receipt = self._again(connection, earlier)
            elif state.head is None or state.head.policy != policy.fingerprint:
                raise StalePolicy(
                    f'The policy of "{account}" differs from the one in the ledger: it was changed in the meantime.',
                    "Open the data set again.",
                )
            else:
                before, price = state.before, event.price
                refuse_beyond(account_at(state.head, before, state.group), price)
                amount = totals.amount_of(price, before.ceilings)
                if share is not None:
                    shares.refuse_beyond(share, state.spent, account, user=who, price=amount, unit=before.ceilings.unit)
                body = {"event": event.to_dict(), "question": question, "says": says, "who": who}
                body |= {"unit": "z"} if before.ceilings.unit == "z" else {}
                names = {"request": name, "question": hashed, "body": canonical(body)}
                entry = append(connection, state.end, **_charging(policy, state.head, amount), **names)
                shares.put(connection, account, who, state.spent + amount)
                totals.put(connection, account, before.plus(price))
                receipt = Receipt(self, entry, account_at(entry, before.plus(price), state.group))
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

    def _earlier(
        self, connection: Connection, state: ChargeState, request: str, question: str, fresh: bool
    ) -> Entry | None:
        """Return the earlier charge of a request: by its key, or by its query; in that case the key is recorded."""
        known = state.known
        if known and known.question != question:
            raise KeyReused("This idempotency key was used for another query.", "Use a new key for a new query.")
        if known and known.kind == CHARGED:
            return known
        earlier = None if fresh and not known else state.asked
        if earlier and request and not known:
            names = {"request": request, "question": question, "body": canonical({"charge": earlier.number})}
            append(connection, state.end, kind=REPEATED, amount="0", **names, **unchanged(state.head or earlier))
        return earlier

    def _again(self, connection: Connection, earlier: Entry) -> Receipt:
        result = queries.find(connection, earlier.account, ANSWERED, earlier.request)
        head = queries.head(connection, earlier.account) or earlier
        account = account_at(head, *partners.read(connection, head.account))
        stored = json.loads(queries.payload(connection, result.number)) if result else None
        described = result.content().get("source", 0) if result else 0
        return Receipt(self, earlier, account, stored, fresh=False, source_index=described)

    def _record(self, charge: Entry, payload: str) -> Any:
        source = self.source_index(charge.account)
        reads = [
            (queries.LAST, ()),
            (queries.HEAD, (charge.account,)),
            (queries.REQUEST, (charge.account, ANSWERED, charge.request)),
        ]
        with self.store.deciding(reads) as (connection, rows):
            end, head, earlier = (queries.first_entry(part) for part in rows)
            if earlier:
                return json.loads(queries.payload(connection, earlier.number))
            body = {"charge": charge.number, "sha256": sha256(payload)} | ({"source": source} if source else {})
            names = {"request": charge.request, "question": charge.question, "body": canonical(body)}
            entry = append(connection, end, kind=ANSWERED, amount="0", **names, **unchanged(head or charge))
            add_result(connection, entry, payload)
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

    def rows(self) -> list[Row]:
        """Return one dictionary per entry, of all accounts: amounts as numbers, and the time of the entry."""
        return [entry.row() for entry in self.entries()]

    def _kinds(self) -> dict[str, type]:
        return {
            **dict.fromkeys(Entry.__dataclass_fields__, str),
            "number": int,
            "at": datetime,
            **dict.fromkeys(AMOUNTS, float),
        }

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

    def verify(self, *, head: str = "", since: Path | None = None, save: Path | None = None) -> Verdict:
        """Verify entries, stored results, diaries, requests, counts, report ids, invitations, tokens, secrets and totals.

        For a SQLite file, verify its pages, indexes and permissions too. `save` is a new file for the state of this
        verification, and `since` such a file of an earlier one: only later entries are replayed.
        """
        with self.store.reading() as connection:
            verdict = verification.verify_stored(connection, head=head, since=since, save=save)
            verdict.problems += arrivals.problems(connection)
            verdict.problems += invitations.problems(connection)
            verdict.problems += witness.problems(connection)
            verdict.problems += access.problems(connection)
            verdict.problems += diaries.problems(connection)
            verdict.problems += queries.integrity(connection) if self.store.sqlite else []
        verdict.notes += file.wide(self.store.path) if self.store.path else []
        return verdict

    def head(self) -> str:
        """Return the hash of the last entry. Store it elsewhere: it detects a truncated ledger."""
        with self.store.reading() as connection:
            last = queries.last(connection)
        return last.hash if last else GENESIS


def open_in(connection: Connection, policy: Policy) -> Entry:
    """Open the account of a policy inside the caller's transaction; return its entry."""
    return _open(connection, policy, *ends(connection, policy.dataset.name))


def _open(connection: Connection, policy: Policy, end: Entry | None, head: Entry | None) -> Entry:
    fields, after = _opening(connection, policy, head)
    totals.put(connection, policy.dataset.name, after)
    partners.put(connection, policy.dataset.name, policy.dataset.shares_persons_with)
    return append(connection, end, **fields)


def _opening(connection: Connection, policy: Policy, head: Entry | None) -> tuple[dict[str, Any], totals.Totals]:
    """Return the fields of a policy entry, and the totals after it. A limit is the lowest of all policies of the data set."""
    budget = budget_of(policy)
    budget.refuse_infeasible()
    before, descriptions = totals.read(connection, policy.dataset.name), []
    if head:
        old = policy_from_dict(queries.last_policy(connection, policy.dataset.name)["policy"])
        if Amount.parse(head.spent) or queries.desk(connection, policy.dataset.name):
            refuse_loosening(old, policy)
        descriptions = changes(old, policy)
    after = before.under(budget.ceilings)
    spent = head.spent if head else "0"
    ceiling = after.ceilings.main
    body = {
        "policy": policy.public_dict(),
        "changes": descriptions,
        "targets": {target.name: _target(target) for target in budget.targets},
        "allows": str(budget.ceiling),
        **totals.limits_in_body(budget.ceilings),
    }
    fields = {
        "account": policy.dataset.name,
        "kind": OPENED,
        "policy": policy.fingerprint,
        "request": f"{policy.fingerprint}/{head.number if head else 0}",
        "question": "",
        "amount": "0",
        "spent": spent,
        "ceiling": str(ceiling),
        "body": canonical(body),
    }
    return fields, after


def _target(target: Target) -> dict[str, Any]:
    stated = {"worlds": str(target.worlds), "rho": str(target.rho)}
    if target.guarantee == "average":
        stated |= {"guarantee": target.guarantee, "guesses": str(target.guesses)}
    return stated


def _charging(policy: Policy, head: Entry, amount: Amount) -> dict[str, Any]:
    """Return the fields of a charge that fits, with the totals after it."""
    return {
        "account": head.account,
        "kind": CHARGED,
        "policy": policy.fingerprint,
        "amount": str(amount),
        "spent": str(Amount.parse(head.spent) + amount),
        "ceiling": head.ceiling,
    }
