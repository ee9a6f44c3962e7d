"""Invitations to polls: the hashes of single-use codes with the signature that each gave, and the spent tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "tidegate_invitations",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("code", sa.LargeBinary, primary_key=True),
        sa.Column("blinded", sa.LargeBinary, nullable=False),
        sa.Column("signature", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "tidegate_spent_tokens",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("nonce", sa.LargeBinary, primary_key=True),
        sa.Column("entry", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
