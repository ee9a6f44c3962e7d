"""Changes of a policy after a charge: promises can become stricter, never looser.

A change of universe is allowed and recorded, but restores no budget: the ledger keeps the lowest limit that any policy of
the data set ever had. A change of the protected unit is refused, because earlier answers were priced for another unit.
"""

from __future__ import annotations

from fractions import Fraction

from tidegate.errors import PolicyLoosened
from tidegate.exact import say
from tidegate.policy.attributes import Numeric
from tidegate.policy.collection import Collection
from tidegate.policy.concealment import Concealment
from tidegate.policy.hiding import Hiding
from tidegate.policy.policy import EachPerson, Policy


def changes(old: Policy, new: Policy) -> list[str]:
    """Return descriptions of the changes, for the ledger entry; empty if both policies promise the same."""
    descriptions = []
    if old.dataset.unit != new.dataset.unit:
        descriptions.append(f"unit: {old.dataset.unit.describe()} -> {new.dataset.unit.describe()}")
    if old.dataset.rows != new.dataset.rows:
        descriptions.append(f"rows: {old.dataset.rows} -> {new.dataset.rows}")
    if old.dataset.records != new.dataset.records:
        descriptions.append(f"records: {old.dataset.records} -> {new.dataset.records}")
    if old.dataset.edition != new.dataset.edition:
        descriptions.append(f"edition: {old.dataset.edition or 'none'} -> {new.dataset.edition or 'none'}")
    before_partners, partners = (", ".join(p.dataset.shares_persons_with) or "no account" for p in (old, new))
    if before_partners != partners:
        descriptions.append(f"shares persons with: {before_partners} -> {partners}")
    for name in dict.fromkeys((*old.attributes, *new.attributes)):
        before, after = old.attributes.get(name), new.attributes.get(name)
        if before != after:
            descriptions.append(
                f"{name}: {before.describe() if before else 'not declared'} -> {after.describe() if after else 'not declared'}"
            )
    for title, links, links_now in (
        ("table", _tables(old), _tables(new)),
        ("relation", old.relations, new.relations),
    ):
        descriptions += [
            f"{title} {name}: {links.get(name) or 'not declared'} -> {links_now.get(name) or 'not declared'}"
            for name in dict.fromkeys((*links, *links_now))
            if links.get(name) != links_now.get(name)
        ]
    if old.version != new.version:
        descriptions.append(f"version: {old.version} -> {new.version}")
    for title, was, now in (
        ("identification", old.identification, new.identification),
        ("loss", old.loss, new.loss),
        *(
            (f"concealment {name}", old.concealments.get(name), new.concealments.get(name))
            for name in {**old.concealments, **new.concealments}
        ),
        *((f"hiding {name}", old.hidings.get(name), new.hidings.get(name)) for name in {**old.hidings, **new.hidings}),
        *(
            (f"collection {name}", old.collections.get(name), new.collections.get(name))
            for name in {**old.collections, **new.collections}
        ),
    ):
        if was != now:
            descriptions.append(f"{title}: {was or 'not promised'} -> {now or 'not promised'}")
    if old.synthesis != new.synthesis:  # public shapes: they promise nothing, and can change at any time
        descriptions.append(f"synthesis: {old.synthesis or 'by default'} -> {new.synthesis or 'by default'}")
    return descriptions


def _tables(policy: Policy) -> dict[str, str]:
    """Return the description of every table, with the start of a reference table's digest."""
    descriptions = {}
    for name, table in policy.tables.items():
        records = f", about {table.records:,} rows" if table.records is not None else ""
        descriptions[name] = f"{table.kind}{records}{f' ({table.digest[:12]})' if table.digest else ''}"
    return descriptions


def refuse_loosening(old: Policy, new: Policy) -> None:
    """Raise PolicyLoosened if `new` promises less than `old`, under which something was already released."""
    for problem in _find_loosening(old, new):
        raise PolicyLoosened(
            f'The policy of "{old.dataset.name}" is already in use and can only become stricter: {problem}.',
            "Keep the promise, or open a new data set under another name.",
        )


def _find_loosening(old: Policy, new: Policy) -> list[str]:
    return [
        *_unit(old, new),
        *_partners(old, new),
        *_publications(old, new),
        *_identification(old, new),
        *_loss(old, new),
        *_concealments(old, new),
        *_hidings(old, new),
        *_collections(old, new),
    ]


def _unit(old: Policy, new: Policy) -> list[str]:
    before, after = old.dataset.unit, new.dataset.unit
    same_person = isinstance(before, EachPerson) and isinstance(after, EachPerson) and before.key == after.key
    if before == after or same_person:
        return []
    return [f"the protected unit would change from {before.describe()} to {after.describe()}"]


def _partners(old: Policy, new: Policy) -> list[str]:
    """Charges of accounts with the same persons are added up from the declaration on."""
    return [
        f'its charges would no longer be added to those of "{name}"'
        for name in old.dataset.shares_persons_with
        if name not in new.dataset.shares_persons_with
    ]


def _publications(old: Policy, new: Policy) -> list[str]:
    """A private table cannot become public: the answers about it would no longer cost anything."""
    return [
        f"the private table {name} would become a public reference table"
        for name, table in new.tables.items()
        if table.reference and name in old.tables and not old.tables[name].reference
    ]


