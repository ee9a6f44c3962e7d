"""Rate limits that the processes of a service share. On Postgres the table is not logged: it can be lost."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0014"


def upgrade() -> None:
    is_postgres = op.get_bind().dialect.name == "postgresql"
    op.create_table(
        "tidegate_limits",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("level", sa.Float, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("granted", sa.Integer, nullable=False),
        prefixes=["UNLOGGED"] if is_postgres else [],
    )
