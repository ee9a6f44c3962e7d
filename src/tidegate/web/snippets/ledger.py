"""Code snippets of the ledger and of tokens in Python and on the command line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from tidegate.web.snippets.answer import COMMAND, PYTHON, text

USUAL = {"dataset": "", "record": "", "share": "", "days": 90}


def ledger_code(dataset: str, *, head: str = "") -> dict[str, str]:
    """Return the snippets that read, verify and export the ledger on the data holder's machine."""
    policy = f"{dataset}.toml"
    noted = f" --head {head}" if head else ""
    python = [
        "import tidegate as tg",
        "from tidegate.ledger import explain_entries, export_lines",
        "",
        f"with tg.open({text(policy)}) as session:",
        "    for entry, says in explain_entries(session.ledger.entries()):",
        "        print(entry.number, entry.at, entry.account, says)",
        f"    session.ledger.verify(head={text(head)}).refuse()  # raises an error if the ledger is not valid",
        "    lines = list(export_lines(session.ledger))",
    ]
    commands = [
        f"tidegate ledger show {policy}",
        f"tidegate ledger verify {policy}{noted}",
        f"tidegate ledger export {policy} --out ledger.jsonl",
    ]
    return {PYTHON: "\n".join(python), COMMAND: "\n".join(commands)}


def token_code(token: Mapping[str, Any], *, address: str, policy: str) -> dict[str, str]:
    """Return the snippets that create, list and revoke a token. `policy` is the name of a served data set."""
    options = {name: value for name, value in token.items() if USUAL.get(name) != value}
    fields = ", ".join(
        f"{text(name)}: {text(value) if isinstance(value, str) else value}" for name, value in options.items()
    )
    python = [
        "import httpx",
        "",
        f'service = httpx.Client(base_url={text(address)}, headers={{"Authorization": "Bearer tg_..."}})',
        f'token = service.post("/v1/tokens", json={{{fields}}}).raise_for_status().json()',
        'token["token"]  # shown only once',
        'service.get("/v1/tokens").json()["tokens"]',
        "service.delete(f\"/v1/tokens/{token['id']}\")  # the token stops working immediately",
    ]
    words = [word for name, value in options.items() for word in (f"--{name}", f"{value}")]
    commands = [
        shlex.join(["tidegate", "token", "make", f"{policy}.toml", *words]),
        f"tidegate token list {policy}.toml",
        f"tidegate token revoke {policy}.toml ID",
    ]
    return {PYTHON: "\n".join(python), COMMAND: "\n".join(commands)}
