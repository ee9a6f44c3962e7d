"""Collections: counts of randomized reports, and the ids of those that were taken."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "tidegate_counts",
        sa.Column("opened", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("question", sa.Text, primary_key=True),
        sa.Column("reports", sa.BigInteger, nullable=False),
        sa.Column("counts", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "tidegate_report_ids",
        sa.Column("opened", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("id", sa.LargeBinary, primary_key=True),
        sqlite_with_rowid=False,
    )
