"""The vocabulary of policies: frozen values, without engine, clock or randomness.

attributes.py   public descriptions of numbers, keys     promises.py    identification and loss
categories.py   of lists and text                        calendar.py    of dates and times
kinds.py        lines of [attributes]                    predicates.py  conditions on rows
policy.py       unit, policy and fingerprint             concealment.py promises of release desks
hiding.py       the promise that hides a group
toml.py         policy <-> file                          changes.py     changes that are allowed after a charge
collection.py   questions randomized on the device       synthesis.py   cells of columns for synthetic tables
tables.py       linked tables and their relations        row_source.py  the rows of a query on linked tables
references.py   content of public reference tables       orders.py      columns computed from others in synthetic tables
poll.py         wording and access of a poll             poll_section.py  [poll.NAME] <-> collection
"""

from tidegate.policy.attributes import Attribute, Decimal, Grid, Integer, Items, Key, Numeric
from tidegate.policy.calendar import Date, Moment, Time, Timestamp
from tidegate.policy.categories import Boolean, Category, Text
from tidegate.policy.collection import Collection, Question
from tidegate.policy.concealment import Concealment, Profile
from tidegate.policy.hiding import Hiding
from tidegate.policy.orders import Gap, Linked, Order
from tidegate.policy.policy import Dataset, EachPerson, EachRow, Policy, Unit
from tidegate.policy.poll import Poll, Wording
from tidegate.policy.promises import Identification, Loss
from tidegate.policy.row_source import RowSource, row_source, rows_for
from tidegate.policy.synthesis import Follows, Shape, Shapes
from tidegate.policy.tables import LinkedTable
from tidegate.policy.toml import parse_policy, read_policy, write_policy

__all__ = [
    "Attribute",
    "Boolean",
    "Category",
    "Collection",
    "Concealment",
    "Dataset",
    "Date",
    "Decimal",
    "EachPerson",
    "EachRow",
    "Follows",
    "Gap",
    "Grid",
    "Hiding",
    "Identification",
    "Integer",
    "Items",
    "Key",
    "Linked",
    "LinkedTable",
    "Loss",
    "Moment",
    "Numeric",
    "Order",
    "Policy",
    "Poll",
    "Profile",
    "Question",
    "RowSource",
    "Shape",
    "Shapes",
    "Text",
    "Time",
    "Timestamp",
    "Unit",
    "Wording",
    "parse_policy",
    "read_policy",
    "row_source",
    "rows_for",
    "write_policy",
]
