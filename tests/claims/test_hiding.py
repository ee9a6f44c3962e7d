"""Sampled claims about hiding promises: no observer names the sensitive group, whatever its profile and the sizes of groups.

Soldiers with one planted group. Every interval is simultaneous for all observers of a row and misses with probability at
most ALPHA; correct code fails with probability at most 1e-4 in a whole run of this file (13 rows of observers, 9 rows of the
classifier, 3 of openings, each small and large). `python -m pytest tests/claims/test_hiding.py -m long -s` prints the figures.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from audit.hiding_faults import CoinsWithOwnShares, LargestMixThatFits
from claims.probabilities import SEED, lowest

from tidegate.audit.releases.equal_composition import RULE_AWARE, EqualComposition
from tidegate.audit.releases.hiding import largest_area
from tidegate.audit.releases.observers import OBSERVERS, Observation, observe
from tidegate.demo.soldiers import BASELINE, HEADQUARTERS, SHARES, concealment
from tidegate.policy import Hiding
from tidegate.release.plan import Plan, normalize

pytestmark = pytest.mark.claim

ALPHA = 1e-6
FRESH = int.from_bytes(SEED.encode(), "big") % 2**32
EVERYONE = {**OBSERVERS, **RULE_AWARE}
ORDINARY = np.array(BASELINE) / sum(BASELINE)
STRONG = np.array(HEADQUARTERS) / sum(HEADQUARTERS)
TILT = ORDINARY * np.array([2, 2, 1.6, 1.3, 1, 0.8, 0.7, 0.6, 0.5, 0.5])
PROFILES = {
    "headquarters": STRONG,
    "half as strong": (ORDINARY + STRONG) / 2,
    "young": TILT / TILT.sum(),
    "flat": np.full(10, 0.1),
}
SIZES = {"soldiers": SHARES, "equal": (1, 1, 1, 1, 1), "1 to 8": (1, 2, 4, 6, 8)}
DEVIATIONS = 5.0  # standard errors that a classifier without information exceeds with a probability of 6e-7


def plan_of(sizes: str = "soldiers") -> Plan:
    weights = [Fraction(weight) for weight in SIZES[sizes]]
    return Plan(concealment(), normalize([Fraction(count) for count in BASELINE], "b"), normalize(weights, "s"))


def hiding(**more: Any) -> Hiding:
    return Hiding(reveals="age", about="location", **{"mix": "table", **more})


def declared_mix(records: int, profiles: Any = PROFILES, margin: float = 3.5) -> tuple[Fraction, ...]:
    """Return a mix that tables of these profiles can fill, made without looking at one."""
    size = records * min(SHARES) / sum(SHARES)
    smallest = np.minimum(ORDINARY, np.min([PROFILES[name] for name in profiles], axis=0))
    shares = 0.75 * np.maximum(0, smallest - margin * np.sqrt(smallest / size))
    return tuple(Fraction(round(share * 10**6), 10**6) for share in shares.tolist())


ROWS: dict[str, dict[str, Any]] = {
    **{f"table, {profile}": {"profile": profile} for profile in PROFILES},
    **{f"declared, {profile}": {"profile": profile, "is_declared": True} for profile in PROFILES},
    "declared from the profile": {"is_declared": True, "mix": {"profiles": ("headquarters",), "margin": 2.5}},
    **{f"among {k}": {"among": k} for k in (2, 3, 4)},
    "table, sizes 1 to 8": {"sizes": "1 to 8", "records_per": 2.1},
}


def observe_row(
    name: str, *, worlds: int, records: int, rule: Any = EqualComposition
) -> tuple[list[Observation], EqualComposition, Hiding]:
    row = {"profile": "headquarters", "sizes": "soldiers", "among": "all", "is_declared": False, **ROWS[name]}
    records = int(records * row.get("records_per", 1))  # so that the smallest group has at least 100
    promise = hiding(
        among=row["among"], **({"mix": declared_mix(records, **row.get("mix", {}))} if row["is_declared"] else {})
    )
    desk = rule(promise, seed=FRESH)
    observations = observe(
        plan_of(row["sizes"]),
        PROFILES[row["profile"]],
        worlds=worlds,
        records=records,
        observers=EVERYONE,
        control=desk,
        same_data_set=not row["is_declared"],
        confidence=1 - ALPHA / len(EVERYONE),
        seed=FRESH,
        name=name,
    )
    return observations, desk, promise


def check_row(name: str, *, worlds: int, records: int) -> None:
    print(f"TIDEGATE_SEED={SEED}")
    observations, desk, promise = observe_row(name, worlds=worlds, records=records)
    closed = desk.opened.count(False)
    limit = largest_area(promise, 5, closed / len(desk.opened))
    naive, aware = (
        max((o for o in observations if o.observer in group), key=lambda o: abs(o.auc - 0.5))
        for group in (OBSERVERS, RULE_AWARE)
    )
    print(
        f"{name:28} {records:>6,} released {observations[0].released:.2f}  worst {abs(naive.auc - 0.5) + 0.5:.3f} "
        f"({naive.observer})  rule-aware {abs(aware.auc - 0.5) + 0.5:.3f} ({aware.observer})  closed {closed} of {len(desk.opened)}"
    )
    assert {o.observer for o in observations} == set(EVERYONE)
    for observation in observations:
        assert observation.low <= limit, observation
        assert 1 - observation.high <= limit, observation
    if promise.among != "all":
        best = next(o for o in observations if o.observer == "hidden set")
        assert best.low <= limit <= best.high


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ROWS)
def test_no_observer_names_the_group_beyond_the_promise(name: str) -> None:
    check_row(name, worlds=50, records=2_000)


@pytest.mark.long
@pytest.mark.parametrize("records", [2_000, 10_000])
@pytest.mark.parametrize("name", ROWS)
def test_no_observer_names_the_group_in_200_pairs(name: str, records: int) -> None:
    check_row(name, worlds=200, records=records)


def observe_coins(part: str, *, worlds: int, records: int) -> list[Observation]:
    smallest = np.minimum(ORDINARY, STRONG)
    mix = tuple(Fraction(part) * Fraction(round(share * 10**6), 10**6) for share in smallest.tolist())
    options: dict[str, Any] = {"worlds": worlds, "records": records, "same_data_set": True, "seed": FRESH}
    desk = CoinsWithOwnShares(hiding(mix=mix), seed=FRESH)
    return observe(plan_of(), STRONG, observers=EVERYONE, control=desk, confidence=1 - ALPHA, **options)


def test_observer_who_knows_the_rule_is_not_deceived_by_coins() -> None:
    """Coins with the group's own shares keep the means of all counts equal; their variances reveal the group."""
    by_name = {observation.observer: observation for observation in observe_coins("1", worlds=100, records=2_000)}
    assert by_name["variance of coins"].low > 0.5


