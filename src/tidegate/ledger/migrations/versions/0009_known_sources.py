"""The sources that have an account, so that a second account over one of them is noticed."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    keys, values = ("location", "account", "ledger"), ("content", "stamp", "address")
    op.create_table(
        "tidegate_known_sources",
        *(sa.Column(name, sa.Text, primary_key=True) for name in keys),
        *(sa.Column(name, sa.Text, nullable=False) for name in values),
    )
