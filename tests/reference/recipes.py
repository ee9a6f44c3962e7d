"""A client written from the recipes and the description of the stream alone, as one in another language would be."""

from __future__ import annotations

import hashlib
import math
from typing import Any

WHOLE = 2**48


def stream(seed: str) -> Any:
    block = 0
    while True:
        yield from hashlib.sha256(f"{seed}/{block}".encode()).digest()
        block += 1


def below(bound: int, bytes_: Any) -> int:
    size = 0
    while 256**size < bound:
        size += 1
    while True:
        x = 0
        for _ in range(size):
            x = 256 * x + next(bytes_)
        if x < 256**size - 256**size % bound:
            return x % bound


def coin(heads: int, bytes_: Any) -> bool:
    return below(WHOLE, bytes_) < heads


def table(recipe: dict[str, Any], value: int, bytes_: Any) -> int:
    left, index = below(WHOLE, bytes_), 0
    while left >= recipe["weights"][index]:
        left -= recipe["weights"][index]
        index += 1
    return value + index


def cut_table(recipe: dict[str, Any], value: int, bytes_: Any) -> int:
    return sorted((0, table(recipe, value, bytes_) - recipe["reach"], recipe["values"] - 1))[1]


def even(recipe: dict[str, Any], value: int, bytes_: Any) -> int:
    return value + below(2 * recipe["reach"] + 1, bytes_)


def wave(recipe: dict[str, Any], value: int, bytes_: Any) -> int:
    wide = 2 * recipe["half"] + 1
    if coin(recipe["near"], bytes_):
        return value + below(wide, bytes_)
    return [*range(value), *range(value + wide, recipe["values"] + wide - 1)][below(recipe["values"] - 1, bytes_)]


def response(recipe: dict[str, Any], value: int, bytes_: Any, keep: str = "keep") -> int:
    if coin(recipe[keep], bytes_):
        return value
    return [code for code in range(recipe["values"]) if code != value][below(recipe["values"] - 1, bytes_)]


