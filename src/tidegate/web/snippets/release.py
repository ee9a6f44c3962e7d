"""Everything that can be done at a release desk, as Python and as a command line, to copy.

Keys name persons, so the service puts none into a page: `desk.request()` and `--key` stand without one, and the page adds
what was typed, in the visitor's own browser (spelled.js).
"""

from __future__ import annotations

import shlex

from tidegate.web.snippets.answer import COMMAND, PYTHON, connecting, text

READ = 'keys = open("keys.txt", encoding="utf-8").read().splitlines()'


def spelled_release(promise: str, *, address: str, dataset: str) -> dict[str, dict[str, str]]:
    """Both ways, by what is done."""
    desk = f"{connecting(address, dataset)}\ndesk = remote.release({text(promise)})"
    command = f"tidegate release {shlex.quote(dataset)}.toml {shlex.quote(promise)}"
    does = {
        "state": ('desk.state()["tests"]', f"{command} --json"),
        "request": ("desk.request()", f"{command} --key"),
        "several": (f"{READ}\noutcomes = desk.request_many(keys)", f"{command} --requests keys.txt"),
        "status": ("desk.status()", f"{command} --status"),
        "withdraw": ("desk.withdraw()", f"{command} --withdraw"),
        "released": ("records, cursor = desk.released()", f"{command} --out released.csv"),
        "audit": ("desk.audit()", f"tidegate audit {shlex.quote(dataset)}.toml --verb release"),
    }
    return {name: {PYTHON: f"{desk}\n{python}", COMMAND: words} for name, (python, words) in does.items()}
