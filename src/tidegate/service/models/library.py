"""Responses about saved questions and dashboards."""

from __future__ import annotations

from tidegate.service.models.answers import AnswerReply, AnswersReply
from tidegate.service.models.base import Amount, Free, Moment, Reply, Unit, field


class LibraryItem(Reply):
    id: str = field("The id, which is part of its addresses.")
    name: str = field("The name that its owner chose.")
    owner: str = field("The user who saved it.")
    shared: bool = field("Whether everybody who can query the data set sees it.")
    own: bool = field("Whether it is yours.")
    made: Moment = field("When it was saved.")
    changed: Moment = field("When it was last changed.")


class SavedQuestion(LibraryItem):
    """A saved question: the request of a quote under a name."""

    request: Free = field("The request, to send to `POST .../quotes`.")


class SavedQuestions(Reply):
    questions: list[SavedQuestion] = field("Your questions and those that others share, by name.")


class QuestionProblem(Reply):
    what: str = field("Why the current policy does not allow the question.")
    do: str = field("What to do about it.")


class QuestionReply(SavedQuestion):
    """A saved question with its price and its stored answer."""

    question: str | None = field("The question as text; null if the current policy does not allow it.")
    price: Amount | None = field("What an answer would cost; 0 for a stored one.")
    unit: Unit | None = field("The unit of the price.")
    link: str | None = field("The permanent address of the answer.")
    answer: AnswerReply | AnswersReply | None = field("The stored answer; null if it was not asked yet.")
    problem: QuestionProblem | None = field("Why it cannot be asked; null if it can.")


class Dashboard(LibraryItem):
    questions: list[str] = field("The ids of its questions, in their order.")


class Dashboards(Reply):
    dashboards: list[Dashboard] = field("Your dashboards and those that others share, by name.")


class DashboardReply(Dashboard):
    items: list[QuestionReply | None] = field("The questions; null for one that was deleted or is no longer shared.")


class RemovedItem(Reply):
    removed: str = field("The id of what was deleted.")
