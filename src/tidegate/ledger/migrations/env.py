"""Alembic's entry point; it runs on the connection that `tidegate.ledger.store` hands it."""

from alembic import context

from tidegate.ledger.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table="tidegate_version",
    transactional_ddl=True,
)
context.run_migrations()
