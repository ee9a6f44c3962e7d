"""Tidegate: publish data without revealing people.

    import tidegate as tg
    session = tg.open("people.toml")                            a policy; its ledger lies beside it
    session.preview(tg.mean("age"), error=0.2)                  what it would cost: free
    session.answer(tg.mean("age").by("sex"), rho=0.02)          charged, answered, recorded
    session.answer("SELECT sex, COUNT(*) FROM people GROUP BY sex", epsilon=0.1)
    session.synthesize(epsilon=1.0)[0].to_pandas()              an artificial table

The map, each line importing only from lines above it:

    errors       one exception tree, drawn in its docstring
    policy       the vocabulary: attributes, promises, who is protected, policy <-> TOML
    tables       table access through Ibis (DuckDB, Postgres, Spark)      noise       the only randomness
    accounting   events and their price, rho <-> epsilon, what is left    risk        measures
    ledger       the durable record
    answer       noisy statistics (release, collect and synthesize stand beside it)
    session      the front door: the same verbs for data here and for a served data set
    service      over HTTP                 cli         the command line
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.answer import (
        Answer,
        Answers,
        Preview,
        Query,
        count,
        distinct,
        histogram,
        max,
        mean,
        median,
        min,
        persons,
        quantile,
        regression,
        std,
        sum,
        variance,
    )
    from tidegate.errors import TidegateError
    from tidegate.policy import (
        Boolean,
        Category,
        Concealment,
        Dataset,
        Date,
        Decimal,
        EachPerson,
        EachRow,
        Follows,
        Grid,
        Hiding,
        Identification,
        Integer,
        Items,
        Key,
        Loss,
        Order,
        Policy,
        Profile,
        Shape,
        Shapes,
        Text,
        Time,
        Timestamp,
    )
    from tidegate.policy.predicates import col
    from tidegate.session import Session
    from tidegate.session import open_session as open
    from tidegate.session.protocol import DataSession
    from tidegate.session.remote import connect
    from tidegate.session.synthesizer import Synthesizer
    from tidegate.synthesize.files import load_model
    from tidegate.synthesize.result import SyntheticTables

_POLICY = (
    "Boolean Category Concealment Dataset Date Decimal EachPerson EachRow Follows Grid Hiding Identification Integer"
)
_POLICY += " Items Key Loss Order Policy Profile Shape Shapes Text Time Timestamp"
_ANSWER = "Answer Answers Preview Query count distinct histogram max mean median min persons quantile regression std sum variance"
_WHERE = {
    **dict.fromkeys(_POLICY.split(), "tidegate.policy"),
    **dict.fromkeys(_ANSWER.split(), "tidegate.answer"),
    "col": "tidegate.policy.predicates",
    "connect": "tidegate.session.remote",
    "DataSession": "tidegate.session.protocol",
    "Session": "tidegate.session",
    "open": "tidegate.session:open_session",
    "Synthesizer": "tidegate.session.synthesizer",
    "SyntheticTables": "tidegate.synthesize.result",
    "load_model": "tidegate.synthesize.files",
    "TidegateError": "tidegate.errors",
}
__all__ = [
    "Answer",
    "Answers",
    "Boolean",
    "Category",
    "Concealment",
    "DataSession",
    "Dataset",
    "Date",
    "Decimal",
    "EachPerson",
    "EachRow",
    "Follows",
    "Grid",
    "Hiding",
    "Identification",
    "Integer",
    "Items",
    "Key",
    "Loss",
    "Order",
    "Policy",
    "Preview",
    "Profile",
    "Query",
    "Session",
    "Shape",
    "Shapes",
    "Synthesizer",
    "SyntheticTables",
    "Text",
    "TidegateError",
    "Time",
    "Timestamp",
    "col",
    "connect",
    "count",
    "distinct",
    "histogram",
    "load_model",
    "max",
    "mean",
    "median",
    "min",
    "open",
    "persons",
    "quantile",
    "regression",
    "std",
    "sum",
    "variance",
]
__version__ = "0.2.0"


if not TYPE_CHECKING:  # a type checker must see the names above, and no others

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first used: `import tidegate` and `tidegate --help` stay quick."""
        if name not in _WHERE:
            raise AttributeError(f"module 'tidegate' has no attribute {name!r}")
        module, _, inside = _WHERE[name].partition(":")
        value = getattr(importlib.import_module(module), inside or name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__", "errors"})
