"""Totals by name and the least noisy answers; the first entry of a ledger is written by `tidegate.ledger.chain`."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "tidegate_shares",
        sa.Column("account", sa.Text, primary_key=True),
        sa.Column("who", sa.Text, primary_key=True),
        sa.Column("spent", sa.Text, nullable=False),
    )
    op.create_table(
        "tidegate_sources",
        sa.Column("account", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("charge", "result", "part")),
        sa.Column("noise", sa.Float, nullable=False),
        sa.Column("folds", sa.Integer, nullable=False),
    )
    op.create_index("tidegate_sources_result", "tidegate_sources", ["account", "folds", "result"])