@pytest.mark.long
@pytest.mark.parametrize("records", [2_000, 10_000])
@pytest.mark.parametrize("part", ["1", "0.9", "0.75"])
def test_coins_are_detected_at_every_part(part: str, records: int) -> None:
    observations = observe_coins(part, worlds=200, records=records)
    by_name = {observation.observer: observation for observation in observations}
    worst = max(abs(by_name[name].auc - 0.5) + 0.5 for name in OBSERVERS)
    aware = by_name["variance of coins"]
    print(
        f"coins, f = {part:5} {records:>6,} released {aware.released:.2f}  worst {worst:.3f}  rule-aware {aware.auc:.3f}"
    )
    assert aware.low > 0.5


# Openings, and a classifier on (mix, opened)


def draw_tables(
    sizes: str, profile: str, sensitive: int, *, records: int, tables: int, seed: int, rule: Any
) -> np.ndarray:
    """Return the mix of each table and whether its desk opened; the mix is 0 if it did not."""
    plan, random = plan_of(sizes), np.random.default_rng([FRESH, seed, sensitive, records])
    numbers = [int(records * share) for share in plan.shares]
    shapes = [PROFILES[profile] if y == sensitive else ORDINARY for y in range(5)]
    rows = np.zeros((tables, 11))
    for index in range(tables):
        counts = np.array([random.multinomial(n, shape) for n, shape in zip(numbers, shapes, strict=True)])
        quotas = rule.open(counts, range(5), random)
        if quotas is not None:
            rows[index] = [*map(float, quotas.mix), 1]
    return rows


