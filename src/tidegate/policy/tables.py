"""Several tables of one data set: a person table, event tables and reference tables.

Private tables share the person key; reference tables are public. Columns have dotted names ("patients.sex"). A query is about
the rows of one `RowSource` (row_source.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate.errors import PolicyUnreadable, UnknownColumn, did_you_mean
from tidegate.policy.attributes import Attribute, Key
from tidegate.policy.references import (
    MOST_ROWS,
    Content,
    can_be_foreign_key,
    content_digest,
    countable_columns,
    read_content,
)
from tidegate.policy.section import Section, text, whole, yes_or_no

if TYPE_CHECKING:
    from tidegate.policy.policy import Policy

MOST_COPIES = 8  # columns of the person table beside those of a table of events
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
MANY_TO_MANY = "With n rows on one value, one more row would add 2n + 1 pairs, so no noise could hide it."


@dataclass(frozen=True)
class LinkedTable:
    """One table of a policy: with one row per person, with several (events), or public (`reference`).

    `content` holds the codes of a reference table. A policy from a ledger has only their `digest`. `records` is about how many
    rows a table of events has, for expected errors only.
    """

    name: str
    source: str
    attributes: Mapping[str, Attribute]
    rows_per_person: int | None = None
    reference: bool = False
    content: Content | None = None
    digest: str = ""
    records: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", dict(self.attributes))
        if not NAME.fullmatch(self.name):
            raise PolicyUnreadable(
                f'"{self.name}" is not a name of a table: a letter followed by letters, digits, or _ is required.'
            )
        if not self.attributes:
            raise PolicyUnreadable(
                f'The table "{self.name}" has no columns.', f"Add the section [attributes.{self.name}]."
            )
        if self.rows_per_person not in (None, 1) or (self.reference and self.rows_per_person is not None):
            raise PolicyUnreadable(
                f'`rows_per_person` of the table "{self.name}" must be 1, or absent.',
                "Write rows_per_person = 1 for a table with one row per person; `at_most` in `unit` bounds the rows of other tables.",
            )
        check_records(self.records)
        if self.records is not None and (self.reference or self.rows_per_person == 1):
            raise PolicyUnreadable(
                f'`records` of the table "{self.name}" is only for tables in which a person can have several rows.',
                "Remove it.",
            )
        if self.content is not None:
            object.__setattr__(self, "digest", content_digest(countable_columns(self.attributes), self.content))

    @property
    def columns(self) -> dict[str, Attribute]:
        """The attributes by dotted name."""
        return {f"{self.name}.{column}": attribute for column, attribute in self.attributes.items()}

    @property
    def kind(self) -> str:
        """The role of the table as text."""
        if self.reference:
            return "public reference table"
        return "one row per person" if self.rows_per_person == 1 else "several rows per person"

    def to_dict(self) -> dict[str, Any]:
        """Return the table as its line in [tables]."""
        source = {"source": self.source} if self.source else {}
        if self.reference:
            return {**source, "reference": True}
        rows = {"rows_per_person": 1} if self.rows_per_person else {}
        return {**source, **rows, **({"records": self.records} if self.records is not None else {})}

    def public_dict(self) -> dict[str, Any]:
        """Return `to_dict` without the location, with the digest of a reference table's content."""
        content = {name: value for name, value in self.to_dict().items() if name != "source"}
        return {**content, **({"content": self.digest} if self.reference else {})}


def check_records(records: int | None) -> None:
    """Raise PolicyUnreadable if the number of records of persons is below 1."""
    if records is not None and records < 1:
        raise PolicyUnreadable(f"`records`, about how many rows there are, must be at least 1, not {records}.")


def read_tables(file: Section) -> dict[str, dict[str, Any]]:
    """Return the settings of every table in [tables]."""
    if "view" in file.names():
        raise PolicyUnreadable(
            "Views ([view.NAME]) are not supported.",
            "Remove the section; a query can join the tables itself: FROM visits LEFT JOIN patients USING (patient_id).",
        )
    section = file.section("tables")
    settings = {}
    for name in section.names():
        at = section.section(name)
        settings[name] = {
            "source": at.take("source", text, ""),
            "rows_per_person": at.take("rows_per_person", whole, None),
            "reference": at.take("reference", yes_or_no, False),
            "digest": at.take("content", text, ""),
            "records": at.take("records", whole, None),
        }
        at.done()
    return settings


