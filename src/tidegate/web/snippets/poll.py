"""Code snippets of a poll's actions in Python and on the command line."""

from __future__ import annotations

import shlex

from tidegate.policy.collection import Collection
from tidegate.policy.toml import write_collection
from tidegate.web.snippets.answer import COMMAND, PYTHON, connection_code, text

Codes = dict[str, str]
INVITED = 250  # codes in an example


def creation_code(collection: Collection, *, address: str, dataset: str) -> Codes:
    """Return the snippets that create a poll: its section of the policy file, and the command that opens it."""
    file = f"{shlex.quote(dataset)}.toml"
    clients = collection.clients or INVITED
    codes = f" --invite {clients} --out codes.csv" if collection.poll and collection.poll.invited else ""
    command = (
        f"cat >> {file} <<'END'\n\n{write_collection(collection)}END\n"
        f"tidegate poll open {file} --poll {shlex.quote(collection.name)}{codes} --url {shlex.quote(address)}"
    )
    return {COMMAND: command}


def poll_code(name: str, *, address: str, dataset: str) -> dict[str, Codes]:
    """Return the snippets of an open poll by action: state, closing, results."""
    poll = f"{connection_code(address, dataset)}\npoll = remote.poll({text(name)})"
    command = f"{shlex.quote(dataset)}.toml --poll {shlex.quote(name)}"
    actions = {
        "state": ('poll.state()["status"]', f"tidegate poll status {command}"),
        "closing": ("poll.close()", f"tidegate poll close {command}"),
        "results": ("print(poll.results())", f"tidegate poll results {command} --csv {shlex.quote(name)}.csv"),
    }
    return {action: {PYTHON: f"{poll}\n{python}", COMMAND: line} for action, (python, line) in actions.items()}


def listing_code(*, address: str, dataset: str) -> Codes:
    """Return the snippets that list the polls of a data set."""
    python = f"{connection_code(address, dataset)}\nlist(remote.policy.polls)"
    return {PYTHON: python, COMMAND: f"tidegate check {shlex.quote(dataset)}.toml"}
