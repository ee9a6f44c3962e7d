"""A policy: what is publicly known of a data set, who is protected, and what is promised."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from tidegate.errors import PolicyUnreadable, UnknownColumn, Unsupported, did_you_mean
from tidegate.policy.attributes import Attribute, Key
from tidegate.policy.promises import Concealment, Identification, Loss
from tidegate.policy.unit import EachPerson, EachRow, Unit

VERSION = 1
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")


@dataclass(frozen=True)
class Dataset:
    """Names the data set (its account in the ledger) and says where it is and who is protected.

    `edition` names the state of the data ("2026-11"): a stored answer belongs to one, and all of them share the account.
    `rows` is the public number of rows, or of persons where the unit is a person. `source` and `ledger` say where
    things are; they may hold a password, so they are no part of the fingerprint and never go into the ledger.
    """

    name: str
    source: str = ""
    unit: Unit = field(default_factory=EachRow)
    rows: int | None = None
    ledger: str = ""
    edition: str = ""

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", dict(self.attributes))
        object.__setattr__(self, "concealments", dict(self.concealments))
        if not self.attributes:
            raise PolicyUnreadable("a policy needs at least one attribute.", "Add the section [attributes].")
        self._check_unit()
        self._check_identification()
        for name, promise in self.concealments.items():
            self._check_concealment(name, promise)

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
        for column in promise.releases:
            covered = column in (*promise.reveals, *promise.about)
            if not covered and not isinstance(self.attribute(column), Key):
                raise PolicyUnreadable(
                    f'"{column}" may not leave under [promise.concealment.{name}]: no test covers it.',
                    f"Add it to reveals, or take it out of releases (now: {', '.join(promise.releases)}).",
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
        place = {"source": self.dataset.source, "ledger": self.dataset.ledger}
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
        return {
            "version": VERSION,
            "dataset": dataset,
            "attributes": attributes,
            **({"promise": promises} if promises else {}),
        }

    def public_dict(self) -> dict[str, Any]:
        """`to_dict` without places and passwords, numbers as text: what the fingerprint covers and the ledger keeps."""
        content = self.to_dict()
        content["dataset"] = {k: v for k, v in content["dataset"].items() if k not in ("source", "ledger")}
        return _texts(content)  # type: ignore[no-any-return]

    @cached_property
    def fingerprint(self) -> str:
        """A SHA-256 name of everything that a promise depends on."""
        text = json.dumps(self.public_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _texts(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_texts(item) for item in value]
    return f"{value:f}" if isinstance(value, Decimal) else value