def load_references(
    tables: Mapping[str, LinkedTable], relations: Mapping[str, str], folder: Path
) -> dict[str, LinkedTable]:
    """Return the tables with the content of the reference tables that a valid relation links; `check_tables` reports others."""
    columns = {name: of for table in tables.values() for name, of in table.columns.items()}
    loaded = dict(tables)
    for foreign, target in relations.items():
        table = tables.get(table_of(target))
        attribute = columns.get(foreign)
        if table is None or not table.reference or target not in columns or not can_be_foreign_key(attribute):
            continue
        path, key = folder / Path(table.source).expanduser(), target.partition(".")[2]
        content = read_content(table.name, path, table.attributes, key, attribute)  # type: ignore[arg-type]
        loaded[table.name] = replace(table, content=content)
        if table.digest not in ("", loaded[table.name].digest):
            raise PolicyUnreadable(
                f'The reference table "{table.name}" does not have the declared content ({table.digest[:12]}...).',
                f"Remove `content` from [tables.{table.name}], or restore the file.",
            )
    return loaded


def with_references(policy: Policy, folder: Path) -> Policy:
    """Return a policy that was built in Python with the content of its reference tables."""
    if all(table.content is not None for table in policy.tables.values() if table.reference):
        return policy
    return replace(policy, tables=load_references(policy.tables, policy.relations, folder))


def public_content(policy: Policy) -> dict[str, dict[str, list[int | None]]]:
    """Return the content of the reference tables as JSON values: the codes of every row, by the text of its key."""
    tables = {name: table.content for name, table in policy.tables.items() if table.content is not None}
    return {name: {key: list(codes) for key, codes in content.items()} for name, content in tables.items()}


def with_content(policy: Policy, content: Mapping[str, Mapping[str, list[int | None]]]) -> Policy:
    """Return a policy with the content of reference tables that `public_content` wrote."""
    tables = {
        name: replace(table, content={key: tuple(codes) for key, codes in content[name].items()})
        if name in content
        else table
        for name, table in policy.tables.items()
    }
    return replace(policy, tables=tables) if content else policy


def check_tables(policy: Policy) -> None:
    """Refuse tables and relations that no query could use, or that would void the row bound."""
    unit, private = policy.dataset.unit, private_tables(policy)
    if not hasattr(unit, "key"):
        raise PolicyUnreadable(
            "Linked tables require a person as the unit.", 'Write unit = { person = "KEY COLUMN", at_most = 5 }.'
        )
    if policy.dataset.source:
        raise PolicyUnreadable("A policy with [tables] has no source in [dataset].", "Name a source for each table.")
    if policy.dataset.records is not None:
        raise PolicyUnreadable(
            "A policy with [tables] has no `records` in [dataset].",
            'Write it beside a table of events: visits = { source = "visits.parquet", records = 30_000 }.',
        )
    for title, part in (
        ("promise.concealment", policy.concealments),
        ("promise.hiding", policy.hidings),
        ("collection", policy.collections),
    ):
        if part:
            raise PolicyUnreadable(
                f"A policy with several tables cannot have the section [{title}].",
                "Use a policy of its own with one table.",
            )
    if not private:
        raise PolicyUnreadable("The policy has reference tables only.", "Add a private table to [tables].")
    for name, table in policy.tables.items():
        if name != table.name:
            raise PolicyUnreadable(f'The table "{table.name}" is listed as "{name}".', "Use the same name twice.")
    for table in private.values():
        if not isinstance(table.attributes.get(unit.key), Key):
            raise PolicyUnreadable(
                f'The private table "{table.name}" has no person key "{unit.key}".',
                f'Write {unit.key} = {{ kind = "key" }} in [attributes.{table.name}], or mark a public table with reference = true.',
            )
    for foreign, target in policy.relations.items():
        _check_relation(policy, foreign, target, unit.key)
    for table in policy.tables.values():
        related = [foreign for foreign, target in policy.relations.items() if table_of(target) == table.name]
        if table.reference and len(related) != 1:
            raise PolicyUnreadable(
                f'The reference table "{table.name}" has {len(related)} relations; exactly one is required.',
                f'Add "TABLE.COLUMN" = "{table.name}.KEY" to [relations]; for a second foreign key, list the file again under another name.',
            )


def person_table(policy: Policy) -> str:
    """Return the private table that other private tables are related to; "" if there is none or more than one."""
    targets = {table_of(target) for target in policy.relations.values()} & {*private_tables(policy)}
    return targets.pop() if len(targets) == 1 else ""


