"""The randomization survey, item by item: sets of items."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from golden.papers import golden, paper
from tidegate_papers.item import compare
from tidegate_papers.randomization import Reproduction, breaches, itemsets, reproduce_sets, samples
from tidegate_papers.randomization.basket_data import Comparison
from tidegate_papers.randomization.figures import pictures
from tidegate_papers.randomization.itemsets import Recovery, recover, section_3
from tidegate_papers.randomization.paper import FACTS, ITEMS, PUBLISHED
from tidegate_papers.randomization.run import collect_sets
from tidegate_papers.randomization.samples import Sample
from tidegate_papers.report import page, picture_bytes
from tidegate_papers.simulation.baskets import Baskets

F = Fraction


# The example


@paper("Evfimievski 2002, Section 3: about 814 baskets show A, about 800 or 98% of them held it")
def test_example_is_reproduced() -> None:
    items = {name: compare(ITEMS[name], result) for name, result in breaches.example().items()}
    assert {name: item.status for name, item in items.items() if item.status != "reproduced"} == {
        "s3_one_sided": "erratum"
    }
    facts, exact = golden("baskets")["breach_counts"], golden("baskets")["breach_counts_exact"]
    assert items["s3_example_all"].ours == pytest.approx(facts["total"], abs=1e-6)
    assert items["s3_example_share"].ours == pytest.approx(facts["share"], abs=1e-9)
    assert [*map(float, breaches.Example().exact())] == pytest.approx([exact["n3"], exact["n2"], exact["n1"]], abs=1e-6)
    assert items["s3_example_exact"].ours == pytest.approx(exact["share"], abs=1e-9)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_inclusion_and_exclusion_equal_the_enumeration_of_all_reports(count: int) -> None:
    """Baskets of 4 positions over 5 items: every item stays or any of the five replaces it."""
    small = breaches.Example(items=5, size=4)
    basket = [*range(count), *[3, 4, 3][: 4 - count]]  # codes 0, 1, 2 are A
    total = F(0)
    for report in product(range(5), repeat=4):
        if {0, 1, 2} <= set(report):
            chances = [
                F(4, 5) / 5 + (F(1, 5) if reported == true else 0)
                for reported, true in zip(report, basket, strict=True)
            ]
            total += chances[0] * chances[1] * chances[2] * chances[3]
    assert small.shown(count) == total


# The samples


def test_file_is_reduced_to_frequent_items_and_short_baskets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "ITEMS", 4)
    monkeypatch.setattr(samples, "LARGEST", 2)
    file = tmp_path / "some.dat"  # 9 is in every basket of two: exempted; 7 is too rare; three others are too many
    file.write_text("1 9\n2 9\n3 9\n1 2 3 9\n1\n2 9\n7 3 9\n3\n")
    sample = samples.from_file("some", file, 1000, level=F(1, 2))
    assert sample.items == 3
    assert "items 9 exempted" in sample.words
    assert set(sample.shares) == {1}
    assert np.bincount(sample.baskets.items, minlength=3).min() > 200
    assert sample.baskets.items.max() < 3


def test_selected_baskets_have_their_items() -> None:
    selected = samples.select(Baskets.of([[1, 2], [], [3]]), np.array([2, 0, 0]))
    assert [row.tolist() for row in np.split(selected.items, selected.starts[1:-1])] == [[3], [1, 2], [1, 2]]
    only = samples.among(Baskets.of([[1, 2], [4], [2, 3, 1]]), np.array([2, 3]))
    assert [row.tolist() for row in np.split(only.items, only.starts[1:-1])] == [[0], [], [0, 1]]


# The recovery


THREE_MILLION = pytest.mark.long  # baskets; collect/baskets has designs, recovery and errors in every run


@pytest.fixture(scope="module")
def small() -> Recovery:
    baskets = samples.generate(samples.Shop(items=60, patterns=60, basket_size=1.2, largest=3), 3_000_000, seed=1)
    return recover(Sample("generated", samples.select(baskets, np.flatnonzero(baskets.sizes)), 60, "some"))


@THREE_MILLION
def test_statements_of_the_paper_hold_for_a_small_shop(small: Recovery) -> None:
    items = {name: compare(ITEMS[name], result) for name, result in section_3([small]).items()}
    for name in ("majority", "near", "majority_designed"):
        assert items[f"s3_{name}_generated"].status == "reproduced", items[f"s3_{name}_generated"]
    designed, pasted = (sum(sigma**2 for sigma in small.sigma(name).values()) for name in ("designed", "cut-and-paste"))
    assert designed < pasted


@THREE_MILLION
def test_no_look_exceeds_the_level_and_a_weaker_operator_is_detected(small: Recovery) -> None:
    results = breaches.section_3([small])
    assert {compare(ITEMS[name], result).status for name, result in results.items()} == {"reproduced"}
    likelier = {size: tuple(min(F(1), 2 * share) for share in most) for size, most in small.maximum.items()}
    worse = breaches.section_3([replace(small, maximum=likelier)])
    assert {compare(ITEMS[name], result).status for name, result in worse.items()} == {"differs"}


@THREE_MILLION
def test_errors_are_as_large_as_stated(small: Recovery) -> None:
    """Scores of frequent itemsets, whose reports are common: means of 0 within 0.6, deviations of 1 within a half."""
    for rows in small.comparisons.values():
        for row in rows[:2]:
            assert abs(row.score_mean) < 0.6
            assert 0.5 < row.score_deviation < 1.5


@THREE_MILLION
def test_minority_large_deviation_and_far_errors_differ(small: Recovery) -> None:
    lost = [Comparison(size, 10, 5, 5, 3, 0.01, 0.0, 1.0) for size in (1, 2, 3)]
    wrong = replace(
        small, comparisons=dict.fromkeys(small.comparisons, lost), wrong={"cut-and-paste": [3.0, -4.0, 0.1]}
    )
    results = section_3([wrong])
    assert {compare(ITEMS[name], result).status for name, result in results.items()} == {"differs"}


@THREE_MILLION
def test_items_of_missing_files_are_left_out_and_the_files_named(small: Recovery) -> None:
    done = collect_sets([small], {})
    assert done.left_out == ("T10I4D100K.dat", "retail.dat")
    assert {item.id.rsplit("_", 1)[1] for item in done.items if "_generated" not in item.id} >= {"all", "share"}
    text = page(
        "Sets",
        FACTS["paper"],
        done.items,
        [(picture_bytes(picture.figure), picture.words) for picture in pictures(done)],
    )
    assert text.count("<img") == 1
    assert all(item.id in text for item in done.items)
    assert itemsets.rows(done.recoveries)[0][:2] == ["generated", "cut-and-paste"]


def test_items_of_both_halves_are_in_the_order_of_the_paper() -> None:
    first, second = (compare(ITEMS[name], breaches.example()[name]) for name in ("s3_example_all", "s3_example_prior"))
    both = Reproduction((first,)) + Reproduction((second,), left_out=("some",))
    assert [item.id for item in both.items] == ["s3_example_prior", "s3_example_all"]
    assert both.left_out == ("some",)


@pytest.mark.long
def test_majority_is_recovered_from_public_baskets(public_data: Path) -> None:
    """2,500,000 drawn from retail and T10I4D100K each, and as many generated. Minutes, 1.5 GB."""
    done = reproduce_sets({name: public_data / file for name, file in samples.FILES.items()})
    expected = [item.id for item in PUBLISHED if item.id.startswith("s3_") and "_both" not in item.id]
    assert [item.id for item in done.items] == expected
    statuses = {item.id: item.status for item in done.items}
    for name in ("generated", *samples.FILES):
        for claim in ("majority", "sigma", "majority_designed", "breach_cut-and-paste", "breach_designed"):
            assert statuses[f"s3_{claim}_{name}"] == "reproduced"
        assert statuses[f"s3_open_{name}"] == "better"
