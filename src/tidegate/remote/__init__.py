"""A served data set with the same verbs as a local session.

    with tg.connect("http://127.0.0.1:8480", "tg_...", dataset="people") as remote:
        remote.answer(tg.mean("age"), rho=0.02).value

Refusals come back as the exceptions that a local session raises. What is collected is randomized here, on this side.

    session.py   the verbs              line.py     requests, errors as exceptions, what is sent again
    answers.py   answers, previews      desks.py    records        surveys.py   collections       tables.py   synthesis
"""

from tidegate.remote.answers import RemoteAnswer, RemoteAnswers, RemoteDerived, RemotePreview
from tidegate.remote.desks import RemoteDesk
from tidegate.remote.line import Line, error_from, error_of
from tidegate.remote.session import RemoteSession, connect
from tidegate.remote.surveys import RemoteSurvey
from tidegate.remote.tables import RemotePaidQuality, RemoteSynthesis, RemoteSynthesisPreview, RemoteTable

__all__ = [
    "Line",
    "RemoteAnswer",
    "RemoteAnswers",
    "RemoteDerived",
    "RemoteDesk",
    "RemotePaidQuality",
    "RemotePreview",
    "RemoteSession",
    "RemoteSurvey",
    "RemoteSynthesis",
    "RemoteSynthesisPreview",
    "RemoteTable",
    "connect",
    "error_from",
    "error_of",
]
