"""Code snippets of a collection's actions in Python and on the command line."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tidegate.policy.collection import Collection
from tidegate.policy.toml import write_collection
from tidegate.web.snippets.answer import COMMAND, PYTHON, connecting, text

Codes = dict[str, str]


def spelled_making(collection: Collection, *, address: str, dataset: str) -> Codes:
    """Return the snippets that create a collection: through the service, or with a section of the policy file."""
    told = collection.to_dict()
    asked = ",\n".join(f"    {text(name)}: {_dict(question)}" for name, question in told["questions"].items())
    more = [f"{name}={_value(told[name])}" for name in ("repeats", "version", "clients") if name in told]
    call = f"remote.make_collection({text(collection.name)}, {{\n{asked},\n}}, {', '.join(more)})"
    file = f"{shlex.quote(dataset)}.toml"
    command = f"cat >> {file} <<'END'\n\n{write_collection(collection)}END\n" + _define(file, collection.name)
    return {PYTHON: f"{connecting(address, dataset)}\n{call}", COMMAND: command}


def spelled_listing(*, address: str, dataset: str) -> Codes:
    """Return the snippets that list all collections of a data set."""
    python = f'{connecting(address, dataset)}\nremote.describe()["collections"]'
    return {PYTHON: python, COMMAND: f"tidegate check {shlex.quote(dataset)}.toml"}


def spelled_collect(
    name: str, questions: Sequence[str], baskets: Sequence[str], *, address: str, dataset: str
) -> dict[str, Codes]:
    """Return the snippets of a collection by action: state, closing, and the estimates of each question.

    The page adds options to them (snippets.js): the method, the columns of a tree, the minimum support.
    """
    survey = f"{connecting(address, dataset)}\nsurvey = remote.collect({text(name)})"
    file = f"{shlex.quote(dataset)}.toml"
    at, define = f"{file} {shlex.quote(name)}", _define(file, name)
    does = {
        "state": ('survey.state()["reports"]', define),
        "closing": ("survey.close()", f"# add closed = true to [collection.{name}] in {file}, then:\n{define}"),
    }
    for one in questions:
        does[f"distribution {one}"] = (f"survey.distribution({text(one)})", f"tidegate collect estimate {at} {one}")
        does[f"tree {one}"] = (f"survey.tree({text(one)})", f"tidegate collect tree {at} --label {one}")
    for one in baskets:
        does[f"rules {one}"] = (f"survey.rules({text(one)})", f"tidegate collect rules {at} --question {one}")
    return {one: {PYTHON: f"{survey}\n{python}", COMMAND: command} for one, (python, command) in does.items()}


def _define(file: str, name: str) -> str:
    return f"tidegate collect define {file} {shlex.quote(name)}"


def _dict(question: dict[str, object]) -> str:
    return "{" + ", ".join(f"{text(name)}: {_value(value)}" for name, value in question.items()) + "}"


def _value(value: object) -> str:
    return text(value) if isinstance(value, str) else str(value)
