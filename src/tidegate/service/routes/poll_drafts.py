"""Drafts and creation of polls.

A draft shows what respondents would read and how exact the results would be; it writes nothing. A new poll is appended to the
policy file, and its promise is recorded in the ledger. What can be refused is refused before a key is created.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Request
from pydantic import ConfigDict, Field, create_model

from tidegate.accounting.respondent import respondent_loss
from tidegate.collect.polls.respondent_texts import LANGUAGES, respondent_texts, text_language
from tidegate.errors import PolicyUnreadable, TidegateError
from tidegate.exact import exact, plain
from tidegate.operators import CHOICE_OPERATORS, VALUE_OPERATORS, parameters_of
from tidegate.policy.attributes import Items, Numeric
from tidegate.policy.collection import MOST_ERROR, Collection
from tidegate.policy.poll import Poll
from tidegate.policy.poll_section import read_poll
from tidegate.policy.section import Section
from tidegate.policy.toml import write_collection
from tidegate.service.models.polls import PollDraft, PollState
from tidegate.service.routes.dependencies import CurrentCaller, Described, Form, Number, Served, router
from tidegate.service.routes.polls import poll_state
from tidegate.service.settings import service_url
from tidegate.web.snippets.poll import creation_code

routes = router()
EPSILONS = ("0.25", "0.5", "0.75", "1", "1.25", "1.5", "2", "2.5", "3", "4", "5", "6")  # settings of the slider
RANDOM = ("9/10", "5/6", "3/4", "2/3", "1/2", "2/5", "1/3", "1/4", "1/5", "1/6", "1/10")
MARGIN = 1.96  # standard errors in half of a 95% interval

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,62}$")]
Words = Annotated[str, Field(min_length=1, max_length=1000)]
Language = Annotated[str, Field(max_length=12)]
Written = Words | dict[Language, Words]
Option = Annotated[str, Field(min_length=1, max_length=200)]
Signed = (
    Annotated[float, Field(strict=True, ge=-1e12, le=1e12, allow_inf_nan=False)]
    | Annotated[str, Field(pattern=r"^-?\d{1,12}(\.\d{1,12})?$")]
)
Whole = Annotated[int, Field(strict=True, ge=1, le=10**9)]
Moment = Annotated[
    str,
    Field(
        pattern=r"^2\d{3}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)$",
        examples=["2026-12-01T18:00:00+01:00"],
        description="When the poll closes, with a time zone.",
    ),
]
OPERATORS = (*VALUE_OPERATORS, *CHOICE_OPERATORS)
if TYPE_CHECKING:
    Operator = str
    Parameters = Form
else:  # the names in the registry, for the schema and for validation
    Operator = Literal[tuple(OPERATORS)]
    fields = {name: (Number | None, None) for name in parameters_of(*OPERATORS) if name != "choose"}
    Parameters = create_model("PollParameters", __base__=Form, **fields)
EXAMPLE: Any = {
    "poll": "canteen",
    "holder": "Works council, Example Ltd",
    "title": {"en": "Canteen", "de": "Kantine"},
    "purpose": {"en": "Plan the menu for spring", "de": "Speiseplan für das Frühjahr"},
    "access": "invited",
    "closes": "2099-12-01T18:00:00+01:00",
    "clients": 500,
    "questions": {
        "often": {
            "text": {"en": "How often do you eat here?", "de": "Wie oft essen Sie hier?"},
            "options": {
                "never": {"en": "Never", "de": "Nie"},
                "weekly": {"en": "Weekly", "de": "Jede Woche"},
                "daily": {"en": "Daily", "de": "Täglich"},
            },
            "random": "1/3",
        }
    },
}


class PollQuestion(Parameters):
    """A question: its text and its options, or the ends of a number; the loss, if the poll does not state it."""

    text: Written
    options: list[Option] | dict[Option, Written] | None = Field(None, max_length=1000)
    choose: Literal["any"] | Whole | None = Field(None, description="The most options that one person can choose.")
    skip: bool | None = Field(None, description="Whether the question can be skipped.")
    want: Literal["distribution", "mean"] | None = None
    from_: Signed | None = Field(None, alias="from")
    to: Signed | None = None
    step: Number | None = None
    bins: list[Signed] | None = Field(None, max_length=100)
    operator: Operator | None = Field(None, description="By default the one with the least error.")


class NewPoll(Form):
    """A poll as its section of a policy file."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})
    poll: Name
    holder: Annotated[str, Field(min_length=1, max_length=120)]
    title: Written
    purpose: Written
    languages: list[Language] | None = Field(None, min_length=1, max_length=20)
    access: Literal["invited", "open"] = "invited"
    closes: Moment
    questions: dict[Name, PollQuestion] = Field(min_length=1, max_length=50)
    batch: Literal["close"] | dict[Literal["at_least", "every"], Whole | Language] | None = None
    epsilon: Number | None = Field(None, description="A total for questions that state none.")
    ask: Literal["best", "all"] | Whole | None = Field(None, description="The number of questions for each person.")
    together: list[list[Name]] | None = Field(None, max_length=50)
    lifetime: Number | None = None
    rounds: Whole | None = None
    repeats: Literal["memoised", "once", "two-layers"] | None = None
    clients: Whole | None = Field(None, description="The expected number of respondents.")
    at_most: Whole | None = Field(None, description="The most reports that an open poll accepts.")
    accept_error: bool = Field(False, description="Open the poll even if its expected error is above 10 points.")

    def section(self) -> dict[str, Any]:
        """Return the keys and values of [poll.NAME]."""
        return self.model_dump(by_alias=True, exclude_none=True, exclude={"poll"})

    def read(self) -> Collection:
        return build(self.poll, self.section())


