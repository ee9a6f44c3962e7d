"""The client on the respondent's device: it randomizes answers and returns reports only. It needs no third-party package.

client = Client(description, memory="answers.json")        the published description, checked by its fingerprint
client.tell({"age": 34, "town": "L1"})                     what would be sent and what it reveals, as text; free
client.randomize({"age": 34, "town": "L1"})                the report to send; the true values stay on the device
client.given(), client.account()                           what all answers so far reveal, and the used lifetime

An answer is a draft, then sending, then sent. It is drawn once for each true value and never changes. Its loss is
charged when it becomes sending, before it is sent: a report can arrive even if the response is lost.

client.draft(answers)      the report that would be sent; nothing is charged, and the same answers give the same draft
client.start(answers)      the same report, charged: it can be sent, repeatedly until it is confirmed
client.confirm(answers)    it was received        client.randomize(answers)   draft and start in one call
client.forget()            remove answers and drafts; the used lifetime stays used
client.forget_everything() remove the whole memory: limits start over
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from tidegate.accounting.respondent import Loss, RespondentLoss, respondent_loss, total
from tidegate.collect.encoding import code_of
from tidegate.collect.explain import read_aloud
from tidegate.collect.memory import Account, FileMemory, Memory, locked, question_key
from tidegate.collect.request import identity_of, make_report
from tidegate.errors import Unsupported, did_you_mean
from tidegate.exact import say
from tidegate.operators import Report
from tidegate.operators.exact_draws import Bytes, SystemBytes
from tidegate.operators.select_a_size import first_of_shuffled
from tidegate.policy.collection import Collection, operator_for
from tidegate.policy.fingerprint import fingerprint_of
from tidegate.policy.toml import collection_from_dict


@dataclass(frozen=True)
class Given:
    """The answers of one client to one question: the number of different true values, and their total loss."""

    question: str
    answered: int
    epsilon: float

    def __str__(self) -> str:
        values = f"{self.answered:,} different value{'s' if self.answered != 1 else ''}"
        loss = "unlimited" if math.isinf(self.epsilon) else f"at most {say(self.epsilon)}"
        return f"{self.question}: {values} answered so far; together they reveal epsilon {loss}."


LASTING = ("holder/", "chosen/", "token/", "seed/")  # keys of a memory that `forget` keeps


class Client:
    """One respondent's client for a collection.

    Guarantee:
        The same true value gives the same permanent answer for as long as the memory exists, in every version that
        asks the same question, so repeats reveal nothing new. The answer is in the memory before a report of it
        exists. All reports ever returned for a holder use no more than the lifetime. With repeats = "once", a second,
        different report is refused. Only the results of `randomize` and `start` may be sent. Processes that share a
        memory file take turns.
    """

    def __init__(
        self,
        collection: Collection | Mapping[str, Any],
        *,
        memory: Memory | str | Path | None = None,
        fingerprint: str | None = None,
        source: Bytes | None = None,
    ) -> None:
        read = collection if isinstance(collection, Collection) else collection_from_dict(dict(collection))
        if fingerprint is not None and read.fingerprint != fingerprint:
            raise Unsupported(
                f'The collection "{read.name}" does not have the fingerprint that you were given.',
                "Ask its holder which fingerprint is right. Nothing was sent.",
            )
        self.collection = read
        self.holder = read.holder or read.name
        self.operators = {name: operator_for(question) for name, question in read.questions.items()}
        self._memory: Memory = (
            FileMemory(memory) if isinstance(memory, str | Path) else {} if memory is None else memory
        )
        self._source: Bytes = source or SystemBytes()

    # Questions

    @property
    def asked(self) -> tuple[str, ...]:
        """The questions of this person, in the order of the collection: all, or those that the device drew once.

        Guarantee:
            They are drawn before an answer exists, stored, and the same in every version that asks the same questions, so
            that they depend on no answer. The choice is public.
        """
        if self.collection.ask is None:
            return tuple(self.collection.questions)
        units = self._sorted_units
        key = f"chosen/{fingerprint_of({'ask': self.collection.ask, 'units': units})}"
        with locked(self._memory):
            if key not in self._memory:
                drawn = first_of_shuffled(list(range(len(units))), self.collection.ask, self._source)
                chosen = sorted(drawn[: self.collection.ask])
                self._memory[key] = [question for position in chosen for question in units[position]]
            chosen_keys = set(self._memory[key])
        return tuple(name for name, question in self._keys.items() if question in chosen_keys)

    @cached_property
    def _sorted_units(self) -> list[list[str]]:
        """The keys of the questions of every unit, in an order that does not depend on that of the questions."""
        return sorted(sorted(self._keys[name] for name in unit) for unit in self.collection.units)

    # Reports

    def draft(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Return the report that would be sent. It is drawn once and stored; nothing is charged, and `once` stays open."""
        codes = self._codes(answers)
        with locked(self._memory):
            return self._draw(codes)

    def start(self, answers: Mapping[str, Any], *, invitation: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the report of true answers and charge it: it can be sent now. The same bytes return until it is confirmed.

        Args:
            invitation: The nonce and the signature that an invited poll requires (`collect.invitations`).
        """
        codes = self._codes(answers)
        self._refuse_uninvited(invitation)
        with locked(self._memory):
            return _with_invitation(self._start(codes), invitation)

    def confirm(self, answers: Mapping[str, Any]) -> None:
        """Record that the report of `start` was received."""
        codes = self._codes(answers)
        with locked(self._memory):
            records = {self._answer_key(name, code): self._record(name, code) for name, code in codes.items()}
            sent = {key: record for key, record in records.items() if self.holder in record.get("state", {})}
            self._memory.update({key: self._in_state(record, "sent") for key, record in sent.items()})
            self._memory.pop(self._draft_key(codes), None)

    def randomize(self, answers: Mapping[str, Any], *, invitation: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the report of true answers and charge it. The same answers give the same report, except for a fresh layer."""
        codes = self._codes(answers)
        self._refuse_uninvited(invitation)
        with locked(self._memory):
            report = self._start(codes)
            self._memory.pop(self._draft_key(codes), None)
            return _with_invitation(report, invitation)

    def tell(self, answers: Mapping[str, Any]) -> list[str]:
        """Return what would be sent and what the holder can conclude, as text for each question. Nothing is charged."""
        sent = self.draft(answers)["answers"]
        return [
            f"{name}: {read_aloud(question, self.operators[name], sent[name])}"
            for name, question in self.collection.questions.items()
            if name in sent
        ]

    def _draw(self, codes: Mapping[str, int]) -> dict[str, Any]:
        self._meet()
        self._refuse(codes)
        answers = {name: self._permanent(name, code) for name, code in codes.items()}
        if self.collection.repeats != "two-layers":
            return make_report(self.collection, answers, self._identity(*codes.values()))
        key = self._draft_key(codes)
        if key not in self._memory:
            self._memory[key] = self._fresh(answers)
        report: dict[str, Any] = self._memory[key]
        return dict(report)

    def _fresh(self, answers: Mapping[str, Report]) -> dict[str, Any]:
        count = self._memory.get(self._key("reports"), 0) + 1
        self._memory[self._key("reports")] = count
        fresh = {name: self.operators[name].repeated(report, self._source) for name, report in answers.items()}
        return make_report(self.collection, fresh, self._identity("report", count))

    def _start(self, codes: Mapping[str, int]) -> dict[str, Any]:
        """Charge and lock what was not sent before, in one change of the memory, and only then return the report."""
        report = self._draw(codes)
        unpaid = self._unpaid(codes)
        account = self._account()
        spent = total((account.spent, *(self._losses[name] for name in unpaid)))
        changes: dict[str, Any] = Account(self.holder, spent, account.lifetime).record()
        if self.collection.repeats == "once":
            changes[self._key("once")] = report["id"]
        for name in unpaid:
            record = self._record(name, codes[name])
            changes[self._answer_key(name, codes[name])] = self._in_state(record, "sending")
        self._memory.update(changes)
        return report

    # Privacy loss

    def given(self) -> list[Given]:
        """Return what all answers sent so far reveal, for each question, over all versions that ask the same."""
        with locked(self._memory):
            self._convert()
            return [self._given(name) for name in self.collection.questions]

    def given_in_all(self) -> float:
        """Return the loss of all answers to these questions together: the sum."""
        return sum(answers.epsilon for answers in self.given())

    def account(self) -> Account:
        """Return what all answers to this holder have used of the lifetime, in all of their collections."""
        with locked(self._memory):
            self._convert()
            return self._account()

    def forget(self) -> None:
        """Remove all answers and drafts from the memory.

        Used lifetimes stay used, `once` stays in force, and drawn questions and invitations stay the same.
        """
        with locked(self._memory):
            self._convert()
            locks = [key for key in self._memory if key.endswith("/once")]
            self._memory.update(dict.fromkeys(locks, ""))
            for key in [key for key in self._memory if not key.startswith(LASTING) and key not in locks]:
                del self._memory[key]

    def forget_everything(self) -> None:
        """Remove the whole memory. Lifetimes, `once` and drawn questions start over, so that new answers reveal more."""
        with locked(self._memory):
            for key in list(self._memory):
                del self._memory[key]

    def _given(self, question: str) -> Given:
        start, loss = f"answer/{self._keys[question]}/", self._losses[question]
        keys = [key for key in self._memory if key.startswith(start)]
        answered = sum(self.holder in self._memory[key]["state"] for key in keys)
        return Given(question, answered, float(answered * loss) if loss is not None else math.inf if answered else 0.0)

    def _account(self) -> Account:
        stated = self.collection.lifetime
        return Account.read(
            self._memory, self.holder, self._respondent_loss.default_lifetime if stated is None else stated
        )

    @cached_property
    def _respondent_loss(self) -> RespondentLoss:
        return respondent_loss(self.collection)

    @property
    def _losses(self) -> Mapping[str, Loss]:
        return self._respondent_loss.questions

    def _unpaid(self, codes: Mapping[str, int]) -> list[str]:
        """Return the questions whose true value was not sent to this holder yet."""
        return [name for name, code in codes.items() if self.holder not in self._record(name, code).get("state", {})]

    def _refuse(self, codes: Mapping[str, int]) -> None:
        """Refuse different true values if only one report is accepted, and answers that exceed the lifetime."""
        lock = self._memory.get(self._key("once"))
        if lock is not None and (not lock or lock != self._identity(*codes.values())):
            raise Unsupported(
                f'"{self.collection.name}" accepts one report per person, and yours was already sent.',
                "The same answers send that report again, unless they were forgotten; different answers are not accepted.",
            )
        unpaid = self._unpaid(codes)
        if unpaid:
            self._account().refuse(total(self._losses[name] for name in unpaid), len(unpaid))

    # The memory

    def _meet(self) -> None:
        """Store the stated lifetime if it is the first one or a lower one."""
        self._convert()
        [(key, record)] = self._account().record().items()
        if self._memory.get(key) != record:
            self._memory[key] = record

    def _permanent(self, name: str, code: int) -> Report:
        """Return the answer to a true value: from the memory, or drawn and stored before it is used."""
        key = self._answer_key(name, code)
        if key not in self._memory:
            drawn = self.operators[name].sample_permanent(self._memory_code(name, code), self._source)
            self._memory[key] = {"report": drawn, "state": {}}
        answer: Report = self._memory[key]["report"]
        return answer

    def _convert(self) -> None:
        """Convert the memory of an earlier version: its answers count as sent and are not drawn again."""
        for key in [key for key in self._memory if key.endswith("/about")]:
            about, start = self._memory[key], key.removesuffix("about") + "answer/"
            answers = [other for other in self._memory if other.startswith(start)]
            if not about.get("counted"):
                losses = [about["epsilons"].get(answer[len(start) :].rpartition("/")[0]) for answer in answers]
                self._count(about["collection"], total(None if loss is None else _rounded_up(loss) for loss in losses))
                self._memory[key] = {**about, "counted": True}
            if key == self._key("about"):
                self._take_over([(answer, *answer[len(start) :].rpartition("/")[::2]) for answer in answers])
                del self._memory[key]

    def _count(self, holder: str, more: Loss) -> None:
        record = self._memory.get(f"holder/{holder}", {})
        spent = total((Account.read(self._memory, holder, None).spent, more))
        self._memory[f"holder/{holder}"] = {**record, "spent": None if spent is None else str(spent)}

    def _take_over(self, answers: list[tuple[str, str, str]]) -> None:
        for old, name, code in answers:
            self._memory[self._answer_key(name, int(code))] = {
                "report": self._memory[old],
                "state": {self.holder: "sent"},
            }
        codes = {name: int(code) for _, name, code in answers}
        if self.collection.repeats == "once" and len(codes) == len(self.collection.questions):
            self._memory[self._key("once")] = self._identity(*(codes[name] for name in self.collection.questions))
        for old, _, _ in answers:
            del self._memory[old]

    def _codes(self, answers: Mapping[str, Any]) -> dict[str, int]:
        for name in answers:
            if name not in self.collection.questions:
                raise Unsupported(
                    f'"{name}" is not a question of this collection.', did_you_mean(name, self.collection.questions)
                )
        drawn = self.asked
        left = [name for name in drawn if name not in answers]
        if left:
            raise Unsupported(
                f"Questions without an answer: {', '.join(left)}. Nothing was sent.",
                "Answer all questions: an omitted question would reveal something.",
            )
        return {name: code_of(self.collection.questions[name], answers[name]) for name in drawn}

    def _refuse_uninvited(self, invitation: Mapping[str, str] | None) -> None:
        poll = self.collection.poll
        if poll is not None and poll.invited and invitation is None:
            raise Unsupported(
                f'"{self.collection.name}" accepts reports of invited people only. Nothing was sent.',
                "Use the code of your invitation.",
            )

    def _identity(self, *parts: object) -> str:
        if "seal" not in self._memory:
            self._memory["seal"] = self._source.take(32).hex()
        return identity_of(self._memory["seal"], self.collection.fingerprint, *parts)

    def _record(self, name: str, code: int) -> dict[str, Any]:
        record: dict[str, Any] = self._memory.get(self._answer_key(name, code), {})
        return record

    def _in_state(self, record: Mapping[str, Any], state: str) -> dict[str, Any]:
        return {**record, "state": {**record["state"], self.holder: state}}

    @cached_property
    def _keys(self) -> dict[str, str]:
        return {
            name: question_key(self.collection.holder, question) for name, question in self.collection.questions.items()
        }

    def _answer_key(self, name: str, code: int) -> str:
        return f"answer/{self._keys[name]}/{self._memory_code(name, code):x}"

    def _memory_code(self, name: str, code: int) -> int:
        """Return what a permanent answer belongs to: the true value, or its cell by the seed of this device."""
        operator, key = self.operators[name], f"seed/{self._keys[name]}"
        if not operator.has_seed:
            return code
        if key not in self._memory:
            self._memory[key] = operator.draw_seed(self._source)
        return operator.memory_code(code, self._memory[key])

    def _draft_key(self, codes: Mapping[str, int]) -> str:
        return self._key("draft", "-".join(f"{code:x}" for code in codes.values()))

    def _key(self, *parts: object) -> str:
        return "/".join(map(str, (self.collection.fingerprint, *parts)))


def _with_invitation(report: dict[str, Any], invitation: Mapping[str, str] | None) -> dict[str, Any]:
    return report if invitation is None else {**report, "invitation": dict(invitation)}


def _rounded_up(loss: float) -> Fraction:
    """Round up to six decimals: earlier memories store the logarithm of the drawn ratio, slightly below the promise."""
    return Fraction(math.ceil(loss * 1e6), 1_000_000)
