"""A policy: what is publicly known of a data set, who is protected, and what is promised."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tidegate.errors import PolicyUnreadable, UnknownColumn, Unsupported, did_you_mean
from tidegate.policy.attributes import Attribute, Key
from tidegate.policy.collection import Collection
from tidegate.policy.concealment import Concealment
from tidegate.policy.fingerprint import fingerprint_of, texts
from tidegate.policy.promises import Identification, Loss
from tidegate.policy.synthesis import Shapes
from tidegate.policy.unit import EachPerson, EachRow, Unit

VERSION = 1
PLACES = ("source", "ledger", "reports")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")


@dataclass(frozen=True)
class Dataset:
    """Names the data set (its account in the ledger) and says where it is and who is protected.

    `edition` names the state of the data ("2026-11"): a stored answer belongs to one, and all of them share the account.
    `rows` is the public number of rows, or of persons where the unit is a person. `source`, `ledger` and `reports` (of
    collections) say where things are; they may hold a password, so they are no part of the fingerprint and never go into
    the ledger.
    """

    name: str
    source: str = ""
    unit: Unit = field(default_factory=EachRow)
    rows: int | None = None
    ledger: str = ""
    edition: str = ""
    reports: str = ""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise PolicyUnreadable(
                "a data set's name is a letter followed by letters, digits, or . _ - (63 at most).",
                'Write name = "people".',
            )
        if self.rows is not None and self.rows < 1:
            raise PolicyUnreadable(f"the public number of rows must be 1 or more; it is {self.rows}.")


@dataclass(frozen=True)
class Policy:
    """Attributes and promises of one data set. `Policy.fingerprint` names it in every ledger entry."""

    dataset: Dataset
    attributes: Mapping[str, Attribute]
    identification: Identification | None = None
    loss: Loss | None = None
    concealments: Mapping[str, Concealment] = field(default_factory=dict)
    collections: Mapping[str, Collection] = field(default_factory=dict)
    synthesis: Shapes = field(default_factory=Shapes)

    def __post_init__(self) -> None:
        self._check_types()
        object.__setattr__(self, "attributes", dict(self.attributes))
        object.__setattr__(self, "concealments", dict(self.concealments))
        object.__setattr__(self, "collections", dict(self.collections))
        if not self.attributes:
            raise PolicyUnreadable("a policy needs at least one attribute.", "Add the section [attributes].")
        self._check_unit()
        self._check_identification()
        for name, promise in self.concealments.items():
            self._check_concealment(name, promise)
        for name, collection in self.collections.items():
            self._check_collection(name, collection)
        self.synthesis.check(self.attributes)

    def _check_types(self) -> None:
        """Refuse an argument in another one's position by its name, before anything is made of it."""
        for name, kinds in ARGUMENTS.items():
            if not isinstance(getattr(self, name), kinds):
                raise PolicyUnreadable(
                    f"`{name}` of a policy cannot be of type {type(getattr(self, name)).__name__}.",
                    'Name the arguments: Policy(Dataset("people"), {"age": Integer(0, 120)}, loss=Loss(1)).',
                )
        strange = [name for name, attribute in self.attributes.items() if not isinstance(attribute, Attribute)]
        if strange:
            raise PolicyUnreadable(
                f'The attribute "{strange[0]}" cannot be of type {type(self.attributes[strange[0]]).__name__}.',
                'Describe each column, for example {"age": Integer(0, 120), "sex": Category(("f", "m"))}.',
            )

    def _check_unit(self) -> None:
        unit = self.dataset.unit
        if isinstance(unit, EachPerson) and not isinstance(self.attribute(unit.key), Key):
            raise PolicyUnreadable(
                f'the unit names the person by "{unit.key}", which is not a key.',
                f'Write {unit.key} = {{ kind = "key" }}.',
            )

    def _check_identification(self) -> None:
        promise = self.identification
        if promise is None:
            return
        for name in (*promise.protect, *promise.prior):
            if isinstance(self.attribute(name), Key):
                raise PolicyUnreadable(
                    f'"{name}" is a key: it has no values to guess among.', "Leave it out of protect."
                )
        if promise.worlds == "values" and not promise.protect:
            raise PolicyUnreadable(
                "the identification promise names no attribute to protect.",
                'Add protect = ["age"], or worlds = "persons".',
            )
        if promise.worlds == "persons":
            self._check_persons(promise)
        for name, prior in promise.prior.items():
            if len(prior) not in (1, self.attribute(name).size):
                raise PolicyUnreadable(
                    f'the prior of "{name}" has {len(prior)} probabilities for {self.attribute(name).size} values.',
                    "Give one for each value, or the largest alone.",
                )

    def _check_persons(self, promise: Identification) -> None:
        rows = self.dataset.rows
        if rows is None or (promise.population or 0) <= rows:
            raise PolicyUnreadable(
                'worlds = "persons" needs the public number of rows (persons), and a population larger than it.',
                f"Add rows = ... to [dataset]; the population is {promise.population:,}.",
            )
        if promise.known is not None and promise.known >= rows:
            raise PolicyUnreadable(f"known (rows that the adversary knows) must be below the {rows:,} rows there are.")

    def _check_concealment(self, name: str, promise: Concealment) -> None:
        for column in (*promise.reveals, *promise.about):
            if not self.attribute(column).countable:
                raise PolicyUnreadable(
                    f'"{column}" in [promise.concealment.{name}] is a key or a set: it has no bins to test.'
                )
        self._check_weights(name, promise)
        for column in promise.releases:
            covered = column in (*promise.reveals, *promise.about)
            if not covered and not isinstance(self.attribute(column), Key):
                raise PolicyUnreadable(
                    f'"{column}" may not leave under [promise.concealment.{name}]: no test covers it.',
                    f"Add it to reveals, or take it out of releases (now: {', '.join(promise.releases)}).",
                )

    def _check_weights(self, name: str, promise: Concealment) -> None:
        values, groups = self.cells(promise.reveals), self.cells(promise.about)
        given = {"baseline": (promise.baseline, values), "shares": (promise.shares, groups)}
        given |= {f"profiles.{title}": (profile.values, values) for title, profile in promise.profiles.items()}
        for title, (weights, wanted) in given.items():
            if weights and len(weights) != wanted:
                raise PolicyUnreadable(
                    f"[promise.concealment.{name}] {title} has {len(weights)} weights for {wanted} cells of "
                    f"{', '.join(promise.about if title == 'shares' else promise.reveals)}.",
                    "Give one for each value (or bin, where the attribute has bins; missing comes last where it is a value).",
                )

    def cells(self, columns: Sequence[str]) -> int:
        """How many groups some columns make together."""
        return math.prod(self.attribute(column).cells for column in columns)

    def _check_collection(self, name: str, collection: Collection) -> None:
        strange = [q.attribute for q in collection.questions.values() if self.attribute(q.attribute) != q.universe]
        if name != collection.name or strange:
            raise PolicyUnreadable(
                f"[collection.{name}] does not fit this policy.",
                f'Its name is "{collection.name}"; described otherwise here: {", ".join(strange) or "nothing"}.',
            )

    def attribute(self, name: str) -> Attribute:
        """The attribute of a column, or an error that suggests the nearest name."""
        try:
            return self.attributes[name]
        except KeyError:
            pass
        raise UnknownColumn(
            f'no column "{name}" in policy "{self.dataset.name}".',
            did_you_mean(name, self.attributes),
            column=name,
        )

    def countable(self, name: str) -> Attribute:
        """The attribute of a column that can be grouped by."""
        found = self.attribute(name)
        if found.countable:
            return found
        raise Unsupported(
            f'"{name}" cannot be grouped by: it {found.describe() if found.kind == "key" else "holds sets"}.'
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything the file says, as nested plain values."""
        place = {name: getattr(self.dataset, name) for name in PLACES}
        dataset: dict[str, Any] = {"name": self.dataset.name, **{k: v for k, v in place.items() if v}}
        if self.dataset.edition:
            dataset["edition"] = self.dataset.edition
        dataset["unit"] = self.dataset.unit.to_value()
        if self.dataset.rows is not None:
            dataset["rows"] = self.dataset.rows
        promises: dict[str, Any] = {}
        if self.identification:
            promises["identification"] = self.identification.to_dict()
        if self.loss:
            promises["loss"] = self.loss.to_dict()
        if self.concealments:
            promises["concealment"] = {name: promise.to_dict() for name, promise in self.concealments.items()}
        attributes = {name: attribute.to_dict() for name, attribute in self.attributes.items()}
        collections = {name: collection.to_dict() for name, collection in self.collections.items()}
        return {
            "version": VERSION,
            "dataset": dataset,
            "attributes": attributes,
            **({"promise": promises} if promises else {}),
            **({"collection": collections} if collections else {}),
            **({"synthesis": self.synthesis.to_dict()} if self.synthesis else {}),
        }

    def public_dict(self) -> dict[str, Any]:
        """`to_dict` without places and passwords, numbers as text: what the fingerprint covers and the ledger keeps."""
        content = self.to_dict()
        content["dataset"] = {k: v for k, v in content["dataset"].items() if k not in PLACES}
        return texts(content)  # type: ignore[no-any-return]

    @cached_property
    def described(self) -> Mapping[str, Any]:
        """`public_dict`, made once for what is asked often. To be read only."""
        return self.public_dict()

    @cached_property
    def fingerprint(self) -> str:
        """A SHA-256 name of everything that a promise depends on."""
        return fingerprint_of(self.public_dict())


ARGUMENTS: dict[str, tuple[type, ...]] = {
    "dataset": (Dataset,),
    "attributes": (Mapping,),
    "identification": (Identification, type(None)),
    "loss": (Loss, type(None)),
    "concealments": (Mapping,),
    "collections": (Mapping,),
    "synthesis": (Shapes,),
}