def check_linked_synthesis(policy: Policy) -> None:
    """Refuse lines of [synthesis] that use columns of several tables, and copies that the person table cannot provide."""
    shapes, parent = policy.synthesis, person_table(policy)
    for name, parts in shapes.sources.items():
        if {table_of(part) for part in parts} != {table_of(name)}:
            raise PolicyUnreadable(
                f'[synthesis] "{name}" is computed from columns of another table.', "Remove the line."
            )
    related = {table_of(foreign) for foreign, target in policy.relations.items() if table_of(target) == parent}
    for child, link in shapes.linked.items():
        if not parent or child not in related:
            raise PolicyUnreadable(
                f'[synthesis] linked.{child}: "{child}" is not related to a table with one row per person.',
                "Add its relation to [relations], or remove the line.",
            )
        if len(link.copies) > MOST_COPIES or len({*link.copies}) != len(link.copies):
            raise PolicyUnreadable(
                f"[synthesis] linked.{child}: at most {MOST_COPIES} different columns can be copied."
            )
        for column in link.copies:
            name = f"{parent}.{column}"
            if name not in policy.attributes:
                raise UnknownColumn(
                    f'[synthesis] linked.{child}: the table "{parent}" has no column "{column}".',
                    did_you_mean(column, policy.tables[parent].attributes),
                    column=column,
                )
            if not policy.attributes[name].countable or name in shapes.leave_out or name in shapes.sources:
                raise PolicyUnreadable(
                    f'[synthesis] linked.{child}: "{column}" is not learned, so it cannot be copied.', "Remove it."
                )


def _check_relation(policy: Policy, foreign: str, target: str, key: str) -> None:
    for column in (foreign, target):
        if table_of(column) not in policy.tables:
            raise PolicyUnreadable(
                f'[relations] names the unknown table "{table_of(column)}" ("{column}").',
                did_you_mean(table_of(column), policy.tables),
            )
        if column not in policy.attributes:
            raise PolicyUnreadable(
                f'[relations] names the unknown column "{column}".', did_you_mean(column, policy.attributes)
            )
    left, right = policy.tables[table_of(foreign)], policy.tables[table_of(target)]
    if left.reference:
        raise PolicyUnreadable(
            f'The reference table "{left.name}" cannot have a foreign key ("{foreign}").',
            "Add its columns to the other reference table.",
        )
    if right.reference:
        if not can_be_foreign_key(policy.attributes[foreign]):
            raise PolicyUnreadable(
                f'"{foreign}" cannot be related to the reference table "{right.name}": it is not a listed value, a whole number or a date with at most {MOST_ROWS:,} values.',
                'Declare it as kind = "category", kind = "integer" or kind = "date".',
            )
    elif (foreign, target) != (f"{left.name}.{key}", f"{right.name}.{key}"):
        raise PolicyUnreadable(
            f'The relation "{foreign}" = "{target}" is not on the person key. {MANY_TO_MANY}',
            f'Private tables are joined by "{key}" only: write "{left.name}.{key}" = "{right.name}.{key}".',
        )
    elif right.rows_per_person != 1 or left.name == right.name:
        raise PolicyUnreadable(
            f'The relation "{foreign}" = "{target}" needs another table with one row per person. {MANY_TO_MANY}',
            "Relate a table to one with rows_per_person = 1.",
        )


def table_of(column: str) -> str:
    """Return the table of a dotted name."""
    return column.partition(".")[0]


def public_columns(policy: Policy) -> set[str]:
    """Return the columns of reference tables, by dotted name."""
    return {column for table in policy.tables.values() if table.reference for column in table.columns}


def private_tables(policy: Policy) -> dict[str, LinkedTable]:
    return {name: table for name, table in policy.tables.items() if not table.reference}


def resolve_column(policy: Policy, name: str) -> str:
    """Return the dotted name of a column; the table can be left out if one table has the column."""
    if name in policy.attributes or not policy.tables:
        return name
    matches = [column for column in policy.attributes if column.partition(".")[2] == name]
    keys = {
        target
        for foreign, target in policy.relations.items()
        if foreign in matches and policy.tables[table_of(target)].reference
    }
    matches = [
        column for column in matches if column not in keys
    ]  # the foreign key has the values of the reference table's key
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UnknownColumn(
            f'Several tables have a column "{name}".', f"Write one of: {', '.join(matches)}.", column=name
        )
    short = [column.partition(".")[2] for column in policy.attributes]
    raise UnknownColumn(
        f'The policy "{policy.dataset.name}" has no column "{name}".',
        did_you_mean(name, [*policy.attributes] if "." in name else [*dict.fromkeys(short)]),
        column=name,
    )


def with_full_names(policy: Policy) -> Any:
    """Return the identification promise with dotted names. Reference columns are public, so they cannot be protected."""
    promise = policy.identification
    if promise is None:
        return None
    for name in (*promise.protect, *promise.prior, *promise.within):
        if policy.tables[table_of(resolve_column(policy, name))].reference:
            raise PolicyUnreadable(
                f'"{name}" is a column of a reference table, which is public.', "Remove it from `protect`."
            )
    return replace(
        promise,
        protect=tuple(resolve_column(policy, name) for name in promise.protect),
        prior={resolve_column(policy, name): values for name, values in promise.prior.items()},
        within={resolve_column(policy, name): width for name, width in promise.within.items()},
    )
