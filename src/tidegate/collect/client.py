"""The client: randomizes at home and hands out reports only. Needs Python itself and the vocabulary, nothing more.

client = Client(description, memory="answers.json")        what the holder published, checked by its fingerprint
client.tell({"age": 34, "town": "L1"})                     what would be sent and what it gives away, in words; costs nothing
client.randomize({"age": 34, "town": "L1"})                the report, to be sent; the true values stay here
client.given(), client.account()                           what all answers so far give away, and how much of the lifetime is used

An answer is a draft, then sending, then sent. It is drawn once for each true value and stays as it is. What it costs is
charged when it becomes sending, before it leaves: a lost response may hide a report that arrived.

client.draft(answers)      the report as it would be sent; nothing is charged, and the same answers give the same draft
client.start(answers)      the same report, charged: it may leave, as often as is needed until it is confirmed
client.confirm(answers)    it was received        client.randomize(answers)   draft and start, handed out for good
client.forget()            remove answers and drafts; what was used stays used
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
from tidegate.collect.memory import Account, FileMemory, Memory, held, question_key
from tidegate.collect.request import identity_of, make_report
from tidegate.errors import Unsupported, did_you_mean
from tidegate.exact import say
from tidegate.operators import Report
from tidegate.operators.exact_draws import Bytes, SystemBytes
from tidegate.policy.collection import Collection, operator_for
from tidegate.policy.toml import collection_from_dict


@dataclass(frozen=True)
class Given:
    """What one client has sent to one question: how many different true values were answered, and the loss of all."""

    question: str
    answered: int
    epsilon: float

    def __str__(self) -> str:
        values = f"{self.answered:,} different value{'s' if self.answered != 1 else ''}"
        loss = "unlimited" if math.isinf(self.epsilon) else f"at most {say(self.epsilon)}"
        return f"{self.question}: {values} answered so far; together they give away epsilon {loss}."


class Client:
    """One person's side of a collection.

    Guarantee  The same true value gives the same permanent answer for as long as the memory lasts, in every version that
               asks the same, so repeats tell nothing new; it is in the memory before a report of it exists. All reports
               ever handed out to a holder use no more than the lifetime. With repeats = "once" a second, different report
               is refused. Only the values of `randomize` and `start` may leave. Processes that share a memory in a file
               take turns.
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
                f'the collection "{read.name}" is not the one with the fingerprint you were given.',
                "Ask its holder which one is right; nothing was sent.",
            )
        self.collection = read
        self.holder = read.holder or read.name
        self.operators = {name: operator_for(question) for name, question in read.questions.items()}
        self._memory: Memory = (
            FileMemory(memory) if isinstance(memory, str | Path) else {} if memory is None else memory
        )
        self._source: Bytes = source or SystemBytes()

    # Reports

    def draft(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """The report as it would be sent. It is drawn once and kept; nothing is charged, and nothing is locked."""
        codes = self._codes(answers)
        with held(self._memory):
            return self._drawn(codes)

    def start(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """The report of true answers, charged: it may leave now. Until it is confirmed the same bytes come again."""
        codes = self._codes(answers)
        with held(self._memory):
            return self._started(codes)

    def confirm(self, answers: Mapping[str, Any]) -> None:
        """Remember that the report which `start` gave was received."""
        codes = self._codes(answers)
        with held(self._memory):
            records = {self._place(name, code): self._record(name, code) for name, code in codes.items()}
            sent = {place: record for place, record in records.items() if self.holder in record.get("state", {})}
            self._memory.update({place: self._in_state(record, "sent") for place, record in sent.items()})
            self._memory.pop(self._draft_key(codes), None)

    def randomize(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """The report of true answers, charged and handed out. The same answers give the same report (but for a fresh layer)."""
        codes = self._codes(answers)
        with held(self._memory):
            report = self._started(codes)
            self._memory.pop(self._draft_key(codes), None)
            return report

    def tell(self, answers: Mapping[str, Any]) -> list[str]:
        """What would be sent and what its holder can conclude, question by question, in words. Nothing is charged."""
        sent = self.draft(answers)["answers"]
        return [
            f"{name}: {read_aloud(question, self.operators[name], sent[name])}"
            for name, question in self.collection.questions.items()
        ]

    def _drawn(self, codes: Mapping[str, int]) -> dict[str, Any]:
        self._meet()
        self._refuse(codes)
        answers = {name: self._permanent(name, code) for name, code in codes.items()}
        if self.collection.repeats != "two-layers":
            return make_report(self.collection, answers, self._identity(*codes.values()))
        place = self._draft_key(codes)
        if place not in self._memory:
            self._memory[place] = self._fresh(answers)
        report: dict[str, Any] = self._memory[place]
        return dict(report)

    def _fresh(self, answers: Mapping[str, Report]) -> dict[str, Any]:
        count = self._memory.get(self._key("reports"), 0) + 1
        self._memory[self._key("reports")] = count
        fresh = {name: self.operators[name].repeated(report, self._source) for name, report in answers.items()}
        return make_report(self.collection, fresh, self._identity("report", count))

    def _started(self, codes: Mapping[str, int]) -> dict[str, Any]:
        """Charge and lock what was not sent before, in one change of the memory, and only then give the report."""
        report = self._drawn(codes)
        unpaid = self._unpaid(codes)
        account = self._account()
        spent = total((account.spent, *(self._losses[name] for name in unpaid)))
        changes: dict[str, Any] = Account(self.holder, spent, account.lifetime).record()
        if self.collection.repeats == "once":
            changes[self._key("once")] = report["id"]
        for name in unpaid:
            record = self._record(name, codes[name])
            changes[self._place(name, codes[name])] = self._in_state(record, "sending")
        self._memory.update(changes)
        return report

    # What they cost

    def given(self) -> list[Given]:
        """What all answers sent so far give away, question by question, over all versions that ask the same."""
        with held(self._memory):
            self._convert()
            return [self._given(name) for name in self.collection.questions]

    def given_in_all(self) -> float:
        """The loss of all answers to these questions together: they add up."""
        return sum(given.epsilon for given in self.given())

    def account(self) -> Account:
        """What all answers to this holder have used of the lifetime, in any of their collections."""
        with held(self._memory):
            self._convert()
            return self._account()

    def forget(self) -> None:
        """Remove all answers and drafts from the memory. What was used of each lifetime stays used, and `once` stays once."""
        with held(self._memory):
            self._convert()
            locks = [key for key in self._memory if key.endswith("/once")]
            self._memory.update(dict.fromkeys(locks, ""))
            for key in [key for key in self._memory if not key.startswith("holder/") and key not in locks]:
                del self._memory[key]

    def _given(self, question: str) -> Given:
        start, loss = f"answer/{self._keys[question]}/", self._losses[question]
        places = [key for key in self._memory if key.startswith(start)]
        answered = sum(self.holder in self._memory[place]["state"] for place in places)
        return Given(question, answered, float(answered * loss) if loss is not None else math.inf if answered else 0.0)

    def _account(self) -> Account:
        stated = self.collection.lifetime
        return Account.read(self._memory, self.holder, self._gives.default_lifetime if stated is None else stated)

    @cached_property
    def _gives(self) -> RespondentLoss:
        return respondent_loss(self.collection)

    @property
    def _losses(self) -> Mapping[str, Loss]:
        return self._gives.questions

    def _unpaid(self, codes: Mapping[str, int]) -> list[str]:
        """The questions whose true value was not sent to this holder yet."""
        return [name for name, code in codes.items() if self.holder not in self._record(name, code).get("state", {})]

    def _refuse(self, codes: Mapping[str, int]) -> None:
        """Refuse other true values where one report is taken, and what the lifetime has no room for."""
        lock = self._memory.get(self._key("once"))
        if lock is not None and (not lock or lock != self._identity(*codes.values())):
            raise Unsupported(
                f'"{self.collection.name}" takes one report of each person, and yours was sent already.',
                "The same answers send that report again, unless they were forgotten; others are not taken.",
            )
        unpaid = self._unpaid(codes)
        if unpaid:
            self._account().refuse(total(self._losses[name] for name in unpaid), len(unpaid))

    # The memory

    def _meet(self) -> None:
        """Keep the lifetime that is stated, where it is the first or a lower one."""
        self._convert()
        [(place, record)] = self._account().record().items()
        if self._memory.get(place) != record:
            self._memory[place] = record

    def _permanent(self, name: str, code: int) -> Report:
        """The answer to a true value: remembered, or drawn and remembered before it is used."""
        place = self._place(name, code)
        if place not in self._memory:
            self._memory[place] = {"report": self.operators[name].sample(code, self._source), "state": {}}
        answer: Report = self._memory[place]["report"]
        return answer

    def _convert(self) -> None:
        """Take over what an earlier version remembered: its answers count as sent, and are not drawn again."""
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
            self._memory[self._place(name, int(code))] = {"report": self._memory[old], "state": {self.holder: "sent"}}
        codes = {name: int(code) for _, name, code in answers}
        if self.collection.repeats == "once" and len(codes) == len(self.collection.questions):
            self._memory[self._key("once")] = self._identity(*(codes[name] for name in self.collection.questions))
        for old, _, _ in answers:
            del self._memory[old]

    def _codes(self, answers: Mapping[str, Any]) -> dict[str, int]:
        for name in answers:
            if name not in self.collection.questions:
                raise Unsupported(f'"{name}" is not asked here.', did_you_mean(name, self.collection.questions))
        left = [name for name in self.collection.questions if name not in answers]
        if left:
            raise Unsupported(
                f"not answered: {', '.join(left)}. Nothing was sent.",
                "All are needed: which questions a person leaves out would tell something.",
            )
        return {name: code_of(question, answers[name]) for name, question in self.collection.questions.items()}

    def _identity(self, *parts: object) -> str:
        if "seal" not in self._memory:
            self._memory["seal"] = self._source.take(32).hex()
        return identity_of(self._memory["seal"], self.collection.fingerprint, *parts)

    def _record(self, name: str, code: int) -> dict[str, Any]:
        record: dict[str, Any] = self._memory.get(self._place(name, code), {})
        return record

    def _in_state(self, record: Mapping[str, Any], state: str) -> dict[str, Any]:
        return {**record, "state": {**record["state"], self.holder: state}}

    @cached_property
    def _keys(self) -> dict[str, str]:
        return {name: question_key(self.collection.holder, asked) for name, asked in self.collection.questions.items()}

    def _place(self, name: str, code: int) -> str:
        return f"answer/{self._keys[name]}/{code:x}"

    def _draft_key(self, codes: Mapping[str, int]) -> str:
        return self._key("draft", "-".join(f"{code:x}" for code in codes.values()))

    def _key(self, *parts: object) -> str:
        return "/".join(map(str, (self.collection.fingerprint, *parts)))


def _rounded_up(loss: float) -> Fraction:
    """To six decimals: earlier memories hold the logarithm of the drawn ratio, a little below what was promised."""
    return Fraction(math.ceil(loss * 1e6), 1_000_000)
