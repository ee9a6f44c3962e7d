"""Paid quality: exact sensitivity by enumeration, charged once, refused if the budget does not suffice."""

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
    """Yield every table of a number of rows over 3 x 4 values (including missing values)."""
    universe = [(a, b) for a in range(3) for b in range(4)]
    for rows_of_table in combinations_with_replacement(universe[::2] + universe[1::5], rows):
        yield _coded(np.array(rows_of_table))


def _coded(codes: np.ndarray) -> CodedTable:
    return CodedTable(
        {axis.name: axis.attribute for grouping in groupings(ATTRIBUTES, 1) for axis in grouping.axes}, codes
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize(("rows", "synthetic_rows"), [(2, 2), (2, 3), (3, 2), (3, 6)])
def test_replacing_one_row_changes_the_score_by_at_most_the_sensitivity(
    rows: int, synthetic_rows: int, ways: int
) -> None:
    """Every small table, every replacement of one row, several synthetic tables: the bound holds and is attained."""
    tables = groupings(ATTRIBUTES, ways)
    event = plan([tables], rows=rows, synthetic=synthetic_rows, epsilon=Fraction(1))[0]
    draw = np.random.default_rng(1)
    corner = np.zeros((synthetic_rows, 2), np.int64)
    publics = [
        _coded(corner),
        *(
            _coded(np.column_stack([draw.integers(0, 3, synthetic_rows), draw.integers(0, 4, synthetic_rows)]))
            for _ in "ab"
        ),
    ]
    most = 0
    for public in publics:
        counts = [grouping.synthetic(public) for grouping in tables]

        def scored(world: CodedTable, counts: Any = counts) -> int:
            return score(
                [grouping.synthetic(world) for grouping in tables], counts, rows=rows, synthetic_rows=synthetic_rows
            )

        for world in worlds(rows):
            here = scored(world)
            for new in product(range(3), range(4)):
                changed = world.codes.copy()
                changed[0] = new
                most = max(most, abs(scored(_coded(changed)) - here))
    assert most == event.sensitivity


def test_score_is_exactly_the_mean_total_variation() -> None:
    tables = groupings(ATTRIBUTES, 1)
    draw = np.random.default_rng(2)
    for rows, synthetic_rows in ((6, 6), (6, 4), (5, 7)):
        here = _coded(np.column_stack([draw.integers(0, 3, rows), draw.integers(0, 4, rows)]))
        there = _coded(np.column_stack([draw.integers(0, 3, synthetic_rows), draw.integers(0, 4, synthetic_rows)]))
        pairs = [(grouping.synthetic(here), grouping.synthetic(there)) for grouping in tables]
        exactly = sum(total_variation_exactly(b.tolist(), a.tolist()) for a, b in pairs)
        event = plan([tables], rows=rows, synthetic=synthetic_rows, epsilon=Fraction(1))[0]
        result = score([a for a, _ in pairs], [b for _, b in pairs], rows=rows, synthetic_rows=synthetic_rows)
        assert Fraction(result) / (event.sensitivity * rows) == exactly / len(tables)


def test_noise_smaller_by_a_tenth_exceeds_the_charge() -> None:
    tables = groupings(ATTRIBUTES, 1)
    event = plan([tables], rows=10, synthetic=10, epsilon=Fraction("0.3"))[0]
    assert event.price.pure.value <= Fraction("0.3")
    assert DiscreteLaplace(event.sensitivity, event.scale * Fraction(9, 10)).price.pure.value > Fraction("0.3")


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

    def quality(synthetic: Any = None, *, of: Policy | None = None, **changes: Any) -> Any:
        chosen = of or policy()
        options: dict[str, Any] = {"epsilon": "0.5", "bits": bits("paid quality"), **changes}
        tables = table(100, 2).select(["a", "b"]) if synthetic is None else synthetic
        result = private_quality(tables, chosen, lambda: open_table(chosen, table()), ledger, **options)
        return result, ledger.account("people")

    yield quality
    ledger.close()


def test_same_question_is_charged_once(ask: Any) -> None:
    first, account = ask()
    assert (str(first.cost), str(account.spent)) == ("0.5", "0.5")
    again, account = ask(bits=bits("other noise"))
    assert (str(again.cost), again.scores, str(account.spent)) == ("0", first.scores, "0.5")
    other, account = ask(table(100, 3).select(["a", "b"]))
    assert (str(other.cost), str(account.spent)) == ("0.5", "1")


def test_distances_are_near_the_truth(ask: Any) -> None:
    """epsilon 50 on 200 rows: the noise of each mean is below 0.01 except with probability exp(-50)."""
    rich = Policy(Dataset("people", rows=200), {"person": Key(), **ATTRIBUTES}, None, Loss("100"))
    result, _ = ask(of=rich, epsilon=50)
    original, synthetic = table(), table(100, 2)
    exactly = []
    for name, values in (("a", ["x", "y"]), ("b", [0, 1, 2])):
        original_counts, synthetic_counts = (
            [t[name].to_pylist().count(v) for v in values] for t in (original, synthetic)
        )
        missing_counts = [200 - sum(original_counts), 100 - sum(synthetic_counts)]
        exactly.append(
            total_variation_exactly([*synthetic_counts, missing_counts[1]], [*original_counts, missing_counts[0]])
        )
    assert result.distance(1) == pytest.approx(float(sum(exactly)) / 2, abs=0.01)
    low, high = result.interval(1)
    assert low <= result.distance(1) <= high
    assert "Single columns differ" in result.says()
    assert result.to_dict()["paid"]


def test_request_above_the_budget_is_refused_and_nothing_charged(ask: Any) -> None:
    with pytest.raises(BudgetExceeded):
        ask(epsilon="2")
    _, account = ask(epsilon="0.25")
    assert str(account.spent) == "0.25"


@pytest.mark.parametrize(
    ("options", "message"),
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
def test_invalid_requests_are_refused_before_the_charge(ask: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        ask(**options)


def test_wrong_number_of_rows_is_detected_before_the_charge(ask: Any) -> None:
    with pytest.raises(SourceUnreadable, match="a different number of rows"):
        ask(of=policy(rows=199))
    _, account = ask()
    assert str(account.spent) == "0.5"  # of this question alone


def test_event_and_question_do_not_depend_on_the_rows(tmp_path: Path) -> None:
    """The event and the question are the same for any rows."""
    charged = []
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
        charged.append([entry.content() for entry in ledger.entries() if entry.kind == CHARGED])
        ledger.close()
    assert len(charged[0]) == 1
    assert charged[0] == charged[1]


def test_number_of_persons_with_a_row_is_not_revealed(ask: Any) -> None:
    """If a person can have no row, the number of persons is private: a table with another number gives an answer too."""
    of = policy(rows=230, unit=EachPerson("person", 1))
    result, account = ask(of=of)
    assert (str(result.cost), str(account.spent), result.rows) == ("0.5", "0.5", 230)


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_person_without_a_row_changes_the_score_by_at_most_the_sensitivity(rows: int) -> None:
    """Rows are added or removed, for any public number of rows."""
    tables = groupings(ATTRIBUTES, 2)
    most = plan([tables], rows=rows, synthetic=3, epsilon=Fraction(1))[0].sensitivity
    counts = [grouping.synthetic(_coded(np.array([[0, 0], [1, 2], [2, 3]]))) for grouping in tables]
    for world in worlds(3):
        here, fewer = (
            score([grouping.synthetic(_coded(codes)) for grouping in tables], counts, rows=rows, synthetic_rows=3)
            for codes in (world.codes, world.codes[1:])
        )
        assert abs(here - fewer) <= most
