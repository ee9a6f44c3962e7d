"""Columns that another one determines: the search, replayed from its diary, compared with a reference implementation."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthesize.forest.surveys import Z_OF_EPSILON_1, by_z, learn, learn_codes, pairwise, pure, silent

from tidegate.noise import SeededBits
from tidegate.synthesize.diary import Diary, Loss, Step
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest import maps
from tidegate.synthesize.mechanisms.forest.maps import Map, find_maps, in_order
from tidegate.synthesize.mechanisms.forest.margins import Margin
from tidegate.synthesize.mechanisms.forest.meter import Meter
from tidegate.synthesize.private_rows import ArrayRows

ROWS = 20_000
COLUMNS = (
    Column("town", 40, tuple(range(40)), ordered=False),
    Column("district", 8, tuple(range(8)), ordered=False),
    Column("region", 3, (0, 1, 2), ordered=False),
    Column("age", 50, tuple(range(50)), missing=True),
    Column("constant", 1, (0,), ordered=False),
    Column("rarely", 4, (0, 1, 2, 3), ordered=False),
    Column("wide", 5000, tuple(range(0, 5000, 4))),
)
LIMITS = {
    "pure": pure(8),
    "z": by_z(Fraction(1, 2)),
    "pairwise z": pairwise(Fraction(1, 2)),
    "little": by_z("1/1000000"),
}


def chain(rows: int, seed: int, *, errors: float = 0.0) -> np.ndarray:
    """Codes of COLUMNS: the town determines the district, the district the region."""
    generator = np.random.default_rng(seed)
    town = generator.integers(0, 40, rows)
    district = np.where(generator.random(rows) < errors, generator.integers(0, 8, rows), (town * 3 + 1) % 8)
    rest = [generator.integers(0, 51, rows), np.zeros(rows, int), np.where(generator.random(rows) < 0.9, 0, 2)]
    return np.column_stack([town, district, (district * 2 + 1) % 3, *rest, generator.integers(0, 5000, rows)])


@dataclass
class Search:
    """The search of the specification. It reads the diary's numbers and says which steps must follow which."""

    columns: tuple[Column, ...]
    shares: list[np.ndarray]
    n: int
    at: Meter
    parts: int

    def cost(self, i: int) -> int:
        """The parts of a table whose counts have a deviation of n / (16 K_i), at most a fixed part of the search's."""
        most = self.parts // getattr(maps, "TABLE_SHARE", maps.MOST_MAPS)
        return min(self.at.parts_for_counts(self.n / (16 * self.columns[i].cells)), most)

    def unseen(self, i: int) -> int:
        """The rows of i in cells with fewer than 2.5 deviations of rows."""
        deviation = self.at.deviation(self.cost(i))
        return round(sum(self.n * share for share in self.shares[i] if self.n * share < 2.5 * deviation))

    def candidates(self) -> list[tuple[int, int]]:
        cells = [column.cells for column in self.columns]
        return [
            (i, j)
            for i, j in permutations(range(len(cells)), 2)
            if cells[i] >= cells[j] > 1
            and cells[i] <= 1000
            and cells[i] * cells[j] <= 60_000
            and max(self.shares[j]) < 0.8
            and self.unseen(i) < 0.3 * self.n
        ]

    def follow(self, steps: list[Step]) -> list[Map]:
        """Return the maps that the numbers of the steps mean, and check the names and the order of the steps."""
        found_maps: list[Map] = []
        pairs, waiting, failures = self.candidates(), list(steps), 0
        while waiting:
            choice = waiting.pop(0)
            assert choice.name == f"choice of map {len(found_maps) + failures + 1}"
            i, j = pairs[int(choice.value[0])]
            names = f"{self.columns[i].name} to {self.columns[j].name}"
            test = waiting.pop(0)
            assert test.name == f"test of {names}"
            explained, base = int(test.value[0]), self.n * max(self.shares[j])
            holds = explained >= 0.97 * self.n and explained - base >= (self.n - base) / 2
            if not holds or not waiting or waiting[0].name != f"map of {names}":
                assert not (holds and waiting and waiting[0].name.startswith("map"))
                failures += 1
                pairs.remove((i, j))
                continue
            counts = waiting.pop(0).value.reshape(self.columns[i].cells, self.columns[j].cells)
            error = 0.0 if explained >= 0.995 * self.n else 1 - explained / self.n
            found_maps.append(Map(j, i, np.array([int(np.argmax(line)) for line in counts]), error))
            pairs = [pair for pair in pairs if pair[1] != j and not depends(found_maps, pair[0], pair[1])]
        assert failures <= getattr(maps, "MOST_FAILURES", 1)
        return found_maps


def depends(found_maps: list[Map], column: int, other: int) -> bool:
    """Return whether a column depends on another one by any chain of maps."""
    sources = {m.column: m.by for m in found_maps}
    seen = [column]
    while seen[-1] in sources:
        seen.append(sources[seen[-1]])
    return other in seen


