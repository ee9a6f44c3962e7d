"""A collection: the public description of what each person randomizes at home.

It is complete in itself (questions, operators, parameters, and the universe of every attribute asked about), so that a
client needs nothing else: it gets `public_dict`, checks the fingerprint, and randomizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from tidegate.errors import PolicyUnreadable, did_you_mean
from tidegate.exact import Number, exact, plain, say
from tidegate.operators import (
    BASKET_OPERATORS,
    CHOICE_OPERATORS,
    OPERATORS,
    VALUE_OPERATORS,
    BasketOperator,
    ChoiceOperator,
    Operator,
    Parameter,
)
from tidegate.operators.basket_plans import BasketPlan, SetOperator, check_plans, cuts, largest_basket, read_plans
from tidegate.operators.operator import EACH
from tidegate.policy.attributes import Attribute, Items, Key, Numeric
from tidegate.policy.batches import DEFAULT, BatchRule
from tidegate.policy.calendar import Moment
from tidegate.policy.categories import Category
from tidegate.policy.fingerprint import fingerprint_of, texts

Repeats = Literal["memoised", "once", "two-layers"]
REPEATS = ("memoised", "once", "two-layers")
SET_OPERATORS: dict[str, type[BasketOperator | ChoiceOperator]] = {**BASKET_OPERATORS, **CHOICE_OPERATORS}
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
HOLDER = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{1,120}")


@dataclass(frozen=True)
class Question:
    """One attribute, its public universe, and how a person's value of it is randomized.

    parameters   those of the operator, as its class in `tidegate.operators` states them
    plans        of an operator on sets of items, one for each size of a basket
    """

    attribute: str
    universe: Attribute
    operator: str
    parameters: Mapping[str, Fraction] = field(default_factory=dict)
    plans: tuple[BasketPlan, ...] = ()

    def __init__(
        self, attribute: str, universe: Attribute, operator: str, *, plans: Iterable[Any] = (), **parameters: Number
    ) -> None:
        object.__setattr__(self, "attribute", attribute)
        object.__setattr__(self, "universe", universe)
        object.__setattr__(self, "operator", operator)
        object.__setattr__(self, "parameters", {name: exact(value) for name, value in parameters.items()})
        object.__setattr__(self, "plans", read_plans(plans))
        if operator in SET_OPERATORS or isinstance(universe, Items):
            return self._check_set()
        self._check_operator()
        self._check_parameters()
        return None

    def _check_set(self) -> None:
        if self.operator not in SET_OPERATORS or not isinstance(self.universe, Items):
            wrong = "a set of items needs" if isinstance(self.universe, Items) else "only a set of items has"
            raise PolicyUnreadable(
                f'"{self.attribute}" by {self.operator}: {wrong} one of {", ".join(SET_OPERATORS)}.',
                "Choose another operator, or another attribute.",
            )
        known = SET_OPERATORS[self.operator]
        needed = [parameter.name for parameter in known.parameters if not parameter.optional]
        allowed = [parameter.name for parameter in known.parameters if parameter.optional]
        strange = [name for name in self.parameters if name not in (*needed, *allowed)]
        missing = [name for name in needed if name not in self.parameters]
        if strange or missing or bool(self.plans) != known.takes_plans:
            about_plans = "needs plans" if known.takes_plans else "does not accept plans"
            what = f"has no parameter {strange[0]}" if strange else f"needs {missing[0]}" if missing else about_plans
            parameters = ", ".join((*(("plans",) if known.takes_plans else ()), *needed))
            may = f"; optional: {', '.join(allowed)}" if allowed else ""
            raise PolicyUnreadable(f'{self.operator} of "{self.attribute}" {what}.', f"Set {parameters}{may}.")
        self._check_values()
        check_plans(self.plans, self.parameters, items=self.size)

    def _check_operator(self) -> None:
        if self.operator not in VALUE_OPERATORS:
            raise PolicyUnreadable(
                f'Unknown operator: "{self.operator}".', did_you_mean(self.operator, list(OPERATORS))
            )
        if not isinstance(self.universe, Numeric | Category):
            reason = "is a key: it names the person and is" if isinstance(self.universe, Key) else "is text, which is"
            raise PolicyUnreadable(f'"{self.attribute}" {reason} never collected.', "Choose another attribute.")
        if VALUE_OPERATORS[self.operator].ordered and not isinstance(self.universe, Numeric):
            free = [name for name, known in VALUE_OPERATORS.items() if not known.ordered]
            raise PolicyUnreadable(
                f'{self.operator} needs numbers; "{self.attribute}" is a category, whose values have no order.',
                f"Use one of: {', '.join(free)}.",
            )
        if VALUE_OPERATORS[self.operator].only_mean and not has_mean(self.universe):
            raise PolicyUnreadable(
                f'{self.operator} estimates a mean; "{self.attribute}" has bins or is a date or time.',
                f"Use another operator, or declare {self.attribute} as a number without bins.",
            )
        most = VALUE_OPERATORS[self.operator].most_values
        if not 2 <= self.size <= most:
            raise PolicyUnreadable(
                f'A question by {self.operator} needs from 2 to {most:,} possible values; "{self.attribute}" has {self.size:,}.',
                "Declare more values, or choose another attribute." if self.size < 2 else self._with_fewer(),
            )

    def _with_fewer(self) -> str:
        """Return what to do about too many values."""
        if isinstance(self.universe, Numeric):
            return (
                f"Declare {'a coarser grid' if isinstance(self.universe, Moment) else 'bins or a larger step'} for it."
            )
        fitting = [name for name, known in VALUE_OPERATORS.items() if known.most_values >= self.size]
        return f"Use {' or '.join(fitting)}." if fitting else "List fewer values."

    def _check_parameters(self) -> None:
        known = VALUE_OPERATORS[self.operator].parameters
        main = [parameter.name for parameter in known if not parameter.optional]
        besides = [parameter.name for parameter in known if parameter.optional]
        strange = [name for name in self.parameters if name not in (*main, *besides)]
        stated = [name for name in main if name in self.parameters]
        if strange or len(stated) != 1:
            raise PolicyUnreadable(
                f"{self.operator} has no parameter {strange[0]}."
                if strange
                else f"{self.operator} needs one parameter.",
                f"Set only {' or '.join(main)}{f' (optional: {besides[0]})' if besides else ''}.",
            )
        self._check_values()

    def _check_values(self) -> None:
        for parameter in OPERATORS[self.operator].parameters:
            if parameter.name in self.parameters:
                self._check_value(parameter, self.parameters[parameter.name])

    def _check_value(self, parameter: Parameter, value: Fraction) -> None:
        name = f"{parameter.name} of {self.operator}"
        least, most = parameter.bounds(self.size, self.step)
        whole = parameter.kind != "count" or value.denominator == 1
        if not least <= value <= most or not whole:
            if parameter.kind == "probability":
                raise PolicyUnreadable(f"{name} must be a probability from 0 to 1; it is {say(value)}.")
            if parameter.kind == "count":
                raise PolicyUnreadable(
                    f"{name} must be a whole number from {int(least)} to {int(most):,}; it is {say(value)}."
                )
            raise PolicyUnreadable(
                f"{name} must be from {say(least)} to {say(most)}; it is {say(value)}.",
                "Outside these bounds, a report hides nothing or contains no information.",
            )
        if parameter.below and value >= (larger := self.parameters[parameter.below]):
            raise PolicyUnreadable(
                f"{parameter.name} ({say(value)}) must be below {parameter.below} ({say(larger)}).",
                "A single answer reveals less than all of them together.",
            )

    @property
    def size(self) -> int:
        """How many different values a person can give: the grid's, its bins', or the categories' (missing where it is
        a value); of a set of items, how many items there are."""
        return size_of(self.universe)

    @property
    def cuts(self) -> bool:
        """Whether baskets above `fixed` items are cut, so that no support can be estimated (old collections only)."""
        return cuts(self.parameters, self.plans)

    @property
    def step(self) -> Fraction:
        """The distance of neighboring values: the grid's width; 1 where they are bins or categories."""
        numeric = isinstance(self.universe, Numeric) and not self.universe.cuts
        return self.universe.width if numeric and isinstance(self.universe, Numeric) else Fraction(1)

    def __str__(self) -> str:
        plans = [f"plans for {', '.join(str(plan.size) for plan in self.plans)} items"] if self.plans else []
        parameters = [f"{name} {say(value)}" for name, value in self.parameters.items()]
        return f"{self.attribute} by {self.operator} with {' and '.join((*plans, *parameters))}"

    def to_dict(self) -> dict[str, Any]:
        """The question as its line in the policy file."""
        parameters = {name: plain(value) for name, value in self.parameters.items()}
        plans = {"plans": [plan.to_dict() for plan in self.plans]} if self.plans else {}
        return {"attribute": self.attribute, "operator": self.operator, **parameters, **plans}

    def public_dict(self) -> dict[str, Any]:
        """The question with its universe, numbers as text: all that a client needs."""
        return {**texts(self.to_dict()), "universe": texts(self.universe.to_dict())}


