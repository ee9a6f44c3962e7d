"""Totals and limits of each account in all units: pure loss, zcdp and z."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "tidegate_totals",
        sa.Column("account", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("pure", "zcdp", "z", "pure_ceiling", "z_ceiling")),
    )
