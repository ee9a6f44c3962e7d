"""Code snippets of a release desk's actions in Python and on the command line.

Keys identify people, so the service never puts one into a page: `desk.request()` and `--key` come without a key, and the
browser adds the one that the user typed (snippets.js).
"""

from __future__ import annotations

import shlex

from tidegate.web.snippets.answer import COMMAND, PYTHON, connection_code, text

READ = 'keys = open("keys.txt", encoding="utf-8").read().splitlines()'
READ_GROUPS = 'groups = [line.split(", ") for line in open("private.txt", encoding="utf-8").read().splitlines()]'


def release_code(promise: str, *, address: str, dataset: str) -> dict[str, dict[str, str]]:
    """Return the snippets of a release desk by action."""
    desk = f"{connection_code(address, dataset)}\ndesk = remote.release({text(promise)})"
    command = f"tidegate release {shlex.quote(dataset)}.toml {shlex.quote(promise)}"
    actions = {
        "state": ('desk.state()["tests"]', f"{command} --json"),
        "request": ("desk.request()", f"{command} --key"),
        "several": (f"{READ}\noutcomes = desk.request_many(keys)", f"{command} --requests keys.txt"),
        "status": ("desk.status()", f"{command} --status"),
        "withdraw": ("desk.withdraw()", f"{command} --withdraw"),
        "released": ("records, cursor = desk.released()", f"{command} --out released.csv"),
        "audit": ("desk.audit()", f"tidegate audit {shlex.quote(dataset)}.toml --verb release"),
    }
    return {name: {PYTHON: f"{desk}\n{python}", COMMAND: words} for name, (python, words) in actions.items()}


def hiding_code(promise: str, *, address: str, dataset: str, has_list: bool) -> dict[str, dict[str, str]]:
    """Return the snippets of a desk under a hiding promise. The private list of groups is read from a file, never shown."""
    actions = release_code(promise, address=address, dataset=dataset)
    del actions["withdraw"]
    remote, policy = connection_code(address, dataset), f"{shlex.quote(dataset)}.toml"
    actions["state"][PYTHON] = actions["state"][PYTHON].replace('["tests"]', '["selections"]')
    opening, option = "remote.open_release()", ""
    if has_list:
        opening, option = f"{READ_GROUPS}\nremote.open_release(sensitive=groups)", " --sensitive-file private.txt"
    command = f"tidegate release open {policy}"
    actions["open"] = {PYTHON: f"{remote}\n{opening}", COMMAND: f"{command}{option}"}
    actions["later"] = {PYTHON: f"{remote}\nremote.open_release(later=True)", COMMAND: f"{command} --later"}
    return actions
