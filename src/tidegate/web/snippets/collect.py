"""Code snippets of a collection's actions in Python and on the command line."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tidegate.policy.collection import Collection
from tidegate.policy.toml import write_collection
from tidegate.web.snippets.answer import COMMAND, PYTHON, connection_code, text

Codes = dict[str, str]


def creation_code(collection: Collection, *, address: str, dataset: str) -> Codes:
    """Return the snippets that create a collection: through the service, or with a section of the policy file."""
    content = collection.to_dict()
    questions = ",\n".join(f"    {text(name)}: {_dict(question)}" for name, question in content["questions"].items())
    more = [f"{name}={_value(content[name])}" for name in ("repeats", "version", "clients") if name in content]
    call = f"remote.make_collection({text(collection.name)}, {{\n{questions},\n}}, {', '.join(more)})"
    file = f"{shlex.quote(dataset)}.toml"
    command = f"cat >> {file} <<'END'\n\n{write_collection(collection)}END\n" + _define(file, collection.name)
    return {PYTHON: f"{connection_code(address, dataset)}\n{call}", COMMAND: command}


def listing_code(*, address: str, dataset: str) -> Codes:
    """Return the snippets that list all collections of a data set."""
    python = f'{connection_code(address, dataset)}\nremote.describe()["collections"]'
    return {PYTHON: python, COMMAND: f"tidegate check {shlex.quote(dataset)}.toml"}


def collection_code(
    name: str, questions: Sequence[str], baskets: Sequence[str], *, address: str, dataset: str
) -> dict[str, Codes]:
    """Return the snippets of a collection by action: state, closing, and the estimates of each question.

    The page adds options to them (snippets.js): the method, the columns of a tree, the minimum support.
    """
    survey = f"{connection_code(address, dataset)}\nsurvey = remote.collect({text(name)})"
    file = f"{shlex.quote(dataset)}.toml"
    at, define = f"{file} {shlex.quote(name)}", _define(file, name)
    actions = {
        "state": ('survey.state()["reports"]', define),
        "closing": ("survey.close()", f"# add closed = true to [collection.{name}] in {file}, then:\n{define}"),
    }
    for question in questions:
        estimate = f"tidegate collect estimate {at} {question}"
        actions[f"distribution {question}"] = (f"survey.distribution({text(question)})", estimate)
        actions[f"tree {question}"] = (
            f"survey.tree({text(question)})",
            f"tidegate collect tree {at} --label {question}",
        )
    for question in baskets:
        rules = f"tidegate collect rules {at} --question {question}"
        actions[f"rules {question}"] = (f"survey.rules({text(question)})", rules)
    return {name: {PYTHON: f"{survey}\n{python}", COMMAND: command} for name, (python, command) in actions.items()}


def _define(file: str, name: str) -> str:
    return f"tidegate collect define {file} {shlex.quote(name)}"


def _dict(question: dict[str, object]) -> str:
    return "{" + ", ".join(f"{text(name)}: {_value(value)}" for name, value in question.items()) + "}"


def _value(value: object) -> str:
    return text(value) if isinstance(value, str) else str(value)
