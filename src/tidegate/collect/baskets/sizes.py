"""Bringing a basket to one size, at the client: a size that is sent in clear lies outside of every epsilon."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.collect._bits import Bytes, below


def first_of_shuffled(items: Sequence[int], many: int, source: Bytes) -> list[int]:
    """`many` of the items, uniformly chosen: place i changes with place i + below(left), for i = 0, 1, ...

    The others follow behind them.
    """
    held = list(items)
    for place in range(many):
        other = place + below(len(held) - place, source)
        held[place], held[other] = held[other], held[place]
    return held


def to_size(basket: Sequence[int], size: int, vocabulary_size: int, source: Bytes) -> list[int]:
    """A basket of exactly `size` items: padded with blanks (codes behind the vocabulary), or cut down uniformly.

    Only old collections cut (`Question.cuts`). Supports are then those of the cut baskets: of a basket with r > size items a k-itemset survives with probability
    C(size, k) / C(r, k).
    """
    if len(basket) > size:
        return first_of_shuffled(basket, size, source)[:size]
    return [*basket, *range(vocabulary_size, vocabulary_size + size - len(basket))]
