"""The vocabulary of policies: frozen values, without engine, clock or randomness.

attributes.py   public descriptions of columns           promises.py    identification and loss
policy.py       unit, policy and fingerprint             concealment.py promises of release desks
toml.py         policy <-> file                          changes.py     changes that are allowed after a charge
collection.py   questions randomized on the device       synthesis.py   cells of columns for synthetic tables
"""

from tidegate.policy.attributes import Attribute, Category, Grid, Integer, Items, Key, Numeric
from tidegate.policy.collection import Collection, Question
from tidegate.policy.concealment import Concealment, Profile
from tidegate.policy.policy import Dataset, EachPerson, EachRow, Policy, Unit
from tidegate.policy.promises import Identification, Loss
from tidegate.policy.synthesis import Follows, Shape, Shapes
from tidegate.policy.toml import parse_policy, read_policy, write_policy

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
