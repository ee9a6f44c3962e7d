"""The vocabulary: frozen values, no engine, no clock, no randomness.

attributes.py   what is publicly known of a column     promises.py   what is promised
unit.py         who is protected                       policy.py     all of it, with a fingerprint
toml.py         policy <-> file                        exact.py      numbers as people write them
changes.py      what may change after something was spent
collection.py   what each person randomizes at home    synthesis.py  how columns are cut for synthetic tables
"""

from tidegate.policy.attributes import Attribute, Category, Grid, Integer, Items, Key, Numeric
from tidegate.policy.collection import Collection, Question
from tidegate.policy.concealment import Concealment, Profile
from tidegate.policy.policy import Dataset, Policy
from tidegate.policy.promises import Identification, Loss
from tidegate.policy.synthesis import Follows, Shape, Shapes
from tidegate.policy.toml import parse_policy, read_policy, write_policy
from tidegate.policy.unit import EachPerson, EachRow, Unit

__all__ = [
    "Attribute",
    "Category",
    "Collection",
    "Concealment",
    "Dataset",
    "EachPerson",
    "EachRow",
    "Follows",
    "Grid",
    "Identification",
    "Integer",
    "Items",
    "Key",
    "Loss",
    "Numeric",
    "Policy",
    "Profile",
    "Question",
    "Shape",
    "Shapes",
    "Unit",
    "parse_policy",
    "read_policy",
    "write_policy",
]
