"""Verification of the ledger: hashes, links, prices and totals of every entry are recomputed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from tidegate.accounting import ZERO, Amount, Ceilings, Price, budget_of
from tidegate.errors import LedgerBroken, TidegateError
from tidegate.ledger import merkle, partners, shares
from tidegate.ledger import totals as account_totals
from tidegate.ledger.access import is_readable
from tidegate.ledger.chain import SERVICE, commitment
from tidegate.ledger.entry import (
    ACCESS,
    ADOPTED,
    ANSWERED,
    ARRIVED,
    CHARGED,
    CLOSED,
    COLLECTING,
    CREATED,
    DECIDED,
    DESK,
    EXPIRED,
    FAILED,
    FORMAT,
    GENESIS,
    HIDING_KEY,
    HIDING_OPEN,
    INSPECTED,
    INVITATION_KEY,
    INVITED,
    MOVED,
    OPENED,
    REPEATED,
    REPORTED,
    ROTATED,
    SECOND,
    WITHDRAWN,
    WITNESSED,
    WRITTEN_OFF,
    Entry,
    canonical,
    sha256,
)
from tidegate.ledger.invitations import key_commitment, key_name
from tidegate.ledger.replay import Collections, Releases, Standing, compare
from tidegate.ledger.scratch import Scratch
from tidegate.ledger.selections import Epoch, Selections, compare_selections, secret_commitment
from tidegate.ledger.sources import Sources, listed, read_event
from tidegate.ledger.stream import Pairs, Payloads
from tidegate.ledger.totals import NOTHING, Totals, amount_of, limits_in_body
from tidegate.ledger.verification_state import VerificationState, save_state
from tidegate.policy.toml import policy_from_dict


@dataclass
class Verdict:
    """The result of a verification: `problems` is empty if the ledger holds.

    `notes` are not signs of a change, but worth a look: times that run backwards, and data that entries of earlier versions
    do not cover. Entry 0, the genesis, is not counted.
    """

    entries: int = 0
    head: str = GENESIS
    spent: dict[str, Amount] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.problems

    def refuse(self) -> None:
        """Raise LedgerBroken if the ledger does not hold."""
        if self.problems:
            raise LedgerBroken(
                f"The ledger does not verify: {self.problems[0]}"
                + (f" ({len(self.problems):,} problems)" if self.problems[1:] else ""),
                "It was changed outside of Tidegate. Keep this copy as evidence, restore the last good one, and answer nothing "
                "until then.",
                problems=self.problems[:20],
            )


@dataclass
class _State:
    """The state of an account in the replay."""

    spent: Amount = ZERO
    ceiling: Amount = ZERO
    policy: str = ""
    totals: Totals = NOTHING
    has_policy: bool = False
    amounts: tuple[str, str] = ("0", "0")  # spent and ceiling as text

    def follow(self, entry: Entry) -> None:
        """Take over the totals of an entry."""
        if (entry.spent, entry.ceiling) != self.amounts:
            self.spent, self.ceiling = Amount.parse(entry.spent), Amount.parse(entry.ceiling)
            self.amounts = entry.spent, entry.ceiling
        self.policy = entry.policy


def verify(
    entries: Iterable[Entry],
    payloads: Mapping[int, str] | Payloads,
    requests: Iterable[Mapping[str, Any]] | None = None,
    counts: Iterable[Mapping[str, Any]] | None = None,
    secrets: Iterable[tuple[str, str]] | None = None,
    ids: Mapping[Any, tuple[int, str]] | None = None,
    totals: Iterable[tuple[str, str, str]] | None = None,
    sources: Iterable[Mapping[str, Any]] | None = None,
    unit_totals: Iterable[tuple[str, ...]] | None = None,
    selection: Iterable[Mapping[str, Any]] | None = None,
    *,
    head: str = "",
    dataset: str = "",
    tiles: Iterable[tuple[Any, ...]] | None = None,
    pairs: Iterable[Any] | None = None,
    since: VerificationState | None = None,
    save: Path | None = None,
) -> Verdict:
    """Replay a chain and compare the other tables of the ledger with its entries.

    The other tables (see `Snapshot`) are requests for records, counts and ids of collected reports, secrets, totals by user,
    the list of answers from which others follow, totals by unit, and the selections of hiding promises. An export has none of them.

    Args:
        head: A hash that was noted earlier. With it, a truncated tail is detected too.
        dataset: The entries are those of one data set and its collections. Their links are not checked, because other
            entries are between them.
        tiles: The stored hashes of the Merkle tree.
        pairs: The stored accounts that share persons.
        since: The state of an earlier verification; `entries` and `payloads` are the later ones.
        save: A new file for the state of this verification, if it finds no problem.

    The memory does not grow with the number of entries, if entries and tables are streams (`tidegate.ledger.stream`).

    Guarantee:
        Any change, deletion, insertion or swap of entries, or change of a stored result, is detected, unless all hashes
        after it were recomputed; a noted head detects that too.
    """
    replay = _Replay(payloads if isinstance(payloads, Payloads | Pairs) else dict(payloads), dataset)
    try:
        if since is not None:
            since.restore(replay, SAVED)
        replay.head_to_find = head
        for entry in entries:
            replay.take(entry)
        tables = (requests, counts, secrets, ids, totals, sources, unit_totals, selection)
        verdict = _compare_tables(replay, *tables, tiles=tiles, pairs=pairs, head=head)
        if save is not None and verdict.holds:
            save_state(replay, save, SAVED)
        return verdict
    finally:
        replay.scratch.close()


def _compare_tables(
    replay: _Replay,
    requests: Iterable[Mapping[str, Any]] | None,
    counts: Iterable[Mapping[str, Any]] | None,
    secrets: Iterable[tuple[str, str]] | None,
    ids: Mapping[Any, tuple[int, str]] | None,
    totals: Iterable[tuple[str, str, str]] | None,
    sources: Iterable[Mapping[str, Any]] | None,
    unit_totals: Iterable[tuple[str, ...]] | None,
    selection: Iterable[Mapping[str, Any]] | None,
    *,
    tiles: Iterable[tuple[Any, ...]] | None,
    pairs: Iterable[Any] | None,
    head: str,
) -> Verdict:
    """Compare the other tables with the replayed entries."""
    if requests is not None:
        replay.verdict.problems += compare(replay.releases, requests)
    if selection is not None:
        hiding = {account: replayed for account, replayed in replay.selections.items() if replayed.key}
        own = [row for row in requests or () if row["account"] in hiding]
        replay.verdict.problems += compare_selections(hiding, selection, own, secrets or ())
    if counts is not None:
        replay.verdict.problems += replay.collections.compare(counts)
    if secrets is not None:
        replay.compare_secrets(secrets)
    if ids is not None:
        wrong, uncovered = replay.collections.compare_ids(ids)
        replay.verdict.problems += wrong
        replay.verdict.notes += uncovered
    if totals is not None:
        replay.verdict.problems += shares.compare(replay.totals, totals)
    if sources is not None:
        replay.verdict.problems += replay.sources.compare(sources)
    if unit_totals is not None:
        expected = {name: state.totals for name, state in replay.accounts.items() if state.has_policy}
        replay.verdict.problems += account_totals.compare(expected, unit_totals)
    if pairs is not None:
        replay.verdict.problems += partners.compare(replay.partners, pairs)
    if tiles is not None and replay.tiles != {(level, index): hashed for level, index, hashed in tiles}:
        replay.verdict.problems.append("The stored hashes of the Merkle tree do not follow from the entries.")
    return replay.finish(head)


class _Replay:
    def __init__(self, payloads: dict[int, str] | Payloads, dataset: str = "") -> None:
        self.verdict = Verdict()
        self.scratch = Scratch()
        self.dataset = dataset
        self.number = 0  # of the last entry
        self.payloads = payloads
        self.accounts: dict[str, _State] = {}
        self.charges = self.scratch.mapping(
            "charges"
        )  # by account and request: number, is answered, what it can answer
        self.questions = self.scratch.mapping("questions")  # of charges with a key, by account and number
        self.head_to_find, self.has_head = "", False
        self.tree = merkle.Frontier()
        self.tiles: dict[tuple[int, int], str] = {}
        self.releases: dict[str, Releases] = {}
        self.selections: dict[str, Selections] = {}
        self.collections = Collections(batches=self.scratch.mapping("batches"))
        self.codes: dict[str, int] = {}  # of invitations, by the name of their key
        self.secrets: dict[str, str] = {}  # account -> commitment
        self.committed = False  # whether there is a genesis or an adoption
        self.totals: shares.Totals = {}
        self.partners: dict[str, list[str]] = {}  # the accounts that each policy names
        self.sources = Sources(self.scratch.mapping("sources"))
        self.began = False
        self.at = ""

    def take(self, entry: Entry) -> None:
        first, self.began = not self.began, True
        expected = 0 if first and entry.number == 0 and entry.kind == CREATED else self.number + 1
        if self.dataset and isinstance(entry.number, int):
            expected = max(expected, entry.number)
        for problem in self._problems(entry, expected):
            self.verdict.problems.append(f"Entry {expected:,}: {problem}.")
        scheduled = entry.kind in (REPORTED, CLOSED) and '"scheduled"' in str(
            entry.body
        )  # its time is that of the plan
        if isinstance(entry.at, str) and entry.at < self.at and not scheduled:
            self.verdict.notes.append(f"Entry {expected:,}: its time is before that of the previous entry.")
        self.at = self.at if scheduled else str(entry.at)  # a clock that was ahead once is noted once
        self.number = expected
        self.verdict.entries = self.verdict.entries + 1 if self.dataset else expected
        self.verdict.head = str(entry.hash)
        self.has_head |= self.verdict.head == self.head_to_find
        if not self.dataset:
            self._grow(entry)

    def _grow(self, entry: Entry) -> None:
        """Add an entry to the Merkle tree."""
        if self.number and not self.tree.size:
            self.tree.add(merkle.NO_ENTRY)
        for level, index, hashed in self.tree.add(merkle.leaf_of(self.verdict.head)):
            self.tiles[level, index] = hashed.hex()

    def releases_of(self, account: str) -> Releases:
        """Return the requests of an account in the replay."""
        if account not in self.releases:
            mapping = self.scratch.mapping
            self.releases[account] = Releases(mapping(f"requests {account}"), mapping(f"live {account}"))
        return self.releases[account]

    def _problems(self, entry: Entry, expected: int) -> list[str]:
        if type(entry.number) is not int or not _TEXT.issuperset(map(type, list(entry.__dict__.values())[1:])):
            return ["a field has the wrong type"]
        problems = []
        if entry.number != expected:
            problems.append(f"its number is {entry.number}, an entry is missing or was inserted")
        if self.dataset and entry.account.partition("/")[0] != self.dataset:
            problems.append("it belongs to another data set")
        if not self.dataset and entry.previous != self.verdict.head:
            problems.append("it does not follow from the previous entry")
        if entry.digest() != entry.hash:
            problems.append("its content does not match its hash")
        return problems or self._replay(entry)

    def _replay(self, entry: Entry) -> list[str]:
        state = self.accounts.get(entry.account) or self.accounts.setdefault(entry.account, _State())
        try:
            wrong = KINDS[entry.kind](self, entry, state)
            state.follow(entry)
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
        if entry.account:
            self.verdict.spent[entry.account] = state.spent
        return wrong

    def _genesis(self, entry: Entry, state: _State) -> list[str]:
        return [*self._commit(entry), *_wrong(("it is not the first entry", entry.number == 0))]

    def _adoption(self, entry: Entry, state: _State) -> list[str]:
        wrong = _wrong(("there is a genesis or adoption before it", not self.committed))
        return [*wrong, *self._commit(entry)]

    def _commit(self, entry: Entry) -> list[str]:
        body = entry.content()
        self.secrets.update(body["secrets"])
        wrong = _wrong(
            ("its format is unknown", body["format"] == FORMAT),
            ("it commits to no secret of the service", SERVICE in body["secrets"]),
            ("it belongs to an account or charges", _nothing(entry)),
        )
        self.committed = True
        return wrong

    def _write_off(self, entry: Entry, state: _State) -> list[str]:
        """Replay a write-off: spending after a backup is charged again, never less than before or more than allowed."""
        amount, by = Amount.parse(entry.amount), entry.content()["by"]
        shares.add(self.totals, entry)
        state.totals = state.totals.after(entry)
        return _wrong(
            ("its total does not add up", entry.spent == str(state.spent + amount)),
            ("it spends more than was allowed", state.spent + amount <= state.ceiling),
            ("it returns budget to a user", all(Amount.parse(part) for part in by.values())),
            (
                "its limit or policy differs from the account's",
                (entry.ceiling, entry.policy) == (str(state.ceiling), state.policy),
            ),
        )

    def _policy(self, entry: Entry, state: _State) -> list[str]:
        body = entry.content()
        policy = policy_from_dict(body["policy"])
        limits = budget_of(policy).ceilings
        state.totals, state.has_policy = state.totals.under(limits), True
        self.partners[entry.account] = list(policy.dataset.shares_persons_with)
        return _wrong(
            ("its policy belongs to another data set", policy.dataset.name == entry.account),
            (
                "its fingerprint differs from the policy's",
                entry.policy == sha256(canonical(body["policy"])) == policy.fingerprint,
            ),
            ("it allows a different amount than its policy", body["allows"] == str(limits.main)),
            ("its limits are not those of its policy", body.get("limits") == limits_in_body(limits).get("limits")),
            ("its limit does not follow from its policy", entry.ceiling == str(state.totals.ceilings.main)),
            ("it changes what was spent", entry.spent == str(state.spent) and entry.amount == "0"),
        )

    def _charge(self, entry: Entry, state: _State) -> list[str]:
        name = f"{entry.account}/{entry.request}"
        body, event, question = _read_charge(entry.body)
        price = _price(event)
        before, state.totals = state.totals, state.totals.plus(price)
        amount = amount_of(price, before.ceilings)
        spent = state.spent + amount
        spent_text = str(spent)
        again = self.charges.put(name, [entry.number, 0, listed(body, event)])
        if entry.request != entry.question:
            self.questions[f"{entry.account}/{entry.number}"] = entry.question
        user = entry.account, body["who"]
        self.totals[user] = self.totals.get(user, ZERO) + amount
        wrong = _wrong(
            ("its amount is not the price of its event", entry.amount == _text(amount)),
            ("its unit is not the account's", body.get("unit", "epsilon") == before.ceilings.unit),
            ("its total does not add up", entry.spent == spent_text),
            ("it spends more than was allowed", spent <= state.ceiling and not state.totals.exceeded),
            (
                "it spends more than accounts with the same persons allow",
                self._fits_group(entry.account, before, price),
            ),
            (
                "its limit or policy differs from the account's",
                (entry.ceiling, entry.policy) == (state.amounts[1], state.policy),
            ),
            (
                "its query does not match its hash",
                entry.question == sha256(question),
            ),
            ("its request was charged before", not again),
        )
        if entry.spent == spent_text:
            state.spent, state.amounts = spent, (spent_text, state.amounts[1])
        return wrong

    def _fits_group(self, account: str, before: Totals, price: Price) -> bool:
        """Return whether a price fits the limits of all accounts with the same persons. An export can lack their entries."""
        if self.dataset or not any(self.partners.values()) or before.refusal(price):
            return True
        others = partners.members(self.partners, account)
        group = {name: self.accounts[name].totals for name in others if name in self.accounts}
        return partners.refusal(before, group, price) == ("", "")

    def _repeated(self, entry: Entry, state: _State) -> list[str]:
        number = entry.content()["charge"]
        question = self.questions.get(f"{entry.account}/{number}")
        charged, *_ = self.charges.get(
            f"{entry.account}/{entry.question}", (None,)
        )  # the name of a charge without a key
        exists = charged == number if question is None else question == entry.question
        return _wrong(
            ("it names a charge that does not exist", exists),
            ("it changes the account", _still(entry, state)),
        )

    def _remark(self, entry: Entry, state: _State) -> list[str]:
        return _wrong(("it changes the account", _still(entry, state)))

    def _result(self, entry: Entry, state: _State) -> list[str]:
        body, name = entry.content(), f"{entry.account}/{entry.request}"
        payload = self.payloads.pop(entry.number, None)
        number, again, rows = self.charges.get(name, (None, 0, ()))
        if number is not None and not again:
            self.charges[name] = [number, 1, ()]
            self.sources.add(entry.account, number, entry.number, rows)
        return _wrong(
            ("it answers a charge that does not exist", number is not None and number == body["charge"]),
            ("its request was answered before", not again),
            ("its stored result is missing", payload is not None),
            ("its stored result was changed", payload is None or _hash(payload) == body["sha256"]),
            ("it changes the account", _still(entry, state)),
        )

    def _desk(self, entry: Entry, state: _State) -> list[str]:
        payload, named = self.payloads.pop(entry.number, None), entry.content().get("secret", "")
        known = self.secrets.setdefault(entry.account, named) if named else named
        return _wrong(
            ("its secret differs from the account's", known == named),
            ("its plans are missing", payload is not None),
            ("its plans were changed", payload is None or _hash(payload) == entry.content()["sha256"]),
            ("it changes the account", _still(entry, state)),
        )

    def _hiding_key(self, entry: Entry, state: _State) -> list[str]:
        body = entry.content()
        known = self.secrets.setdefault(entry.account, body["secret"])
        self.secrets[f"{entry.account}/hiding"] = body["key"]
        if body["groups"]:
            self.secrets[f"{entry.account}/hiding-groups"] = body["groups"]
        wrong = self.selections.setdefault(entry.account, Selections()).commit(body["key"])
        checks = (
            ("its secret differs from the account's", known == body["secret"]),
            ("records were requested before it", entry.account not in self.releases),
            ("it changes the account", _still(entry, state)),
        )
        return [*wrong, *_wrong(*checks)]

    def _hiding_open(self, entry: Entry, state: _State) -> list[str]:
        wrong = self.selections.setdefault(entry.account, Selections()).open(entry.content(), entry.number)
        return [*wrong, *_wrong(("it changes the account", _still(entry, state)))]

    def _decided(self, entry: Entry, state: _State) -> list[str]:
        hiding = self.selections.get(entry.account)
        if hiding is not None and not hiding.epochs:
            return ["it decides before the selection was opened"]
        wrong = self.releases_of(entry.account).decide(entry.content(), entry.number)
        return [*wrong, *_wrong(("it changes the account", _still(entry, state)))]

    def _withdrawn(self, entry: Entry, state: _State) -> list[str]:
        wrong = self.releases_of(entry.account).withdraw(entry.content(), entry.number)
        return [*wrong, *_wrong(("it changes the account", _still(entry, state)))]

    def _collecting(self, entry: Entry, state: _State) -> list[str]:
        nothing = (entry.amount, entry.spent, entry.ceiling) == ("0", "0", "0")
        return [*self.collections.open(entry), *_wrong(("a collection cannot charge an account", nothing))]

    def _reported(self, entry: Entry, state: _State) -> list[str]:
        wrong = self.collections.take(entry, self.payloads.pop(entry.number, None))
        timed = entry.content().get("scheduled", entry.at) == entry.at
        checks = (("it changes the account", _still(entry, state)), ("its time is not the scheduled one", timed))
        return [*wrong, *_wrong(*checks)]

    def _closed(self, entry: Entry, state: _State) -> list[str]:
        timed = entry.content().get("scheduled", entry.at) == entry.at
        checks = (("it changes the account", _still(entry, state)), ("its time is not the scheduled one", timed))
        return [*self.collections.close(entry), *_wrong(*checks)]

    def _invitation_key(self, entry: Entry, state: _State) -> list[str]:
        key = entry.content()["key"]
        name = key_name(entry.account, key)
        again = name in self.secrets
        self.secrets[name] = key
        return _wrong(("its key was created before", not again), ("it changes the account", _still(entry, state)))

    def _invited(self, entry: Entry, state: _State) -> list[str]:
        body = entry.content()
        name = key_name(entry.account, body["key"])
        self.codes[name] = self.codes.get(name, 0) + body["count"]
        return _wrong(
            ("its number of codes does not add up", body["count"] > 0 and body["codes"] == self.codes[name]),
            ("its key was not created in this ledger", name in self.secrets),
            ("it changes the account", _still(entry, state)),
        )

    def _witness(self, entry: Entry, state: _State) -> list[str]:
        body = entry.content()
        self.secrets["/witness"] = body["secret"]
        return _wrong(("it belongs to an account or charges", _nothing(entry)), ("it names no key", bool(body["key"])))

    def _rotation(self, entry: Entry, state: _State) -> list[str]:
        replaced = entry.content()["secrets"]
        known = set(replaced) <= {SERVICE}
        self.secrets.update(replaced)
        return _wrong(("it belongs to an account or charges", _nothing(entry)), ("it replaces another secret", known))

    def _move(self, entry: Entry, state: _State) -> list[str]:
        return _wrong(("it belongs to an account or charges", _nothing(entry)))

    def _access(self, entry: Entry, state: _State) -> list[str]:
        readable = is_readable(entry.content())
        return _wrong(("it belongs to an account or charges", _nothing(entry)), ("its action is unknown", readable))

    def _expiry(self, entry: Entry, state: _State) -> list[str]:
        body = entry.content()
        wrong = self.releases_of(entry.account).expire(body) if body["records"] else []  # else: unfinished syntheses
        return [*wrong, *_wrong(("it changes the account", _still(entry, state)))]

    def compare_secrets(self, rows: Iterable[tuple[str, str]]) -> None:
        """Compare each secret with its commitment. Before the adoption of an older ledger, none is covered."""
        stored = dict(rows)
        for account in {**self.secrets, **stored}:
            named, value = self.secrets.get(account), stored.get(account)
            if not self.committed and named is None:
                self.verdict.notes.append(
                    f"The secret of {account} is not covered by an entry: it is from an earlier version."
                )
            elif not isinstance(value, str) or _committed(account, value) != named:
                self.verdict.problems.append(f"The secret of {account} is not the one that the entries commit to.")

    def finish(self, head: str) -> Verdict:
        for number in self.payloads:
            self.verdict.problems.append(f"A stored result belongs to no entry (number {number}).")
        if self.dataset:
            self.verdict.notes.append(
                f"Only the entries of {self.dataset} were verified: only the whole ledger shows whether some are missing."
            )
        elif head and head != GENESIS and not self.has_head:
            self.verdict.problems.append(
                f"The noted head {head[:12]} is not in the chain: entries were cut off or rewritten, or the head was copied incorrectly."
            )
        return self.verdict


def _committed(name: str, value: str) -> str:
    """Return what the entries have of a secret: a hash, or the public part of a key."""
    own = secret_commitment(name, value)
    own = key_commitment(name, value) if own is None else own
    return commitment(name, value) if own is None else own


def _read_charge(text: str) -> tuple[Any, str, str]:
    """Return the body of a charge, and its event and its query in canonical form.

    Both are parts of the text, which is canonical in every ledger that Tidegate wrote: to cut them out is faster than to encode
    them again. Any other text is read in the usual way.
    """
    if text.startswith(_EVENT):
        event, end = _scan(text, len(_EVENT))
        start = end + len(_QUESTION)
        if text.startswith(_QUESTION, end):
            question, stop = _scan(text, start)
            rest = json.loads("{" + text[stop + 1 :]) if text.startswith(",", stop) else {"event": None}
            if not {"event", "question"} & set(rest):
                rest["event"], rest["question"] = event, question
                return rest, text[len(_EVENT) : end], text[start:stop]
    body = json.loads(text)
    return body, canonical(body["event"]), canonical(body["question"])


@lru_cache(maxsize=4096)
def _price(event: str) -> Price:
    """Return the price of an event in canonical form."""
    return read_event(event).price


@lru_cache(maxsize=4096)
def _text(amount: Amount) -> str:
    return str(amount)


def _nothing(entry: Entry) -> bool:
    return (entry.account, entry.policy, entry.amount, entry.spent, entry.ceiling) == ("", "", "0", "0", "0")


def _still(entry: Entry, state: _State) -> bool:
    return (entry.amount, entry.spent, entry.ceiling, entry.policy) == ("0", *state.amounts, state.policy)


def _hash(payload: Any) -> str:
    return sha256(payload) if isinstance(payload, str) else ""


def _wrong(*checks: tuple[str, bool]) -> list[str]:
    return [problem for problem, holds in checks if not holds]


_scan = json.JSONDecoder().raw_decode
_EVENT, _QUESTION = '{"event":', ',"question":'
_TEXT = frozenset((str,))
SAVED = (
    *(Verdict, _State, Totals, Price, Ceilings, Amount),
    *(Collections, Standing, Releases, Selections, Epoch, Sources, merkle.Frontier),
)
KINDS = {
    CREATED: _Replay._genesis,
    ADOPTED: _Replay._adoption,
    WRITTEN_OFF: _Replay._write_off,
    OPENED: _Replay._policy,
    CHARGED: _Replay._charge,
    REPEATED: _Replay._repeated,
    ANSWERED: _Replay._result,
    FAILED: _Replay._repeated,
    INSPECTED: _Replay._remark,
    SECOND: _Replay._remark,
    DESK: _Replay._desk,
    HIDING_KEY: _Replay._hiding_key,
    HIDING_OPEN: _Replay._hiding_open,
    DECIDED: _Replay._decided,
    WITHDRAWN: _Replay._withdrawn,
    COLLECTING: _Replay._collecting,
    REPORTED: _Replay._reported,
    INVITATION_KEY: _Replay._invitation_key,
    INVITED: _Replay._invited,
    CLOSED: _Replay._closed,
    WITNESSED: _Replay._witness,
    ROTATED: _Replay._rotation,
    EXPIRED: _Replay._expiry,
    MOVED: _Replay._move,
    ARRIVED: _Replay._move,
    ACCESS: _Replay._access,
}
