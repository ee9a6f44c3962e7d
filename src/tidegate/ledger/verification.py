"""The verification of a ledger in its database, as streams. The memory that it takes does not grow with the entries."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, select

from tidegate.ledger import schema, stream
from tidegate.ledger.verification_state import VerificationState
from tidegate.ledger.verify import Verdict, verify


def verify_stored(
    connection: Connection, *, head: str = "", since: Path | None = None, save: Path | None = None
) -> Verdict:
    """Verify the ledger in the connection's view.

    Args:
        head: A hash that was noted earlier.
        since: The file of an earlier verification. The hashes of its entries are compared, and only later entries are
            replayed.
        save: A new file for the state of this verification.

    Raises:
        LedgerBroken: The entries that were verified earlier differ.
        LedgerUnavailable: A file cannot be read or written.
    """
    earlier = VerificationState.load(since) if since is not None else None
    if earlier is not None and earlier.compare(connection, head):
        head = ""
    snapshot = stream.snapshot(connection, since=earlier.number if earlier is not None else -1)
    has_tiles = connection.dialect.has_table(connection, schema.tiles.name)
    tiles = [tuple(row) for row in connection.execute(select(schema.tiles))] if has_tiles else None
    has_pairs = connection.dialect.has_table(connection, schema.partners.name)
    pairs = [tuple(row) for row in connection.execute(select(schema.partners))] if has_pairs else None
    return verify(*snapshot, head=head, tiles=tiles, pairs=pairs, since=earlier, save=save)
