"""What respondents read about each question of a poll: odds as counts of people, and one sentence of process.

The sentences are templates in web/texts/form.LANGUAGE.json, which the form in the browser uses as well. Every number comes
from the operator as an exact fraction. Counts are rounded to the nearest integer and say "about"; a limit is rounded up and
says "at most".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

from tidegate.collect.encoding import words_of
from tidegate.exact import say
from tidegate.operators import (
    BasketOperator,
    ChoiceOperator,
    HashResponse,
    Hybrid,
    Operator,
    PrivSet,
    ProjectiveGeometry,
    Pure,
    RandomizedResponse,
    SquareWave,
    SubsetSelection,
)
from tidegate.operators.exact_draws import WHOLE
from tidegate.policy.attributes import Attribute, Items, Numeric
from tidegate.policy.categories import Category
from tidegate.policy.collection import Collection, Question, has_mean, operator_for

LANGUAGES = ("en", "de", "fr", "es")
SIDES = 6  # of a die
DIGITS = 6  # of numbers in sentences
MOST_DECIMALS = 15
PAUSE = " | "  # in a template, between the odds of a question and what follows from them

Texts = Mapping[str, str]  # by language, or by name in one language
Statement = tuple[str, dict[str, str]]


def text_language(language: str) -> str:
    """Return the language of the page's own texts for a language of a poll: the same, without its region, or English."""
    return next((code for code in (language, language.partition("-")[0]) if code in LANGUAGES), LANGUAGES[0])


def in_language(texts: Texts, language: str) -> str:
    """Return a text in a language, or in the first one."""
    return texts.get(language) or next(iter(texts.values()), "")


@cache
def form_texts(language: str) -> Texts:
    """Return the templates of the form in a language, or in English."""
    file = files("tidegate") / "web" / "texts" / f"form.{text_language(language)}.json"
    content: dict[str, str] = json.loads(file.read_text("utf-8"))
    return content


def respondent_texts(collection: Collection, language: str = "") -> dict[str, list[str]]:
    """Return the sentences that respondents read about each question."""
    poll = collection.poll
    chosen = poll.language(language) if poll else language or LANGUAGES[0]
    texts = form_texts(chosen)
    sentences = {}
    for name, question in collection.questions.items():
        labels = option_labels(collection, name, chosen)
        filled = (texts[key].format(**values) for key, values in statements(question, labels, texts))
        sentences[name] = [text.replace(PAUSE, " ", 1) for text in filled]
    return sentences


def option_labels(collection: Collection, name: str, language: str) -> list[str]:
    """Return the labels of the first two values of a question, which sentences about two options quote."""
    question = collection.questions[name]
    if not isinstance(question.universe, Category | Items) or question.size < 2:
        return []
    words = [words_of(question, code) for code in range(2)]
    labels = [collection.poll.questions[name].label(word, language) for word in words] if collection.poll else words
    return [labels[0], form_texts(language)["field.none"]] if _is_missing(question.universe, 1) else labels


def _is_missing(universe: Attribute, code: int) -> bool:
    return isinstance(universe, Category) and code >= universe.size


def statements(question: Question, labels: Sequence[str], texts: Texts) -> Iterator[Statement]:
    """Yield the keys of the sentences about a question, with their values as text."""
    operator = operator_for(question)
    if isinstance(operator, ChoiceOperator):
        return _of_choices(operator, texts)
    if isinstance(operator, Pure):
        return _of_categories(question, operator, labels, texts)
    grid = question.universe
    if isinstance(operator, SquareWave | Hybrid) and isinstance(grid, Numeric) and has_mean(grid):
        return _of_numbers(grid, operator, texts)
    return _of_others(operator, texts)


def _of_categories(question: Question, operator: Pure, labels: Sequence[str], texts: Texts) -> Iterator[Statement]:
    k = operator.values
    if isinstance(operator, RandomizedResponse) or (isinstance(operator, SubsetSelection) and operator.size == 1):
        of, (n,) = _counts(texts, 1 - operator.p)
        after = at_most(texts, operator.p)
        if k == 2:
            own, other = (texts["quote"].format(text=label) for label in reversed(labels))
            yield "chances.two", {"of": of, "own": own, "other": other, "n": n, "after": after}
        else:
            yield "chances.options", {"of": of, "n": n, "k": _whole(texts, k), "after": after}
        yield _random_share(question, k * (1 - operator.p) / (k - 1), texts)
    else:
        of, (p, q) = _counts(texts, operator.p, operator.q)
        chances = {"of": of, "p": p, "q": q, "after": _after(texts, operator.gamma)}
        if isinstance(operator, SubsetSelection):
            yield "chances.subset", {**chances, "w": _whole(texts, operator.size), "k": _whole(texts, k)}
            yield "process.subset", {"p": p, "of": of}
        else:
            yield "chances.group", chances
            yield _group_process(operator, texts)
    if operator.lifetime_gamma != operator.gamma:
        yield "chances.rounds", {"after": _after(texts, operator.lifetime_gamma)}


