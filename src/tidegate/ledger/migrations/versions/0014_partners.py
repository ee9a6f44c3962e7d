"""Accounts that share persons, so that a charge to one of them counts in all."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "tidegate_partners",
        sa.Column("account", sa.Text, primary_key=True),
        sa.Column("partner", sa.Text, primary_key=True),
    )
