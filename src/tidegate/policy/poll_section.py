"""[poll.NAME] of a policy file: a poll in a few lines, expanded to a collection.

A question states its text and either `options` (with `choose` for several choices), `from` and `to`, or `free_text`; its epsilon, or the
share of `random` reports. The operator follows: the one with the least error. `epsilon` of the poll is a total for questions
that state none; `ask` is how many of them each person answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from math import inf
from typing import Any

from tidegate.errors import PolicyUnreadable
from tidegate.exact import plain, say
from tidegate.operators import (
    BASKET_OPERATORS,
    CHOICE_OPERATORS,
    OPERATORS,
    VALUE_OPERATORS,
    HashResponse,
    Hybrid,
    OneOption,
    Prefix,
    PrivSet,
    ProjectiveGeometry,
    RandomizedResponse,
    SquareWave,
    SubsetSelection,
    parameters_of,
)
from tidegate.policy.attributes import Attribute, Grid, Integer, Items
from tidegate.policy.batches import AT_CLOSE, read_batch
from tidegate.policy.categories import Category, Text
from tidegate.policy.collection import REPEATS, Collection, Question, Repeats, expected_variance, size_of, units_of
from tidegate.policy.poll import ACCESS, Poll, Texts, Wording
from tidegate.policy.question_plan import Variance, best_count, errors_by_count
from tidegate.policy.section import Section, list_of, number, one_of, text, whole, yes_or_no

Written = str | Mapping[str, str]  # a text as it is written: for all languages, or one for each
Epsilon = Fraction | None
NO_ANSWER = "value"  # `missing` of a question that can be skipped


@dataclass(frozen=True)
class _Draft:
    """A question as it is written."""

    name: str
    text: Written
    options: Mapping[str, Written]
    universe: Attribute
    operator: str
    choose: int | str | None
    parameters: Mapping[str, Fraction]
    mean: bool

    @property
    def states_loss(self) -> bool:
        return "epsilon" in self.parameters or "random" in self.parameters

    def question(self, epsilon: Epsilon = None) -> Question:
        """Return the question with the stated loss, or with an epsilon of the poll."""
        parameters: dict[str, Any] = dict(self.parameters)
        if not self.states_loss and epsilon is not None:
            parameters["epsilon"] = epsilon
        operator = self.operator or self._best(parameters)
        if isinstance(self.choose, int):
            parameters["choose"] = self.choose
        return Question(self.name, self.universe, operator, **parameters)

    def _best(self, parameters: Mapping[str, Fraction]) -> str:
        """Return the operator with the least error for this question."""
        if isinstance(self.universe, Items):
            return OneOption.name if self.choose == "any" else PrivSet.name
        if isinstance(self.universe, Text):
            return Prefix.name
        if not isinstance(self.universe, Category):
            return Hybrid.name if self.mean else SquareWave.name
        if "each" in parameters and size_of(self.universe) > FEW_IN_ROUNDS:
            return HashResponse.name
        if "random" in parameters or "each" in parameters:
            return RandomizedResponse.name
        epsilon = parameters.get("epsilon")
        if epsilon is None:
            raise PolicyUnreadable(
                f'Question "{self.name}" states no loss.',
                'Write random = "1/3" or epsilon = 1.5 in the question, or one epsilon for the whole poll.',
            )
        if size_of(self.universe) > VALUE_OPERATORS[RandomizedResponse.name].most_values:
            return ProjectiveGeometry.name
        other = SubsetSelection.name if size_of(self.universe) <= FEW else ProjectiveGeometry.name
        return min((RandomizedResponse.name, other), key=lambda name: self._variance(name, epsilon))

    def _variance(self, operator: str, epsilon: Fraction) -> float:
        question = Question(self.name, self.universe, operator, epsilon=epsilon)
        return round(expected_variance(question) or inf, 9)  # simpler operators first


FOR_POLLS = [name for name, known in OPERATORS.items() if name not in BASKET_OPERATORS and not known.unlimited]
FEW_IN_ROUNDS = 4  # options up to which randomized response in two layers has the smaller error and lifetime
FEW = 32  # options up to which a report that lists some of them is short


def read_poll(name: str, at: Section) -> Callable[[], Collection]:
    """Return a function that builds the collection of a poll."""
    section = at.section("questions")
    drafts = [_read_question(word, section.section(word)) for word in section.names()]
    settings: dict[str, Any] = {
        "holder": at.take("holder", text),
        "title": at.take("title", _written),
        "purpose": at.take("purpose", _written),
        "access": at.take("access", one_of(*ACCESS), ACCESS[0]),
        "closes": at.take("closes", _moment),
        "languages": at.take("languages", list_of(text), ()),
        "invitation_key": at.take("invitation_key", text, ""),
        "at_most": at.take("at_most", whole, None),
        "accept_error": at.take("accept_error", yes_or_no, False),
        "batch": at.take("batch", read_batch, AT_CLOSE),
        "lifetime": at.take("lifetime", number, None),
        "epsilon": at.take("epsilon", number, None),
        "ask": at.take("ask", lambda value: value if value in ("best", "all") else whole(value), None),
        "together": at.take("together", list_of(list_of(text)), ()),
        "rounds": at.take("rounds", whole, None),
        "repeats": at.take("repeats", one_of(*REPEATS), None),
        "version": at.take("version", whole, 1),
        "closed": at.take("closed", yes_or_no, False),
        "clients": at.take("clients", whole, None),
    }
    at.done()
    return lambda: _build(name, [make() for make in drafts], settings)


def _build(name: str, drafts: list[_Draft], of: Mapping[str, Any]) -> Collection:
    if not drafts:
        raise PolicyUnreadable(f"[poll.{name}] has no questions.", f"Add a section [poll.{name}.questions.often].")
    repeats: Repeats = of["repeats"] or ("once" if of["rounds"] is None else "two-layers")
    units = _units(drafts, of["together"])
    ask, shares = _plan(name, drafts, units, of)
    questions = {draft.name: draft.question(shares.get(draft.name)) for draft in drafts}
    languages = of["languages"] or _languages(drafts, of)
    poll = Poll(
        languages,
        _texts(of["title"], languages),
        _texts(of["purpose"], languages),
        {draft.name: _wording(draft, languages) for draft in drafts},
        of["access"],
        of["closes"],
        of["invitation_key"],
        of["at_most"],
        of["accept_error"],
    )
    settings = {key: of[key] for key in ("version", "closed", "clients", "holder", "batch", "lifetime", "rounds")}
    together = of["together"] if ask is not None else ()
    return Collection(name, questions, repeats, ask=ask, together=together, poll=poll, **settings)


def _plan(
    name: str, drafts: list[_Draft], units: list[list[_Draft]], of: Mapping[str, Any]
) -> tuple[int | None, dict[str, Fraction]]:
    """Return how many units each person is asked (None: all), and the epsilon of each question that states none."""
    without = [draft.name for draft in drafts if not draft.states_loss]
    total = of["epsilon"]
    if without and total is None:
        raise PolicyUnreadable(
            f'Question "{without[0]}" of [poll.{name}] states no loss.',
            'Write random = "1/3" or epsilon = 1.5 in the question, or one epsilon for the whole poll.',
        )
    if total is not None and len(without) < len(drafts):
        raise PolicyUnreadable(
            f"[poll.{name}] has an epsilon for all questions, and some questions have their own.",
            "State the epsilon in one place: in the poll, or in every question.",
        )
    count = _count(name, units, of, of["ask"] or ("all" if total is None else "best"))
    if not 1 <= count <= len(units):
        raise PolicyUnreadable(
            f"`ask` of [poll.{name}] must be from 1 to {len(units)}; it is {count}.", 'Or write "best" or "all".'
        )
    each = {draft.name: total / count / len(unit) for unit in units for draft in unit} if total is not None else {}
    return (None if count == len(units) else count), each


def _count(name: str, units: list[list[_Draft]], of: Mapping[str, Any], ask: int | str) -> int:
    """Return how many units each person is asked."""
    if ask == "best" and of["epsilon"] is not None:
        return _best_count(units, of["epsilon"])
    if ask == "best" and of["lifetime"] is not None:
        return _most_count(name, units, of["lifetime"])
    return ask if isinstance(ask, int) else len(units)


def _best_count(units: list[list[_Draft]], total: Fraction) -> int:
    """Return how many units to ask: see `question_plan.best_count`. The error of a unit is that of its worst question."""

    def variance_of(unit: list[_Draft]) -> Variance:
        return lambda epsilon: max(expected_variance(draft.question(epsilon / len(unit))) or inf for draft in unit)

    return best_count(errors_by_count([variance_of(unit) for unit in units], total))


def _most_count(name: str, units: list[list[_Draft]], lifetime: Fraction) -> int:
    """Return the most units whose stated losses never exceed the lifetime together."""
    losses = sorted(
        (sum((draft.question().stated_loss or Fraction(0) for draft in unit), Fraction(0)) for unit in units),
        reverse=True,
    )
    count = 0
    while count < len(losses) and sum(losses[: count + 1]) <= lifetime:
        count += 1
    if count == 0:
        raise PolicyUnreadable(
            f"The lifetime of [poll.{name}] is epsilon {say(lifetime)}, but one question needs {say(losses[0])}.",
            "Raise the lifetime, or lower the epsilon of the questions.",
        )
    return count


def _units(drafts: list[_Draft], together: tuple[tuple[str, ...], ...]) -> list[list[_Draft]]:
    by_name = {draft.name: draft for draft in drafts}
    unknown = [name for names in together for name in names if name not in by_name]
    if unknown:
        raise PolicyUnreadable(f'`together` names an unknown question: "{unknown[0]}".')
    return [[by_name[name] for name in unit] for unit in units_of(by_name, together)]


def _read_question(name: str, at: Section) -> Callable[[], _Draft]:
    words, has_options = at.take("text", _written), "options" in at.names()
    free_text = at.take("free_text", yes_or_no, False)
    operator = at.take("operator", one_of(*FOR_POLLS), "")
    choose = at.take("choose", lambda value: value if value == "any" else whole(value), None)
    options = at.take("options", _options, {})
    skip = at.take("skip", yes_or_no, False)
    mean = at.take("want", one_of("distribution", "mean"), "distribution") == "mean"
    numeric: dict[str, Any] = {}
    if not has_options and not free_text:
        numeric = {key: at.take(key, number) for key in ("from", "to")}
        numeric |= {"step": at.take("step", number, Fraction(1)), "bins": at.take("bins", list_of(number), ())}
    allowed = [key for key in parameters_of(*FOR_POLLS) if key != "choose"]
    parameters = {key: at.take(key, number) for key in allowed if key in at.names()}
    at.known += allowed
    at.done()

    def build() -> _Draft:
        missing = NO_ANSWER if skip else "dropped"
        if free_text:
            universe: Attribute = Text()
        elif numeric:
            universe = _numbers(missing="dropped", **{f"{key}_": value for key, value in numeric.items()})
        elif choose is not None or OPERATORS.get(operator) in CHOICE_OPERATORS.values():
            universe = Items(tuple(options))
        else:
            universe = Category(tuple(options), missing)  # type: ignore[arg-type]
        _check_options(name, options, bool(numeric) or free_text, choose, skip)
        return _Draft(name, words, options, universe, operator, choose, parameters, mean)

    return build


def _check_options(name: str, options: Mapping[str, Written], is_typed: bool, choose: Any, skip: bool) -> None:
    if not is_typed and len(options) < 2:
        raise PolicyUnreadable(
            f'Question "{name}" needs at least 2 options.',
            'Write options = ["Yes", "No"], or from = 0 and to = 10, or free_text = true.',
        )
    if is_typed and (options or choose is not None or skip):
        raise PolicyUnreadable(
            f'Question "{name}" asks for a number or a text, which has no options and cannot be chosen or skipped.'
        )
    if skip and choose is not None:
        raise PolicyUnreadable(f'Question "{name}" already accepts that nothing is chosen.', "Remove `skip`.")


def _numbers(*, from_: Fraction, to_: Fraction, step_: Fraction, bins_: Any, missing: Any) -> Attribute:
    whole_ = all(value.denominator == 1 for value in (from_, to_, *bins_)) and step_ == 1
    if whole_:
        return Integer(int(from_), int(to_), tuple(map(int, bins_)), missing)
    return Grid(from_, to_, step_, bins_, missing)


def _written(value: Any) -> Written:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and value and all(isinstance(word, str) for word in value.values()):
        return dict(value)
    raise TypeError('text is required, or one for each language: { en = "Canteen", de = "Kantine" }')


def _options(value: Any) -> dict[str, Written]:
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        if len(set(value)) != len(value):
            raise ValueError("each option must be listed once")
        return {word: word for word in value}
    if isinstance(value, Mapping):
        return {str(option): _written(label) for option, label in value.items()}
    raise TypeError(
        'a list of options is required, or a label for each: { yes = "Yes", no = { en = "No", de = "Nein" } }'
    )


def _moment(value: Any) -> datetime:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise TypeError("a time with a zone is required, such as 2026-12-01T18:00:00+01:00")
    return value


def _languages(drafts: list[_Draft], of: Mapping[str, Any]) -> tuple[str, ...]:
    """Return all languages in which some text is written, in the order of their first use; English if there is none."""
    written = [of["title"], of["purpose"]]
    for draft in drafts:
        written += [draft.text, *draft.options.values()]
    codes = [code for words in written if isinstance(words, Mapping) for code in words]
    return tuple(dict.fromkeys(codes)) or ("en",)


def _texts(words: Written, languages: tuple[str, ...]) -> Texts:
    return dict.fromkeys(languages, words) if isinstance(words, str) else dict(words)


def _wording(draft: _Draft, languages: tuple[str, ...]) -> Wording:
    options = {option: _texts(label, languages) for option, label in draft.options.items()}
    return Wording(_texts(draft.text, languages), options)


def public_poll(at: Section) -> Poll:
    """Return the poll of a public description (`Poll.public_dict`)."""
    texts = _by_language
    section = at.section("questions")
    questions = {}
    for name in section.names():
        part = section.section(name)
        options = part.section("options", {})
        labels = {option: options.take(option, texts) for option in options.names()}
        questions[name] = Wording(part.take("text", texts), labels)
        part.done()
    poll = Poll(
        at.take("languages", list_of(text)),
        at.take("title", texts),
        at.take("purpose", texts),
        questions,
        at.take("access", one_of(*ACCESS)),
        at.take("closes", _moment),
        at.take("invitation_key", text, ""),
        at.take("at_most", whole, None),
    )
    at.done()
    return poll


def _by_language(value: Any) -> Texts:
    if not isinstance(value, Mapping) or not all(isinstance(word, str) for word in value.values()):
        raise TypeError("a text for each language is required")
    return dict(value)


def poll_dict(collection: Collection) -> dict[str, Any]:
    """Return a poll as its section of a policy file, with everything stated that was chosen for it."""
    poll = collection.poll
    if poll is None:
        raise PolicyUnreadable(f'"{collection.name}" is a collection, not a poll.')
    section: dict[str, Any] = {
        "holder": collection.holder,
        "title": _shortest(poll.title),
        "purpose": _shortest(poll.purpose),
        "languages": list(poll.languages),
        "access": poll.access,
        "closes": f"{poll.closes:%Y-%m-%dT%H:%M:%SZ}",
        "repeats": collection.repeats,
        "version": collection.version,
        "ask": collection.ask if collection.ask is not None else "all",
        "batch": collection.batches.to_value(),
    }
    if collection.together:
        section["together"] = [list(names) for names in collection.together]
    optional = {
        "rounds": collection.rounds,
        "lifetime": None if collection.lifetime is None else plain(collection.lifetime),
        "clients": collection.clients,
        "invitation_key": poll.invitation_key or None,
        "at_most": poll.at_most,
        "closed": collection.closed or None,
        "accept_error": poll.accept_error or None,
    }
    section |= {key: value for key, value in optional.items() if value is not None}
    questions = {
        name: _question_dict(question, poll.questions[name]) for name, question in collection.questions.items()
    }
    return {**section, "questions": questions}


def _question_dict(question: Question, wording: Wording) -> dict[str, Any]:
    section: dict[str, Any] = {"text": _shortest(wording.text)}
    if isinstance(question.universe, Items | Category):
        labels = {option: _shortest(by_language) for option, by_language in wording.options.items()}
        section["options"] = list(labels) if all(key == label for key, label in labels.items()) else labels
        if getattr(question.universe, "missing", "") == NO_ANSWER:
            section["skip"] = True
    elif isinstance(question.universe, Text):
        section["free_text"] = True
    else:
        universe = question.universe.to_dict()
        section |= {key: universe[key] for key in ("from", "to", "step", "bins") if key in universe}
        section |= {"want": "mean"} if question.operator == Hybrid.name else {}
    section["operator"] = question.operator
    if question.operator == OneOption.name:
        section["choose"] = "any"
    return {**section, **{name: plain(value) for name, value in question.parameters.items()}}


def _shortest(words: Texts) -> Written:
    """Return one text if it is the same in all languages."""
    different = set(words.values())
    return next(iter(different)) if len(different) == 1 else dict(words)
