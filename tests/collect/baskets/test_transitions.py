"""The chances of seeing items of an itemset equal the enumeration of every report, exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from golden.papers import golden, paper
from hypothesis import given
from hypothesis import strategies as st
from reference import transitions as reference

from tidegate.collect.baskets import transitions
from tidegate.collect.baskets.recovery import channel
from tidegate.errors import Unsupported
from tidegate.operators.cut_and_paste import cut_and_paste_keep
from tidegate.operators.mask import mask

FACTS = golden("baskets")
TENTHS = [Fraction(1, 10), Fraction(3, 10), Fraction(4, 10), Fraction(2, 10)]
CASES = [
    (6, TENTHS, Fraction(3, 10)),
    (6, cut_and_paste_keep(3, 2, Fraction(1, 5)), Fraction(1, 5)),
    (7, [Fraction(1, 2), Fraction(1, 2)], Fraction(1, 7)),
    (8, cut_and_paste_keep(4, 3, Fraction(2, 5)), Fraction(2, 5)),
    (5, [Fraction(1, 8), Fraction(0), Fraction(7, 8)], Fraction(1, 2)),
]


def plans(size: int) -> st.SearchStrategy[list[Fraction]]:
    weights = st.lists(st.integers(0, 50), min_size=size + 1, max_size=size + 1).filter(any)
    return weights.map(lambda parts: [Fraction(part, sum(parts)) for part in parts])


@pytest.mark.parametrize(("items", "keep", "insert"), CASES)
def test_matrices_equal_the_enumeration_of_all_reports(items: int, keep: list[Fraction], insert: Fraction) -> None:
    size = len(keep) - 1
    for k in range(1, size + 1):
        seen = transitions.transition(transitions.moments(keep, k), insert, k)
        assert seen == reference.transition(items, size, keep, insert, k)


def test_keep_probabilities_used_as_moments_are_detected() -> None:
    truth = reference.transition(6, 3, TENTHS, Fraction(3, 10), 2)
    assert transitions.transition([Fraction(1), *TENTHS[1:]], Fraction(3, 10), 2) != truth


@paper(FACTS["paper"])
@pytest.mark.parametrize("name", "ABCD")
def test_cut_and_paste_has_the_published_matrices(name: str) -> None:
    row = FACTS["cut_and_paste"][name]
    rho = Fraction(row["rho"])
    keep = cut_and_paste_keep(row["size"], row["cutoff"], rho)
    assert [float(probability) for probability in keep] == pytest.approx(row["keep"], abs=1e-12)
    for k, expected in row["transition"].items():
        ours = transitions.matrix(transitions.moments(keep, int(k)), rho, int(k))
        np.testing.assert_allclose(ours, expected, atol=1e-12)
    if row.get("weights_3"):
        ours = transitions.support_weights(transitions.moments(keep, 3), rho, 3)
        assert [float(weight) for weight in ours] == pytest.approx(row["weights_3"], abs=1e-6)


@paper(FACTS["paper"])
def test_flip_has_the_published_matrix_for_every_size() -> None:
    flip = mask("0.9", vocabulary_size=9)
    phi, insert = channel(flip, 5, 3)
    np.testing.assert_allclose(transitions.matrix(phi, insert, 3), FACTS["mask_P_k3_p0.9"], atol=1e-12)
    for size in (3, 5, 8):
        assert transitions.moments(flip.plan(size).keep, 3) == phi


@given(st.integers(1, 6).flatmap(plans), st.fractions(0, 1, max_denominator=20), st.integers(1, 4))
def test_columns_add_up_and_the_inverse_inverts(keep: list[Fraction], insert: Fraction, k: int) -> None:
    phi = transitions.moments(keep, k)
    k = min(k, len(keep) - 1)
    seen = transitions.transition(phi, insert, k)
    assert all(sum(row[present] for row in seen) == 1 for present in range(k + 1))
    assert min(map(min, seen)) >= 0
    if any(abs(transitions.contrast(phi, insert, j)) < transitions.NOTHING for j in range(1, k + 1)):
        with pytest.raises(Unsupported):
            transitions.inverse(phi, insert, k)
        return
    back = transitions.inverse(phi, insert, k)
    product = [[sum(a * row[c] for a, row in zip(line, seen, strict=True)) for c in range(k + 1)] for line in back]
    assert product == [[int(i == j) for j in range(k + 1)] for i in range(k + 1)]
    assert back[-1] == transitions.support_weights(phi, insert, k)


def test_cutoff_below_the_itemset_is_refused_with_a_clear_message() -> None:
    row = FACTS["cut_and_paste"]["B"]
    assert row["weights_3"] is None
    phi = transitions.moments(cut_and_paste_keep(3, 1, Fraction(1, 10)), 3)
    assert transitions.support_weights(phi, Fraction(1, 10), 1)
    with pytest.raises(Unsupported, match=r"support of 2 items cannot be recovered.*\n.*cutoff of 2 or more"):
        transitions.support_weights(phi, Fraction(1, 10), 2)


def test_moments_beyond_the_basket_are_zero() -> None:
    assert transitions.moments([Fraction(0), Fraction(1)], 3) == (1, 1, 0, 0)
