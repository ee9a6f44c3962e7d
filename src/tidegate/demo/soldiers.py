"""The soldiers of the release paper: 10,000 records rebuilt from the counts that it printed.

Source: Figure 2(a) of "Protecting Privacy of Sensitive Value Distributions in Data Release" (M. Bezzi, S. De Capitani di
Vimercati, S. Foresti, G. Livraga, S. Paraboschi, P. Samarati), the longer version. One location, L2, is a headquarters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate.policy import Category, Concealment, Dataset, Hiding, Integer, Key, Policy, Profile

SOLDIERS = 10_000
STRIDE, START = 6181, 17  # no common factor with 10,000: an order that visits everyone once and mixes cells
WAITS = "soldier 09441"  # at the headquarters and older than most: a record that has to wait


def as_csv() -> str:
    """Return the table as CSV."""
    columns = records()
    lines = (",".join(map(str, row)) for row in zip(*columns.values(), strict=True))
    return "\n".join([",".join(columns), *lines]) + "\n"


def in_mixed_order() -> Iterator[str]:
    """Yield the name of every soldier, once."""
    for number in range(SOLDIERS):
        yield f"soldier {(START + STRIDE * number) % SOLDIERS + 1:05d}"


AGES = ("<18", "18-19", "20-24", "25-29", "30-34", "35-39", "40-44", "45-49", "50-54", ">=55")
STARTS = (18, 20, 25, 30, 35, 40, 45, 50, 55)  # the first age of each range but the lowest
LOCATIONS = ("L1", "L2", "L3", "L4", "L5")
COUNTS = (
    (72, 26, 38, 47, 73),
    (151, 53, 82, 140, 223),
    (539, 147, 449, 505, 736),
    (452, 114, 370, 418, 613),
    (335, 213, 234, 318, 501),
    (321, 238, 277, 332, 538),
    (128, 219, 122, 162, 220),
    (20, 205, 50, 49, 76),
    (9, 71, 28, 34, 31),
    (2, 13, 2, 2, 2),
)
BASELINE = tuple(sum(row) for row in COUNTS)
SHARES = tuple(sum(column) for column in zip(*COUNTS, strict=True))
HEADQUARTERS = tuple(row[1] for row in COUNTS)


def concealment(**more: Any) -> Concealment:
    """Return the promise that ages do not reveal locations. The baseline is that of all soldiers, public in the paper."""
    options = {"baseline": BASELINE, "shares": SHARES, "releases": ("name", "age", "location"), **more}
    if "posterior" in options.get("tests", ()):
        options = {"profiles": {"headquarters": Profile(prior="0.2", values=HEADQUARTERS)}, "rho": "0.5", **options}
    return Concealment(reveals="age", about="location", **options)


def policy(**more: Any) -> Policy:
    """Return the policy of the soldiers."""
    attributes = {"name": Key(), "age": Integer(16, 60, bins=STARTS), "location": Category(LOCATIONS)}
    return Policy(Dataset("soldiers", rows=10_000), attributes, concealments={"headquarters": concealment(**more)})


def hiding_policy(*, name: str = "soldiers", **more: Any) -> Policy:
    """Return the policy under which every location releases the same share of each age."""
    attributes = {"name": Key(), "age": Integer(16, 60, bins=STARTS), "location": Category(LOCATIONS)}
    options = {"mix": "table", "releases": ("name", "age", "location"), **more}
    promise = Hiding(reveals="age", about="location", **options)
    return Policy(Dataset(name, rows=10_000), attributes, hidings={"headquarters": promise})


def records() -> dict[str, list[Any]]:
    """Return every soldier: a name, an age inside the printed range, a location. Cell by cell, in the figure's order."""
    first = (16, *STARTS)
    last = (*(start - 1 for start in STARTS), 60)
    rows = [
        (first[x] + number % (last[x] - first[x] + 1), LOCATIONS[y])
        for x, row in enumerate(COUNTS)
        for y, count in enumerate(row)
        for number in range(count)
    ]
    return {
        "name": [f"soldier {number:05d}" for number in range(1, len(rows) + 1)],
        "age": [age for age, _ in rows],
        "location": [location for _, location in rows],
    }
