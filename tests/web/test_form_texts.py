"""What respondents read: every number is that of the exact channel, in every language, in Python and in the browser."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from string import Formatter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.form_service import Fault, Site

from tidegate.collect.polls.respondent_texts import LANGUAGES, form_texts, respondent_texts
from tidegate.collect.reconstruct.categories import shares
from tidegate.collect.shares import Group
from tidegate.exact import Number
from tidegate.operators import ChoiceOperator, Hybrid, Operator, Pure, SquareWave
from tidegate.operators.exact_draws import SystemBytes
from tidegate.policy import Category, Collection, Decimal, Integer, Question
from tidegate.policy.attributes import Attribute, Items, Numeric
from tidegate.policy.collection import operator_for
from tidegate.policy.poll import Poll, Wording

if TYPE_CHECKING:
    from playwright.sync_api import Page

YES, STEPS = Category(("yes", "no")), Decimal("-1.5", "2.5", "0.5")
ATTRIBUTES = itertools.count()
SAME_WORD = {"code.label", "simulator.option"}  # "Code" and "Option" in other languages
FORBIDDEN = {
    "en": ("lie", "lies", "lying", "false", "fake", "untrue"),
    "de": ("lüge", "lügen", "lügt", "falsch", "falsche", "gefälscht", "unwahr"),
    "fr": ("mensonge", "mentir", "ment", "faux", "fausse", "falsifié"),
    "es": ("mentira", "mentir", "miente", "falso", "falsa", "falsificado"),
}


def options(count: int) -> Category:
    return Category(tuple(f"option {number}" for number in range(count)))


def items(count: int) -> Items:
    return Items(tuple(f"option {number}" for number in range(count)))


def cases() -> Iterator[Question]:
    """Every operator of a poll, from weak to strong, with few and many values."""
    for random in ("1/2", "1/3", "1/6", "5/6", "0.3", "0.07", "2/7"):
        yield from (asked(options(k), "randomized-response", random=random) for k in (2, 3, 11))
    for epsilon in ("0.1", 1, "2.5", 14):
        yield asked(YES, "randomized-response", epsilon=epsilon)
        yield asked(options(7), "randomized-response", epsilon=epsilon)
        yield asked(options(9), "subset", epsilon=epsilon)
        yield asked(options(6), "unary", epsilon=epsilon)
        yield asked(options(5), "hash-response", epsilon=epsilon)
        yield asked(options(9), "projective-geometry", epsilon=epsilon)
        yield from (asked(items(d), "privset", epsilon=epsilon, choose=m) for d, m in ((5, 2), (4, 1), (6, 3)))
        yield asked(items(4), "one-option", epsilon=epsilon)
        yield from (asked(grid, "square-wave", epsilon=epsilon) for grid in (Integer(0, 20), STEPS))
    for epsilon, grid in itertools.product(("0.1", "2.5"), (Integer(0, 3), STEPS)):
        yield asked(grid, "hybrid", epsilon=epsilon)


def asked(universe: Attribute, operator: str, **parameters: Number) -> Question:
    """A question about an attribute of its own."""
    return Question(f"attribute{next(ATTRIBUTES)}", universe, operator, **parameters)


def poll_of(questions: Iterable[Question], languages: tuple[str, ...] = LANGUAGES) -> Collection:
    """A poll with these questions; every text is the same in all languages."""

    def same(text: str) -> dict[str, str]:
        return dict.fromkeys(languages, text)

    named = {f"q{number}": question for number, question in enumerate(questions)}
    wording = {
        name: Wording(same(name), {label: same(label.upper()) for label in labels_of(question)})
        for name, question in named.items()
    }
    poll = Poll(languages, same("Title"), same("Purpose"), wording, "open", datetime(2030, 1, 1, tzinfo=UTC))
    return Collection("texts", named, holder="Works council", poll=poll)


def labels_of(question: Question) -> tuple[str, ...]:
    universe = question.universe
    return universe.vocabulary if isinstance(universe, Items) else tuple(map(str, getattr(universe, "values", ())))


@cache
def all_cases() -> Collection:
    return poll_of(cases())


# Texts


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_texts_and_placeholders(language: str) -> None:
    english, texts = form_texts("en"), form_texts(language)
    assert list(texts) == list(english)
    assert {key: placeholders(text) for key, text in texts.items()} == {
        key: placeholders(text) for key, text in english.items()
    }
    assert not [key for key, text in texts.items() if not text.strip() and key != "number.group"]
    same = [
        key for key in texts if texts[key] == english[key] and re.search("[a-z]{4}", re.sub(r"\{\w+\}", "", texts[key]))
    ]
    assert language == "en" or set(same) <= SAME_WORD, "texts that were not translated"


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_calls_a_randomized_answer_untrue(language: str) -> None:
    words = {key: set(re.findall(r"\w+", text.lower())) for key, text in form_texts(language).items()}
    assert [key for key, used in words.items() if used & set(FORBIDDEN[language])] == []


def test_language_of_a_poll_without_own_texts_is_shown_in_english() -> None:
    collection = poll_of([Question("a", YES, "randomized-response", random="1/3")], ("it",))
    assert respondent_texts(collection, "it") == respondent_texts(poll_of(collection.questions.values()), "en")
    assert form_texts("de-AT") == form_texts("de")


def test_example_of_two_options() -> None:
    collection = poll_of([Question("a", YES, "randomized-response", random="1/3")])
    assert respondent_texts(collection, "en")["q0"] == [
        "Of 100 people who mean “NO”, about 17 send “YES”. So “YES” from you is no proof: someone who thought 50 in 100 before "
        "can think at most 84 in 100 after.",
        "Your device rolls a die. On 1 or 2 it sends an option drawn at random instead of yours; the random option can be the "
        "same as yours.",
    ]


# Numbers


def numbers_in(text: str, language: str) -> Counter[str]:
    """The numbers of a sentence, in plain digits."""
    texts = form_texts(language)
    group, decimal = re.escape(texts["number.group"]), re.escape(texts["number.decimal"])
    words = re.findall(
        rf"(?<![\w])-?\d+(?:{group}\d{{3}})*(?:{decimal}\d+)?", re.sub(r"option \d+", "", text, flags=re.IGNORECASE)
    )
    return Counter(word.replace(texts["number.group"], "").replace(texts["number.decimal"], ".") for word in words)


def of_people(*chances: Fraction) -> list[str]:
    """A group in which all expected counts are between 2 and all but 2, and the counts."""
    size = next(
        10**power for power in range(2, 30) if all(1.5 <= chance * 10**power <= 10**power - 1.5 for chance in chances)
    )
    return [str(size), *(str(round(chance * size)) for chance in chances)]


def up_to(limit: Fraction) -> str:
    """A limit in percent, rounded up to an integer, or to the first decimal that keeps it below 100."""
    for decimals in range(20):
        rounded = Fraction(math.ceil(100 * limit * 10**decimals), 10**decimals)
        if rounded < 100:
            return f"{float(rounded):.{decimals}f}"
    raise AssertionError("The limit is too close to 1.")


@cache
def channel_of(name: str) -> list[list[Fraction]]:
    """The exact channel of a question of `all_cases`, one row for each report."""
    return operator_for(all_cases().questions[name]).exact_channel()


def largest_belief(rows: list[list[Fraction]]) -> Fraction:
    """The most that an event of probability one half becomes: from the largest ratio of the exact channel."""
    ratio = max(max(row) / min(cell for cell in row if cell) for row in rows)
    return ratio / (ratio + 1)


def expected_numbers(name: str, question: Question) -> list[list[str]]:
    """The numbers of each sentence, from the probabilities of single reports."""
    operator, rows = operator_for(question), channel_of(name)
    if isinstance(operator, ChoiceOperator):
        return choices_numbers(question, operator, rows)
    if isinstance(operator, SquareWave):
        return square_wave_numbers(question, rows)
    if isinstance(operator, Hybrid):
        return hybrid_numbers(question, operator, rows)
    reports, k, most = list(operator.reports()), operator.values, max(map(max, rows))
    supporting = [row for report, row in zip(reports, rows, strict=True) if is_supported(report, row, 1, most)]
    inside, outside = (sum((row[value] for row in supporting), Fraction(0)) for value in (1, 0))
    if question.operator == "randomized-response" or getattr(operator, "size", 0) == 1:
        belief = max(max(row) / sum(row) for row in rows)
        first = [*of_people(1 - inside), up_to(belief), "100", *(["50", "100"] if k == 2 else [str(k)])]
        return [first, process_numbers(question, k * (1 - inside) / (k - 1))]
    first = [*of_people(inside, outside), "50", "100", up_to(largest_belief(rows)), "100"]
    if isinstance(reports[0], list) and question.operator == "subset":
        return [[*first, str(len(reports[0])), str(k)], of_people(inside, outside)[:2]]
    if question.operator == "unary":
        return [first, []]
    if question.operator == "hash-response":
        return [first, of_people(1 - inside)]
    return [first, of_people(min(row[0] for row in rows) * len(rows))]  # every group is drawn at least that often


def is_supported(report: Any, row: list[Fraction], value: int, most: Fraction) -> bool:
    """A set supports its members; a code supports the values under which it has the largest probability of all."""
    return value in report if isinstance(report, list) else row[value] == most


def process_numbers(question: Question, share: Fraction) -> list[str]:
    stated = question.parameters.get("random")
    if stated is not None and (6 * stated).denominator == 1:
        return [str(face) for face in range(1, int(6 * stated) + 1)]
    if stated is not None and (100 * stated).denominator == 1:
        return ["1", "100", str(100 * stated)]
    return of_people(share)


def choices_numbers(question: Question, operator: ChoiceOperator, rows: list[list[Fraction]]) -> list[list[str]]:
    reports, after = list(operator.reports()), [up_to(largest_belief(rows)), "100", "50", "100"]
    if question.operator == "privset":
        padded = list(range(operator.choose))
        own = sum(operator.probability_of(report, padded) for report in reports if 0 in members(report))
        other = sum(
            operator.probability_of(report, padded) for report in reports if operator.items - 1 in members(report)
        )
        meeting = sum(
            operator.probability_of(report, padded) for report in reports if set(padded) & set(members(report))
        )
        size = len(members(reports[0]))
        return [
            [*of_people(own, other), *([str(size)] if size > 1 else []), *after],
            [str(operator.choose), *of_people(meeting)],
        ]
    turned = sum(operator.probability_of(report, []) for report in (2 * option + 1 for option in range(operator.items)))
    people, count = of_people(turned)
    return [[people, count, people, count, *after], [str(operator.items), people, count]]


def members(report: Any) -> list[int]:
    assert isinstance(report, list)
    return report


def square_wave_numbers(question: Question, rows: list[list[Fraction]]) -> list[list[str]]:
    grid, column = question.universe, [row[0] for row in rows]
    assert isinstance(grid, Numeric)
    near = sum(chance for chance in column if chance == max(column))
    half = (sum(chance == max(column) for chance in column) - 1) // 2
    ends = [plain(grid.low - half * grid.width), plain(grid.high + half * grid.width)]
    distance = [plain(half * grid.width)] if half else []
    people = of_people(near)
    return [[*people, *distance, *ends, up_to(largest_belief(rows)), "100", "50", "100"], people]


def hybrid_numbers(question: Question, operator: Hybrid, rows: list[list[Fraction]]) -> list[list[str]]:
    grid, column = question.universe, [row[0] for row in rows]
    assert isinstance(grid, Numeric)
    ends, positions = column[-2:], column[:-2]
    limits = [plain(grid.low), plain(grid.high)]
    after = [up_to(largest_belief(rows)), "100", "50", "100"]
    if not positions:
        people = of_people(ends[1])  # of people with the lowest number
        return [[*people, *limits, *limits, *after], [*people, *limits]]
    near = [chance for chance in positions if chance == max(positions)]
    steps = math.ceil(Fraction((len(near) - 1) // 2, operator.fine))
    people = of_people(sum(ends, Fraction(0)), sum(near, Fraction(0)))
    return [[*people, plain(steps * grid.width), *limits, *after], people[:2]]


def plain(number: Fraction) -> str:
    return f"{float(number):.4f}".rstrip("0").rstrip(".")


def test_numbers_in_the_sentences_are_those_of_the_exact_channel() -> None:
    collection = all_cases()
    sentences = {language: respondent_texts(collection, language) for language in LANGUAGES}
    for name, question in collection.questions.items():
        expected = [Counter(numbers) for numbers in expected_numbers(name, question)]
        for language in LANGUAGES:
            counted = [numbers_in(text, language) for text in sentences[language][name]]
            assert counted == expected, (str(question), language, sentences[language][name])


def test_reports_of_many_rounds_have_a_limit_of_their_own() -> None:
    layered = Question("a", options(3), "randomized-response", epsilon=2, each="0.5")
    single_report, process, all_rounds = _layered_texts(layered)
    single, together = operator_for(layered).gamma, operator_for(layered).lifetime_gamma
    assert single is not None
    assert together is not None
    assert up_to(single / (single + 2)) in single_report
    assert up_to(together / (together + 1)) in all_rounds
    assert process.startswith("In about")


def _layered_texts(question: Question) -> list[str]:
    collection = poll_of([Question("a", options(3), "randomized-response", epsilon=2)])
    return respondent_texts(replace(collection, questions={"q0": question}, repeats="two-layers"), "en")["q0"]


# The browser


def run(tab: Page, work: str, *arguments: Any, base: str = "/client") -> Any:
    program = "async ([work, args]) => (await import('/tests/form_texts.js'))[work](...args)"
    return tab.evaluate(program, [work, [base, *arguments]])


@pytest.mark.parametrize("language", LANGUAGES)
def test_browser_shows_the_same_sentences_as_python(language: str, tab: Page) -> None:
    collection = all_cases()
    shown = run(tab, "sentences", collection.public_dict(), dict(form_texts(language)), language)
    assert shown == respondent_texts(collection, language)


WRONG = Fault(
    "wording.js",
    "const limit = chance.times(100n * scale).ceil();",
    "const limit = chance.times(100n * scale).floor();",
)


def test_limit_that_is_rounded_down_is_detected(tab: Page, site: Site) -> None:
    site.faults["rounding"] = WRONG
    shown = run(tab, "sentences", all_cases().public_dict(), dict(form_texts("en")), "en", base="/fault/rounding")
    assert shown != respondent_texts(all_cases(), "en")


ESTIMATED = {
    "response": Question("a", options(4), "randomized-response", epsilon=1),
    "subset": Question("b", options(9), "subset", epsilon=1),
    "points": Question("c", options(9), "projective-geometry", epsilon=1),
    "few": Question("d", items(5), "privset", epsilon=1, choose=2),
    "any": Question("e", items(5), "one-option", epsilon=1),
    "mean": Question("f", Integer(0, 10), "hybrid", epsilon=2),
    "wave": Question("g", Integer(0, 10), "square-wave", epsilon=2),
}


def test_simulator_estimates_as_the_holder_does(tab: Page) -> None:
    source = SystemBytes()
    operators = {name: operator_for(question) for name, question in ESTIMATED.items()}
    reports = {name: [operator.sample(3, source) for _ in range(100)] for name, operator in operators.items()}
    results = run(tab, "estimates", Collection("estimates", ESTIMATED).public_dict(), reports)
    for name, operator in operators.items():
        if isinstance(operator, Pure):
            assert flat(results[name]) == pytest.approx(category_estimates(operator, reports[name])), name
        elif isinstance(operator, ChoiceOperator):
            assert flat(results[name]) == pytest.approx(choice_estimates(operator, reports[name])), name
        elif isinstance(operator, Hybrid):
            scores = np.array([float(operator.score(report)) for report in reports[name]])  # type: ignore[arg-type]
            wide = 1.959963984540054 * scores.std(ddof=1) / 10
            ends = np.clip([scores.mean(), scores.mean() - wide, scores.mean() + wide], 0, 10)
            assert list(results[name].values()) == pytest.approx(list(ends))


def flat(rows: list[dict[str, float]]) -> list[float]:
    return [row[column] for column in ("share", "low", "high") for row in rows]


def category_estimates(operator: Pure, reports: list[Any]) -> list[float]:
    estimated = shares(operator.supports(counts_of(operator, reports)), total=100, support=operator.support())
    return interval(estimated.raw, estimated.masses, estimated.errors)


def counts_of(operator: Operator, reports: list[Any]) -> Any:
    """How often each code was reported."""
    codes = [code for report in reports for code in (report if isinstance(report, list) else [report])]
    return np.bincount(codes, minlength=operator.report_size)


def choice_estimates(operator: ChoiceOperator, reports: list[Any]) -> list[float]:
    supporting, total = operator.seen(counts_of(operator, reports).tolist(), 100)
    group = Group(np.array(supporting), np.array(total), float(operator.p), float(operator.q))
    return interval(group.shares, np.clip(group.shares, 0, 1), np.sqrt(group.variances))


def interval(raw: Any, shown: Any, errors: Any) -> list[float]:
    wide = 1.959963984540054 * errors
    low, high = np.clip(np.minimum(raw, shown) - wide, 0, 1), np.clip(np.maximum(raw, shown) + wide, 0, 1)
    return [*shown, *low, *high]


def test_simulator_estimates_the_mean_of_a_square_wave_without_bias(tab: Page) -> None:
    """The reports are those that the channel expects for each value, so that the estimate is the value itself."""
    question = ESTIMATED["wave"]
    operator = operator_for(question)
    for value in (0, 4, 10):
        chances = [operator.probability(report, value) for report in range(operator.report_size)]
        reports = [report for report, chance in enumerate(chances) for _ in range(round(float(2_000 * chance)))]
        results = run(tab, "estimates", Collection("estimates", {"wave": question}).public_dict(), {"wave": reports})
        assert results["wave"]["mean"] == pytest.approx(value, abs=0.02)
