"""The policy of a served data set: its text, its versions, and changes that are previewed before they are saved.

Locations of tables, ledgers and reports, which can contain passwords, are neither shown nor changed here: the text that is saved
gets the present ones back.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi import Request
from pydantic import ConfigDict, Field

from tidegate.accounting import budget_of
from tidegate.accounting.explain import explain
from tidegate.errors import PolicyLoosened, StalePolicy, TidegateError, Unsupported
from tidegate.ledger import Account
from tidegate.ledger.entry import Entry
from tidegate.ledger.explain import explain_entries
from tidegate.policy import Policy
from tidegate.policy.changes import changes
from tidegate.policy.toml import load_toml, parse_policy, policy_from_dict, write_policy
from tidegate.service.datasets import ServedDataset
from tidegate.service.models.drafts import DataInspection, PolicyPreview, PolicyView
from tidegate.service.routes.dependencies import CurrentCaller, Described, Form, Served, router
from tidegate.tables.inspection import inspect

routes = router()
LONGEST = 500_000
LOCATIONS = ("source", "ledger", "reports")
LOCATION, DATASET = re.compile(r"\s*(source|ledger|reports)\s*="), re.compile(r"^\[dataset\][^\n]*", re.MULTILINE)
EXAMPLE: Any = {"toml": 'version = 2\n\n[dataset]\nname = "people"\n...', "fingerprint": "5f1d..."}


class ChangedPolicy(Form):
    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})
    toml: str = Field(max_length=LONGEST, description="The whole policy.")
    fingerprint: str = Field("", max_length=64, description="Of the policy that is changed; refused if it is another.")


@routes.get("/data/{name}/policy", response_model=PolicyView)
def get_policy(served: Served) -> Described:
    return {
        "name": served.name,
        "fingerprint": served.policy.fingerprint,
        "toml": shown_text(served),
        "may_change": served.file is not None and not served.policy.tables,
        "versions": versions_of(served),
    }


@routes.post("/data/{name}/policy/previews", response_model=PolicyPreview)
def preview_policy(served: Served, body: ChangedPolicy) -> Described:
    return preview_change(served, body.toml)


@routes.put("/data/{name}/policy", response_model=PolicyView)
def change_policy(request: Request, served: Served, caller: CurrentCaller, body: ChangedPolicy) -> Described:
    caller.refuse_part()
    save_change(served, body.toml, fingerprint=body.fingerprint)
    return get_policy(request.app.state.datasets[served.name])


@routes.post("/data/{name}/policy/check", response_model=DataInspection)
def check_policy(served: Served) -> Described:
    return check_data(served)


def check_data(served: ServedDataset) -> Described:
    """Compare the data with the policy: exact numbers, for the owner only. Nothing of it is stored."""
    if served.policy.tables:
        raise Unsupported(
            "This policy has several tables.", f"Run `tidegate check {served.name}.toml --data` on the server."
        )
    inspection = inspect(served.session.table)
    served.session.note_inspection()
    return {**inspection.to_dict(), "skipped": []}


def shown_text(served: ServedDataset) -> str:
    """Return the policy file for readers: its own text, without locations."""
    public = without_locations(served.policy)
    if served.file is not None and not served.policy.tables:
        with suppress(OSError, UnicodeDecodeError, TidegateError):
            text = "".join(part for part in _lines_of(served.file.path.read_text("utf-8")) if not LOCATION.match(part))
            if parse_policy(text, folder=served.file.path.parent) == public:
                return text
    return write_policy(public)


def _lines_of(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def without_locations(policy: Policy) -> Policy:
    """Return a policy as the ledger has it: locations and passwords are not part of it."""
    if policy.tables:
        return policy_from_dict(policy.public_dict())
    return replace(policy, dataset=replace(policy.dataset, source="", ledger="", reports=""))


def read_change(served: ServedDataset, text: str) -> tuple[Policy, str]:
    """Return a changed policy and the text of its file, in which the locations are those of before.

    Guarantee:
        No file is read that the present policy does not name: a text cannot point to another table or list.
    """
    folder = served.file.path.parent if served.file else Path()
    _refuse_files(text, served.policy)
    policy = parse_policy(text, folder=folder)
    if policy.dataset.name != served.name:
        raise Unsupported(
            f'The name of a served data set cannot change from "{served.name}".', "Add a new data set instead."
        )
    own = served.policy.dataset
    located = replace(policy.dataset, source=own.source, ledger=own.ledger, reports=own.reports)
    policy = replace(policy, dataset=located)
    lines = {name: value for name in LOCATIONS if (value := getattr(own, name))}
    added = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in lines.items())
    complete = DATASET.sub(lambda header: f"{header[0]}\n{added}".rstrip("\n"), text, count=1)
    with suppress(TidegateError):
        if parse_policy(complete, folder=folder) == policy:
            return policy, complete
    return policy, write_policy(policy)


def _refuse_files(text: str, policy: Policy) -> None:
    """Refuse a text that names a location, or a list of values that the present policy does not read."""
    content: dict[str, Any] = {}
    with suppress(tomllib.TOMLDecodeError):  # the reader of policies says what is wrong
        content = load_toml(text)
    dataset, attributes = content.get("dataset"), content.get("attributes")
    stated = [name for name in LOCATIONS if isinstance(dataset, dict) and name in dataset]
    if stated or "tables" in content:
        raise Unsupported(
            f"{', '.join(f'`{name}`' for name in stated) or '`tables`'} cannot be changed here.",
            "Remove it from the text: the present location is kept. An operator can change the file on the server.",
        )
    lines = [line for line in (attributes.values() if isinstance(attributes, dict) else ()) if isinstance(line, dict)]
    known = {getattr(attribute, "values_from", "") for attribute in policy.attributes.values()}
    if any(line["values_from"] not in known for line in lines if "values_from" in line):
        raise Unsupported("A list of values from another file cannot be added here.", "List the values in the text.")


def preview_change(served: ServedDataset, text: str) -> Described:
    """Return what a changed policy means: its changes, the account under it, and why it is refused if it is."""
    policy, _ = read_change(served, text)
    now = served.session.account
    refused, after = None, now
    try:
        after = served.session.ledger.preview_account(policy)
    except PolicyLoosened as error:
        refused = {"what": error.what, "do": error.do}
    findings = [finding for finding in explain(policy) if finding.problem or finding.warning]
    return {
        "changes": changes(served.policy, policy),
        "same": policy.fingerprint == served.policy.fingerprint,
        "diff": diff_of(write_policy(without_locations(served.policy)), write_policy(without_locations(policy))),
        "refused": refused,
        "account": {"now": _amounts(now), "after": _amounts(after)},
        "notes": _notes(now, after, policy) if refused is None else [],
        "findings": [finding.to_dict() for finding in findings],
    }


def _amounts(account: Account) -> dict[str, str]:
    amounts = {"spent": account.spent, "left": account.left, "ceiling": account.ceiling}
    return {**{name: str(amount) for name, amount in amounts.items()}, "unit": account.unit}


def _notes(now: Account, after: Account, policy: Policy) -> list[str]:
    """Return what the owner should know before the change is saved."""
    notes = []
    if after.ceiling < now.ceiling:
        notes.append(f"The limit falls from {now.ceiling.say()} to {after.ceiling.say()}, and never rises again.")
    if after.ceiling < budget_of(policy).ceiling:
        notes.append(
            f"The limit stays at {after.ceiling.say()}, although this policy alone would allow "
            f"{budget_of(policy).ceiling.say()}: a limit never rises."
        )
    if not after.left and now.left:
        notes.append("No budget would remain: only stored answers could be returned.")
    return notes


def save_change(served: ServedDataset, text: str, *, fingerprint: str = "") -> None:
    """Record a changed policy in the ledger and write it into its file.

    Raises:
        PolicyLoosened: It promises less than a policy under which something was spent.
        StalePolicy: The policy was changed in the meantime.
    """
    if served.file is None:
        raise Unsupported("This data set has no policy file.", "Serve it from a file: tidegate serve people.toml")
    if fingerprint and fingerprint != served.policy.fingerprint:
        raise StalePolicy("The policy was changed in the meantime.", "Reload the page and try again.")
    _, own_text = read_change(served, text)
    served.file.replace(own_text, to=served.policy, agree=lambda policy: _agree(served, policy))


def _agree(served: ServedDataset, policy: Policy) -> None:
    served.session.ledger.open_account(policy)


def versions_of(served: ServedDataset) -> list[Described]:
    """Return the versions of the policy in the ledger, the latest first, each with its difference to the one before."""
    entries = served.session.ledger.policies(served.name)
    texts = [_text_of(entry) for entry in entries]
    says = [text for _, text in explain_entries(entries)]
    versions: list[Described] = []
    for index, entry in enumerate(entries):
        versions.append(
            {
                "number": index + 1,
                "entry": entry.number,
                "at": entry.at,
                "fingerprint": entry.policy,
                "limit": entry.ceiling,
                "says": says[index],
                "changes": entry.content()["changes"],
                "diff": diff_of(texts[index - 1], texts[index]) if index else [],
            }
        )
    return versions[::-1]


def _text_of(entry: Entry) -> str:
    return write_policy(policy_from_dict(entry.content()["policy"]))


def diff_of(before: str, after: str) -> list[dict[str, Any]]:
    """Return the lines of two texts that differ, with one line around them: kind (added, removed, same) and text."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    kinds = {"+": "added", "-": "removed", " ": "same", "@": "gap"}
    shown = [line for line in lines if not line.startswith(("---", "+++"))]
    return [{"kind": kinds[line[0]], "text": "…" if line[0] == "@" else line[1:]} for line in shown]
