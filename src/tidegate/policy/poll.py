"""A poll: what respondents read about a collection, who can answer it, and until when.

It is part of the collection's description and of its fingerprint, but not of the key under which a device remembers
answers: a corrected label does not draw a new answer.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from tidegate.errors import PolicyUnreadable

Texts = Mapping[str, str]  # by language
Access = Literal["invited", "open"]
ACCESS = ("invited", "open")
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})?")
PRINTABLE = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{1,1000}")
KEY_BYTES = 256  # of an RSA modulus of 2,048 bits


@dataclass(frozen=True)
class Wording:
    """The text of a question, and of each option by its id (none for a number), in every language of the poll."""

    text: Texts
    options: Mapping[str, Texts] = field(default_factory=dict)

    def label(self, option: Any, language: str) -> str:
        """Return the label of an option; an option without one, such as "no answer", is its own label."""
        labels = self.options.get(str(option))
        return str(option) if labels is None else labels.get(language) or next(iter(labels.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        options = {option: dict(labels) for option, labels in self.options.items()}
        return {"text": dict(self.text), **({"options": options} if options else {})}


@dataclass(frozen=True)
class Poll:
    """The wording of a collection and who can answer it.

    Args:
        languages: Every text has all of them; the first is the default.
        questions: The wording of every question.
        access: "invited": every report needs a signature that one single-use code gives. "open": anyone can answer any
            number of times.
        closes: Later reports are refused.
        invitation_key: The modulus of the signing key of an invited poll (base64url, exponent 65537). It is part of the
            fingerprint, so that a service cannot recognize people by different keys. Empty before the poll is opened.
        at_most: The most reports that an open poll accepts.
        accept_error: Whether the poll can be opened if its expected error is above 10 percentage points. Not part of the
            fingerprint.
    """

    languages: tuple[str, ...]
    title: Texts
    purpose: Texts
    questions: Mapping[str, Wording]
    access: Access
    closes: datetime
    invitation_key: str = ""
    at_most: int | None = None
    accept_error: bool = False

    def __post_init__(self) -> None:
        if self.closes.tzinfo is None:
            raise PolicyUnreadable(
                "The time at which a poll closes needs a time zone.", "Write closes = 2026-12-01T18:00:00+01:00."
            )
        object.__setattr__(self, "closes", self.closes.astimezone(UTC).replace(microsecond=0))
        wrong = [language for language in self.languages if not LANGUAGE.fullmatch(language)]
        if not self.languages or wrong or len(set(self.languages)) != len(self.languages):
            raise PolicyUnreadable(
                'Languages of a poll are different codes such as "en" or "pt-BR".', 'Write languages = ["en", "de"].'
            )
        for name, by_language in self._all_texts():
            self._check_texts(name, by_language)
        self._check_access()

    def _all_texts(self) -> Iterator[tuple[str, Texts]]:
        yield "title", self.title
        yield "purpose", self.purpose
        for name, wording in self.questions.items():
            yield f'the text of question "{name}"', wording.text
            for option, labels in wording.options.items():
                yield f'option "{option}" of question "{name}"', labels

    def _check_texts(self, name: str, by_language: Texts) -> None:
        missing = [language for language in self.languages if language not in by_language]
        extra = [language for language in by_language if language not in self.languages]
        if missing or extra:
            which = (
                f"no text in {missing[0]}" if missing else f"a text in {extra[0]}, which is not a language of the poll"
            )
            raise PolicyUnreadable(
                f"A poll in {', '.join(self.languages)} needs every text in each language; {name} has {which}.",
                "Add it, or write one plain text, which is used for all languages.",
            )
        if not all(PRINTABLE.fullmatch(text) for text in by_language.values()):
            raise PolicyUnreadable(f"Every text of a poll has 1 to 1,000 printable characters; {name} does not.")

    def _check_access(self) -> None:
        if self.access == "open" and self.invitation_key:
            raise PolicyUnreadable("An open poll has no invitation key.", "Remove `invitation_key`.")
        if self.at_most is not None and (self.access != "open" or self.at_most < 1):
            raise PolicyUnreadable(
                "`at_most` limits the reports of an open poll to a number of at least 1.",
                'Remove it, or write access = "open".',
            )
        if self.invitation_key and not _is_modulus(self.invitation_key):
            raise PolicyUnreadable(
                "`invitation_key` is not an RSA modulus of 2,048 bits in base64url.",
                "Remove the line: `tidegate poll open` writes a new key.",
            )

    @property
    def invited(self) -> bool:
        """Whether every report needs an invitation."""
        return self.access == "invited"

    def text(self, texts: Texts, language: str = "") -> str:
        """Return a text in a language, or in the first one of the poll."""
        return texts.get(language) or texts[self.languages[0]]

    def language(self, preferred: str) -> str:
        """Return the language of the poll for a preferred one: the same, the same without its region, or the first."""
        for code in (preferred, preferred.partition("-")[0]):
            if code in self.languages:
                return code
        return self.languages[0]

    def refuse_past(self, now: datetime, *, needs_key: bool = True) -> None:
        """Refuse to open a poll whose closing time has passed, or that has no key for its invitations if it needs one now."""
        if self.closes <= now:
            raise PolicyUnreadable(
                f"The poll would close at {self.closes:%Y-%m-%d %H:%M} UTC, which has passed.",
                "Write a later time: closes = 2026-12-01T18:00:00+01:00.",
            )
        if needs_key and self.invited and not self.invitation_key:
            raise PolicyUnreadable(
                "An invited poll needs a key for its invitations before it is opened.",
                "Run `tidegate poll open FILE --invite 250 --out codes.csv`, which writes it into the file.",
            )

    def public_dict(self) -> dict[str, Any]:
        """Return what is part of the description and its fingerprint."""
        stated: dict[str, Any] = {"languages": list(self.languages), "title": dict(self.title)}
        stated |= {"purpose": dict(self.purpose), "access": self.access, "closes": f"{self.closes:%Y-%m-%dT%H:%M:%SZ}"}
        if self.invitation_key:
            stated["invitation_key"] = self.invitation_key
        if self.at_most is not None:
            stated["at_most"] = self.at_most
        return {**stated, "questions": {name: wording.to_dict() for name, wording in self.questions.items()}}


def _is_modulus(key: str) -> bool:
    if not re.fullmatch(r"[A-Za-z0-9_-]{342}", key):
        return False
    content = urlsafe_b64decode(key + "==")
    return len(content) == KEY_BYTES and content[0] >= 128 and content[-1] % 2 == 1
