"""LEDGER: changes to the record by someone with write access. Every change must be detected; no chance is involved.

The user's own ledger is read once and copied in memory; if there is none, a small one is simulated. `verify` checks the
copies. An adversary who recomputes all hashes, or cuts off the tail, is detected by a head that was noted elsewhere, or by a
witness, which a copy in a temporary file gets. Proofs of its entries are changed as well.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tidegate.accounting import Amount
from tidegate.audit.answers.ask import FrontDoor
from tidegate.audit.answers.situations import situations
from tidegate.audit.fake_data import build_table, whole_budget
from tidegate.audit.finding import Clock, Finding
from tidegate.errors import LedgerError
from tidegate.ledger import Entry, Ledger, merkle, proof, schema, verify, witness
from tidegate.ledger.entry import CHARGED
from tidegate.ledger.queries import Snapshot
from tidegate.ledger.store import Store
from tidegate.policy import Policy

Entries = list[Entry]
Payloads = dict[int, str]
Verifier = Callable[..., Any]
EACH, FEW = 40, 8  # tries of each kind; the minimum if time runs out
MOST_COPIED = 20_000  # entries of the copy that gets a witness
VERIFIED = "`tidegate ledger verify` detects any change to the record"
REFUSED = "a ledger with fewer entries than a witness has seen, or with others, is refused"
PROVEN = "a changed proof of an entry is refused"
KNOWS = "the whole database, with write access; where the head is noted elsewhere, they can also recompute every hash"
TEXTS = tuple(name for name in Entry.__dataclass_fields__ if name != "number")


@dataclass(frozen=True)
class Copy:
    """The contents of a ledger, in memory."""

    entries: Entries
    payloads: Payloads
    requests: list[dict[str, Any]]
    counts: list[dict[str, Any]]
    rest: tuple[Any, ...] = ()  # secrets, report ids, totals by name, and the list of answers

    @classmethod
    def of(cls, snapshot: Snapshot) -> Copy:
        return cls(*snapshot[:4], rest=tuple(snapshot[4:]))

    @property
    def head(self) -> str:
        return self.entries[-1].hash

    def problems(
        self, check: Verifier, *, entries: Any = None, payloads: Any = None, noted: bool = False, rest: Any = ()
    ) -> list[str]:
        checked_entries = self.entries if entries is None else entries
        checked_payloads = self.payloads if payloads is None else payloads
        verdict = check(
            checked_entries, checked_payloads, self.requests, self.counts, *rest, head=self.head if noted else ""
        )
        return list(verdict.problems)


def attack_ledger(
    policy: Policy,
    *,
    alpha: float,
    seconds: float,
    seed: int,
    address: str = "",
    check: Verifier = verify,
    reopen: Callable[[Path], None] | None = None,
    check_proof: Callable[..., Any] = proof.check,
) -> list[Finding]:
    """Try every known way to change a record, on a copy of the ledger at an address (or of a simulated one).

    Tests pass a faulty `check`, `reopen` (of a ledger with a witness) or `check_proof`.
    """
    clock, random = Clock(seconds), np.random.default_rng([seed, 13])
    copy, where = _read_copy(address), "a copy of the ledger"
    if copy is None or not any(entry.number for entry in copy.entries):
        copy, where = simulate_ledger(policy), "a simulated ledger (no ledger exists yet)"
    if copy is None:
        return []
    findings = [_check_original(copy, where, check, clock)]
    if findings[0].broken:
        return findings
    for name, forge in FORGERIES.items():
        findings.append(_try_forgery(name, forge, copy, where, check, random, clock))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "audit.ledger"
        witnessed = _add_witness(path, copy.entries[:MOST_COPIED], str(Path(folder) / "checkpoint"))
        findings += _attack_witness(path, witnessed, where, reopen or open_witnessed, random, clock)
        findings.append(_change_proofs(path, witnessed, where, check_proof, random, clock))
    return findings


def _check_original(copy: Copy, where: str, check: Verifier, clock: Clock) -> Finding:
    problems = copy.problems(check, noted=True, rest=copy.rest)
    size = "1 entry" if len(copy.entries) == 1 else f"{len(copy.entries):,} entries"
    says = f"{size} of {where}: " + (problems[0] if problems else "every check passed.")
    return _finding("the record as it is", says, broken=bool(problems), tries=1, seconds=clock.spent)


def _try_forgery(
    name: str, forge: Forgery, copy: Copy, where: str, check: Verifier, random: np.random.Generator, clock: Clock
) -> Finding:
    """Try one kind of forgery repeatedly. The text states whether a noted head is needed to detect it."""
    pace = Clock(0)
    missed = tries = 0
    for _ in range(EACH):
        forged = forge(copy, random)
        if forged is None:
            continue
        tries += 1
        missed += not copy.problems(check, entries=forged[0], payloads=forged[1], noted=name in WITH_HEAD)
        if clock.over and tries >= FEW:
            break
    how = " with the head noted elsewhere" if name in WITH_HEAD else ""
    says = f"{tries} forgeries of {where}{how}: " + (f"{missed} were not detected." if missed else "all were detected.")
    if not tries:
        return replace(_finding(name, "there was nothing of this kind to forge.", broken=False), verdict="not tried")
    return _finding(name, says, broken=missed > 0, tries=tries, seconds=pace.spent)


def _finding(
    attack: str, says: str, *, broken: bool, promise: str = VERIFIED, tries: int = 0, seconds: float = 0.0
) -> Finding:
    verdict: Any = "broken" if broken else "held"
    return Finding("ledger", promise, attack, KNOWS, says[0].upper() + says[1:], verdict, tries=tries, seconds=seconds)


# Forgeries return the entries and stored results after a change, or None if there is nothing to change

Forgery = Callable[[Copy, np.random.Generator], tuple[Entries, Payloads] | None]


def edit_entry(copy: Copy, random: np.random.Generator) -> tuple[Entries, Payloads] | None:
    """Change one character of one field of one entry."""
    entries = list(copy.entries)
    at, field = int(random.integers(len(entries))), str(random.choice(TEXTS))
    change: dict[str, Any] = {field: _edit(getattr(entries[at], field), random)}
    entries[at] = replace(entries[at], **change)
    return entries, copy.payloads


def edit_result(copy: Copy, random: np.random.Generator) -> tuple[Entries, Payloads] | None:
    """Change one character of a stored result."""
    if not copy.payloads:
        return None
    number = int(random.choice(list(copy.payloads)))
    return copy.entries, {**copy.payloads, number: _edit(copy.payloads[number], random)}


def remove_entry(copy: Copy, random: np.random.Generator) -> tuple[Entries, Payloads] | None:
    """Remove an entry and renumber the others."""
    if len(copy.entries) < 2:
        return None
    at = int(random.integers(len(copy.entries) - 1))
    rest = [*copy.entries[:at], *(replace(entry, number=entry.number - 1) for entry in copy.entries[at + 1 :])]
    return rest, _renumber(copy.payloads, copy.entries[at].number)


def swap_entries(copy: Copy, random: np.random.Generator) -> tuple[Entries, Payloads] | None:
    """Swap two entries and their numbers."""
    if len(copy.entries) < 2:
        return None
    first, second = (int(at) for at in random.choice(len(copy.entries), 2, replace=False))
    entries = list(copy.entries)
    entries[first], entries[second] = (
        replace(copy.entries[second], number=copy.entries[first].number),
        replace(copy.entries[first], number=copy.entries[second].number),
    )
    return entries, copy.payloads


def reduce_charge(copy: Copy, random: np.random.Generator) -> tuple[Entries, Payloads] | None:
    """Reduce a charge and the totals after it, and recompute every hash. The price of its event reveals it."""
    charges = [at for at, entry in enumerate(copy.entries) if entry.kind == CHARGED]
    if not charges:
        return None
    at = int(random.choice(charges))
    less = Amount.parse(copy.entries[at].amount).grains // 2
    entries = list(copy.entries)
    entries[at] = replace(entries[at], amount=str(Amount(less)))
    for index in range(at, len(entries)):
        if entries[index].account == entries[at].account:
            spent = Amount(max(0, Amount.parse(entries[index].spent).grains - less))
            entries[index] = replace(entries[index], spent=str(spent))
    return list(_seal(entries)), copy.payloads


def cut_tail(copy: Copy, random: np.random.Generator) -> tuple[Entries, Payloads] | None:
    """Remove the last entries."""
    length = int(random.integers(len(copy.entries)))
    gone = copy.entries[length].number
    return copy.entries[:length], {n: payload for n, payload in copy.payloads.items() if n < gone}


def rewrite_history(copy: Copy, random: np.random.Generator) -> tuple[Entries, Payloads] | None:
    """Change a time and recompute every later hash, so that the chain is consistent."""
    entries = list(copy.entries)
    at = int(random.integers(len(entries)))
    entries[at] = replace(entries[at], at=f"{entries[at].at} ")
    return list(_seal(entries)), copy.payloads


FORGERIES: dict[str, Forgery] = {
    "one character of an entry": edit_entry,
    "one character of a stored result": edit_result,
    "an entry removed": remove_entry,
    "two entries swapped": swap_entries,
    "a charge reduced, hashes recomputed": reduce_charge,
    "the tail cut off": cut_tail,
    "everything rewritten": rewrite_history,
}
WITH_HEAD = ("the tail cut off", "everything rewritten")


# Witnesses and proofs


def _add_witness(path: Path, entries: Entries, address: str) -> Copy:
    """Write entries into a new ledger whose only witness is a file, and send it a checkpoint."""
    with closing(Ledger(str(path), is_witnessed=False)) as ledger:
        _put_entries(ledger.store, entries)
        witness.configure(ledger.store, add=[address])
        witness.Witnesses(ledger.store).send()
        return Copy.of(ledger.snapshot())


def _put_entries(store: Store, entries: Entries) -> None:
    """Replace all entries, and the hashes of the tree over them."""
    with store.writing() as connection:
        connection.execute(schema.entries.delete())
        connection.execute(schema.tiles.delete())
        connection.execute(schema.entries.insert(), [dict(entry.__dict__) for entry in entries])
        merkle.rebuild(connection)


def open_witnessed(path: Path) -> None:
    """Open a ledger, which compares it with the witness in its settings."""
    if not witness.named_addresses(()):
        Ledger(str(path)).close()
        return
    # witnesses of the environment belong to other ledgers
    with closing(Ledger(str(path), is_witnessed=False)) as ledger:
        witness.Witnesses(ledger.store)


def _attack_witness(
    path: Path, copy: Copy, where: str, reopen: Callable[[Path], None], random: np.random.Generator, clock: Clock
) -> list[Finding]:
    """Replace the ledger behind the back of its witness, with the signing key, and open it."""
    findings = []
    for name, most in {"the tail cut off": 4, "everything rewritten": 4, "an older copy, continued": 1}.items():
        pace, missed, tries = Clock(0), 0, 0
        while tries < most and (tries < 2 or not clock.over):
            changed = path.with_name(f"{name} {tries}")
            shutil.copy(path, changed)
            _replace_ledger(changed, copy, name, random)
            tries, missed = tries + 1, missed + (not _is_refused(reopen, changed))
            changed.unlink()
        is_refused = _is_refused(reopen, path)
        count = f"{tries} replacement{'s' if tries > 1 else ''} of {where} with a witness"
        says = f"{count}, of which {missed} opened." if missed else f"{count}, refused each time."
        says = "The unchanged ledger was refused." if is_refused else says
        figures: dict[str, Any] = {"promise": REFUSED, "tries": tries, "seconds": pace.spent}
        findings.append(_finding(f"witness, {name}", says, broken=is_refused or missed > 0, **figures))
    return findings


def _replace_ledger(path: Path, copy: Copy, name: str, random: np.random.Generator) -> None:
    with closing(Ledger(str(path), is_witnessed=False)) as ledger:
        if name == "everything rewritten":
            forged = rewrite_history(copy, random)
            _put_entries(ledger.store, forged[0] if forged else [])
            return
        is_continued = name == "an older copy, continued"
        length = len(copy.entries) - 1 if is_continued else int(random.integers(1, len(copy.entries)))
        _put_entries(ledger.store, copy.entries[:length])
        for _ in range(2 * is_continued):  # as many entries as the witness has seen, and more
            witness.configure(ledger.store, new_key=True)


def _change_proofs(
    path: Path, copy: Copy, where: str, check: Callable[..., Any], random: np.random.Generator, clock: Clock
) -> Finding:
    """Change one character of proofs that entries are in the ledger."""
    pace, missed, tries, is_refused = Clock(0), 0, 0, False
    with closing(Ledger(str(path), is_witnessed=False)) as ledger:
        with ledger.store.reading() as connection:
            keys = witness.public_keys(connection)
        while tries < EACH and (tries < FEW or not clock.over):
            valid = proof.to_text(ledger.prove(str(random.choice([entry.number for entry in copy.entries]))))
            changed = _edit(valid, random)
            is_refused |= _is_refused(check, json.loads(valid), keys)
            tries, missed = tries + 1, missed + (not _is_refused(_check_text, check, changed, keys))
    says = f"{tries} proofs of entries of {where}, each with one other character: " + (
        f"{missed} were accepted." if missed else "all were refused."
    )
    says = "An unchanged proof was refused." if is_refused else says
    figures: dict[str, Any] = {"promise": PROVEN, "tries": tries, "seconds": pace.spent}
    return _finding("proof, one character", says, broken=is_refused or missed > 0, **figures)


def _check_text(check: Callable[..., Any], text: str, keys: Any) -> None:
    try:
        content = json.loads(text)
    except ValueError:
        content = None  # not a proof
    check(content, keys)


def _is_refused(act: Callable[..., Any], *args: Any) -> bool:
    try:
        act(*args)
    except LedgerError:
        return True
    return False


def _edit(text: str, random: np.random.Generator) -> str:
    """Return the text with one character changed, or inserted if it is empty."""
    if not text:
        return "x"
    at = int(random.integers(len(text)))
    return text[:at] + ("1" if text[at] != "1" else "2") + text[at + 1 :]


def _seal(entries: Entries) -> Iterator[Entry]:
    previous = entries[0].previous
    for entry in entries:
        sealed = replace(entry, previous=previous).sealed()
        previous = sealed.hash
        yield sealed


def _renumber(payloads: Mapping[int, str], gone: int) -> Payloads:
    return {n - (n > gone): payload for n, payload in payloads.items() if n != gone}


def _read_copy(address: str) -> Copy | None:
    """Return the ledger at an address, opened read-only; None if there is none."""
    if not address or ("://" not in address and not Path(address).exists()):
        return None
    ledger = Ledger(address, read_only=True)
    try:
        return Copy.of(ledger.snapshot())
    finally:
        ledger.close()


def simulate_ledger(policy: Policy) -> Copy | None:
    """Return a ledger with a few answers about a simulated data set; None if no query is possible."""
    candidates = situations(policy)
    if not candidates:
        return None
    copied = candidates[0].policy
    with TemporaryDirectory() as folder:
        front = FrontDoor(copied, Path(folder))
        try:
            table = build_table(copied, candidates[0].world(candidates[0].special).units)
            for _ in range(3):
                front.ask(table, candidates[0].questions()[:2], loss=whole_budget(copied).part(4))
            return Copy.of(front.snapshot())
        finally:
            front.close()