def _random_share(question: Question, computed: Fraction, texts: Texts) -> Statement:
    """Return how a share of the reports becomes a uniform draw: by a die or a number from 1 to 100 if that is exact."""
    share = question.parameters.get("random")
    if share is not None and (SIDES * share).denominator == 1:
        return "process.die", {"faces": texts[f"process.die.{SIDES * share}"]}
    if share is not None and (100 * share).denominator == 1:
        return "process.hundred", {"n": _whole(texts, int(100 * share))}
    of, (n,) = _counts(texts, computed if share is None else share)
    return "process.share", {"of": of, "n": n}


def _group_process(operator: Pure, texts: Texts) -> Statement:
    if isinstance(operator, HashResponse):
        of, (n,) = _counts(texts, 1 - operator.p)
        return "process.cells", {"of": of, "n": n}
    if isinstance(operator, ProjectiveGeometry):
        of, (n,) = _counts(texts, 1 - Fraction(operator.keep, WHOLE))
        return "process.group", {"of": of, "n": n}
    return "process.unary", {}


def _of_choices(operator: ChoiceOperator, texts: Texts) -> Iterator[Statement]:
    after = _after(texts, operator.gamma)
    if isinstance(operator, PrivSet):
        of, (p, q) = _counts(texts, operator.p, operator.q)
        chances = {"of": of, "p": p, "q": q, "after": after}
        if operator.size == 1:
            yield "chances.privset.single", chances
        else:
            yield "chances.privset", {**chances, "w": _whole(texts, operator.size)}
        of, (n,) = _counts(texts, Fraction(operator.meet, WHOLE))
        yield "process.privset", {"m": _whole(texts, operator.choose), "of": of, "n": n}
    else:
        of, (n,) = _counts(texts, operator.q)
        yield "chances.one", {"of": of, "n": n, "after": after}
        yield "process.one", {"d": _whole(texts, operator.items), "of": of, "n": n}


def _of_numbers(grid: Numeric, operator: SquareWave | Hybrid, texts: Texts) -> Iterator[Statement]:
    after = _after(texts, operator.gamma)
    if isinstance(operator, SquareWave):
        of, (n,) = _counts(texts, Fraction(operator.near, WHOLE))
        distance = operator.half * grid.width
        ends = {"low": _number(texts, grid.low - distance), "high": _number(texts, grid.high + distance)}
        key = "near" if operator.half else "same"
        near = {"distance": _number(texts, distance)} if operator.half else {}
        yield f"chances.{key}", {"of": of, "n": n, **near, **ends, "after": after}
        yield f"process.{key}", {"of": of, "n": n}
        return
    ends = {"low": _number(texts, grid.low), "high": _number(texts, grid.high)}
    if not operator.piecewise:
        of, (n,) = _counts(texts, 1 - Fraction(operator.keep, WHOLE))
        yield "chances.ends", {"of": of, "n": n, **ends, "after": after}
        yield "process.ends", {"of": of, "n": n, **ends}
        return
    positions = Fraction(operator.piecewise, WHOLE)
    of, (at_ends, n) = _counts(texts, 1 - positions, positions * operator.inside * (2 * operator.half + 1))
    distance = -(-operator.half // operator.fine) * grid.width
    near = {"ends": at_ends, "n": n, "distance": _number(texts, distance)}
    yield "chances.mean", {"of": of, **near, **ends, "after": after}
    yield "process.mean", {"of": of, "ends": at_ends}


def _of_others(operator: Operator, texts: Texts) -> Iterator[Statement]:
    gamma = operator.lifetime_gamma
    yield ("chances.unlimited", {}) if gamma is None else ("chances.limit", {"after": _after(texts, gamma)})
    noise = "process.text" if operator.of_texts else "process.noise"
    yield "process.items" if isinstance(operator, BasketOperator) else noise, {}


# Numbers


def people(*chances: Fraction) -> int:
    """Return the size of a group of people, 100 or a larger power of ten, in which every count is clear of 0 and of all."""
    size = 100
    while any(0 < chance < 1 and not 2 <= round(chance * size) <= size - 2 for chance in chances):
        size *= 10
    return size


def _counts(texts: Texts, *chances: Fraction) -> tuple[str, list[str]]:
    """Return the size of a group as text, and the expected number of its people for each probability."""
    size = people(*chances)
    return _whole(texts, size), [_whole(texts, round(chance * size)) for chance in chances]


def at_most(texts: Texts, chance: Fraction) -> str:
    """Return a limit as a number in 100, rounded up; decimals only if it would be rounded to 100."""
    for decimals in range(MOST_DECIMALS):
        scale = 10**decimals
        limit = -(-100 * scale * chance.numerator // chance.denominator)
        if limit < 100 * scale:
            whole, rest = divmod(limit, scale)
            return f"{whole}{texts['number.decimal']}{rest:0{decimals}}" if decimals else str(whole)
    return "100"


def _after(texts: Texts, gamma: Fraction | None) -> str:
    """Return the most that anything of probability 50 in 100 can become."""
    return "100" if gamma is None else at_most(texts, gamma / (gamma + 1))


def _whole(texts: Texts, number: int) -> str:
    return f"{number:,}".replace(",", texts["number.group"])


def _number(texts: Texts, number: Fraction) -> str:
    """Return a number of the attribute's units in the format of a language."""
    separators: dict[Any, str] = {ord(","): texts["number.group"], ord("."): texts["number.decimal"]}
    return say(number, DIGITS).translate(separators)