def search(codes: np.ndarray, limit: Loss, *, seed: int, parts: int = 400_000) -> tuple[list[Map], Diary, Search]:
    rows, diary = ArrayRows(codes, COLUMNS), Diary(limit)
    at = Meter(diary, reach=1, bits=SeededBits(seed))
    margins = [Margin.from_counts(c, len(codes), rows.margin(c).astype(float), 1.0) for c in COLUMNS]
    found_maps, left = find_maps(margins, rows, at, parts, len(codes), silent)
    spent = sum((step.loss.z if limit.pure is None else step.epsilon for step in diary.steps), Fraction(0))
    whole = limit.z if limit.pure is None else limit.pure
    assert spent <= whole * Fraction(parts - left, 1_000_000)
    assert 0 <= left <= parts
    return found_maps, diary, Search(COLUMNS, [margin.shares() for margin in margins], len(codes), at, parts)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("errors", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("mode", LIMITS)
def test_search_equals_the_reference(mode: str, errors: float) -> None:
    for seed in range(3):
        found_maps, diary, reference = search(chain(ROWS, seed, errors=errors), LIMITS[mode], seed=seed)
        expected = reference.follow(list(diary.steps))
        assert [(m.column, m.by, m.values.tolist(), m.error) for m in found_maps] == [
            (m.column, m.by, m.values.tolist(), m.error) for m in expected
        ]
        assert not any("wide" in step.name or "constant" in step.name for step in diary.steps)
        assert not any(step.name.endswith("to rarely") for step in diary.steps)
        if mode == "little":
            assert diary.steps == ()  # choice and test of one round cost more than a third: nothing is spent


@pytest.mark.parametrize("mode", ["pure", "z", "pairwise z"])
def test_exact_chain_is_found_and_its_values_are_right(mode: str) -> None:
    codes = chain(ROWS, 5)
    found_maps, _, _ = search(codes, LIMITS[mode], seed=5)
    assert {m.column for m in found_maps} == {1, 2}
    for m in found_maps:
        assert m.error < 0.03  # the test's noise has a deviation of 0.005
        assert (m.values[codes[:, m.by]] == codes[:, m.column]).all()
    order = in_order(found_maps)
    assert all(m.by not in {later.column for later in order[n:]} for n, m in enumerate(order))


@given(st.permutations(range(6)), st.data())
def test_maps_are_attached_after_the_columns_that_they_use(columns: list[int], data: st.DataObject) -> None:
    """Any forest of maps: each column by an earlier one of a random order."""
    drawn = [
        Map(column, columns[data.draw(st.integers(0, n - 1))], np.zeros(1, np.int64), 0.0)
        for n, column in enumerate(columns)
        if n > 0 and data.draw(st.booleans())
    ]
    shuffled = data.draw(st.permutations(drawn))
    order = in_order(shuffled)
    assert sorted(m.column for m in order) == sorted(m.column for m in drawn)
    assert all(m.by not in {later.column for later in order[n:]} for n, m in enumerate(order))


def test_mutual_functions_close_no_cycle() -> None:
    """Three columns that determine each other: two maps at most, and the third column is drawn."""
    columns = tuple(Column(name, 12, tuple(range(12)), ordered=False) for name in "abc")
    base = np.random.default_rng(3).integers(0, 12, ROWS)
    codes = np.column_stack([base, (base * 5 + 1) % 12, (base * 7 + 2) % 12])
    fitted, _ = learn_codes(codes, columns, by_z(Fraction(1, 4)))
    assert len(fitted.maps) == 2
    drawn = fitted.draw(5_000, seed=1)
    assert (drawn[:, 1] == (drawn[:, 0] * 5 + 1) % 12).mean() > 0.97
    assert (drawn[:, 2] == (drawn[:, 0] * 7 + 2) % 12).mean() > 0.97


def test_mapped_columns_are_in_no_pair() -> None:
    fitted, diary = learn_codes(chain(ROWS, 6), COLUMNS, by_z(Fraction(1, 2)))
    mapped = {m.column for m in fitted.summary.maps}
    assert mapped
    assert not any({pair.left, pair.right} & mapped for pair in fitted.summary.pairs)
    assert diary.spent == fitted.summary.spent


def test_broken_map_is_drawn_with_its_errors() -> None:
    """2% of the districts are random: about that share of artificial rows differs from the map."""
    limit = by_z(4 * Z_OF_EPSILON_1)
    diary = Diary(limit)
    codes = chain(ROWS, 7, errors=0.02)
    fitted = learn(Facts(COLUMNS, ROWS), ArrayRows(codes, COLUMNS), diary)
    (district,) = [m for m in fitted.maps if m.column == 1]
    drawn = fitted.draw(50_000, seed=1)
    broken = (district.values[drawn[:, district.by]] != drawn[:, 1]).mean()
    assert 0.005 < broken < 0.04
