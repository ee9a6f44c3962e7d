"""The tree of a survey: it predicts a class from answers, learned from randomized reports of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tidegate.arrays import Array, Floats
from tidegate.collect.encoding import code_of, words_of
from tidegate.collect.trees.classifier import RandomizedTreeClassifier
from tidegate.collect.trees.columns import column_of, picked, picked_channel
from tidegate.collect.trees.grow import Tree
from tidegate.errors import Unsupported, did_you_mean
from tidegate.frames import Row, Rows
from tidegate.operators import Operator, Pure
from tidegate.policy import Policy
from tidegate.policy.collection import Collection, Question, operator_for


class SurveyReports(Protocol):
    """The interface of a survey for trees."""

    @property
    def collection(self) -> Collection: ...
    @property
    def operators(self) -> dict[str, Operator]: ...
    def codes(self, *questions: str) -> dict[str, Array]: ...


@dataclass(frozen=True, eq=False)
class SurveyTree(Rows):
    """A tree that classifies true answers. Its shares are estimates from randomized reports."""

    classifier: RandomizedTreeClassifier
    questions: dict[str, Question]
    label: Question
    reports: int
    collection: str
    label_name: str

    @property
    def strategy(self) -> str:
        return str(self.classifier.strategy_)

    @property
    def classes(self) -> list[str]:
        """The answers to the label question, as text."""
        return [words_of(self.label, int(code)) for code in self.classifier.classes_]

    def predict(self, answers: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return the class of true answers, each a mapping from question to value."""
        return [self.classes[index] for index in self.shares(answers).argmax(axis=1)]

    def shares(self, answers: Sequence[Mapping[str, Any]]) -> Floats:
        """Return the probability of each class, in the order of `classes`."""
        missing = [name for name in self.questions if any(name not in answer for answer in answers)]
        if missing:
            raise Unsupported(f'Every record needs an answer to "{missing[0]}".')
        rows = [[code_of(question, answer[name]) for name, question in self.questions.items()] for answer in answers]
        return self.classifier.predict_proba(np.array(rows, np.float64).reshape(len(rows), -1))

    def lines(self) -> list[str]:
        """Return the tree as text, one line for each node below the root that some answer reaches."""
        if self._is_leaf(0):
            return [self._says(0)]
        return [
            f"{'  ' * (len(path) - 1)}{path[-1]}{': ' + self._says(node) if self._is_leaf(node) else ''}"
            for path, node in self._nodes()
        ]

    def rows(self) -> list[Row]:
        """Return one dictionary per leaf: its conditions, its class and that class's share, and the estimated reports."""
        leaves = [(path, node) for path, node in self._nodes() if self._is_leaf(node)]
        return [{"conditions": list(path), **self._leaf(node)} for path, node in leaves or [((), 0)]]

    def _is_leaf(self, node: int) -> bool:
        return int(self.classifier.tree_.attribute[node]) < 0

    def _nodes(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield each node below the root that some answer reaches, after the conditions that lead to it."""
        return self._below(0, (), [range(question.size) for question in self.questions.values()])

    def _below(self, node: int, path: tuple[str, ...], possible: list[range]) -> Iterator[tuple[tuple[str, ...], int]]:
        """`possible` has the codes of each question that lead to this node."""
        if self._is_leaf(node):
            return
        tree = self.classifier.tree_
        index = int(tree.attribute[node])
        column, codes = self.classifier.columns_[index], possible[index]
        first = int(column.value_edges[tree.boundary[node]] + 0.5)  # the first code of the upper side
        lower, upper = range(codes.start, min(first, codes.stop)), range(max(first, codes.start), codes.stop)
        for part, child in ((lower, int(tree.left[node])), (upper, int(tree.right[node]))):
            if not part:
                continue  # the splits above exclude this side
            longer = (*path, self._side(index, part, is_upper=part is upper))
            yield longer, child
            yield from self._below(child, longer, [*possible[:index], part, *possible[index + 1 :]])

    def _side(self, index: int, part: range, *, is_upper: bool) -> str:
        """Return one side of a split as text: a bound of a number, or the values of a category that are still possible."""
        name, question = list(self.questions.items())[index]
        if self.classifier.columns_[index].ordered or question.universe.kind != "category":
            return (
                f"{name} from {words_of(question, part[0])}"
                if is_upper
                else f"{name} up to {words_of(question, part[-1])}"
            )
        return f"{name} in {', '.join(words_of(question, code) for code in part)}"

    def _leaf(self, node: int) -> Row:
        counts = self.classifier.tree_.counts[node]
        total = counts.sum()
        share = counts.max() / total if total > 0 else 1 / counts.size
        return {"class": self.classes[int(counts.argmax())], "share": float(share), "reports": float(total)}

    def _says(self, node: int) -> str:
        leaf = self._leaf(node)
        return f"{leaf['class']} ({leaf['share']:.0%} of about {leaf['reports']:,.0f})"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        tree = self.classifier.tree_
        return {
            "label": self.label.attribute,
            "classes": self.classes,
            "questions": list(self.questions),
            "strategy": self.strategy,
            "reports": self.reports,
            "leaves": tree.leaves,
            "tree": self.lines(),
            "collection": self.collection,
            "label_question": self.label_name,
            "class_codes": [int(code) for code in self.classifier.classes_],
            "nodes": tree.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy) -> SurveyTree:
        """Return the tree that `to_dict` wrote. The policy has the questions and their operators."""
        all_questions = policy.collections[data["collection"]].questions
        questions = {name: all_questions[name] for name in data["questions"]}
        classifier = RandomizedTreeClassifier.from_tree(
            Tree.from_dict(data["nodes"]),
            columns=[column_of(operator_for(question)) for question in questions.values()],
            classes=np.array(data["class_codes"]),
            strategy=data["strategy"],
        )
        label = data["label_question"]
        return cls(classifier, questions, all_questions[label], data["reports"], data["collection"], label)


def tree_of(survey: SurveyReports, label: str, *, by: Sequence[str] = (), strategy: str = "best") -> SurveyTree:
    """Learn the tree that predicts the answer to `label` from other questions (all by default)."""
    questions = survey.collection.questions
    names = list(by) or [name for name in questions if name != label]
    for name in (label, *names):
        if name not in questions:
            raise Unsupported(f'"{name}" is not a question of this collection.', did_you_mean(name, list(questions)))
    if label in names or not names:
        raise Unsupported(f'The tree needs questions other than "{label}".', "Name some with `by`, or none for all.")
    reports = survey.codes(label, *names)
    operators = {name: survey.operators[name] for name in (label, *names)}
    classifier = train(reports, operators, label=label, strategy=strategy)
    used = {name: questions[name] for name in names}
    return SurveyTree(classifier, used, questions[label], len(reports[label]), survey.collection.name, label)


def train(
    reports: Mapping[str, Array], operators: Mapping[str, Operator], *, label: str, strategy: str = "best"
) -> RandomizedTreeClassifier:
    """Train a classifier of the codes of all questions but the label, in order, from arrays of reports.

    Reports are codes, or rows of packed bits for operators whose reports are sets.
    """
    for operator in operators.values():
        _refuse_several(operator)
    channel = label_channel(operators[label])
    names = [name for name in reports if name != label]
    rows = np.column_stack([_codes(reports[name], operators[name]) for name in names]).astype(np.float64)
    classifier = RandomizedTreeClassifier(
        columns=[column_of(operators[name]) for name in names], label_channel=channel, strategy=strategy
    )
    return classifier.fit(rows, _codes(reports[label], operators[label]))


def _refuse_several(operator: Operator) -> None:
    """Refuse an operator whose report is a code that stands for many values."""
    if isinstance(operator, Pure) and operator.form == "code" and operator.supports_several:
        raise Unsupported(
            f"A tree cannot use reports of {operator.name}: each supports many values.",
            "Leave the question out, or collect it by another operator.",
        )


def label_channel(operator: Operator) -> Floats:
    """Return P(reported class | class) of a question about a category."""
    if operator.ordered:
        raise Unsupported("The label must be a category, but this question is about a number.", "Choose another label.")
    return picked_channel(operator) if operator.form == "set" else operator.channel_array()


def _codes(reports: Array, operator: Operator) -> Array:
    return picked(reports, values=operator.values) if operator.form == "set" else reports