def build(name: str, section: dict[str, Any]) -> Collection:
    """Return the collection of a poll's section."""
    undecided: list[str] = []
    make = read_poll(name, Section(section, f"poll.{name}", undecided))
    if undecided:
        raise PolicyUnreadable(f'"?" is an open decision: {", ".join(undecided)}.', "Enter a text.")
    return make()


@routes.post("/data/{name}/polls/drafts", response_model=PollDraft)
def draft_poll(request: Request, served: Served, body: NewPoll) -> Described:
    collection = body.read()
    poll, address = collection.poll, service_url(request)
    losses = respondent_loss(collection)
    return {
        "poll": collection.name,
        "section": write_collection(collection),
        "ask": collection.ask,
        "units": len(collection.units),
        "gives": losses.to_dict(),
        "says": str(losses),
        "questions": [_question(collection, name) for name in collection.questions],
        "reads": [what_respondents_read(collection, poll, language) for language in poll.languages] if poll else [],
        "settings": _settings(body),
        "problem": _problem(served, collection),
        "codes": creation_code(collection, address=address, dataset=served.name),
    }


@routes.post("/data/{name}/polls", status_code=201, response_model=PollState)
def create_poll(request: Request, served: Served, caller: CurrentCaller, body: NewPoll) -> Described:
    collection = body.read()
    refuse(served, collection)
    poll = collection.poll
    if poll is not None and poll.invited:
        from tidegate.collect.invitations import create_key  # here: it loads a library for signatures

        key = create_key(served.session.ledger, dataset=served.name, poll=collection.name, user=caller.name)
        collection = replace(collection, poll=replace(poll, invitation_key=key))
    served.add(collection, user=caller.name)
    return poll_state(request, request.app.state.datasets[served.name], collection.name)


def refuse(served: Any, collection: Collection) -> None:
    """Refuse a poll that could not be opened now: its name, its file, its time, or its error. Nothing is written."""
    file = served.refuse_new(collection)
    collection.refuse_new(datetime.now(UTC), needs_key=False)
    file.refuse(collection, to=served.policy)


def what_respondents_read(collection: Collection, poll: Poll, language: str) -> Described:
    """Return all texts of a poll in one of its languages, with the sentences about privacy.

    `sentences_in` is the language of the sentences: English if the form has none in the language of the poll.
    """
    sentences = respondent_texts(collection, language)
    return {
        "language": language,
        "sentences_in": text_language(language),
        "holder": collection.holder,
        "title": poll.text(poll.title, language),
        "purpose": poll.text(poll.purpose, language),
        "questions": [
            {
                "question": name,
                "text": poll.text(wording.text, language),
                "options": [poll.text(labels, language) for labels in wording.options.values()],
                "sentences": sentences[name],
            }
            for name, wording in poll.questions.items()
        ],
    }


def _languages(collection: Collection) -> tuple[str, ...]:
    return collection.poll.languages if collection.poll else LANGUAGES[:1]


def _question(collection: Collection, name: str) -> Described:
    """Return the chosen operator of a question, its loss, and its expected error as a part of all people or of the range."""
    question = collection.questions[name]
    error = collection.expected_errors().get(name)
    number = isinstance(question.universe, Numeric)
    return {
        "question": name,
        "kind": "choices" if isinstance(question.universe, Items) else "number" if number else "choice",
        "operator": question.operator,
        "epsilon": None if question.loss is None else str(plain(question.loss)),
        "says": str(question),
        "error": error,
        "margin": None if error is None else MARGIN * error,
        "too_large": error is not None and error > MOST_ERROR,
    }


def _settings(body: NewPoll) -> list[Described]:
    """Return the error and the sentences for each setting of the slider: totals of epsilon, or shares of random answers.

    Empty if the poll states neither one total nor one share for all its questions.
    """
    section = body.section()
    shares = {question.get("random") for question in section["questions"].values()}
    if "epsilon" in section:
        return [_setting(body, {"epsilon": value}) for value in _values(section["epsilon"], EPSILONS)]
    if len(shares) == 1 and None not in shares:
        return [_setting(body, {"random": value}) for value in _values(shares.pop(), RANDOM, falling=True)]
    return []


def _values(chosen: Any, usual: tuple[str, ...], *, falling: bool = False) -> list[str]:
    """Return the usual values and the chosen one, from the most privacy to the least."""
    values = {exact(value): value for value in usual}
    values.setdefault(exact(chosen), str(plain(exact(chosen))))
    return [values[value] for value in sorted(values, reverse=falling)]


def _setting(body: NewPoll, stated: dict[str, str]) -> Described:
    section = body.section()
    for question in section["questions"].values() if "random" in stated else (section,):
        question.update(stated)
    try:
        collection = build(body.poll, section)
    except PolicyUnreadable as error:  # for example, the lifetime is smaller
        return {
            **stated,
            "problem": error.what,
            "loss": None,
            "ask": None,
            "error": None,
            "margin": None,
            "sentences": [],
        }
    worst = max(collection.expected_errors().values(), default=None)
    loss: Fraction | None = respondent_loss(collection).in_all
    return {
        **stated,
        "problem": None,
        "loss": None if loss is None else float(loss),
        "ask": collection.ask,
        "error": worst,
        "margin": None if worst is None else MARGIN * worst,
        "sentences": next(iter(respondent_texts(collection, _languages(collection)[0]).values())),
    }


def _problem(served: Any, collection: Collection) -> dict[str, str] | None:
    """Return why the poll could not be opened as it is; None if it could."""
    try:
        refuse(served, collection)
    except TidegateError as error:
        return {"what": error.what, "do": error.do}
    return None
