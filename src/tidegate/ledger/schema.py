"""The tables of the ledger, the same on SQLite and Postgres. Only migrations create or change them."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, MetaData, Table, Text

REVISION = "0001"

TEXTS = (
    "at",
    "account",
    "kind",
    "policy",
    "request",
    "question",
    "amount",
    "spent",
    "ceiling",
    "body",
    "previous",
    "hash",
)

metadata = MetaData()

entries = Table(
    "tidegate_entries",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    *(Column(name, Text, nullable=False) for name in TEXTS),
    Index("tidegate_entries_account", "account", "number"),
    Index("tidegate_entries_question", "account", "question"),
    # one charge and one result for a request, whoever races whom
    Index("tidegate_entries_request", "account", "kind", "request", unique=True),
)

results = Table(
    "tidegate_results",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),  # of the entry that recorded it
    Column("payload", Text, nullable=False),
)
