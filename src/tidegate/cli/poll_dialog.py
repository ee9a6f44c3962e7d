"""poll new: a new poll by a dialog. Every question of the dialog is also an option of the command."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from tidegate.cli.output import INTERRUPTED, JSON, emit, say, write_whole
from tidegate.errors import PolicyUnreadable, TidegateError, Unsupported

if TYPE_CHECKING:
    from tidegate.collect.polls.draft import DraftQuestion, PollDraft, Setting

T = TypeVar("T")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
RANGE = re.compile(r"(-?[\d.]+)\s+to\s+(-?[\d.]+)(?:\s+step\s+([\d.]+))?")
SPAN = re.compile(r"([1-9][0-9]{0,3}) (day|week)s?")
EXAMPLE = "often: How often do you eat here? = Never, Weekly, Daily"
QUESTIONS = (
    "Write NAME: TEXT = OPTION, OPTION, ...; for several choices, end with '; choose 2' or '; choose any'; for a number, "
    "write = 0 to 100, or = 0 to 100 step 5; for its mean alone, end with '; mean'. In several languages, separate each text and "
    "each option by |."
)


def new(
    name: str = typer.Argument(help="The name of the poll: a letter, then letters, digits, or _ -."),
    holder: str = typer.Option("", "--holder", help="Who asks, as respondents know them."),
    title: str = typer.Option("", "--title", help="The title; in several languages: Canteen | Kantine."),
    purpose: str = typer.Option("", "--purpose", help="What the answers are used for."),
    languages: str = typer.Option("", "--languages", help="The languages: en, de."),
    question: list[str] = typer.Option([], "--question", help=f"A question; can be repeated: '{EXAMPLE}'."),
    people: str = typer.Option("", "--people", help="The number of people who will answer."),
    closes: str = typer.Option("", "--closes", help="The closing time: 2026-12-01T18:00+01:00, or 14 days."),
    access: str = typer.Option(
        "", "--access", help="invited (one report per code) or open (anyone, any number of times)."
    ),
    error: str = typer.Option("", "--error", help="The largest acceptable error in percentage points."),
    epsilon: str = typer.Option("", "--epsilon", help="The most that one person reveals, instead of --error."),
    accept_error: bool = typer.Option(False, "--accept-error", help="Accept an expected error above 10 points."),
    out: Path | None = typer.Option(None, "--out", help="The file to write (default: NAME.toml)."),
    json: bool = JSON,
) -> None:
    """Write a new poll. Options that are missing are asked for."""
    path = out or Path(f"{name}.toml")
    if not NAME.fullmatch(name):
        raise Unsupported("The name of a poll must be a letter followed by letters, digits, or _ -.", "Choose another.")
    if path.exists():
        raise PolicyUnreadable(f"{path} already exists and was not changed.", "Name another file with --out.")
    options = {"holder": holder, "title": title, "purpose": purpose, "languages": languages, "people": people}
    options |= {"closes": closes, "access": access, "error": error, "epsilon": epsilon}
    dialog = Dialog(name, options, list(question))
    try:
        draft, setting = dialog.run()
    except (EOFError, KeyboardInterrupt):  # the answers ended, or Ctrl-C
        print(f"\nNo file was written. Without a terminal, use --{dialog.current}.", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    write_whole(path, draft.toml(setting.epsilon, accept_error=accept_error))
    if json:
        return emit({"poll": name, "file": str(path), "people": draft.people, **setting.to_dict()})
    return _say_result(path, draft, setting, accept_error=accept_error)


def _say_result(path: Path, draft: PollDraft, setting: Setting, *, accept_error: bool) -> None:
    from tidegate.collect.polls.draft import is_large
    from tidegate.exact import say as number

    worst = f"{number(100 * setting.worst, 2)} percentage points"
    say(
        f"{path}: {len(draft.questions)} questions, epsilon {number(setting.epsilon)}, expected error at most {worst}.",
        f"See what respondents will read: tidegate poll preview {path}",
    )
    if is_large(setting) and not accept_error:
        say("It will not open with an error above 10 points: change the file, or add accept_error = true.")


@dataclass
class Dialog:
    """Questions about a new poll. An option that is set is not asked; an answer that cannot be read is asked again."""

    name: str
    options: dict[str, str]
    questions: list[str]
    languages: tuple[str, ...] = ("en",)
    current: str = ""
    drafts: list[DraftQuestion] = field(default_factory=list)

    def run(self) -> tuple[PollDraft, Setting]:
        """Return the draft and the chosen epsilon with its expected errors."""
        from tidegate.collect.polls.draft import PollDraft

        holder = self._decide("holder", "Who asks? Respondents read this name first", "", _required)
        self.languages = self._decide("languages", "Languages of the poll", "en", _languages)
        title = self._decide("title", f"Title{self._in_languages}", self.name, _texts)
        purpose = self._decide("purpose", f"What are the answers used for?{self._in_languages}", "", _texts)
        self._ask_questions()
        people = self._decide("people", "How many people will answer?", "100", _whole)
        closes = self._decide("closes", "When does the poll close?", "14 days", read_closing)
        access = self._decide("access", "Who can answer: invited (one report per code) or open?", "invited", _access)
        notes = (f'The poll "{self.name}". Preview it: tidegate poll preview FILE',)
        draft = PollDraft(
            self.name, holder, title, purpose, self.drafts, people, closes, self.languages, access, notes=notes
        )
        return draft, self._setting(draft)

    @property
    def _in_languages(self) -> str:
        return f" ({' | '.join(self.languages)})" if len(self.languages) > 1 else ""

    def _ask_questions(self) -> None:
        if self.questions:
            self.drafts = [read_question(text) for text in self.questions]
            return
        self.current = "question"
        self._show(QUESTIONS, f"For example: {EXAMPLE}")
        while True:
            hint = " (Enter if there is none)" if self.drafts else ""
            answer = self._input(f"Question {len(self.drafts) + 1}{hint}", "")
            if not answer and self.drafts:
                return
            try:
                self.drafts.append(read_question(answer))
            except TidegateError as error:
                self._show(f"{error.what} {error.do}")

    def _setting(self, draft: PollDraft) -> Setting:
        """Return the setting for the acceptable error, after a table of all of them."""
        if self.options["epsilon"]:
            return draft.setting(_number(self.options["epsilon"]))
        if not self.options["error"]:
            self._show(*_table(draft))
        return self._decide(
            "error",
            "Which error is acceptable, in percentage points (or: epsilon 2)?",
            "5",
            lambda answer: _chosen(draft, answer),
        )

    def _decide(self, key: str, question: str, default: str, read: Callable[[str], T]) -> T:
        """Return an option that is set, or ask until the answer can be read."""
        self.current = key
        if self.options[key]:
            return read(self.options[key])
        while True:
            try:
                return read(self._input(question, default) or default)
            except TidegateError as error:
                self._show(f"{error.what} {error.do}")

    def _input(self, question: str, default: str) -> str:
        """Prompts go to standard error: standard output is for the result."""
        print(f"{question}{f' [{default}]' if default else ''}: ", end="", file=sys.stderr, flush=True)
        return input().strip()

    def _show(self, *lines: str) -> None:
        print("\n".join(lines), file=sys.stderr)


def _table(draft: PollDraft) -> list[str]:
    """Return the expected error of every question for several epsilons, and what respondents would read for each."""
    from tidegate.exact import say as number

    settings = draft.settings()
    names = [question.name for question in draft.questions]
    lines = ["Expected error in percentage points (standard error), by the most that one person reveals:"]
    lines.append(f"  {'epsilon':<9}{''.join(f'{name[:14]:>16}' for name in names)}")
    for setting in settings:
        errors = "".join(f"{number(100 * setting.errors[name], 2):>16}" for name in names)
        lines.append(f"  {number(setting.epsilon):<9}{errors}")
    lines.append(f'What respondents read about "{names[0]}":')
    return [*lines, *(f"  {number(setting.epsilon):<5}{setting.texts[names[0]][0]}" for setting in settings)]


def _chosen(draft: PollDraft, answer: str) -> Setting:
    kind, _, rest = answer.partition(" ")
    if kind == "epsilon":
        return draft.setting(_number(rest))
    return draft.cheapest(float(_number(answer.removesuffix("%"))) / 100)


def read_question(text: str) -> Any:
    """Return the question that a text such as "often: How often? = Never, Daily; choose 2" describes."""
    from tidegate.collect.polls.draft import DraftQuestion

    name, colon, rest = text.partition(":")
    words, equals, answers = rest.rpartition("=")
    if not colon or not equals or not NAME.fullmatch(name.strip()) or not words.strip() or not answers.strip():
        raise Unsupported("The question cannot be read.", f"Write, for example: {EXAMPLE}")
    answers, _, setting = (part.strip() for part in answers.partition(";"))
    wording = tuple(part.strip() for part in words.split("|"))
    if numbers := RANGE.fullmatch(answers):
        if setting not in ("", "mean"):
            raise Unsupported(f'A number cannot have "{setting}".', "Write = 0 to 100, or = 0 to 100; mean.")
        low, high, step = (_number(part or "1") for part in numbers.groups())
        return DraftQuestion(name.strip(), wording, low=low, high=high, step=step, mean=setting == "mean")
    options = [tuple(label.strip() for label in option.split("|")) for option in answers.split(",") if option.strip()]
    if len(options) < 2:
        raise Unsupported(f'Question "{name.strip()}" needs at least 2 options.', f"Write, for example: {EXAMPLE}")
    return DraftQuestion(name.strip(), wording, options, _choose(setting))


def _choose(setting: str) -> int | str | None:
    if not setting:
        return None
    kind, _, number = setting.partition(" ")
    if kind == "choose" and (number == "any" or (number.isdecimal() and int(number))):
        return "any" if number == "any" else int(number)
    raise Unsupported(f'"{setting}" cannot be read.', "Write '; choose 2' or '; choose any'.")


def read_closing(answer: str) -> datetime:
    """Return a closing time: of ISO 8601 text in this machine's time zone if it has none, or after some days or weeks."""
    if span := SPAN.fullmatch(answer):
        days = int(span[1]) * (7 if span[2] == "week" else 1)
        return (datetime.now().astimezone() + timedelta(days=days)).replace(minute=0, second=0, microsecond=0)
    try:
        return datetime.fromisoformat(answer).astimezone()
    except ValueError:
        pass
    raise Unsupported("The closing time cannot be read.", "Write 2026-12-01T18:00+01:00, or 14 days.")


def _required(answer: str) -> str:
    if not answer:
        raise Unsupported("A name is required.", "Write the name that respondents know.")
    return answer


def _texts(answer: str) -> Sequence[str]:
    return tuple(part.strip() for part in _required(answer).split("|"))


def _languages(answer: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in answer.split(",") if part.strip())


def _whole(answer: str) -> int:
    digits = answer.replace(",", "").replace("_", "")
    if not digits.isdecimal() or not int(digits):
        raise Unsupported("The number of people must be a whole number of at least 1.", "Write, for example, 250.")
    return int(digits)


def _access(answer: str) -> Any:
    if answer not in ("invited", "open"):
        raise Unsupported(f'"{answer}" cannot be read.', 'Write "invited" or "open".')
    return answer


def _number(text: str) -> Fraction:
    from tidegate.exact import exact

    try:
        return exact(text.strip())
    except (TypeError, ValueError):
        pass
    raise Unsupported(f'"{text}" is not a number.', "Write, for example, 2 or 0.5.")
