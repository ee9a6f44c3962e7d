"""poll preview: the questions of a poll, their expected errors, and what respondents read; on request the form itself."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import typer

from tidegate.cli.output import JSON, emit, say, table
from tidegate.errors import Unsupported

FILE = typer.Argument(help="A file with a poll, from poll new.")
POLL = typer.Option("", "--poll", help="The poll (optional if the file has only one).")


def preview(
    file: Path = FILE,
    name: str = POLL,
    language: str = typer.Option("", "--lang", help="The language of the texts (default: the poll's first one)."),
    people: int | None = typer.Option(None, "--people", min=1, help="The number of people (default: as in the file)."),
    serve: bool = typer.Option(False, "--serve", help="Show the form on this machine; nothing is stored."),
    port: int = typer.Option(0, "--port", min=0, max=65535, help="With --serve: the port (default: any free one)."),
    json: bool = JSON,
) -> None:
    """Show the questions with their operators and expected errors, the loss of a person, and what respondents read."""
    from tidegate.collect.polls.respondent_texts import respondent_texts
    from tidegate.policy import read_policy
    from tidegate.session.protocol import choose_poll

    policy = read_policy(file)
    collection = policy.collections[choose_poll(policy, name)]
    chosen = _language(collection, language)
    texts, errors = respondent_texts(collection, chosen), collection.expected_errors(people)
    if json and not serve:
        return emit(_expansion(collection, texts, errors))
    if not json:
        _say_expansion(collection, texts, errors, chosen, people or collection.clients)
    return _serve_form(policy.dataset.name, collection, port, json=json) if serve else None


def _language(collection: Any, language: str) -> str:
    languages = collection.poll.languages
    if language and language not in languages:
        raise Unsupported(f'The poll has no texts in "{language}".', f"Choose one of: {', '.join(languages)}.")
    return language or str(languages[0])


def _expansion(collection: Any, texts: dict[str, list[str]], errors: dict[str, float]) -> dict[str, Any]:
    from tidegate.accounting.respondent import respondent_loss

    loss = respondent_loss(collection)
    questions = {
        name: {**question.to_dict(), "expected_error": errors.get(name), "texts": texts[name]}
        for name, question in collection.questions.items()
    }
    about = {"poll": collection.name, "version": collection.version, "holder": collection.holder}
    return {
        **about,
        **collection.poll.public_dict(),
        "ask": collection.ask,
        "gives": loss.to_dict(),
        "says": str(loss),
    } | {"questions": questions}


def _say_expansion(
    collection: Any, texts: dict[str, list[str]], errors: dict[str, float], language: str, people: int | None
) -> None:
    from tidegate.accounting.respondent import respondent_loss
    from tidegate.collect.state import time_of, time_text
    from tidegate.exact import say as number

    wording, loss = collection.poll, str(respondent_loss(collection))
    say(
        f"{wording.text(wording.title, language)}: {wording.text(wording.purpose, language)}",
        f"{collection.holder}; {wording.access}; closes on {time_text(time_of(wording.closes))}; {collection.batches}.",
        f"{loss[0].upper()}{loss[1:]}.",
    )
    rows = [
        [name, str(question).partition(" by ")[2], f"{number(100 * errors[name], 2)}" if name in errors else ""]
        for name, question in collection.questions.items()
    ]
    count = f"{people:,} people" if people else "unknown: use --people"
    table(["question", "operator", f"error in points ({count})"], rows, right={2})
    for name, sentences in texts.items():
        say(f"{name}: {wording.text(wording.questions[name].text, language)}", *(f"  {line}" for line in sentences))


def _serve_form(dataset: str, collection: Any, port: int, *, json: bool) -> None:
    """Serve the form from a ledger that is deleted at the end: nothing that is sent is stored."""
    from tidegate.cli.demo import HOST
    from tidegate.collect.invitations import create_key
    from tidegate.policy import Dataset, Policy
    from tidegate.service.app import create_app
    from tidegate.service.datasets import ServedDatasets
    from tidegate.service.server import run
    from tidegate.service.settings import Settings
    from tidegate.session import Session

    with tempfile.TemporaryDirectory() as folder:
        wording = replace(collection.poll, invitation_key="", accept_error=True)
        if wording.invited:
            with Session(Policy(Dataset(dataset), {}), ledger=f"{folder}/preview.ledger") as session:
                wording = replace(
                    wording, invitation_key=create_key(session.ledger, dataset=dataset, poll=collection.name)
                )
        policy = Policy(Dataset(dataset), {}, collections={collection.name: replace(collection, poll=wording)})
        session = Session(policy, ledger=f"{folder}/preview.ledger", folder=Path(folder))
        codes = session.poll(collection.name).invite(1) if wording.invited else [""]
        listening = _listen(HOST, port)
        link = form_link(f"http://{HOST}:{listening.getsockname()[1]}", dataset, collection.name, codes[0])
        if json:
            emit({"link": link})
        else:
            say(f"The form: {link}", "Nothing that is sent there is stored. Press Ctrl-C to stop.")
        sys.stdout.flush()
        run(lambda: create_app(Settings((), ""), ServedDatasets([session])), listening=listening)


def _listen(host: str, port: int) -> Any:
    import socket

    problem = ""
    try:
        return socket.create_server((host, port))
    except OSError as error:
        problem = error.strerror or type(error).__name__
    raise Unsupported(f"Cannot listen on {host}, port {port}: {problem}.", "Choose another port, or leave it out.")


def form_link(address: str, dataset: str, name: str, code: str = "") -> str:
    """Return the address of a poll's form; a code is after the #, which browsers do not send."""
    form = f"{address}/forms/{quote(dataset, safe='')}/{quote(name, safe='')}"
    return f"{form}#code={code}" if code else form
