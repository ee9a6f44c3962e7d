"""Contract checks for what you bring yourself. The built-in ones pass them all.

    from tidegate.testing import check_operator

    def test_my_operator_keeps_its_contract():
        check_operator(MyOperator(10, epsilon=1)).refuse()

contract.py      what a check finds, in words          chances.py    whether draws are as they should be, at a stated rate
operators.py     a way to randomize an answer          mechanisms.py a way to answer a question with noise
models.py        a model of a table                    judges.py     a test of released records
engines.py       a place where tables are              stores.py     a place where a ledger is
columns.py       a column type of such a place, with values that are hard on it
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
