"""Reports that were received and wait for their batch."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "tidegate_waiting",
        sa.Column("collection", sa.Text, primary_key=True),
        sa.Column("id", sa.LargeBinary, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
