"""The reference implementation of the release controller decides 10,000 requests like an independent program.

The fast controller is compared with the reference elsewhere; here the reference itself is tested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import islice
from typing import Any

import pytest
from golden.papers import golden, paper
from reference import release as reference
from reference.release import Check, Column, Counts, ReferenceController, RememberingController

FACTS = golden("release_run")
TABLE: list[list[int]] = FACTS["figure_2"]["counts"]
RUN = FACTS["run"]
ENTRIES: dict[str, Any] = RUN["entries"]
TARGETS = len(FACTS["targets"])
TOTAL = sum(map(sum, TABLE))
BASELINE = tuple(Fraction(sum(row), TOTAL) for row in TABLE)
SMALLER = "CST|alpha=0.2|order=0|merge=smaller-neighbour"


def requests() -> Iterator[tuple[int, int]]:
    """Yield all records of Figure 2, each once, in the order of the run."""
    listed = [(x, y) for x, row in enumerate(TABLE) for y, count in enumerate(row) for _ in range(count)]
    return (listed[(k * 3571 + 17) % TOTAL] for k in range(TOTAL))


def settings(entry: str) -> tuple[str, float, str, str]:
    """Return the metric, its significance, the order of the queue and the merging rule."""
    metric, *rest = entry.split("|")
    named = dict(part.split("=") for part in rest)
    return metric, float(named["alpha"]), RUN["orders"][named["order"]], named.get("merge", "")


def check(entry: str) -> Check:
    """Return the test of an entry of the run."""
    metric, significance, _, rule = settings(entry)
    x_free = len(BASELINE) - 1
    if metric == "CST":
        return reference.ReferenceChiSquare(significance, rule)
    if metric == "DQT":
        return reference.ReferenceDixon(lambda different: FACTS["figure_10"][str(significance)][different - 3])
    simulated = RUN["critical"][f"{metric}|alpha={significance}"]
    if metric == "KLD":
        return reference.ReferenceKullbackLeibler(
            reference.critical_from_table(simulated, significance=significance, freedom=x_free)
        )
    return reference.ReferenceMutualInformation(
        reference.critical_from_table(simulated, significance=significance, freedom=x_free * TARGETS)
    )


def controller(entry: str, kind: type[ReferenceController] = RememberingController) -> ReferenceController:
    return kind([check(entry)], BASELINE, TARGETS, order=settings(entry)[2])


def decide(desk: ReferenceController) -> dict[str, Any]:
    """Return the result of the whole run, in the form of the golden entry."""
    at_once = sum(bool(desk.request(x, y)) for x, y in requests())
    return {"granted_on_request": at_once, "released": desk.counts}


QUICK_WITH_A_QUEUE = {"DQT|alpha=0.2|order=2"}  # with a queue, chi-square takes 5 s; without one, every entry is quick


def case(entry: str) -> Any:
    quick = settings(entry)[2] == "none" or entry in QUICK_WITH_A_QUEUE
    return pytest.param(entry, marks=() if quick else pytest.mark.long)


def test_run_requests_every_record_once_in_the_golden_order() -> None:
    requested = list(requests())
    assert [x * TARGETS + y for x, y in requested[:20]] == RUN["first_cells"]
    assert [[requested.count((x, y)) for y in range(TARGETS)] for x in range(len(TABLE))] == TABLE


@pytest.mark.one_in(4)  # every test at one significance
@pytest.mark.parametrize("entry", [case(entry) for entry in ENTRIES])
def test_reference_implementation_repeats_the_golden_run(entry: str) -> None:
    assert decide(controller(entry)) == ENTRIES[entry]


@pytest.mark.long
def test_reference_without_memory_repeats_the_golden_run() -> None:
    entry = "CST|alpha=0.2|order=2|merge=smaller-neighbour"
    assert decide(controller(entry, ReferenceController)) == ENTRIES[entry]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("order", ["order=1", "order=2"])
@pytest.mark.parametrize("metric", ["MIS", "KLD", "CST", "DQT"])
def test_remembered_denials_change_no_decision(metric: str, order: str) -> None:
    """Request by request; now and then a waiting one is withdrawn."""
    for entry in (name for name in ENTRIES if name.startswith(f"{metric}|alpha=0.2|{order}")):
        literal, remembering = controller(entry, ReferenceController), controller(entry)
        for number, (x, y) in enumerate(islice(requests(), 600)):
            assert literal.request(x, y) == remembering.request(x, y)
            if number % 7 == 0:
                assert literal.withdraw(number // 2) == remembering.withdraw(number // 2)
        assert (literal.queue, literal.counts) == (remembering.queue, remembering.counts)


# -- planted faults: a reference with a wrong rule is detected


def former_neighbour(column: Column) -> list[list[int]]:
    """Merge with the smaller neighbor, of equal ones the former: the mirror image, with the last small bin first."""
    last = len(column) - 1
    return [[last - x for x in reversed(members)] for members in reversed(reference.smaller_neighbour(column[::-1]))]


def merged_by_expectation(column: Column) -> list[list[int]]:
    """Merge where fewer than 5 are expected, regardless of the observed counts."""
    return reference.forward(tuple(math.floor(sum(column) * b) for b in BASELINE))


@pytest.mark.parametrize("wrong", [former_neighbour, merged_by_expectation])
def test_different_merging_rule_is_detected(wrong: Callable[[Column], list[list[int]]], monkeypatch: Any) -> None:
    monkeypatch.setitem(reference.MERGING, "wrong", wrong)
    desk = RememberingController([reference.ReferenceChiSquare(0.2, "wrong")], BASELINE, TARGETS, order="none")
    assert decide(desk)["released"] != ENTRIES[SMALLER]["released"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("metric", "freedom", "simulated"),
    [("MIS", 36, True), ("KLD", 8, True), ("MIS", 45, False), ("KLD", 9, False)],
    ids=["targets less one", "values less two", "no small samples for MIS", "no small samples for KLD"],
)
def test_different_critical_values_are_detected(metric: str, freedom: int, simulated: bool) -> None:
    kind = reference.ReferenceMutualInformation if metric == "MIS" else reference.ReferenceKullbackLeibler
    table = RUN["critical"][f"{metric}|alpha=0.2"] if simulated else []
    critical = reference.critical_from_table(table, significance=0.2, freedom=freedom)
    desk = RememberingController([kind(critical)], BASELINE, TARGETS, order="none")
    assert decide(desk) != ENTRIES[f"{metric}|alpha=0.2|order=0"]


class NewestFirst(RememberingController):
    def serve(self) -> None:
        while any(self.leaves(waiting) for waiting in reversed(self.queue)):
            pass


@pytest.mark.long  # 2 s; other planted faults are in every run
def test_different_queue_order_is_detected() -> None:
    entry = "KLD|alpha=0.2|order=2"
    assert decide(controller(entry, NewestFirst)) != ENTRIES[entry]


# -- parts of the reference implementation


def paper_values(statistic: str) -> list[float]:
    """Return what the paper prints for the whole table, from the reference implementation."""
    whole = Counts(TABLE, BASELINE)
    columns = whole.columns()
    bits = 2 * math.log(2)
    return {
        "mutual_information": [reference.mutual_information(whole) / (bits * TOTAL)],
        "kullback_leibler": [reference.kullback_leibler(column, BASELINE) / (bits * sum(column)) for column in columns],
        "pearson": [float(reference.pearson(column, BASELINE, "forward")[0]) for column in columns],
        "dixon": [reference.dixon(whole)[0]],
    }[statistic]


@paper("Bezzi et al., Examples 4.1-4.3, 5.11 and 5.13: the exposure of the whole table")
@pytest.mark.parametrize("fact", FACTS["worked"], ids=lambda fact: fact["statistic"])
def test_statistics_equal_the_published_ones(fact: dict[str, Any]) -> None:
    assert paper_values(fact["statistic"]) == pytest.approx(fact["printed"], abs=fact["tolerance"], rel=0)


@pytest.mark.parametrize(
    ("rule", "column", "bins"),
    [
        ("forward", (1, 2, 3, 9, 4), [[0, 1, 2], [3, 4]]),
        ("forward", (1, 0, 3), [[0, 1, 2]]),
        ("smaller-neighbour", (9, 4, 6, 1, 7), [[0], [1, 2], [3, 4]]),
        ("smallest-first", (10, 4, 6, 1, 7), [[0], [1, 2, 3], [4]]),
        ("smaller-neighbour", (6, 1, 6), [[0], [1, 2]]),
        ("smallest-first", (6, 1, 6), [[0], [1, 2]]),
        ("smallest-first", (9, 2, 8, 2, 7), [[0], [1, 2], [3, 4]]),
        ("smaller-neighbour", (5, 5, 5), [[0], [1], [2]]),
    ],
)
def test_values_are_merged_by_the_rule(rule: str, column: Column, bins: list[list[int]]) -> None:
    assert reference.MERGING[rule](column) == bins


HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
ALIKE = (HALF, HALF)
LEANING, STRICT = (Fraction(3, 4), Fraction(1, 4)), (Fraction(1), Fraction(0))


@pytest.mark.parametrize(
    ("column", "expected"),
    [((0, 0), HALF), ((1, 0), Fraction(7, 11)), ((0, 1), Fraction(1, 5)), ((1, 1), Fraction(3, 11))],
)
def test_posterior_equals_bayes_rule(column: Column, expected: Fraction) -> None:
    """Priors 1/4 leaning, 1/4 strict, 1/2 ordinary: worked by hand."""
    assert reference.posterior(column, ALIKE, (LEANING, STRICT), (HALF / 2, HALF / 2)) == expected


@pytest.mark.parametrize(("rho", "granted"), [(Fraction(3, 7), True), (Fraction(3, 7) - Fraction(1, 10**30), False)])
def test_posterior_can_reach_but_not_exceed_rho(rho: Fraction, granted: bool) -> None:
    """Prior 1/3, one record: (1/3)(3/4) against (2/3)(1/2), so 3/7."""
    desk = ReferenceController([reference.ReferencePosterior([LEANING], [THIRD], rho)], ALIKE, 1)
    assert desk.request(0, 0) == ([0] if granted else [])


def test_all_tests_must_hold_and_withdrawn_requests_are_never_released() -> None:
    class NotTheSecondTarget:
        def holds(self, counts: Counts, x: int, y: int) -> bool:
            return y != 1 or counts[0][0] >= 2

    class AtMostThree:
        def holds(self, counts: Counts, x: int, y: int) -> bool:
            return sum(map(sum, counts)) <= 3

    desk = ReferenceController([NotTheSecondTarget(), AtMostThree()], ALIKE, 2)
    assert [desk.request(*cell) for cell in [(0, 1), (1, 1), (1, 1), (0, 0)]] == [[], [], [], [3]]
    assert desk.withdraw(0)
    assert not desk.withdraw(0)
    assert not desk.withdraw(3)  # it has left
    assert desk.request(0, 0) == [4, 1]
    assert desk.queue == [(2, 1, 1)]
    assert desk.counts == [[2, 0], [0, 1]]


@pytest.mark.long  # test_gate.py compares every decision with the literal rescan
def test_queue_contains_no_admissible_request() -> None:
    desk = controller("MIS|alpha=0.2|order=2", ReferenceController)
    for x, y in islice(requests(), 300):
        desk.request(x, y)
        assert not any(desk.allows(*waiting[1:]) for waiting in desk.queue)
    assert desk.queue
