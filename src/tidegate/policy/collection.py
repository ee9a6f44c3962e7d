"""A collection: the public description of what each person randomizes at home.

It is complete in itself (questions, operators, parameters, and the universe of every attribute asked about), so that a
client needs nothing else: it gets `public_dict`, checks the fingerprint, and randomizes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from tidegate.errors import PolicyUnreadable, did_you_mean
from tidegate.exact import Number, exact, plain, say
from tidegate.operators import (
    BASKET_OPERATORS,
    CHOICE_OPERATORS,
    OPERATORS,
    TEXT_OPERATORS,
    VALUE_OPERATORS,
    BasketOperator,
    ChoiceOperator,
    Operator,
    Parameter,
    Prefix,
    Pure,
)
from tidegate.operators.basket_loss import basket_loss, rounded_loss
from tidegate.operators.basket_plans import BasketPlan, SetOperator, check_plans, cuts, largest_basket, read_plans
from tidegate.operators.operator import EACH
from tidegate.policy.attributes import Attribute, Items, Key, Numeric
from tidegate.policy.batches import DEFAULT, BatchRule
from tidegate.policy.calendar import Moment
from tidegate.policy.categories import Category, Text
from tidegate.policy.fingerprint import fingerprint_of, texts
from tidegate.policy.poll import Poll

Repeats = Literal["memoised", "once", "two-layers"]
REPEATS = ("memoised", "once", "two-layers")
SET_OPERATORS: dict[str, type[BasketOperator | ChoiceOperator]] = {**BASKET_OPERATORS, **CHOICE_OPERATORS}
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
MOST_ERROR = 0.1  # the largest expected error of a poll that is opened without `accept_error`
USUAL_SHARE = 0.3  # of an option of a set
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
        if operator in TEXT_OPERATORS:
            return self._check_text()
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

    def _check_text(self) -> None:
        if not isinstance(self.universe, Text) or self.plans:
            raise PolicyUnreadable(
                f'{self.operator} needs text without a list of values, and "{self.attribute}" is not.'
                if not self.plans
                else f"{self.operator} does not accept plans.",
                f'Declare {self.attribute} = {{ kind = "text" }}, or choose another operator.',
            )
        self._check_parameters()

    def _check_operator(self) -> None:
        if self.operator not in VALUE_OPERATORS:
            raise PolicyUnreadable(
                f'Unknown operator: "{self.operator}".', did_you_mean(self.operator, list(OPERATORS))
            )
        if not isinstance(self.universe, Numeric | Category):
            reason = "is a key: it names the person and is" if isinstance(self.universe, Key) else "is text, which is"
            only = "" if isinstance(self.universe, Key) else f" by {self.operator}"
            other = "" if isinstance(self.universe, Key) else f", or operator = {' or '.join(TEXT_OPERATORS)}"
            raise PolicyUnreadable(
                f'"{self.attribute}" {reason} never collected{only}.', f"Choose another attribute{other}."
            )
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
        known = OPERATORS[self.operator].parameters
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
                raise PolicyUnreadable(
                    f"{name} must be a probability from {say(least)} to {say(most)}; it is {say(value)}."
                )
            if parameter.kind == "count":
                raise PolicyUnreadable(
                    f"{name} must be a whole number from {int(least)} to {int(most):,}; it is {say(value)}."
                )
            raise PolicyUnreadable(
                f"{name} must be from {say(least)} to {say(most)}; it is {say(value)}.",
                "Outside these bounds, a report hides nothing or contains no information.",
            )
        if parameter.below and parameter.below not in self.parameters:
            raise PolicyUnreadable(f"{parameter.name} needs {parameter.below}, which must be larger.")
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

    @cached_property
    def loss(self) -> Fraction | None:
        """The largest loss of all reports of one true value together; None if it is unlimited."""
        if self.operator in BASKET_OPERATORS:
            return basket_loss(set_operator(self))
        return self.stated_loss

    @property
    def stated_loss(self) -> Fraction | None:
        """The loss that the parameters state: epsilon, or that of a share of random reports. None if they state none."""
        if (random := self.parameters.get("random")) is not None:
            return rounded_loss(1 + self.size * (1 - random) / random)
        return self.parameters.get("epsilon")

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
    if isinstance(universe, Text):
        return max(known.most_values for known in TEXT_OPERATORS.values())
    return universe.size + (getattr(universe, "missing", "") == "value")


def units_of(questions: Iterable[str], together: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return what is drawn for a person: single questions, and groups of `together`, in the order of the questions."""
    groups = {name: names for names in together for name in names}
    return tuple(dict.fromkeys(groups.get(name, (name,)) for name in questions))


