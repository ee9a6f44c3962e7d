"""What may change after something was spent: promises may become stricter, never looser.

A change of universe is recorded and allowed, but gives no budget back: the ledger keeps the lowest ceiling that any
policy of the data set ever had. A change of who is protected is refused, because what was answered before was
counted for somebody else.
"""

from __future__ import annotations

from tidegate.errors import PolicyLoosened
from tidegate.exact import say
from tidegate.policy.collection import Collection
from tidegate.policy.concealment import Concealment
from tidegate.policy.policy import Policy
from tidegate.policy.unit import EachPerson


def changes(old: Policy, new: Policy) -> list[str]:
    """The changes in words, for the ledger's own entry; empty where both promise the same about the same."""
    told = []
    if old.dataset.unit != new.dataset.unit:
        told.append(f"unit: {old.dataset.unit.describe()} -> {new.dataset.unit.describe()}")
    if old.dataset.rows != new.dataset.rows:
        told.append(f"rows: {old.dataset.rows} -> {new.dataset.rows}")
    if old.dataset.edition != new.dataset.edition:
        told.append(f"edition: {old.dataset.edition or 'none'} -> {new.dataset.edition or 'none'}")
    for name in dict.fromkeys((*old.attributes, *new.attributes)):
        before, after = old.attributes.get(name), new.attributes.get(name)
        if before != after:
            told.append(
                f"{name}: {before.describe() if before else 'not declared'} -> {after.describe() if after else 'not declared'}"
            )
    for title, was, now in (
        ("identification", old.identification, new.identification),
        ("loss", old.loss, new.loss),
        *(
            (f"concealment {name}", old.concealments.get(name), new.concealments.get(name))
            for name in {**old.concealments, **new.concealments}
        ),
        *(
            (f"collection {name}", old.collections.get(name), new.collections.get(name))
            for name in {**old.collections, **new.collections}
        ),
    ):
        if was != now:
            told.append(f"{title}: {was or 'not promised'} -> {now or 'not promised'}")
    if old.synthesis != new.synthesis:  # public shapes: they promise nothing, and may change at any time
        told.append(f"synthesis: {old.synthesis or 'by default'} -> {new.synthesis or 'by default'}")
    return told


def refuse_loosening(old: Policy, new: Policy) -> None:
    """Raise PolicyLoosened where `new` promises less than `old`, to whom something was already given out."""
    for problem in _loosened(old, new):
        raise PolicyLoosened(
            f'the policy of "{old.dataset.name}" was relied on already and can only become stricter: {problem}.',
            "Keep what was promised, or open a new data set under another name.",
        )


def _loosened(old: Policy, new: Policy) -> list[str]:
    return [
        *_unit(old, new),
        *_identification(old, new),
        *_loss(old, new),
        *_concealments(old, new),
        *_collections(old, new),
    ]


def _unit(old: Policy, new: Policy) -> list[str]:
    before, after = old.dataset.unit, new.dataset.unit
    same_person = isinstance(before, EachPerson) and isinstance(after, EachPerson) and before.key == after.key
    if before == after or same_person:
        return []
    return [f"who is protected was {before.describe()}, and would be {after.describe()}"]


def _identification(old: Policy, new: Policy) -> list[str]:
    before, after = old.identification, new.identification
    if before is None:
        return []
    if after is None:
        return ["the identification promise would be gone"]
    told = []
    if after.rho > before.rho:
        told.append(f"rho would rise from {say(before.rho)} to {say(after.rho)}")
    if after.worlds != before.worlds:
        told.append(f'worlds would change from "{before.worlds}" to "{after.worlds}"')
    gone = [name for name in before.protect if name not in after.protect]
    if gone:
        told.append(f"{', '.join(gone)} would no longer be protected")
    return told


def _loss(old: Policy, new: Policy) -> list[str]:
    before, after = old.loss, new.loss
    if before is None or (after is not None and after.epsilon <= before.epsilon):
        return []
    return [
        f"epsilon would rise from {say(before.epsilon)} to {say(after.epsilon)}"
        if after
        else "the loss promise would be gone"
    ]


def _concealments(old: Policy, new: Policy) -> list[str]:
    told = []
    for name, before in old.concealments.items():
        after = new.concealments.get(name)
        if after is None:
            told.append(f"the concealment promise {name} would be gone")
        elif _weaker(before, after):
            told.append(f"the concealment promise {name} would be weaker ({before} -> {after})")
    return told


def _collections(old: Policy, new: Policy) -> list[str]:
    """Who answered was told a fingerprint: other questions are another version, which each client decides on anew."""
    return [
        f"the collection {name} would change without a new version (now {before.version})"
        for name, before in old.collections.items()
        if _changed_unsaid(before, new.collections.get(name))
    ]


def _changed_unsaid(before: Collection, after: Collection | None) -> bool:
    return after is not None and after.fingerprint != before.fingerprint and after.version <= before.version


def _weaker(before: Concealment, after: Concealment) -> bool:
    """Fewer tests, a lower significance (a higher critical value) or a higher rho hold back less. What else a test is
    made of (columns, baseline, profiles, merging ...) may not change at all: no order of strictness is known."""
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
