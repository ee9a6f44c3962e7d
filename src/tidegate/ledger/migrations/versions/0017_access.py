"""Access: makers and identities of tokens, sessions with idle times, one-time links, days of last use."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    for name in ("maker", "identity"):
        op.add_column("tidegate_tokens", sa.Column(name, sa.Text, nullable=False, server_default=sa.text("''")))
    op.drop_table("tidegate_signins")  # of at most 12 hours: everybody signs in again
    op.create_table(
        "tidegate_signins",
        sa.Column("id", sa.Text, primary_key=True),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("token", "method", "started", "seen", "expires", "renew", "lapse", "sealed")
        ),
    )
    op.create_table(
        "tidegate_links",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("expires", sa.Text, nullable=False),
    )
    op.create_table(
        "tidegate_token_uses",
        sa.Column("token", sa.Text, primary_key=True),
        sa.Column("day", sa.Text, nullable=False),
    )