def has_mean(universe: Attribute) -> bool:
    """Return whether the mean of an attribute is a number: not a date or time, and without bins."""
    return isinstance(universe, Numeric) and not isinstance(universe, Moment) and not universe.cuts


def size_of(universe: Attribute) -> int:
    """Return how many different values a question about an attribute has; see `Question.size`."""
    if isinstance(universe, Numeric):
        return len(universe.bin_starts()) if universe.cuts else universe.size
    if isinstance(universe, Items):
        return len(universe.vocabulary)
    return universe.size + (getattr(universe, "missing", "") == "value")


def operator_for(question: Question) -> Operator:
    """Build the operator of a question, with the whole numbers that its parameters come to."""
    known = OPERATORS[question.operator]
    return known.from_parameters(question.size, question.step, question.parameters, question.plans)


def set_operator(question: Question) -> SetOperator:
    """Return what a question about a set of items does with a basket, exactly as its clients draw."""
    known = BASKET_OPERATORS[question.operator]
    return known.from_parameters(question.size, question.step, question.parameters, question.plans).operator


@dataclass(frozen=True)
class Collection:
    """Questions that each person's own device answers with randomized values only.

    Args:
        repeats: "memoised": the same true value always gives the same answer. "once": a client answers one time.
            "two-layers": a memoised answer, randomized again for every report.
        version: Rises with every change of the questions. A report of another version is refused.
        closed: No more reports are accepted. Not part of the fingerprint.
        clients: The expected number of respondents. Not part of the fingerprint.
        holder: The data holder's name as respondents know it. Part of the fingerprint if it is set.
        lifetime: The most epsilon that one person ever gives this holder, over all their collections. Clients refuse beyond
            it. Part of the fingerprint if it is set (otherwise see `accounting.respondent.RespondentLoss.default_lifetime`).
        batch: When received reports are counted, and how many together (policy/batches.py). Part of the fingerprint if it is
            set.
    """

    name: str
    questions: Mapping[str, Question]
    repeats: Repeats = "memoised"
    version: int = 1
    closed: bool = False
    clients: int | None = None
    holder: str = ""
    lifetime: Fraction | None = None
    batch: BatchRule | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "questions", dict(self.questions))
        for word in (self.name, *self.questions):
            if not NAME.fullmatch(word):
                raise PolicyUnreadable(
                    "The name of a collection or question must be a letter followed by letters, digits, or _ - (at most 63 characters).",
                    f"Rename the collection or its questions in [collection.{self.name}].",
                )
        if not self.questions:
            raise PolicyUnreadable(f"[collection.{self.name}] has no questions.", "Add questions.age = { ... }.")
        if self.repeats not in REPEATS:
            raise PolicyUnreadable(f"`repeats` must be one of {', '.join(REPEATS)}.")
        if self.version < 1 or (self.clients is not None and self.clients < 1):
            raise PolicyUnreadable(
                f"`version` and `clients` of [collection.{self.name}] must be whole numbers of at least 1."
            )
        self._check_layers()
        self._check_holder()

    def _check_holder(self) -> None:
        if self.holder and not HOLDER.fullmatch(self.holder):
            raise PolicyUnreadable(
                f"The holder of [collection.{self.name}] must be a name of 1 to 120 printable characters.",
                'Write holder = "Works council, Example Ltd".',
            )
        if self.lifetime is None:
            return
        object.__setattr__(self, "lifetime", exact(self.lifetime))
        unlimited = [name for name, question in self.questions.items() if OPERATORS[question.operator].unlimited]
        least = sum(question.parameters.get("epsilon", Fraction(0)) for question in self.questions.values())
        if unlimited or self.lifetime <= 0 or self.lifetime < least:
            needs = f'"{unlimited[0]}" has unlimited loss' if unlimited else f"one report needs {say(least)}"
            raise PolicyUnreadable(
                f"The lifetime of [collection.{self.name}] is epsilon {say(self.lifetime)}, but {needs}.",
                "Raise the lifetime, or lower the epsilon of the questions.",
            )

    def refuse_cuts(self) -> None:
        """Refuse a new version with a question that cuts baskets; one that is in a ledger stays readable."""
        for name, question in self.questions.items():
            if question.cuts:
                fixed, largest = question.parameters["fixed"], largest_basket(question.parameters, question.plans)
                raise PolicyUnreadable(
                    f'Question "{name}" of [collection.{self.name}] accepts baskets of up to {largest:,} items and cuts them to '
                    f"{say(fixed)}. The supports of cut baskets cannot be estimated.",
                    f"Write fixed = {largest}: smaller baskets are padded, and none is cut.",
                )

    def _check_layers(self) -> None:
        twice = self.repeats == "two-layers"
        for name, question in self.questions.items():
            if twice != ("each" in question.parameters):
                raise PolicyUnreadable(
                    f'`each` and repeats = "two-layers" must be used together; question "{name}" has only one of them.',
                    f"Two layers are supported for {_two_layers()}: add each = 1.0 (below epsilon), or remove both.",
                )

    @property
    def batches(self) -> BatchRule:
        """When received reports are counted: as stated, or by default."""
        return self.batch or DEFAULT

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.questions.values()))}; repeats {self.repeats}; version {self.version}"

    def to_dict(self) -> dict[str, Any]:
        """The collection as its section of the policy file."""
        questions = {name: question.to_dict() for name, question in self.questions.items()}
        rest: dict[str, Any] = {"repeats": self.repeats, "version": self.version}
        if self.closed:
            rest["closed"] = True
        if self.clients is not None:
            rest["clients"] = self.clients
        return {"questions": questions, **rest, **self._limits()}

    def _limits(self) -> dict[str, Any]:
        """Holder, lifetime and batch where they are stated: a description without them keeps its fingerprint."""
        stated: dict[str, Any] = {"holder": self.holder} if self.holder else {}
        if self.lifetime is not None:
            stated["lifetime"] = plain(self.lifetime)
        return {**stated, "batch": self.batch.to_value()} if self.batch is not None else stated

    def public_dict(self) -> dict[str, Any]:
        """Everything that a client needs, in plain values; `policy.toml.collection_from_dict` reads it back."""
        return {**self._promised(), "fingerprint": self.fingerprint}

    def _promised(self) -> dict[str, Any]:
        questions = {name: question.public_dict() for name, question in self.questions.items()}
        promised = {"collection": self.name, "version": self.version, "repeats": self.repeats, "questions": questions}
        return {**promised, **texts(self._limits())}

    @cached_property
    def fingerprint(self) -> str:
        """A SHA-256 name of everything that a respondent is promised."""
        return fingerprint_of(self._promised())


def _two_layers() -> str:
    return " and ".join(name for name, known in VALUE_OPERATORS.items() if EACH in known.parameters)
