"""The service: who may come in, who is signed in, and what is at work."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "tidegate_tokens",
        sa.Column("id", sa.Text, primary_key=True),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("salt", "hash", "role", "name", "dataset", "record", "share", "made", "expires", "revoked")
        ),
    )
    op.create_table(
        "tidegate_signins",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("expires", sa.Text, nullable=False),
    )
    op.create_table(
        "tidegate_jobs",
        sa.Column("id", sa.Text, primary_key=True),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("dataset", "who", "request", "wanted", "state", "stage", "problem", "entry", "made", "worker")
        ),
        sa.Column("done", sa.BigInteger, nullable=False),
        sa.Column("of", sa.BigInteger, nullable=False),
        sa.Column("beat", sa.Float, nullable=False),
    )
    op.create_index("tidegate_jobs_request", "tidegate_jobs", ["dataset", "request"], unique=True)
    op.create_index("tidegate_jobs_state", "tidegate_jobs", ["state", "made"])
