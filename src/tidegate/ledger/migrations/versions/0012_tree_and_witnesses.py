"""The Merkle tree over the entries, and the addresses of witnesses."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "tidegate_tiles",
        sa.Column("level", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("index", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    op.create_table("tidegate_witnesses", sa.Column("address", sa.Text, primary_key=True))
