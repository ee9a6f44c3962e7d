"""The client: randomizes at home and hands out reports only. Needs Python itself and the vocabulary, nothing more.

client = Client(description, memory="answers.json")        what the holder published, checked by its fingerprint
client.randomize({"age": 34, "town": "L1"})                the report; the true values stay here
client.tell({"age": 34, "town": "L1"})                     what it gives away, in words, before it is sent
client.given()                                             what all answers so far give away
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.collect._bits import Bytes, SystemBytes
from tidegate.collect.aloud import read_aloud
from tidegate.collect.coding import code_of
from tidegate.collect.mechanisms import Report, operator_for
from tidegate.collect.memory import FileMemory, Memory, held
from tidegate.collect.report import identity_of, make_report
from tidegate.errors import Unsupported, did_you_mean
from tidegate.policy.collection import Collection
from tidegate.policy.exact import say
from tidegate.policy.toml import collection_from_dict


@dataclass(frozen=True)
class Given:
    """What one client has given to one question: how many different true values were answered, and the loss of all."""

    question: str
    answered: int
    epsilon: float

    def __str__(self) -> str:
        values = f"{self.answered:,} different value{'s' if self.answered != 1 else ''}"
        loss = "unlimited" if math.isinf(self.epsilon) else f"at most {say(self.epsilon)}"
        return f"{self.question}: {values} answered so far; together they give away epsilon {loss}."


class Client:
    """One person's side of a collection.

    Guarantee  The same true value gives the same permanent answer for as long as the memory lasts, so repeats tell nothing
               new; it is in the memory before a report of it exists. With repeats = "once" a second, different report is
               refused. Only `randomize`'s value may leave. Processes that share a memory in a file take turns.
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
        self.operators = {name: operator_for(question) for name, question in read.questions.items()}
        self._memory: Memory = (
            FileMemory(memory) if isinstance(memory, str | Path) else {} if memory is None else memory
        )
        self._source: Bytes = source or SystemBytes()

    def randomize(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """The report of true answers, to be sent. The same answers give the same report (but for a fresh layer)."""
        codes = self._codes(answers)
        with held(self._memory):
            return self._report(codes)

    def _report(self, codes: Mapping[str, int]) -> dict[str, Any]:
        if self.collection.repeats == "once":
            self._refuse_second(codes)
        self._introduce()
        kept = {name: self._permanent(name, code) for name, code in codes.items()}
        if self.collection.repeats != "two-layers":
            return make_report(self.collection, kept, self._identity(*codes.values()))
        count = self._memory.get(self._key("reports"), 0) + 1
        self._memory[self._key("reports")] = count
        fresh = {name: self.operators[name].repeated(report, self._source) for name, report in kept.items()}
        return make_report(self.collection, fresh, self._identity("report", count))

    def tell(self, answers: Mapping[str, Any]) -> list[str]:
        """What would be sent and what its holder can conclude, question by question, in words."""
        sent = self.randomize(answers)["answers"]
        return [
            f"{name}: {read_aloud(question, self.operators[name], sent[name])}"
            for name, question in self.collection.questions.items()
        ]

    def given(self) -> list[Given]:
        """What all answers so far give away together, over all versions of this collection."""
        with held(self._memory):
            return [self._given(name) for name in self.collection.questions]

    def given_in_all(self) -> float:
        """The loss of all answers to all questions together: they add up."""
        return sum(given.epsilon for given in self.given())

    def _given(self, question: str) -> Given:
        answered, epsilon = 0, 0.0
        for key in [key for key in self._memory if key.endswith("/about")]:
            about, start = self._memory[key], key.removesuffix("about")
            if about["collection"] == self.collection.name and question in about["epsilons"]:
                many = sum(1 for other in self._memory if other.startswith(f"{start}answer/{question}/"))
                one = about["epsilons"][question]
                answered, epsilon = (
                    answered + many,
                    epsilon + (math.inf if one is None and many else many * (one or 0.0)),
                )
        return Given(question, answered, epsilon)

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

    def _refuse_second(self, codes: Mapping[str, int]) -> None:
        """Refuse other true values after the first. (One that was interrupted on the way can be finished.)"""
        own = {self._answer_key(name, code) for name, code in codes.items()}
        if any(key.startswith(self._key("answer", "")) and key not in own for key in self._memory):
            raise Unsupported(
                f'"{self.collection.name}" takes one report of each person, and yours was made already.',
                "The same answers give that report again; others are not taken.",
            )

    def _introduce(self) -> None:
        """Remember which collection this is and what its answers cost, before the first of them."""
        if self._key("about") not in self._memory:
            epsilons = {name: operator.lifetime_epsilon for name, operator in self.operators.items()}
            known = {name: None if math.isinf(loss) else loss for name, loss in epsilons.items()}
            about = {"collection": self.collection.name, "version": self.collection.version, "epsilons": known}
            self._memory[self._key("about")] = about

    def _permanent(self, name: str, code: int) -> Report:
        """The answer to a true value: remembered, or drawn and remembered before it is used."""
        key = self._answer_key(name, code)
        if key not in self._memory:
            self._memory[key] = self.operators[name].sample(code, self._source)
        answer: Report = self._memory[key]
        return answer

    def _identity(self, *parts: object) -> str:
        if "seal" not in self._memory:
            self._memory["seal"] = self._source.take(32).hex()
        return identity_of(self._memory["seal"], self.collection.fingerprint, *parts)

    def _key(self, *parts: object) -> str:
        return "/".join(map(str, (self.collection.fingerprint, *parts)))

    def _answer_key(self, name: str, code: int) -> str:
        return self._key("answer", name, code)