def unary(recipe: dict[str, Any], value: int, bytes_: Any) -> list[int]:
    heads = [WHOLE // 2 if code == value else recipe["rare"] for code in range(recipe["values"])]
    return [code for code in range(recipe["values"]) if coin(heads[code], bytes_)]


def subset(recipe: dict[str, Any], value: int, bytes_: Any) -> list[int]:
    chosen = [value] if coin(recipe["keep"], bytes_) else []
    others = [code for code in range(recipe["values"]) if code != value]
    while len(chosen) < recipe["size"]:
        other = others[below(len(others), bytes_)]
        chosen += [] if other in chosen else [other]
    return sorted(chosen)


def point(code: int, recipe: dict[str, Any]) -> tuple[int, ...]:
    """Return the vector with this code: canonical vectors in ascending order, read as numbers."""
    prime, start = recipe["prime"], 0
    for level in range(recipe["dimension"]):
        if code < start + prime**level:
            number = prime**level + code - start
            return tuple(number // prime**power % prime for power in reversed(range(recipe["dimension"])))
        start += prime**level
    raise ValueError


def projective(recipe: dict[str, Any], value: int, bytes_: Any) -> int:
    prime, dimension = recipe["prime"], recipe["dimension"]
    points = sum(prime**level for level in range(dimension))
    if not coin(recipe["keep"], bytes_):
        return below(points, bytes_)
    number, own = 1 + below(prime ** (dimension - 1) - 1, bytes_), point(value, recipe)
    vector = [number // prime**power % prime for power in reversed(range(dimension - 1))]
    lead = own.index(1)
    vector.insert(lead, 0)
    vector[lead] = -sum(a * b for a, b in zip(vector, own, strict=True)) % prime
    first = next(part for part in vector if part)
    scaled = tuple(part * pow(first, prime - 2, prime) % prime for part in vector) if prime > 2 else tuple(vector)
    return next(code for code in range(points) if point(code, recipe) == scaled)


def hashed(recipe: dict[str, Any], value: int, bytes_: Any) -> int:
    seed = below(recipe["seeds"], bytes_)
    cell = (bin(seed // 2 & value).count("1") + seed) % 2
    return 2 * seed + (cell if coin(recipe["keep"], bytes_) else 1 - cell)


def prefix(recipe: dict[str, Any], value: int, bytes_: Any) -> list[int]:
    prime, width, levels = recipe["prime"], recipe["width"], recipe["levels"]
    index = below(len(levels), bytes_)
    level = levels[index]
    size = level["dimension"]
    space = {"prime": prime, "dimension": size}
    if coin(level["keep"], bytes_):
        number = 1 + below(prime ** (size - 1) - 1, bytes_)
        first = value // 2 ** (levels[-1]["length"] - level["length"])
        vector = [number // prime**power % prime for power in reversed(range(size - 1))]
        own = [first // prime**power % prime for power in reversed(range(size - 1))]
        vector.insert(0, -sum(a * b for a, b in zip(vector, own, strict=True)) % prime)
        lead = next(part for part in vector if part)
        vector = [part * next(i for i in range(1, prime) if i * lead % prime == 1) % prime for part in vector]
    else:
        vector = list(point(below(sum(prime**power for power in range(size)), bytes_), space))
    flat = [part // 2**bit % 2 for part in vector for bit in range(width)]
    return [index] + [len(levels) + position for position, bit in enumerate(flat) if bit]


def some_of(items: list[int], count: int, bytes_: Any) -> list[int]:
    """Return `count` of the items: index i is swapped with an index drawn from i on."""
    shuffled = list(items)
    for index in range(count):
        other = index + below(len(shuffled) - index, bytes_)
        shuffled[index], shuffled[other] = shuffled[other], shuffled[index]
    return shuffled[:count]


def select(recipe: dict[str, Any], basket: list[int], bytes_: Any) -> list[int]:
    """Baskets brought to one size: cut by a draw, or filled up with codes behind the items, which are never shown."""
    items, plans, fixed = recipe["items"], recipe["plans"], recipe["fixed"]
    contents, size = sorted(basket), len(basket) if fixed is None else fixed
    plan_index = [plan["size"] for plan in plans].index(size)
    contents = (
        some_of(contents, size, bytes_)
        if len(contents) > size
        else contents + list(range(items, items + size - len(contents)))
    )
    left, stay = below(WHOLE, bytes_), 0
    while left >= plans[plan_index]["keep"][stay]:
        left -= plans[plan_index]["keep"][stay]
        stay += 1
    retained = some_of(contents, stay, bytes_)
    report = [
        item
        for item in range(items)
        if (item in retained if item in contents else coin(plans[plan_index]["insert"], bytes_))
    ]
    return report + ([items + plan_index] if fixed is None else [])


def flip(recipe: dict[str, Any], basket: list[int], bytes_: Any) -> list[int]:
    heads = [recipe["stay"] if item in basket else recipe["come"] for item in range(recipe["items"])]
    return [item for item in range(recipe["items"]) if coin(heads[item], bytes_)]


def privset(recipe: dict[str, Any], basket: list[int], bytes_: Any) -> list[int]:
    items, most, size = recipe["items"], recipe["choose"], recipe["size"]
    padded = sorted(basket) + list(range(items, items + most - len(basket)))
    others = [code for code in range(items + most) if code not in padded]
    true = 0
    if coin(recipe["meet"], bytes_):
        ways = [math.comb(most, j) * math.comb(items, size - j) for j in range(1, min(most, size) + 1)]
        left = below(sum(ways), bytes_)
        while left >= ways[true]:
            left -= ways[true]
            true += 1
        true += 1
    shown = some_of(padded, true, bytes_)
    return sorted(shown + some_of(others, size - true, bytes_))


def one_option(recipe: dict[str, Any], basket: list[int], bytes_: Any) -> int:
    option = below(recipe["items"], bytes_)
    answer = option in basket
    return 2 * option + (answer if coin(recipe["keep"], bytes_) else not answer)


def hybrid(recipe: dict[str, Any], value: int, bytes_: Any) -> int:
    last, wide = recipe["values"] - 1, 2 * recipe["half"] + 1
    positions = last * recipe["fine"] + wide
    if recipe["piecewise"] and coin(recipe["piecewise"], bytes_):
        start = value * recipe["fine"]
        return start + below(wide, bytes_) if coin(recipe["near"], bytes_) else below(positions, bytes_)
    is_upper = below(last, bytes_) < value
    return (positions if recipe["piecewise"] else 0) + (is_upper if coin(recipe["keep"], bytes_) else not is_upper)


DRAWS = {
    "hybrid": hybrid,
    "privset": privset,
    "one-option": one_option,
    "select-a-size": select,
    "cut-and-paste": select,
    "mask": flip,
    "table": table,
    "table, cut back to the range": cut_table,
    "even": even,
    "square wave": wave,
    "response": response,
    "unary": unary,
    "subset": subset,
    "projective-geometry": projective,
    "hash-response": hashed,
    "prefix": prefix,
}


def permanent(recipe: dict[str, Any], value: Any, bytes_: Any) -> Any:
    """The answer that is remembered."""
    return DRAWS[recipe["draw"]](recipe, value, bytes_)


def fresh(recipe: dict[str, Any], answer: Any, bytes_: Any) -> Any:
    """A report of a remembered answer, where there is a second layer."""
    if recipe.get("again", WHOLE) != WHOLE and recipe["draw"] == "hash-response":
        return answer if coin(recipe["again"], bytes_) else answer ^ 1
    if recipe.get("again", WHOLE) != WHOLE:
        return response(recipe, answer, bytes_, keep="again")
    if recipe.get("stay", WHOLE) != WHOLE:
        return [code for code in range(recipe["values"]) if coin(recipe["stay"], bytes_) == (code in answer)]
    return answer
