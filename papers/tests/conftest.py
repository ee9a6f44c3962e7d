"""Fixtures that the tests of the papers share with those of the product."""

from cli.conftest import run
from conftest import public_data, pytest_collection, pytest_collection_modifyitems

__all__ = ["public_data", "pytest_collection", "pytest_collection_modifyitems", "run"]
