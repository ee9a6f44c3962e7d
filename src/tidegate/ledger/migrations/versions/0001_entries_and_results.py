"""Entries chained by hash, and the results they recorded."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

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


def upgrade() -> None:
    op.create_table(
        "tidegate_entries",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in TEXTS),
    )
    op.create_index("tidegate_entries_account", "tidegate_entries", ["account", "number"])
    op.create_index("tidegate_entries_question", "tidegate_entries", ["account", "question"])
    op.create_index("tidegate_entries_request", "tidegate_entries", ["account", "kind", "request"], unique=True)
    op.create_table(
        "tidegate_results",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("payload", sa.Text, nullable=False),
    )