def classify(first: np.ndarray, second: np.ndarray) -> float:
    """Train a logistic classifier on half of the rows, and return its area under the curve on the other half."""
    half = len(first) // 2
    rows = np.concatenate([first[:half], second[:half]])
    center, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9

    def standard(table: np.ndarray) -> np.ndarray:
        return np.column_stack([(table - center) / spread, np.ones(len(table))])

    features, truth = standard(rows), np.repeat([0.0, 1.0], half)
    weights = np.zeros(features.shape[1])
    for _ in range(12):  # Newton's method with a small ridge
        chance = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
        slope = features.T @ (truth - chance) - weights
        curve = (features * (chance * (1 - chance))[:, None]).T @ features + np.eye(weights.size)
        weights += np.linalg.solve(curve, slope)
    low, high = (standard(table[half:]) @ weights for table in (first, second))
    return float((low[:, None] < high).mean() + (low[:, None] == high).mean() / 2)


def standard_error(tests: int) -> float:
    """Return the standard error of the area for two samples of this size without a difference (Mann-Whitney)."""
    return float(np.sqrt((2 * tests + 1) / (12 * tests**2)))


def check_symmetry(sizes: str, profile: str, *, tables: int) -> None:
    """Compare tables whose smallest group is the sensitive one with tables whose largest group is."""
    order = np.argsort(SIZES[sizes], kind="stable")
    records, rule = (4_200 if sizes == "1 to 8" else 2_000), EqualComposition(hiding())
    first, second = (
        draw_tables(sizes, profile, int(y), records=records, tables=tables, seed=3, rule=rule) for y in order[[0, -1]]
    )
    area = classify(first, second)
    closed = 1 - min(first[:, -1].mean(), second[:, -1].mean())
    print(f"classifier, sizes {sizes:9} {profile:15} area {area:.3f} (standard error {standard_error(tables // 2):.3f}), "
          f"closed {closed:.2%}")  # fmt: skip
    assert abs(area - 0.5) <= DEVIATIONS * standard_error(tables // 2) + closed


@pytest.mark.parametrize("profile", ["headquarters", "young", "flat"])
@pytest.mark.parametrize("sizes", SIZES)
def test_mix_and_opening_do_not_show_whether_the_smallest_or_largest_group_is_sensitive(
    sizes: str, profile: str
) -> None:
    check_symmetry(sizes, profile, tables=400)


@pytest.mark.long
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("sizes", SIZES)
def test_mix_and_opening_show_nothing_in_8000_tables(sizes: str, profile: str) -> None:
    check_symmetry(sizes, profile, tables=4_000)


def test_classifier_detects_a_mix_that_was_lowered_until_the_table_fits() -> None:
    rule = LargestMixThatFits(hiding(margin=0))
    first, second = (
        draw_tables("1 to 8", "headquarters", y, records=4_200, tables=1_000, seed=4, rule=rule) for y in (0, 4)
    )
    assert classify(first, second) - 0.5 > DEVIATIONS * standard_error(500)


def check_openings(sizes: str, *, records: int, tables: int) -> None:
    """Not fewer than 97% of desks open, for each sensitive group alike; a lower rate is shown at the level ALPHA."""
    rule = EqualComposition(hiding())
    for profile in PROFILES:
        rows = [
            draw_tables(sizes, profile, y, records=records, tables=tables // 5, seed=5, rule=rule)[:, -1]
            for y in range(5)
        ]
        closed = int((np.concatenate(rows) == 0).sum())
        print(f"openings, sizes {sizes:9} {records:>6,} {profile:15} {1 - closed / tables:.2%} of {tables:,}")
        assert closed == 0 or lowest(closed, tables, alpha=ALPHA) <= 0.03


@pytest.mark.parametrize(("sizes", "records"), [("soldiers", 2_000), ("soldiers", 10_000), ("1 to 8", 4_200)])
def test_default_margin_opens_nearly_every_desk(sizes: str, records: int) -> None:
    check_openings(sizes, records=records, tables=400)


@pytest.mark.long
@pytest.mark.parametrize(
    ("sizes", "records"), [("soldiers", 2_000), ("soldiers", 10_000), ("1 to 8", 4_200), ("1 to 8", 21_000)]
)
def test_default_margin_opens_nearly_every_desk_of_4000(sizes: str, records: int) -> None:
    check_openings(sizes, records=records, tables=4_000)