def largest_sum(
    losses: Mapping[str, Fraction | None], units: Iterable[Iterable[str]], ask: int | None
) -> Fraction | None:
    """Return the largest sum of losses over `ask` of the units, or over all; None if one loss is unlimited."""
    if any(loss is None for loss in losses.values()):
        return None
    sums = sorted((sum(losses[name] or Fraction(0) for name in unit) for unit in units), reverse=True)
    return Fraction(sum(sums[:ask]))


def expected_variance(question: Question) -> float | None:
    """Return N times the expected variance of a share of N people, or of a mean as a part of the range; None if unknown.

    Shares are those of a uniform distribution, 0.3 for options of a set, and small for texts.
    """
    operator = operator_for(question)
    if isinstance(operator, ChoiceOperator):
        return operator.share_variance(USUAL_SHARE)
    if isinstance(operator, Pure):
        share = 1 / question.size
        return operator.variance(share) + share * (1 - share)
    if operator.ordered and not operator.unlimited:
        return operator.variance() / (question.size - 1) ** 2 + 1 / 12
    return operator.rare_variance() if isinstance(operator, Prefix) else None


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
        ask: The number of units that each person answers, drawn by the device before anything is shown; all if None. A unit
            is a question, or several that are drawn together.
        together: Groups of questions that are one unit.
        poll: Wording, access and closing time, if the collection is a poll. Part of the fingerprint.
        rounds: How often each person is asked, with repeats = "two-layers". Part of the fingerprint if it is set.
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
    ask: int | None = None
    together: tuple[tuple[str, ...], ...] = ()
    poll: Poll | None = None
    rounds: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "questions", dict(self.questions))
        object.__setattr__(self, "together", tuple(tuple(names) for names in self.together))
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
        self._check_units()
        self._check_holder()
        if self.poll is not None and self.poll.questions.keys() != self.questions.keys():
            raise PolicyUnreadable(f'The wording of the poll "{self.name}" is not that of its questions.')

    def _check_units(self) -> None:
        grouped = [name for names in self.together for name in names]
        wrong = len(set(grouped)) != len(grouped) or not set(grouped) <= set(self.questions)
        if wrong or any(len(names) < 2 for names in self.together):
            raise PolicyUnreadable(
                f'`together` of "{self.name}" must be groups of at least two questions, each question in one group at most.',
                'Write together = [["age", "vote"]].',
            )
        if self.together and self.ask is None:
            raise PolicyUnreadable(
                f'`together` of "{self.name}" has no effect without `ask`.', "Add ask = 1, or remove it."
            )
        if self.ask is not None and not 1 <= self.ask < len(self.units):
            raise PolicyUnreadable(
                f'`ask` of "{self.name}" must be a number from 1 to {len(self.units) - 1}, below the number of questions.',
                'Leave it out to ask all questions ("all" in a poll).',
            )

    @cached_property
    def units(self) -> tuple[tuple[str, ...], ...]:
        """What is drawn for a person: single questions, and groups of `together`, in the order of the questions."""
        return units_of(self.questions, self.together)

    def answers_units(self, names: Iterable[str]) -> bool:
        """Return whether a device can have drawn exactly these questions."""
        answered = frozenset(names)
        if self.ask is None:
            return answered == self.questions.keys()
        whole_units = [unit for unit in self.units if answered.issuperset(unit)]
        return len(whole_units) == self.ask and sum(map(len, whole_units)) == len(answered)

    def most(self, losses: Mapping[str, Fraction | None]) -> Fraction | None:
        """Return the largest sum of the losses of questions that one person answers; None if it is unlimited."""
        return largest_sum(losses, self.units, self.ask)

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
        least = self.most({name: question.stated_loss or Fraction(0) for name, question in self.questions.items()})
        if unlimited or self.lifetime <= 0 or least is None or self.lifetime < least:
            needs = f'"{unlimited[0]}" has unlimited loss' if unlimited else f"one report needs {say(least or 0)}"
            raise PolicyUnreadable(
                f"The lifetime of [collection.{self.name}] is epsilon {say(self.lifetime)}, but {needs}.",
                "Raise the lifetime, or lower the epsilon of the questions.",
            )

    def refuse_new(self, now: datetime, *, needs_key: bool = True) -> None:
        """Refuse to open a version that cuts baskets, or a poll that has passed, has no key, or says too little."""
        self.refuse_cuts()
        if self.poll is None:
            return
        self.poll.refuse_past(now, needs_key=needs_key)
        errors = {} if self.poll.accept_error else self.expected_errors()
        worst = max(errors, key=errors.__getitem__, default="")
        if worst and errors[worst] > MOST_ERROR:
            raise PolicyUnreadable(
                f'With {self.clients:,} people, the expected error of "{worst}" is {say(100 * errors[worst], 2)} percentage '
                f"points, above {say(100 * MOST_ERROR)}.",
                "Raise its epsilon, ask fewer questions or more people, or write accept_error = true.",
            )

    def expected_errors(self, clients: int | None = None) -> dict[str, float]:
        """Return the standard error of each question: of a share, or of a mean as a part of the range.

        `clients` is the number of respondents; without it, and if the collection states none, the result is empty.
        """
        number = clients or self.clients
        if not number:
            return {}
        share = 1 if self.ask is None else self.ask / len(self.units)
        errors = {}
        for name, question in self.questions.items():
            if (variance := expected_variance(question)) is not None:
                errors[name] = math.sqrt(variance / (share * number))
        return errors

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
        if self.rounds is not None and (self.rounds < 1 or not twice):
            raise PolicyUnreadable(
                f'`rounds` of "{self.name}" must be a number of at least 1, with repeats = "two-layers".',
                "Remove it, or add `each` to every question.",
            )
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
        """The collection as its section of the policy file; see `policy.poll_section.poll_dict` for a poll."""
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
        if self.batch is not None:
            stated["batch"] = self.batch.to_value()
        if self.ask is not None:
            stated["ask"] = self.ask
        if self.rounds is not None:
            stated["rounds"] = self.rounds
        return {**stated, "together": [list(names) for names in self.together]} if self.together else stated

    def public_dict(self) -> dict[str, Any]:
        """Everything that a client needs, in plain values; `policy.toml.collection_from_dict` reads it back."""
        return {**self._promised(), "fingerprint": self.fingerprint}

    def _promised(self) -> dict[str, Any]:
        questions = {name: question.public_dict() for name, question in self.questions.items()}
        promised = {"collection": self.name, "version": self.version, "repeats": self.repeats, "questions": questions}
        promised |= texts(self._limits())
        return promised if self.poll is None else {**promised, "poll": self.poll.public_dict()}

    @cached_property
    def fingerprint(self) -> str:
        """A SHA-256 name of everything that a respondent is promised."""
        return fingerprint_of(self._promised())


def _two_layers() -> str:
    return " and ".join(name for name, known in VALUE_OPERATORS.items() if EACH in known.parameters)
