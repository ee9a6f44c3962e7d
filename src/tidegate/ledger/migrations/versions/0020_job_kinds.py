"""Kinds, attempts and reports of jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.add_column("tidegate_jobs", sa.Column("kind", sa.Text, nullable=False, server_default="synthesis"))
    op.add_column("tidegate_jobs", sa.Column("attempts", sa.Integer, nullable=False, server_default="0"))
    op.add_column("tidegate_jobs", sa.Column("report", sa.Text, nullable=False, server_default=""))