def _identification(old: Policy, new: Policy) -> list[str]:
    before, after = old.identification, new.identification
    if before is None:
        return []
    if after is None:
        return ["the identification promise would be removed"]
    problems = []
    if after.rho > before.rho:
        problems.append(f"rho would rise from {say(before.rho)} to {say(after.rho)}")
    if after.worlds != before.worlds:
        problems.append(f'worlds would change from "{before.worlds}" to "{after.worlds}"')
    if after.guarantee != before.guarantee:
        problems.append(f'the guarantee would change from "{before.guarantee}" to "{after.guarantee}"')
    problems += [
        f"the window of {name} would shrink from {_width(old, name)} to {_width(new, name)}"
        for name in before.protect
        if name in new.attributes
        and not _default_of_other_universe(old, new, name)
        and _width(new, name) < _width(old, name)
    ]
    gone = [name for name in before.protect if name not in after.protect]
    if gone:
        problems.append(f"{', '.join(gone)} would no longer be protected")
    return problems


def _default_of_other_universe(old: Policy, new: Policy, name: str) -> bool:
    """Return whether both windows are defaults of the same version, for different universes: a change of universe is allowed."""
    stated = [name in policy.identification.within for policy in (old, new) if policy.identification]
    return not any(stated) and old.version == new.version and old.attributes.get(name) != new.attributes.get(name)


def _width(policy: Policy, name: str) -> Fraction:
    """Return the window of a column in its own unit."""
    attribute = policy.attribute(name)
    return policy.window(name) * attribute.width if isinstance(attribute, Numeric) else Fraction(0)


def _loss(old: Policy, new: Policy) -> list[str]:
    before, after = old.loss, new.loss
    if before is None and after is not None and old.identification and old.identification.guarantee == "average":
        return ["a loss promise would be added, but earlier answers under the average guarantee have no pure loss"]
    if before is None or (after is not None and after.epsilon <= before.epsilon):
        return []
    return [
        f"epsilon would rise from {say(before.epsilon)} to {say(after.epsilon)}"
        if after
        else "the loss promise would be removed"
    ]


def _concealments(old: Policy, new: Policy) -> list[str]:
    problems = []
    for name, before in old.concealments.items():
        after = new.concealments.get(name)
        if after is None:
            problems.append(f"the concealment promise {name} would be removed")
        elif _weaker(before, after):
            problems.append(f"the concealment promise {name} would be weaker ({before} -> {after})")
    return problems


def _hidings(old: Policy, new: Policy) -> list[str]:
    """A hiding promise can only get a lower mix or a larger margin. Once its selection is open, the desk checks the rest."""
    problems = []
    for name, before in old.hidings.items():
        after = new.hidings.get(name)
        if after is None:
            problems.append(f"the hiding promise {name} would be removed")
        elif _hides_less(before, after):
            problems.append(f"the hiding promise {name} would be weaker ({before} -> {after})")
    if new.concealments and old.hidings:
        problems.append("a concealment promise would be added beside a hiding promise")
    return problems


def _hides_less(before: Hiding, after: Hiding) -> bool:
    fixed = ("reveals", "about", "among", "smallest")
    if any(getattr(before, name) != getattr(after, name) for name in fixed):
        return True
    higher = not isinstance(before.mix, str) and (
        isinstance(after.mix, str) or any(now > was for was, now in zip(before.mix, after.mix, strict=True))
    )
    more = not set(after.releases) <= set(before.releases)
    opened = before.answers == "refused" and after.answers == "allowed"
    return higher or more or opened or after.at_most > before.at_most or after.margin < before.margin


def _collections(old: Policy, new: Policy) -> list[str]:
    """Respondents were shown a fingerprint: other questions need a new version, which each client accepts again."""
    return [
        f"the collection {name} would change without a new version (now {before.version})"
        for name, before in old.collections.items()
        if _changed_without_version(before, new.collections.get(name))
    ]


def _changed_without_version(before: Collection, after: Collection | None) -> bool:
    if before.poll is not None and before.poll.invited and not before.poll.invitation_key:
        return False  # it was never opened: that needs a key
    return after is not None and after.fingerprint != before.fingerprint and after.version <= before.version


def _weaker(before: Concealment, after: Concealment) -> bool:
    """Return whether a promise became weaker.

    Fewer tests, a lower significance (a higher critical value) or a higher rho are weaker. The other parts of a test
    (columns, baseline, profiles, merging ...) must not change at all, because no order of strictness is known for them.
    """
    fixed = [
        name
        for name in Concealment.__dataclass_fields__
        if name not in ("tests", "significance", "releases", "rho", "profiles")
    ]
    other = any(getattr(before, name) != getattr(after, name) for name in fixed)
    profiles = before.profiles != {name: after.profiles.get(name) for name in before.profiles}
    looser = before.rho is not None and (after.rho is None or after.rho > before.rho)
    more = not set(after.releases) <= set(before.releases)
    tests = not set(before.tests) <= set(after.tests)
    return other or profiles or looser or more or tests or after.significance < before.significance
