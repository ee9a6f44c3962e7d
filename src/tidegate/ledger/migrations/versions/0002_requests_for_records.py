"""Requests for records: who left, who waits."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

LIVE = sa.text("state <> 'withdrawn'")


def upgrade() -> None:
    op.create_table(
        "tidegate_requests",
        sa.Column("account", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("cells", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("place", sa.BigInteger),
        sa.Column("entry", sa.Integer, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("nonce", sa.Text, nullable=False),
    )
    op.create_index("tidegate_requests_entry", "tidegate_requests", ["account", "entry"])
    op.create_index("tidegate_requests_state", "tidegate_requests", ["account", "state", "number"])
    op.create_index("tidegate_requests_place", "tidegate_requests", ["account", "place"])
    op.create_index(
        "tidegate_requests_key",
        "tidegate_requests",
        ["account", "key"],
        unique=True,
        sqlite_where=LIVE,
        postgresql_where=LIVE,
    )
    op.create_table(
        "tidegate_secrets",
        sa.Column("account", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
