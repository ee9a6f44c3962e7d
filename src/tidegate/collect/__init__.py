"""COLLECT: nothing true leaves; each person randomizes at home.

client.py      the person's side: randomize, remember, say what is given away (pure Python, no arrays)
mechanisms/    operators, one file each          report.py     what leaves, and why one is refused
coding.py      values <-> codes                  memory.py     what a client remembers      aloud.py   in words
measures.py    all privacy measures at once      adviser.py    which operator, with which parameters
channels.py    operators as arrays               bulk.py       many reports at once
matching.py    what reconstruction needs of one  expectations.py   what so many reports can show
reconstruct/   distributions from counts of reports
survey.py      one collection: submit, distribution, close     server.py     the story of a batch of reports
checking.py    which reports can be taken, as columns          distribution.py, pictures.py   what they say, how sure
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.collect.adviser import advise
    from tidegate.collect.client import Client
    from tidegate.collect.measures import Measures
    from tidegate.collect.survey import Survey
    from tidegate.operators import Operator
    from tidegate.policy.collection import operator_for

_WHERE = {
    "Client": "collect.client",
    "Measures": "collect.measures",
    "Operator": "operators",
    "Survey": "collect.survey",
    "advise": "collect.adviser",
    "operator_for": "policy.collection",
}
__all__ = ["Client", "Measures", "Operator", "Survey", "advise", "operator_for"]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: a client stays without arrays."""
    if name not in _WHERE:
        raise AttributeError(f"module 'tidegate.collect' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tidegate.{_WHERE[name]}"), name)
