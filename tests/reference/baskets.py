"""Slow twins of operators on baskets: every outcome listed, every report drawn word by word, every count a loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import TypeAlias

import numpy as np
from reference.bulk import BUFFER, Stream

from tidegate.operators.basket_plans import SetOperator, SizePlan
from tidegate.operators.exact_draws import WHOLE

BLANK = -1
Chances: TypeAlias = defaultdict[tuple[int, ...], Fraction]


def subsets(items: Iterable[int]) -> Iterator[tuple[int, ...]]:
    listed = list(items)
    for size in range(len(listed) + 1):
        yield from combinations(listed, size)


def select_a_size(plan: SizePlan, basket: Sequence[int], items: int) -> Chances:
    """P(report | basket) of all reports: choose a number, choose which, throw a coin for every other item."""
    found: Chances = defaultdict(Fraction)
    others = [item for item in range(items) if item not in basket]
    for stay, chance in enumerate(plan.keep):
        ways = list(combinations(basket, stay))
        for kept in ways:
            for coins in product((False, True), repeat=len(others)):
                weight = chance / len(ways)
                for heads in coins:
                    weight *= plan.insert if heads else 1 - plan.insert
                shown = [item for item in kept if item != BLANK and item < items]
                shown += [item for item, heads in zip(others, coins, strict=True) if heads]
                found[tuple(sorted(shown))] += weight
    return found


def brought_to_size(plan: SizePlan, basket: Sequence[int], items: int) -> Chances:
    """The same with blanks for items that are missing, or over every way to leave some out."""
    blanks = range(items, items + plan.size - len(basket))
    ways = [(*basket, *blanks)] if len(basket) <= plan.size else list(combinations(basket, plan.size))
    found: Chances = defaultdict(Fraction)
    for way in ways:
        for report, chance in select_a_size(plan, way, items).items():
            found[report] += chance / len(ways)
    return found


def cut_and_paste_by_steps(cutoff: int, rho: Fraction, basket: Sequence[int], items: int) -> Chances:
    """As the paper tells it: j uniform in 0 .. cutoff (all, if there are fewer), j items stay, then every other by rho."""
    found: Chances = defaultdict(Fraction)
    for drawn in range(cutoff + 1):
        ways = list(combinations(basket, min(drawn, len(basket))))
        for kept in ways:
            others = [item for item in range(items) if item not in kept]
            for coins in product((False, True), repeat=len(others)):
                weight = Fraction(1, (cutoff + 1) * len(ways))
                for heads in coins:
                    weight *= rho if heads else 1 - rho
                shown = {*kept, *(item for item, heads in zip(others, coins, strict=True) if heads)}
                found[tuple(sorted(shown))] += weight
    return found


def flipped(keep: Fraction, insert: Fraction, basket: Sequence[int], items: int) -> Chances:
    found: Chances = defaultdict(Fraction)
    for report in subsets(range(items)):
        weight = Fraction(1)
        for item in range(items):
            shown = keep if item in basket else insert
            weight *= shown if item in report else 1 - shown
        found[report] = weight
    return found


class Words(Stream):
    """The stream as 64-bit words, the low half first."""

    def next(self, count: int = 1) -> list[int]:
        self.need(2 * count)
        taken = self.words[self.at : self.at + 2 * count]
        self.at += 2 * count
        assert self.at <= BUFFER
        return [taken[i] | taken[i + 1] << 32 for i in range(0, 2 * count, 2)]

    def shuffle(self, held: list[int], first: int) -> None:
        for place in range(first):
            bound = len(held) - place
            while True:
                value = (self.next()[0] >> 32) * bound
                if value % 2**32 >= 2**32 % bound:
                    break
            other = place + (value >> 32)
            held[place], held[other] = held[other], held[place]

    def coins(self, heads: int, items: int) -> set[int]:
        """512 at a time: the digits of a random number each, compared with those of heads / 2**48 until all differ."""
        shown: set[int] = set()
        digits = [heads >> (47 - place) & 1 for place in range(48)]
        many = max((place + 1 for place in range(48) if digits[place]), default=0)
        for start in range(0, -(-items // 64) * 64, 512):
            if heads == WHOLE:
                shown |= set(range(start, start + 512))
                continue
            undecided = set(range(512))
            for digit in digits[:many]:
                words = self.next(8)
                random = {coin: words[coin // 64] >> coin % 64 & 1 for coin in undecided}
                shown |= {start + coin for coin in undecided if random[coin] < digit}
                undecided = {coin for coin in undecided if random[coin] == digit}
                if not undecided:
                    break
        return {item for item in shown if item < items}


def randomized(operator: SetOperator, baskets: Iterable[Sequence[int]], seed: str) -> list[list[int]]:
    """The reports of the bulk kernels, drawn one by one."""
    stream, reports, items = Words(seed), [], operator.vocabulary_size
    for basket in baskets:
        if operator.flip:
            stay, come = (int(chance * WHOLE) for chance in operator.flip)
            shown = stream.coins(come, items) - set(basket)
            shown |= {item for item in basket if stream.next()[0] >> 16 < stay}
            reports.append(sorted(shown))
            continue
        plan, held = operator.plan(len(basket)), list(basket)
        if len(held) > plan.size:
            stream.shuffle(held, plan.size)
            held = held[: plan.size]
        held += [BLANK] * (plan.size - len(held))
        shown = stream.coins(int(plan.insert * WHOLE), items) - set(held)
        drawn, stay, total = stream.next()[0] >> 16, 0, plan.keep[0] * WHOLE
        while drawn >= total:
            stay += 1
            total += plan.keep[stay] * WHOLE
        stream.shuffle(held, stay)
        shown |= {item for item in held[:stay] if item != BLANK}
        told = [items + operator.sizes.index(len(basket))] if operator.needs_size else []
        reports.append([*sorted(shown), *told])
    return reports


def members(rows: np.ndarray) -> list[list[int]]:
    """Rows of 64-bit words as lists of codes."""
    return [
        [64 * word + bit for word in range(len(row)) for bit in range(64) if int(row[word]) >> bit & 1] for row in rows
    ]


def counts(reports: Iterable[Sequence[int]], itemsets: Iterable[Sequence[int]]) -> list[int]:
    """In how many reports all items of each itemset are."""
    held = [set(report) for report in reports]
    return [sum(set(itemset) <= report for report in held) for itemset in itemsets]
