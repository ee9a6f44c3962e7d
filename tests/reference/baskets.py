"""Reference implementations of operators on baskets: every outcome listed, every report drawn word by word."""

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
    chances: Chances = defaultdict(Fraction)
    others = [item for item in range(items) if item not in basket]
    for stay, chance in enumerate(plan.keep):
        ways = list(combinations(basket, stay))
        for retained in ways:
            for coins in product((False, True), repeat=len(others)):
                weight = chance / len(ways)
                for heads in coins:
                    weight *= plan.insert if heads else 1 - plan.insert
                shown = [item for item in retained if item != BLANK and item < items]
                shown += [item for item, heads in zip(others, coins, strict=True) if heads]
                chances[tuple(sorted(shown))] += weight
    return chances


def resize_and_select(plan: SizePlan, basket: Sequence[int], items: int) -> Chances:
    """The same with blanks for items that are missing, or over every way to leave some out."""
    blanks = range(items, items + plan.size - len(basket))
    ways = [(*basket, *blanks)] if len(basket) <= plan.size else list(combinations(basket, plan.size))
    chances: Chances = defaultdict(Fraction)
    for way in ways:
        for report, chance in select_a_size(plan, way, items).items():
            chances[report] += chance / len(ways)
    return chances


def cut_and_paste_by_steps(cutoff: int, rho: Fraction, basket: Sequence[int], items: int) -> Chances:
    """As in the paper: j uniform in 0 .. cutoff (all, if there are fewer), j items stay, every other is inserted with rho."""
    chances: Chances = defaultdict(Fraction)
    for drawn in range(cutoff + 1):
        ways = list(combinations(basket, min(drawn, len(basket))))
        for retained in ways:
            others = [item for item in range(items) if item not in retained]
            for coins in product((False, True), repeat=len(others)):
                weight = Fraction(1, (cutoff + 1) * len(ways))
                for heads in coins:
                    weight *= rho if heads else 1 - rho
                shown = {*retained, *(item for item, heads in zip(others, coins, strict=True) if heads)}
                chances[tuple(sorted(shown))] += weight
    return chances


def flip_items(keep: Fraction, insert: Fraction, basket: Sequence[int], items: int) -> Chances:
    chances: Chances = defaultdict(Fraction)
    for report in subsets(range(items)):
        weight = Fraction(1)
        for item in range(items):
            shown = keep if item in basket else insert
            weight *= shown if item in report else 1 - shown
        chances[report] = weight
    return chances


class Words(Stream):
    """The stream as 64-bit words, the low half first."""

    def next(self, count: int = 1) -> list[int]:
        self.need(2 * count)
        taken = self.words[self.at : self.at + 2 * count]
        self.at += 2 * count
        assert self.at <= BUFFER
        return [taken[i] | taken[i + 1] << 32 for i in range(0, 2 * count, 2)]

    def shuffle(self, contents: list[int], first: int) -> None:
        for index in range(first):
            bound = len(contents) - index
            while True:
                value = (self.next()[0] >> 32) * bound
                if value % 2**32 >= 2**32 % bound:
                    break
            other = index + (value >> 32)
            contents[index], contents[other] = contents[other], contents[index]

    def coins(self, heads: int, items: int) -> set[int]:
        """512 at a time: the digits of a random number each, compared with those of heads / 2**48 until all differ."""
        shown: set[int] = set()
        digits = [heads >> (47 - position) & 1 for position in range(48)]
        used_digits = max((position + 1 for position in range(48) if digits[position]), default=0)
        for start in range(0, -(-items // 64) * 64, 512):
            if heads == WHOLE:
                shown |= set(range(start, start + 512))
                continue
            undecided = set(range(512))
            for digit in digits[:used_digits]:
                words = self.next(8)
                random = {coin: words[coin // 64] >> coin % 64 & 1 for coin in undecided}
                shown |= {start + coin for coin in undecided if random[coin] < digit}
                undecided = {coin for coin in undecided if random[coin] == digit}
                if not undecided:
                    break
        return {item for item in shown if item < items}


def randomize(operator: SetOperator, baskets: Iterable[Sequence[int]], seed: str) -> list[list[int]]:
    """The reports of the bulk kernels, drawn one by one."""
    stream, reports, items = Words(seed), [], operator.vocabulary_size
    for basket in baskets:
        if operator.flip:
            stay, come = (int(chance * WHOLE) for chance in operator.flip)
            shown = stream.coins(come, items) - set(basket)
            shown |= {item for item in basket if stream.next()[0] >> 16 < stay}
            reports.append(sorted(shown))
            continue
        plan, contents = operator.plan(len(basket)), list(basket)
        if len(contents) > plan.size:
            stream.shuffle(contents, plan.size)
            contents = contents[: plan.size]
        contents += [BLANK] * (plan.size - len(contents))
        shown = stream.coins(int(plan.insert * WHOLE), items) - set(contents)
        drawn, stay, total = stream.next()[0] >> 16, 0, plan.keep[0] * WHOLE
        while drawn >= total:
            stay += 1
            total += plan.keep[stay] * WHOLE
        stream.shuffle(contents, stay)
        shown |= {item for item in contents[:stay] if item != BLANK}
        size_item = [items + operator.sizes.index(len(basket))] if operator.needs_size else []
        reports.append([*sorted(shown), *size_item])
    return reports


def members(rows: np.ndarray) -> list[list[int]]:
    """Rows of 64-bit words as lists of codes."""
    return [
        [64 * word + bit for word in range(len(row)) for bit in range(64) if int(row[word]) >> bit & 1] for row in rows
    ]


def counts(reports: Iterable[Sequence[int]], itemsets: Iterable[Sequence[int]]) -> list[int]:
    """In how many reports all items of each itemset are."""
    contents = [set(report) for report in reports]
    return [sum(set(itemset) <= report for report in contents) for itemset in itemsets]
