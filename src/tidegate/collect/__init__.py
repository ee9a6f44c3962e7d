"""Collections of randomized reports: each person randomizes on their own device, with an operator of `tidegate.operators`.

client.py      the client on the device: randomize, remember, explain (pure Python, no arrays)
encoding.py    values <-> codes                  memory.py      what a client remembers      explain.py   as text
request.py     a report and its refusals          validation.py  which reports of a batch are accepted, as columns
survey.py      one collection: submit, distribution, close
run.py         how a batch is processed          verdicts.py    the response to it
result.py, charts.py   the estimated distribution with its error bounds
invitations.py, invitation_keys.py, blind_signatures.py   one code gives one report, and nobody can link the two
state.py       what is counted and waits          strings.py     frequent texts               means.py, shares.py, poisoning.py
polls/         a new poll, what respondents read, results of all questions
measures.py    all privacy measures at once      adviser.py     which operator, with which parameters
reconstruct/   distributions from counts         baskets/       sets of items                trees/       decision trees
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.collect.adviser import advise
    from tidegate.collect.client import Client
    from tidegate.collect.measures import Measures
    from tidegate.collect.polls.draft import DraftQuestion, PollDraft
    from tidegate.collect.polls.question_result import QuestionResult
    from tidegate.collect.polls.results import PollResults
    from tidegate.collect.survey import Survey
    from tidegate.operators import Operator
    from tidegate.policy.collection import operator_for

_WHERE = {
    "Client": "collect.client",
    "DraftQuestion": "collect.polls.draft",
    "Measures": "collect.measures",
    "Operator": "operators",
    "PollDraft": "collect.polls.draft",
    "PollResults": "collect.polls.results",
    "QuestionResult": "collect.polls.question_result",
    "Survey": "collect.survey",
    "advise": "collect.adviser",
    "operator_for": "policy.collection",
}
__all__ = [
    "Client",
    "DraftQuestion",
    "Measures",
    "Operator",
    "PollDraft",
    "PollResults",
    "QuestionResult",
    "Survey",
    "advise",
    "operator_for",
]


def __getattr__(name: str) -> Any:
    """Import a name on first use, so that a client does not load numpy."""
    if name not in _WHERE:
        raise AttributeError(f"module 'tidegate.collect' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tidegate.{_WHERE[name]}"), name)
