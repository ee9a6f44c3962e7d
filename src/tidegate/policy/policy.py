"""A policy: the public description of a data set, the protected unit, and the promises."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from tidegate.errors import PolicyUnreadable, UnknownColumn, Unsupported, did_you_mean
from tidegate.exact import plain, say
from tidegate.frames import Row, Rows
from tidegate.policy.attributes import Attribute, Key, Numeric
from tidegate.policy.categories import Category, Text
from tidegate.policy.collection import Collection
from tidegate.policy.concealment import Concealment
from tidegate.policy.fingerprint import fingerprint_of, texts
from tidegate.policy.hiding import Hiding, JointHiding, check_hidings, join_hidings
from tidegate.policy.poll_section import poll_dict
from tidegate.policy.promises import FINEST_DEFAULT, Identification, Loss
from tidegate.policy.row_source import ReferenceColumn, RowSource, flat_policy, reference_codes
from tidegate.policy.synthesis import Shapes
from tidegate.policy.tables import (
    LinkedTable,
    check_linked_synthesis,
    check_records,
    check_tables,
    resolve_column,
    with_full_names,
)

VERSION = 2  # of new policies; version 1 has no default windows
VERSIONS = (1, 2)
LOCATIONS = ("source", "ledger", "reports", "witness")
MOST_LISTED = 8  # values of a category that a notebook shows
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")


@dataclass(frozen=True)
class EachRow:
    """Every row is one person."""

    @property
    def rows_per_person(self) -> int:
        return 1

    def describe(self) -> str:
        return "one row per person"

    def to_value(self) -> Any:
        return "row"


@dataclass(frozen=True)
class EachPerson:
    """A person is identified by a key column and counts with at most `at_most` rows.

    If a person has more rows, they are chosen by a keyed hash of their own content (`choice` is the key): the same rows on
    every engine, every time, regardless of other persons' rows. The key does not have to be secret.
    """

    key: str
    at_most: int
    choice: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.at_most, bool) or not isinstance(self.at_most, int) or self.at_most < 1:
            raise PolicyUnreadable(
                "`at_most`, a person's number of rows, must be a whole number of at least 1.",
                'Write unit = { person = "KEY COLUMN", at_most = 5 }.',
            )

    @property
    def rows_per_person(self) -> int:
        return self.at_most

    def describe(self) -> str:
        rows = "row" if self.at_most == 1 else "rows"
        return f'one person per "{self.key}", counted with at most {self.at_most:,} {rows}'

    def to_value(self) -> Any:
        choice = {"choice": self.choice} if self.choice else {}
        return {"person": self.key, "at_most": self.at_most, **choice}


Unit = EachRow | EachPerson


@dataclass(frozen=True)
class Dataset:
    """The name of the data set (its account in the ledger), its location, and the protected unit.

    `edition` names the state of the data ("2026-11"): a stored answer belongs to one edition, and all editions share the
    account. `rows` is the public number of rows, or of persons if the unit is a person; `records` is then about how many rows
    there are, for expected errors only. `source`, `ledger`, `reports` (of
    collections) and `witness` (of the ledger's checkpoints) are locations; they can contain a password, so they are not part of the fingerprint and are never written
    to the ledger. `shares_persons_with` names other accounts of the ledger that contain some of the same persons: a charge to
    one of them counts in all.
    """

    name: str
    source: str = ""
    unit: Unit = field(default_factory=EachRow)
    rows: int | None = None
    ledger: str = ""
    edition: str = ""
    reports: str = ""
    witness: tuple[str, ...] = ()
    shares_persons_with: tuple[str, ...] = ()
    records: int | None = None

    def __post_init__(self) -> None:
        names = self.shares_persons_with
        if len(set(names)) < len(names) or self.name in names or not all(NAME.fullmatch(name) for name in names):
            raise PolicyUnreadable(
                "`shares_persons_with` must list names of other data sets, each once.",
                'Write shares_persons_with = ["visits"].',
            )
        if not NAME.fullmatch(self.name):
            raise PolicyUnreadable(
                "The name of a data set must be a letter followed by letters, digits, or . _ - (at most 63 characters).",
                'Write name = "people".',
            )
        if self.rows is not None and self.rows < 1:
            raise PolicyUnreadable(f"`rows`, the public number of rows, must be at least 1, not {self.rows}.")
        check_records(self.records)
        if self.records is not None and isinstance(self.unit, EachRow):
            raise PolicyUnreadable(
                "`records` is only for data sets in which a person can have several rows.",
                "Remove it: `rows` is the number of rows if every row is one person.",
            )


@dataclass(frozen=True)
class Policy(Rows):
    """Attributes and promises of one data set. Every ledger entry contains `Policy.fingerprint`.

    `version` 2 gives long numeric columns a default window (see `window`); policies of version 1 keep their meaning. If there
    are `tables`, `attributes` are their columns by dotted name ("visits.cost"), and `relations` link foreign keys to keys.
    """

    dataset: Dataset
    attributes: Mapping[str, Attribute]
    identification: Identification | None = None
    loss: Loss | None = None
    concealments: Mapping[str, Concealment] = field(default_factory=dict)
    collections: Mapping[str, Collection] = field(default_factory=dict)
    synthesis: Shapes = field(default_factory=Shapes)
    version: int = VERSION
    tables: Mapping[str, LinkedTable] = field(default_factory=dict)
    relations: Mapping[str, str] = field(default_factory=dict)
    references: Mapping[str, ReferenceColumn] = field(default_factory=dict, repr=False)  # of `flat` policies
    hidings: Mapping[str, Hiding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_types()
        object.__setattr__(self, "attributes", dict(self.attributes))
        if self.tables or self.relations:
            self._link_tables()
        object.__setattr__(self, "concealments", dict(self.concealments))
        object.__setattr__(self, "hidings", dict(self.hidings))
        object.__setattr__(self, "collections", dict(self.collections))
        if not self.attributes and (self.dataset.source or not self.is_for_polls):
            raise PolicyUnreadable("A policy requires at least one attribute.", "Add the section [attributes].")
        self._check_unit()
        self._check_identification()
        for name, promise in self.release_promises.items():
            self._check_release(name, promise)
        if self.hidings:
            self._check_hidings()
        for name, collection in self.collections.items():
            self._check_collection(name, collection)
        self.synthesis.check(self.attributes)
        if self.tables:
            check_linked_synthesis(self)
        elif self.synthesis.linked:
            raise PolicyUnreadable("[synthesis] `linked` is for policies with several tables.", "Remove it.")

    def _link_tables(self) -> None:
        columns = {name: of for table in self.tables.values() for name, of in table.columns.items()}
        if self.attributes and self.attributes != columns:
            raise PolicyUnreadable("The attributes of a policy with tables are those of its tables.", "Leave them out.")
        for name, value in (
            ("attributes", columns),
            ("tables", dict(self.tables)),
            ("relations", dict(self.relations)),
        ):
            object.__setattr__(self, name, value)
        check_tables(self)
        object.__setattr__(self, "identification", with_full_names(self))

    def window(self, name: str) -> int:
        """Return the number of steps on either side of a value within which a guess of it counts as right.

        It is what the promise states in `within`. Otherwise it is 0 in a policy of version 1; from version 2 on it is as
        wide as needed for at most 100 distinguishable values: a wide range alone does not make a guess harder.
        """
        attribute, promise = self.attribute(name), self.identification
        if promise is None or not isinstance(attribute, Numeric):
            return 0
        if name in promise.within:
            return int(promise.within[name] / attribute.width)
        if self.version < 2 or attribute.size <= FINEST_DEFAULT:
            return 0
        return math.ceil((Fraction(attribute.size, FINEST_DEFAULT) - 1) / 2)

    def _check_types(self) -> None:
        """Refuse an argument in another one's position by name, before it is used."""
        for name, kinds in ARGUMENTS.items():
            if not isinstance(getattr(self, name), kinds):
                raise PolicyUnreadable(
                    f"`{name}` of a policy cannot be of type {type(getattr(self, name)).__name__}.",
                    'Name the arguments: Policy(Dataset("people"), {"age": Integer(0, 120)}, loss=Loss(1)).',
                )
        if self.version not in VERSIONS:
            raise PolicyUnreadable(
                f"The policy has version {self.version}, and this Tidegate reads versions 1 to {VERSION}.",
                "Install the version of Tidegate that wrote it.",
            )
        strange = [name for name, attribute in self.attributes.items() if not isinstance(attribute, Attribute)]
        if strange:
            raise PolicyUnreadable(
                f'The attribute "{strange[0]}" cannot be of type {type(self.attributes[strange[0]]).__name__}.',
                'Describe each column, for example {"age": Integer(0, 120), "sex": Category(("f", "m"))}.',
            )

    def _check_unit(self) -> None:
        unit = self.dataset.unit
        if not self.tables and isinstance(unit, EachPerson) and not isinstance(self.attribute(unit.key), Key):
            raise PolicyUnreadable(
                f'The unit identifies persons by "{unit.key}", which is not a key.',
                f'Write {unit.key} = {{ kind = "key" }}.',
            )

    def _check_identification(self) -> None:
        promise = self.identification
        if promise is None:
            return
        for name in (*promise.protect, *promise.prior):
            if isinstance(self.attribute(name), Key):
                raise PolicyUnreadable(
                    f'"{name}" is a key, so it has no values to protect.', "Remove it from `protect`."
                )
            if isinstance(self.attribute(name), Text):
                raise PolicyUnreadable(
                    f'"{name}" is text without a list of values, so the number of its values is unknown.',
                    'Remove it from `protect`, or list its values: kind = "category".',
                )
        if promise.worlds == "values" and not promise.protect:
            raise PolicyUnreadable(
                "The identification promise names no attribute to protect.",
                'Add protect = ["age"], or worlds = "persons".',
            )
        if promise.worlds == "persons":
            self._check_persons(promise)
        for name, width in promise.within.items():
            self._check_within(promise, name, width)
        for name, prior in promise.prior.items():
            if len(prior) not in (1, self.attribute(name).size):
                raise PolicyUnreadable(
                    f'The prior of "{name}" has {len(prior)} probabilities for {self.attribute(name).size} values.',
                    "Write one for each value, or only the largest.",
                )

    def _check_within(self, promise: Identification, name: str, width: Fraction) -> None:
        attribute = self.attribute(name)
        if not isinstance(attribute, Numeric) or name not in promise.protect:
            raise PolicyUnreadable(
                f'`within` names "{name}", which is not a protected numeric column.',
                "Name columns of `protect` with numbers only.",
            )
        if width < 0 or (width / attribute.width).denominator != 1:
            raise PolicyUnreadable(
                f'`within` of "{name}" must be a multiple of its step, {say(attribute.width)}, not {say(width)}.',
                f"Write, for example, within = {{ {name} = {plain(10 * attribute.width)} }}.",
            )

    def _check_persons(self, promise: Identification) -> None:
        rows = self.dataset.rows
        if rows is None or (promise.population or 0) <= rows:
            raise PolicyUnreadable(
                'worlds = "persons" requires the public number of rows (persons), and a larger population.',
                f"Add rows = ... to [dataset]; the population is {promise.population:,}.",
            )
        if promise.known is not None and promise.known >= rows:
            raise PolicyUnreadable(
                f"`known`, the number of rows that the adversary knows, must be below the {rows:,} rows of the data set."
            )

    @property
    def release_promises(self) -> Mapping[str, Concealment | Hiding]:
        """The promises of release desks, of either kind."""
        return {**self.concealments, **self.hidings}

    @cached_property
    def hiding(self) -> JointHiding | None:
        """All hiding promises as one, because they share one selection; None if there is none."""
        return join_hidings(self.hidings) if self.hidings else None

    def _check_hidings(self) -> None:
        check_hidings(self.hidings, has_concealments=bool(self.concealments))
        joint = join_hidings(self.hidings)
        mix, values = joint.promise.mix, self.cells(joint.reveals)
        if not isinstance(mix, str) and len(mix) != values:
            raise PolicyUnreadable(
                f"`mix` has {len(mix)} shares for {values} cells of {', '.join(joint.reveals)}.",
                "Write one for each value (or bin, if the attribute has bins; missing comes last if it is a value). The last "
                "of several columns changes fastest.",
            )

    def _check_release(self, name: str, promise: Concealment | Hiding) -> None:
        reason = "the promise does not cover it" if isinstance(promise, Hiding) else "no test covers it"
        section = f"[promise.{'hiding' if isinstance(promise, Hiding) else 'concealment'}.{name}]"
        for column in (*promise.reveals, *promise.about):
            if not self.attribute(column).countable:
                raise PolicyUnreadable(f'"{column}" in {section} is a key or a set, so it has no bins to test.')
        if isinstance(promise, Concealment):
            self._check_weights(name, promise)
        for column in promise.releases:
            if isinstance(self.attribute(column), Text):
                raise PolicyUnreadable(
                    f'"{column}" cannot be released under {section}, because it is text without a list of values.',
                    'Declare it as kind = "category" with a public list, or name other columns in `releases`.',
                )
            covered = column in (*promise.reveals, *promise.about)
            if not covered and not isinstance(self.attribute(column), Key):
                raise PolicyUnreadable(
                    f'"{column}" cannot be released under {section}, because {reason}.',
                    f"Add it to `reveals`, or remove it from `releases` (now: {', '.join(promise.releases)}).",
                )

    def _check_weights(self, name: str, promise: Concealment) -> None:
        values, groups = self.cells(promise.reveals), self.cells(promise.about)
        weights_by_title = {"baseline": (promise.baseline, values), "shares": (promise.shares, groups)}
        weights_by_title |= {
            f"profiles.{title}": (profile.values, values) for title, profile in promise.profiles.items()
        }
        for title, (weights, cell_count) in weights_by_title.items():
            if weights and len(weights) != cell_count:
                raise PolicyUnreadable(
                    f"[promise.concealment.{name}] {title} has {len(weights)} weights for {cell_count} cells of "
                    f"{', '.join(promise.about if title == 'shares' else promise.reveals)}.",
                    "Write one for each value (or bin, if the attribute has bins; missing comes last if it is a value).",
                )

    def cells(self, columns: Sequence[str]) -> int:
        """Return the number of groups of several columns together."""
        return math.prod(self.attribute(column).cells for column in columns)

    def _check_collection(self, name: str, collection: Collection) -> None:
        questions = collection.questions.values() if collection.poll is None else ()  # a poll has its own attributes
        strange = [q.attribute for q in questions if self.attribute(q.attribute) != q.universe]
        if name != collection.name or strange:
            raise PolicyUnreadable(
                f"[collection.{name}] does not fit this policy.",
                f'Its name is "{collection.name}"; attributes with another description here: {", ".join(strange) or "none"}.',
            )

    @property
    def polls(self) -> dict[str, Collection]:
        """The collections that are polls."""
        return {name: collection for name, collection in self.collections.items() if collection.poll is not None}

    @property
    def is_for_polls(self) -> bool:
        """Whether the policy describes no table and promises nothing about one: it can have polls only."""
        promises = (self.identification, self.loss, self.concealments, self.hidings, self.tables)
        return not self.attributes and not any(promises)

    def attribute(self, name: str) -> Attribute:
        """Return the attribute of a column, or raise an error that suggests the nearest name."""
        try:
            return self.attributes[resolve_column(self, name)]
        except KeyError:
            pass
        raise UnknownColumn(
            f'The policy "{self.dataset.name}" has no column "{name}".',
            did_you_mean(name, self.attributes),
            column=name,
        )

    def reference_codes(self, name: str) -> tuple[str, tuple[int | None, ...]]:
        """Return the foreign key of a reference column, and the column's code for every code of that key."""
        return reference_codes(self, name)

    def flat(self, rows: RowSource) -> Policy:
        """Return the policy of some rows of linked tables as one table. Charges belong to the whole policy."""
        if rows not in self._flat:
            self._flat[rows] = flat_policy(self, rows)
        return self._flat[rows]

    @cached_property
    def _flat(self) -> dict[RowSource, Policy]:
        return {}

    def countable(self, name: str) -> Attribute:
        """Return the attribute of a column, or raise Unsupported if tables cannot be grouped by it."""
        attribute = self.attribute(name)
        if attribute.countable:
            return attribute
        reasons = {"key": attribute.describe(), "text": "is text without a list of values or buckets"}
        raise Unsupported(f'Tables cannot be grouped by "{name}": it {reasons.get(attribute.kind, "contains sets")}.')

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the policy file as nested plain values."""
        locations = {name: getattr(self.dataset, name) for name in LOCATIONS}
        dataset: dict[str, Any] = {
            "name": self.dataset.name,
            **{k: list(v) if k == "witness" else v for k, v in locations.items() if v},
        }
        if self.dataset.edition:
            dataset["edition"] = self.dataset.edition
        if self.dataset.shares_persons_with:
            dataset["shares_persons_with"] = list(self.dataset.shares_persons_with)
        dataset["unit"] = self.dataset.unit.to_value()
        if self.dataset.rows is not None:
            dataset["rows"] = self.dataset.rows
        if self.dataset.records is not None:
            dataset["records"] = self.dataset.records
        promises: dict[str, Any] = {}
        if self.identification:
            promises["identification"] = self.identification.to_dict()
        if self.loss:
            promises["loss"] = self.loss.to_dict()
        if self.concealments:
            promises["concealment"] = {name: promise.to_dict() for name, promise in self.concealments.items()}
        if self.hidings:
            promises["hiding"] = {name: promise.to_dict() for name, promise in self.hidings.items()}
        attributes: dict[str, Any] = {name: attribute.to_dict() for name, attribute in self.attributes.items()}
        links: dict[str, Any] = {}
        if self.tables:
            links = {"tables": {name: table.to_dict() for name, table in self.tables.items()}}
            links |= {"relations": dict(self.relations)} if self.relations else {}
            attributes = {
                name: {column: of.to_dict() for column, of in table.attributes.items()}
                for name, table in self.tables.items()
            }
        collections = {name: of.to_dict() for name, of in self.collections.items() if of.poll is None}
        polls = {name: poll_dict(of) for name, of in self.polls.items()}
        return {
            "version": self.version,
            "dataset": dataset,
            **links,
            "attributes": attributes,
            **({"promise": promises} if promises else {}),
            **({"collection": collections} if collections else {}),
            **({"poll": polls} if polls else {}),
            **({"synthesis": self.synthesis.to_dict()} if self.synthesis else {}),
        }

    def rows(self) -> list[Row]:
        """Return one dictionary per column: its kind, what it can contain, and what a missing value means."""
        protected = self.identification.protect if self.identification else ()
        return [
            {
                "column": name,
                "kind": attribute.kind,
                "values": attribute.describe(),
                "size": attribute.size or None,
                "missing": getattr(attribute, "missing", None),
                "protected": name in protected,
            }
            for name, attribute in self.attributes.items()
        ]

    def _kinds(self) -> dict[str, type]:
        return {"size": int, "missing": str}

    def _repr_html_(self) -> str:
        from tidegate.html.notebook import show, table_of

        units = "persons" if isinstance(self.dataset.unit, EachPerson) else "rows"
        rows = f"{self.dataset.rows:,} {units}, " if self.dataset.rows is not None else ""
        rows += f"about {self.dataset.records:,} rows, " if self.dataset.records is not None else ""
        promises = [str(promise) for promise in (self.identification, self.loss) if promise]
        promises += [f"released records ({name}): {promise}" for name, promise in self.release_promises.items()]
        promises += [f"collection {name}: randomized on the device" for name in self.collections]
        words = {"value": "a value of their own", "lowest": "the lowest value"}
        columns = [
            {
                **row,
                "values": _shown_values(self.attributes[row["column"]]),
                "missing": words.get(row["missing"], row["missing"]),
                "protected": "protected" if row["protected"] else "",
            }
            for row in self.rows()
        ]
        headers = {"column": "column", "values": "values", "missing": "missing values are", "protected": ""}
        return show(
            {
                "title": f"Policy of {self.dataset.name}",
                "caption": f"{rows}{self.dataset.unit.describe()}.",
                "tables": [table_of(columns, headers)],
                "notes": [f"Promised: {promise}." for promise in promises] or ["Nothing is promised."],
            }
        )

    def public_dict(self) -> dict[str, Any]:
        """Return `to_dict` without locations, numbers as text: the fingerprint covers it and the ledger stores it."""
        content = self.to_dict()
        content["dataset"] = {k: v for k, v in content["dataset"].items() if k not in LOCATIONS}
        if self.tables:
            content["tables"] = {name: table.public_dict() for name, table in self.tables.items()}
        return texts(content)  # type: ignore[no-any-return]

    @cached_property
    def described(self) -> Mapping[str, Any]:
        """`public_dict`, computed once. Read only."""
        return self.public_dict()

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of everything that a promise depends on."""
        return fingerprint_of(self.public_dict())


def _shown_values(attribute: Attribute) -> str:
    """Return what a column can contain: a short list itself."""
    listed = attribute.values if type(attribute) is Category and len(attribute.values) <= MOST_LISTED else ()
    return ", ".join(map(str, listed)) or attribute.describe()


ARGUMENTS: dict[str, tuple[type, ...]] = {
    "dataset": (Dataset,),
    "attributes": (Mapping,),
    "identification": (Identification, type(None)),
    "loss": (Loss, type(None)),
    "concealments": (Mapping,),
    "hidings": (Mapping,),
    "collections": (Mapping,),
    "synthesis": (Shapes,),
    "version": (int,),
    "tables": (Mapping,),
    "relations": (Mapping,),
}
