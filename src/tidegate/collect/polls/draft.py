"""A new poll: its TOML from a few decisions, the expected error for several epsilons, and the key line of a poll that opens.

draft = PollDraft("canteen", holder="Works council", title=["Canteen"], purpose=["Plan the menu"], questions=[...], people=250)
draft.settings()                   epsilons, each with the expected error of every question and what respondents will read
draft.toml("2")                    the file
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from tidegate.collect.polls.respondent_texts import respondent_texts
from tidegate.errors import PolicyUnreadable, Unsupported
from tidegate.exact import exact, plain, say
from tidegate.policy.collection import MOST_ERROR, Collection
from tidegate.policy.poll import Access
from tidegate.policy.toml import key_text, load_toml, parse_policy, value_text

EPSILONS = tuple(Fraction(epsilon) for epsilon in ("0.5", "1", "1.5", "2", "2.5", "3", "4", "5", "6", "8"))


@dataclass(frozen=True)
class DraftQuestion:
    """A question with a text in each language, and options (each with a label in each language) or a range of numbers.

    choose: The largest number of options of a person, or "any"; None if exactly one is chosen.
    """

    name: str
    text: Sequence[str]
    options: Sequence[Sequence[str]] = ()
    choose: int | str | None = None
    low: Fraction | None = None
    high: Fraction | None = None
    step: Fraction = Fraction(1)
    mean: bool = False

    def lines(self, poll: str, languages: Sequence[str]) -> list[str]:
        """Return its section of the file."""
        lines = [f"[poll.{key_text(poll)}.questions.{key_text(self.name)}]", f"text = {_words(self.text, languages)}"]
        if self.options:
            lines.append(f"options = {self._options(languages)}")
            if self.choose is not None:
                lines.append(f"choose = {value_text(self.choose)}")
            return lines
        if self.low is None or self.high is None:
            raise Unsupported(f'Question "{self.name}" needs options, or a range of numbers.')
        ends = {"from": self.low, "to": self.high, **({"step": self.step} if self.step != 1 else {})}
        lines += [f"{key} = {value_text(plain(number))}" for key, number in ends.items()]
        return [*lines, 'want = "mean"'] if self.mean else lines

    def _options(self, languages: Sequence[str]) -> str:
        """Return a plain list, or for several languages a table of labels by the ids of the options."""
        labels = [_texts(option, languages) for option in self.options]
        if all(isinstance(label, str) for label in labels):
            return value_text(labels)
        names: dict[str, Any] = {}
        for option, label in zip(self.options, labels, strict=True):
            names[_fresh_id(option[0], names)] = label
        return value_text(names)


@dataclass(frozen=True)
class Setting:
    """One epsilon: the expected (standard) error of each question, and the sentences that respondents would read."""

    epsilon: Fraction
    ask: int | None
    errors: dict[str, float]
    texts: dict[str, list[str]]

    @property
    def worst(self) -> float:
        """The largest error of a question."""
        return max(self.errors.values(), default=float("inf"))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        about = {"epsilon": float(self.epsilon), "ask": self.ask, "worst": self.worst}
        return {**about, "errors": self.errors, "texts": self.texts}


@dataclass(frozen=True)
class PollDraft:
    """The decisions about a new poll. Texts are lists: one for each language."""

    name: str
    holder: str
    title: Sequence[str]
    purpose: Sequence[str]
    questions: Sequence[DraftQuestion]
    people: int
    closes: datetime
    languages: Sequence[str] = ("en",)
    access: Access = "invited"
    at_most: int | None = None
    notes: Sequence[str] = field(default_factory=tuple)  # comments at the top of the file

    def toml(self, epsilon: Any, *, accept_error: bool = False) -> str:
        """Return the file, with one epsilon for everything that a person answers."""
        total = plain(exact(epsilon))
        lines = [
            *(f"# {note}" for note in self.notes),
            f"[poll.{key_text(self.name)}]",
            f"holder = {value_text(self.holder)}",
            f"title = {_words(self.title, self.languages)}",
            f"purpose = {_words(self.purpose, self.languages)}",
            f"languages = {value_text(list(self.languages))}",
            f"access = {value_text(self.access)}",
            f"closes = {self.closes.isoformat(timespec='seconds')}",
            _with_comment(f"clients = {self.people}", "the expected number of respondents"),
            _with_comment(f"epsilon = {value_text(total)}", "the most that one person's answers reveal, all together"),
            _with_comment(f"lifetime = {value_text(total)}", "the most that one person ever reveals to this holder"),
            _with_comment('ask = "best"', "the number of questions for each person with the smallest error"),
        ]
        lines += [f"at_most = {self.at_most}"] if self.at_most is not None else []
        lines += ["accept_error = true"] if accept_error else []
        for question in self.questions:
            lines += ["", *question.lines(self.name, self.languages)]
        return "\n".join([*lines, ""])

    def collection(self, epsilon: Any, *, accept_error: bool = False) -> Collection:
        """Return the collection that the file describes."""
        return parse_policy(self.toml(epsilon, accept_error=accept_error), name=self.name).collections[self.name]

    def settings(self, epsilons: Sequence[Fraction] = EPSILONS) -> list[Setting]:
        """Return the expected errors and the texts for several epsilons, ascending."""
        return [self.setting(epsilon) for epsilon in epsilons]

    def setting(self, epsilon: Fraction) -> Setting:
        """Return the expected errors and the texts for an epsilon."""
        collection = self.collection(epsilon)
        texts = respondent_texts(collection, self.languages[0])
        return Setting(epsilon, collection.ask, collection.expected_errors(self.people), texts)

    def cheapest(self, error: float) -> Setting:
        """Return the setting with the smallest epsilon whose expected errors are at most `error`, a share.

        Raises:
            Unsupported: No epsilon of the list reaches it.
        """
        settings = self.settings()
        for setting in settings:
            if setting.worst <= error:
                return setting
        best = settings[-1]
        raise Unsupported(
            f"With {self.people:,} people the expected error is {say(100 * best.worst, 2)} percentage points even at epsilon "
            f"{say(best.epsilon)}, above {say(100 * error, 2)}.",
            "Accept a larger error, ask more people, or ask fewer questions with fewer options.",
        )


def is_large(setting: Setting) -> bool:
    """Return whether a poll with this setting is opened only with `accept_error`."""
    return setting.worst > MOST_ERROR


def with_invitation_key(text: str, poll: str, key: str) -> str:
    """Return a policy file with the key of a poll's invitations: one line is added or replaced, and all others stay.

    Raises:
        PolicyUnreadable: The file has no section [poll.NAME] in which a line can be added.
    """
    lines, header = text.split("\n"), re.compile(rf"""\[\s*poll\s*\.\s*["']?{re.escape(poll)}["']?\s*\]\s*(#.*)?""")
    start = next((number for number, line in enumerate(lines) if header.fullmatch(line.strip())), None)
    added = f'invitation_key = "{key}"'
    if start is not None:
        end = next((n for n in range(start + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
        keys = [n for n in range(start + 1, end) if re.match(r"\s*invitation_key\s*=", lines[n])]
        changed = (
            [*lines[: keys[0]], added, *lines[keys[0] + 1 :]]
            if keys
            else [*lines[: start + 1], added, *lines[start + 1 :]]
        )
        if _is_same(text, "\n".join(changed), poll, key):
            return "\n".join(changed)
    raise PolicyUnreadable(
        f"The invitation key of [poll.{poll}] cannot be written into the file: it has no such section of its own.",
        f"Add this line to the poll: {added}",
    )


def _is_same(before: str, after: str, poll: str, key: str) -> bool:
    """Return whether two files differ only in the key of a poll."""
    try:
        old, new = load_toml(before), load_toml(after)
    except tomllib.TOMLDecodeError:
        return False
    old["poll"][poll]["invitation_key"] = key
    return old == new


def _with_comment(line: str, comment: str) -> str:
    return f"{line:<24}# {comment}"


def _texts(texts: Sequence[str], languages: Sequence[str]) -> str | dict[str, str]:
    """Return one text for all languages, or a text for each."""
    if len(texts) == 1 or len(set(texts)) == 1:
        return texts[0]
    if len(texts) != len(languages):
        raise Unsupported(
            f"{len(texts)} texts were written for {len(languages)} languages: {' | '.join(texts)}.",
            f"Write one for all languages, or one for each, separated by |: {' | '.join(languages)}.",
        )
    return dict(zip(languages, texts, strict=True))


def _words(texts: Sequence[str], languages: Sequence[str]) -> str:
    return value_text(_texts(texts, languages))


def _fresh_id(label: str, names: dict[str, Any]) -> str:
    """Return the id of an option: its label in lower case, with underscores, and a number if it is taken."""
    stem = re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_") or "option"
    name, number = stem, 2
    while name in names:
        name, number = f"{stem}_{number}", number + 1
    return name
