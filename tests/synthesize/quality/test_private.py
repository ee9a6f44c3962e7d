"""The paid quality: exact sensitivity by enumeration, charged once, refused where it cannot be paid."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from claims.probabilities import bits

from tidegate.accounting import DiscreteLaplace
from tidegate.errors import BudgetExceeded, SourceUnreadable, Unsupported
from tidegate.ledger import Ledger
from tidegate.ledger.entry import CHARGED
from tidegate.policy import Category, Dataset, EachPerson, Integer, Key, Loss, Policy
from tidegate.risk.pmse import total_variation_exactly
from tidegate.synthesize.quality import private_quality
from tidegate.synthesize.quality.codes import CodedTable
from tidegate.synthesize.quality.private import groupings, plan, score
from tidegate.tables import open_table

ATTRIBUTES = {"a": Category(("x", "y"), "value"), "b": Integer(0, 2)}


def worlds(rows: int) -> Iterator[CodedTable]:
    """Every table of so many rows over a universe of 3 x 4 (missing values too)."""
    universe = [(a, b) for a in range(3) for b in range(4)]
    for some in combinations_with_replacement(universe[::2] + universe[1::5], rows):
        yield _coded(np.array(some))


def _coded(codes: np.ndarray) -> CodedTable:
    return CodedTable({axis.name: axis.attribute for one in groupings(ATTRIBUTES, 1) for axis in one.axes}, codes)


@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize(("rows", "made"), [(2, 2), (2, 3), (3, 2), (3, 6)])
def test_replacing_one_row_moves_the_score_by_at_most_the_stated_sensitivity(rows: int, made: int, ways: int) -> None:
    """Every table of the small universe, every replacement of one row, several synthetic tables: and the bound is met."""
    tables = groupings(ATTRIBUTES, ways)
    event = plan([tables], rows=rows, synthetic=made, epsilon=Fraction(1))[0]
    draw = np.random.default_rng(1)
    corner = np.zeros((made, 2), np.int64)
    publics = [
        _coded(corner),
        *(_coded(np.column_stack([draw.integers(0, 3, made), draw.integers(0, 4, made)])) for _ in "ab"),
    ]
    most = 0
    for public in publics:
        counts = [one.synthetic(public) for one in tables]

        def scored(world: CodedTable, counts: Any = counts) -> int:
            return score([one.synthetic(world) for one in tables], counts, rows=rows, synthetic_rows=made)

        for world in worlds(rows):
            here = scored(world)
            for new in product(range(3), range(4)):
                changed = world.codes.copy()
                changed[0] = new
                most = max(most, abs(scored(_coded(changed)) - here))
    assert most == event.sensitivity


def test_the_score_is_the_mean_total_variation_exactly() -> None:
    tables = groupings(ATTRIBUTES, 1)
    draw = np.random.default_rng(2)
    for rows, made in ((6, 6), (6, 4), (5, 7)):
        here = _coded(np.column_stack([draw.integers(0, 3, rows), draw.integers(0, 4, rows)]))
        there = _coded(np.column_stack([draw.integers(0, 3, made), draw.integers(0, 4, made)]))
        pairs = [(one.synthetic(here), one.synthetic(there)) for one in tables]
        exactly = sum(total_variation_exactly(b.tolist(), a.tolist()) for a, b in pairs)
        event = plan([tables], rows=rows, synthetic=made, epsilon=Fraction(1))[0]
        found = score([a for a, _ in pairs], [b for _, b in pairs], rows=rows, synthetic_rows=made)
        assert Fraction(found) / (event.sensitivity * rows) == exactly / len(tables)


def test_noise_a_tenth_smaller_would_cost_more_than_is_charged() -> None:
    tables = groupings(ATTRIBUTES, 1)
    event = plan([tables], rows=10, synthetic=10, epsilon=Fraction("0.3"))[0]
    assert event.price.value <= Fraction("0.3")
    assert DiscreteLaplace(event.sensitivity, event.scale * Fraction(9, 10)).price.value > Fraction("0.3")


def policy(**dataset: Any) -> Policy:
    content: dict[str, Any] = {"rows": 200, **dataset}
    return Policy(Dataset("people", **content), {"person": Key(), **ATTRIBUTES}, None, Loss("1"))


def table(rows: int = 200, seed: int = 1, **columns: Any) -> pa.Table:
    draw = np.random.default_rng(seed)
    content = {
        "person": [f"p{n}" for n in range(rows)],
        "a": draw.choice(["x", "y", "?"], rows),
        "b": pa.array(draw.integers(0, 3, rows), mask=draw.random(rows) < 0.2),
    }
    return pa.table({**content, **columns})


@pytest.fixture
def ask(tmp_path: Path) -> Any:
    ledger = Ledger(str(tmp_path / "people.ledger"))

    def quality(synthetic: Any = None, *, of: Policy | None = None, **wanted: Any) -> Any:
        chosen = of or policy()
        given: dict[str, Any] = {"epsilon": "0.5", "bits": bits("paid quality"), **wanted}
        made = table(100, 2).select(["a", "b"]) if synthetic is None else synthetic
        found = private_quality(made, chosen, lambda: open_table(chosen, table()), ledger, **given)
        return found, ledger.account("people")

    yield quality
    ledger.close()


def test_it_is_charged_once_and_the_same_question_costs_nothing(ask: Any) -> None:
    first, account = ask()
    assert (str(first.cost), str(account.spent)) == ("0.5", "0.5")
    again, account = ask(bits=bits("other noise"))
    assert (str(again.cost), again.scores, str(account.spent)) == ("0", first.scores, "0.5")
    other, account = ask(table(100, 3).select(["a", "b"]))
    assert (str(other.cost), str(account.spent)) == ("0.5", "1")


def test_what_it_says_is_near_the_truth(ask: Any) -> None:
    """epsilon 50 on 200 rows: the noise of each mean is below .01 but for a chance of exp(-50) or less."""
    rich = Policy(Dataset("people", rows=200), {"person": Key(), **ATTRIBUTES}, None, Loss("100"))
    found, _ = ask(of=rich, epsilon=50)
    here, there = table(), table(100, 2)
    exactly = []
    for name, values in (("a", ["x", "y"]), ("b", [0, 1, 2])):
        one, other = ([t[name].to_pylist().count(v) for v in values] for t in (here, there))
        whole = [200 - sum(one), 100 - sum(other)]
        exactly.append(total_variation_exactly([*other, whole[1]], [*one, whole[0]]))
    assert found.distance(1) == pytest.approx(float(sum(exactly)) / 2, abs=0.01)
    low, high = found.interval(1)
    assert low <= found.distance(1) <= high
    assert "Single columns differ" in found.says()
    assert found.to_dict()["paid"]


def test_more_than_is_left_is_refused_and_nothing_is_spent(ask: Any) -> None:
    with pytest.raises(BudgetExceeded):
        ask(epsilon="2")
    _, account = ask(epsilon="0.25")
    assert str(account.spent) == "0.25"


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"of": policy(rows=None)}, "public number of rows"),
        ({"of": policy(unit=EachPerson("person", 3))}, "one row per person"),
        ({"epsilon": 0}, "above 0"),
        ({"epsilon": "much"}, "above 0"),
        ({"ways": (3,)}, "`ways` must contain"),
        ({"ways": ()}, "`ways` must contain"),
        ({"synthetic": pa.table({"z": [1]})}, "lack columns"),
        ({"synthetic": []}, "lack columns"),
        ({"synthetic": table(0).select(["a", "b"])}, "without rows"),
    ],
)
def test_mistakes_are_refused_before_anything_is_charged(ask: Any, wanted: dict[str, Any], says: str) -> None:
    with pytest.raises(Unsupported, match=says):
        ask(**wanted)


def test_a_wrong_number_of_rows_is_found_before_the_charge(ask: Any) -> None:
    with pytest.raises(SourceUnreadable, match="a different number of rows"):
        ask(of=policy(rows=199))
    _, account = ask()
    assert str(account.spent) == "0.5"  # of this question alone


def test_swapping_the_data_changes_no_public_choice(tmp_path: Path) -> None:
    """The event and the question are the same whatever the rows are."""
    told = []
    for seed in (1, 5):
        ledger = Ledger(str(tmp_path / f"{seed}.ledger"))
        private_quality(
            table(100, 2).select(["a", "b"]),
            policy(),
            lambda seed=seed: open_table(policy(), table(200, seed)),
            ledger,
            epsilon="0.5",
            bits=bits("swap"),
        )
        told.append([entry.content() for entry in ledger.entries() if entry.kind == CHARGED])
        ledger.close()
    assert len(told[0]) == 1
    assert told[0] == told[1]


def test_how_many_persons_have_a_row_is_not_told_by_an_error_and_costs_no_more(ask: Any) -> None:
    """Where a person may have none, their number is private: other tables give an answer too."""
    of = policy(rows=230, unit=EachPerson("person", 1))
    found, account = ask(of=of)
    assert (str(found.cost), str(account.spent), found.rows) == ("0.5", "0.5", 230)


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_a_person_without_a_row_moves_the_score_by_no_more_than_stated(rows: int) -> None:
    """Rows that come or go, with whatever public number of rows."""
    tables = groupings(ATTRIBUTES, 2)
    most = plan([tables], rows=rows, synthetic=3, epsilon=Fraction(1))[0].sensitivity
    counts = [one.synthetic(_coded(np.array([[0, 0], [1, 2], [2, 3]]))) for one in tables]
    for world in worlds(3):
        here, fewer = (
            score([one.synthetic(_coded(codes)) for one in tables], counts, rows=rows, synthetic_rows=3)
            for codes in (world.codes, world.codes[1:])
        )
        assert abs(here - fewer) <= most
