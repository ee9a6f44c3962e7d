"""Contract checks for your own extensions. The built-in ones pass them all.

    from tidegate.testing import check_operator

    def test_my_operator_keeps_its_contract():
        check_operator(MyOperator(10, epsilon=1)).refuse()

Each `check_` function returns a `Contract` with one `Check` for each clause. There is one for operators, mechanisms, models,
tests of released records, engines, column types of an engine, and stores of a ledger.
"""

from tidegate.testing.columns import HostileColumn, check_hostile_columns
from tidegate.testing.contract import Check, Contract, ContractBroken
from tidegate.testing.engines import check_engine
from tidegate.testing.mechanisms import check_mechanism
from tidegate.testing.models import check_model
from tidegate.testing.operators import check_operator
from tidegate.testing.release_tests import LiteralGate, check_release_test
from tidegate.testing.stores import check_store

__all__ = [
    "Check",
    "Contract",
    "ContractBroken",
    "HostileColumn",
    "LiteralGate",
    "check_engine",
    "check_hostile_columns",
    "check_mechanism",
    "check_model",
    "check_operator",
    "check_release_test",
    "check_store",
]
