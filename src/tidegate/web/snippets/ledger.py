"""The ledger and the tokens of the console as Python and as command lines, to copy."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from tidegate.web.snippets.answer import COMMAND, PYTHON, text

USUAL = {"dataset": "", "record": "", "share": "", "days": 90}


def spelled_ledger(dataset: str, *, head: str = "") -> dict[str, str]:
    """Reading, verifying and exporting, where the ledger is."""
    place = f"{dataset}.toml"
    noted = f" --head {head}" if head else ""
    python = [
        "import tidegate as tg",
        "from tidegate.ledger import export_lines, told",
        "",
        f"with tg.open({text(place)}) as session:",
        "    for entry, says in told(session.ledger.entries()):",
        "        print(entry.number, entry.at, entry.account, says)",
        f"    session.ledger.verify(head={text(head)}).refuse()  # an error where it does not hold",
        "    lines = list(export_lines(session.ledger))",
    ]
    commands = [
        f"tidegate ledger show {place}",
        f"tidegate ledger verify {place}{noted}",
        f"tidegate ledger export {place} --out ledger.jsonl",
    ]
    return {PYTHON: "\n".join(python), COMMAND: "\n".join(commands)}


def spelled_token(wanted: Mapping[str, Any], *, address: str, policy: str) -> dict[str, str]:
    """Making a token, and letting one go. `policy` names a data set that is served."""
    given = {name: value for name, value in wanted.items() if USUAL.get(name) != value}
    fields = ", ".join(
        f"{text(name)}: {text(value) if isinstance(value, str) else value}" for name, value in given.items()
    )
    python = [
        "import httpx",
        "",
        f'service = httpx.Client(base_url={text(address)}, headers={{"Authorization": "Bearer tg_..."}})',
        f'made = service.post("/tokens", json={{{fields}}}).raise_for_status().json()',
        'made["token"]  # shown this once',
        'service.get("/tokens").json()["tokens"]',
        "service.delete(f\"/tokens/{made['id']}\")  # it opens nothing from now on",
    ]
    options = [word for name, value in given.items() for word in (f"--{name}", f"{value}")]
    commands = [
        shlex.join(["tidegate", "token", "make", f"{policy}.toml", *options]),
        f"tidegate token list {policy}.toml",
        f"tidegate token revoke {policy}.toml ID",
    ]
    return {PYTHON: "\n".join(python), COMMAND: "\n".join(commands)}
