"""The state of each account's source, so that a stored answer can say whether the source changed since."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "tidegate_source_states",
        sa.Column("account", sa.Text, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("salt", "identity", "stamp")),
    )
