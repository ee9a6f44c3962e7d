"""Proofs for people without access to the ledger: that it contains an entry, and that it only grew since a checkpoint.

prove(ledger, entry.hash)            the entry, its index, the hashes up to the root, and the signed checkpoint
prove_growth(ledger, note)           the hashes that lead from an earlier checkpoint to the present one
check(proof, keys)                   needs no ledger

A proof contains the entry, so it is as private as the entry. It shows nothing of other entries but hashes.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select

from tidegate.errors import LedgerBroken, Unsupported
from tidegate.ledger import checkpoint as notation
from tidegate.ledger import merkle, witness
from tidegate.ledger.checkpoint import Checkpoint, PublicKey
from tidegate.ledger.entry import Entry, canonical, entry_from
from tidegate.ledger.schema import entries
from tidegate.ledger.store import Store

INCLUSION, CONSISTENCY = "inclusion", "consistency"
SHORTEST = 8  # characters of a hash that identify an entry


def prove(store: Store, name: str) -> dict[str, Any]:
    """Return the proof that the ledger contains an entry, named by its number or by the beginning of its hash.

    Raises:
        Unsupported: There is no such entry, or there are several.
        LedgerUnavailable: The ledger has no signing key yet.
    """
    with store.reading() as connection:
        query = select(entries).where(entries.c.number == int(name)) if _is_number(name) else None
        if query is None:
            query = select(entries).where(entries.c.hash.startswith(name, autoescape=True)).limit(2)
        rows = connection.execute(query).mappings().all()
        is_short = not _is_number(name) and len(name) < SHORTEST
        if len(rows) != 1 or is_short:
            raise Unsupported(
                f'"{name}" names {"several entries" if rows[1:] and not is_short else "no entry"} of this ledger.',
                f"Use the number of an entry, or at least {SHORTEST} characters of its hash, as an answer shows it.",
            )
        entry = entry_from(dict(rows[0]))
        note = witness.signed(connection)
        size = notation.parse(note).size
        path = merkle.inclusion_proof(entry.number, size, merkle.Nodes(connection))
    return {
        "proof": INCLUSION,
        "entry": dict(entry.__dict__),
        "index": entry.number,
        "size": size,
        "hashes": _encode(path),
        "checkpoint": note,
    }


def prove_growth(store: Store, note: str) -> dict[str, Any]:
    """Return the proof that the entries of an earlier checkpoint are the first entries of the ledger.

    Raises:
        LedgerBroken, LedgerUnavailable: They are not, or the checkpoint is of another ledger.
    """
    with store.reading() as connection:
        earlier = witness.compare(connection, note, "checkpoint")
        newest = witness.signed(connection)
        size = notation.parse(newest).size
        path = merkle.consistency_proof(earlier.size, size, merkle.Nodes(connection))
    return {
        "proof": CONSISTENCY,
        "from": note,
        "hashes": _encode(path),
        "checkpoint": newest,
    }


def check(proof: Any, keys: Sequence[PublicKey] = ()) -> Checkpoint:
    """Return the checkpoint of a proof, after verifying all of it.

    Args:
        proof: The proof, as values.
        keys: The public keys of the ledger. Without them, signatures are not verified: the proof then shows only that
            the entry belongs to the checkpoint that it contains.

    Raises:
        LedgerBroken: The proof is wrong.
    """
    problem = "it is not a proof of a ledger"
    try:
        if isinstance(proof, Mapping) and proof["proof"] == INCLUSION:
            checkpoint, problem = _check_inclusion(proof, keys)
        elif isinstance(proof, Mapping) and proof["proof"] == CONSISTENCY:
            checkpoint, problem = _check_growth(proof, keys)
        if not problem:
            return checkpoint
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        problem = "it is not a proof of a ledger"
    raise LedgerBroken(
        f"The proof does not hold: {problem}.", "Ask for a new one, and compare its checkpoint with a witness."
    )


def _check_inclusion(proof: Mapping[str, Any], keys: Sequence[PublicKey]) -> tuple[Checkpoint, str]:
    checkpoint = _read_note(proof["checkpoint"], keys)
    fields = proof["entry"]
    if set(fields) != set(Entry.__dataclass_fields__):
        return checkpoint, "its entry has other fields than an entry"
    entry = entry_from(fields)
    if entry.digest() != entry.hash:
        return checkpoint, "its entry does not match its hash"
    if entry.number != proof["index"] or checkpoint.size != proof["size"]:
        return checkpoint, "its index or size differs from its entry or checkpoint"
    leaf, path = merkle.leaf_of(entry.hash), _decode(proof["hashes"])
    holds = merkle.verify_inclusion(leaf, proof["index"], checkpoint.size, path, checkpoint.root)
    return checkpoint, "" if holds else "its hashes do not lead from the entry to the checkpoint"


def _check_growth(proof: Mapping[str, Any], keys: Sequence[PublicKey]) -> tuple[Checkpoint, str]:
    earlier, checkpoint = _read_note(proof["from"], keys), _read_note(proof["checkpoint"], keys)
    if earlier.origin != checkpoint.origin:
        return checkpoint, "its checkpoints are of different ledgers"
    path = _decode(proof["hashes"])
    holds = merkle.verify_consistency(earlier.size, checkpoint.size, path, earlier.root, checkpoint.root)
    return checkpoint, "" if holds else "its hashes do not lead from the earlier checkpoint to the later one"


def _read_note(note: str, keys: Sequence[PublicKey]) -> Checkpoint:
    return notation.verify_note(note, keys) if keys else notation.parse(note)


def _is_number(name: str) -> bool:
    return name.isdecimal() and len(name) < SHORTEST


def _encode(path: Sequence[bytes]) -> list[str]:
    return [base64.b64encode(hashed).decode() for hashed in path]


def _decode(path: Sequence[str]) -> list[bytes]:
    return [notation.decode(hashed) for hashed in path]


def to_text(proof: Mapping[str, Any]) -> str:
    """Return a proof as one line of JSON."""
    return canonical(dict(proof))
