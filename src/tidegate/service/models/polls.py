"""Responses about polls: state, drafts, print sheets."""

from __future__ import annotations

from typing import Literal

from tidegate.service.models.base import Codes, Failure, Hash, Moment, Reply, Texts, field, optional
from tidegate.service.models.collections import RespondentLossView


class PollWording(Reply):
    question: str = field("The name of the question.")
    text: Texts = field("Its wording.")


class PollAbout(Reply):
    poll: str = field("The name of the poll.")
    version: int = field("Its version.")
    holder: str = field("Who asks.")
    title: Texts = field("The title.")
    purpose: Texts = field("The purpose.")
    languages: list[str] = field("The languages of its texts.")
    access: Literal["invited", "open"] = field("Who can answer.")
    closes: Moment = field("When it closes.")
    questions: list[PollWording] = field("The questions.")
    form: str = field("The address of the form for respondents.")
    only_here: bool = field("Whether that address works on this machine only.")


class PollSummary(PollAbout):
    state: Literal["open", "over", "closed"] | None = field("The state; null if the poll cannot be opened.")
    status: str | None = field("The state as a sentence; null if the poll cannot be opened.")
    reports: int | None = field("The number of counted reports; null if the poll cannot be opened.")
    waiting: int | None = field("The number of waiting reports, rounded down; null if the poll cannot be opened.")
    at_least: int | None = field("The smallest number of reports of a batch; null if the poll cannot be opened.")
    clients: int | None = field("The expected number of respondents; null if the policy names none.")
    problem: str | None = field("Why it cannot be opened; null if it can.")


class PollList(Reply):
    polls: list[PollSummary] = field("The polls of the policy.")
    may_add: bool = field("Whether the data set has a policy file, to which polls can be added.")


class InvitationCounts(Reply):
    codes: int = field("The number of codes.")
    used: int = field("The number of used codes.")


class PollState(PollAbout):
    state: Literal["open", "over", "closed"] = field("The state.")
    status: str = field("The state as a sentence.")
    reports: int = field("The number of counted reports.")
    waiting: int = field("The number of waiting reports, rounded down.")
    at_least: int = field("The smallest number of reports of a batch.")
    next_count: Moment | None = field("When waiting reports are counted next; null if they are not.")
    clients: int | None = field("The expected number of respondents; null if the policy names none.")
    at_most: int | None = field("The most reports that an open poll accepts; null if there is no limit.")
    invitations: InvitationCounts | None = field("The codes of an invited poll; null for an open one.")
    says: str = field("What one person loses.")
    fingerprint: Hash = field("The fingerprint of its description.")


class DraftedQuestion(Reply):
    question: str = field("The name of the question.")
    kind: Literal["choice", "choices", "number"] = field("What it asks for.")
    operator: str = field("How answers are randomized.")
    epsilon: str | None = field("The loss of one report; null if it has no limit.")
    says: str = field("A description of the question.")
    error: float | None = field("The expected standard error; null if it is not known.")
    margin: float | None = field("Half of a 95% interval; null if it is not known.")
    too_large: bool = field("Whether the error is above 10 points.")


class ReadQuestion(Reply):
    question: str = field("The name of the question.")
    text: str = field("Its wording.")
    options: list[str] = field("The labels of its options.")
    sentences: list[str] = field("What the form says about privacy.")


class RespondentText(Reply):
    """What respondents read in one language."""

    language: str = field("The language.")
    sentences_in: str = field("The language of the sentences about privacy.")
    holder: str = field("Who asks.")
    title: str = field("The title.")
    purpose: str = field("The purpose.")
    questions: list[ReadQuestion] = field("The questions.")


class LevelSetting(Reply):
    """One setting of the slider of privacy against error."""

    epsilon: str = optional("The total loss, if the poll states one.")
    random: str = optional("The share of random answers, if the poll states one.")
    problem: str | None = field("Why the poll cannot have this setting; null if it can.")
    loss: float | None = field("The loss of one person; null if it has no limit.")
    ask: int | None = field("The number of questions for each person; null for all.")
    error: float | None = field("The largest expected standard error.")
    margin: float | None = field("Half of the widest 95% interval.")
    sentences: list[str] = field("What the form says about the first question.")


class PollDraft(Reply):
    poll: str = field("The name of the poll.")
    section: str = field("Its section of the policy file.")
    ask: int | None = field("The number of questions for each person; null for all.")
    units: int = field("The number of questions and groups of questions that are drawn.")
    gives: RespondentLossView = field("The privacy loss of one person.")
    says: str = field("What one person loses.")
    questions: list[DraftedQuestion] = field("The expected error of each question.")
    reads: list[RespondentText] = field("What respondents read, by language.")
    settings: list[LevelSetting] = field("The settings of the slider, from the most privacy to the least.")
    problem: Failure | None = field("Why the poll could not be opened as it is; null if it could.")
    codes: Codes = field("Code that creates the poll.")


class QrCode(Reply):
    size: int = field("The number of modules on a side.")
    bits: str = field("The modules of all rows, as bits in base64.")


class Slip(Reply):
    code: str = field("The invitation code.")
    link: str = field("The link to the form with the code.")
    qr: QrCode = field("The QR code of the link.")


class PrintSheet(Reply):
    slips: list[Slip] = field("The invitations. They are shown only once.")
    form: str = field("The address of the form.")
