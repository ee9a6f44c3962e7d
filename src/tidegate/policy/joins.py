"""Joins that an observer can compute: the columns of the same record that several release desks show.

All desks of a data set identify records by the same key and list them in the same order, so their columns can be joined.
Each desk's tests cover its own columns only: two columns that are harmless alone can be evidence together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidegate.errors import Infeasible
from tidegate.policy.attributes import Key
from tidegate.policy.policy import Policy


@dataclass(frozen=True)
class Join:
    """Columns that some desks release together and that no promise tests together, with the groups they are about."""

    desks: tuple[str, ...]
    columns: tuple[str, ...]
    about: tuple[str, ...]

    @property
    def what(self) -> str:
        desks = ", ".join(f'"{name}"' for name in self.desks)
        return (
            f"The desks {desks} release columns of the same records ({', '.join(self.columns)}), and no promise tests "
            f"these columns together as evidence about {', '.join(self.about)}. Joined, they can reveal what each desk conceals."
        )

    @property
    def do(self) -> str:
        reveals = [column for column in self.columns if column not in self.about]
        lists = [", ".join(f'"{name}"' for name in names) for names in (reveals, self.about)]
        promise = (
            f"Add a promise over the join (reveals = [{lists[0]}], about = [{lists[1]}]), or l" if reveals else "L"
        )
        return f"{promise}imit `releases` of one desk to columns that the other releases."


def find_untested_join(policy: Policy, releases: Mapping[str, Iterable[str]] | None = None) -> Join | None:
    """Return the columns that desks release together without a common test; None if the join is under a promise.

    Args:
        releases: The columns of each relevant desk; all desks of the policy by default.

    Guarantee: If None, one desk alone releases every column of the join (so that its own promise tests them), or each
        desk has a promise whose columns include every released column and whose groups include the desk's own.
    """
    if releases is None:
        releases = {name: promise.releases for name, promise in policy.concealments.items()}
    shown = {
        name: {column for column in columns if not isinstance(policy.attributes.get(column), Key)}
        for name, columns in releases.items()
    }
    shown = {name: columns for name, columns in shown.items() if columns}
    joined = set().union(*shown.values())
    if not shown or any(columns == joined for columns in shown.values()):
        return None
    about = {name: set(policy.concealments[name].about) for name in shown}
    tested = [({*promise.reveals, *promise.about}, set(promise.about)) for promise in policy.concealments.values()]
    if all(any(columns >= joined and groups >= own for columns, groups in tested) for own in about.values()):
        return None
    return Join(tuple(sorted(shown)), tuple(sorted(joined)), tuple(sorted(set().union(*about.values()))))


def refuse_untested_join(policy: Policy, desk: str, opened: Mapping[str, Iterable[str]]) -> None:
    """Refuse to open a desk next to open ones unless a promise covers the columns that they release together."""
    columns = {*opened.get(desk, ()), *policy.concealments[desk].releases}
    join = find_untested_join(policy, {**opened, desk: columns})
    if join is None:
        return
    others = ", ".join(f'"{name}"' for name in join.desks if name != desk)
    raise Infeasible(f'The desk "{desk}" cannot be opened next to {others}. {join.what}', join.do)
