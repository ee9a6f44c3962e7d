"""The step from a draft to a served data set: account, policy file, and an analyst's token with a spending limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from tidegate.accounting import Amount, budget_of
from tidegate.errors import TidegateError, Unsupported
from tidegate.ledger.known_sources import STATE_WHY
from tidegate.ledger.tokens import StoredToken, Tokens
from tidegate.policy import Policy
from tidegate.service.access.permissions import ANALYST
from tidegate.service.access.tokens import LONGEST_NAME, MOST_DAYS, make_token
from tidegate.service.datasets import ServedDatasets
from tidegate.service.drafts.policy import AMOUNT, DraftPolicy
from tidegate.service.drafts.store import Draft, Drafts
from tidegate.session import Session

DEFAULTS = {"analyst": "", "percent": "25", "days": "90", "reason": ""}


@dataclass(frozen=True)
class Publication:
    """A data set that is now served, with the token of its first analyst, which is shown once."""

    dataset: str
    token: str = ""
    stored: StoredToken | None = None


def access_problems(draft: Draft) -> dict[str, str]:
    """Return the problems of the fields that decide who can ask, and how much."""
    problems = {}
    analyst, percent, days = (draft.value("publication", name).strip() for name in ("analyst", "percent", "days"))
    if len(analyst) > LONGEST_NAME or not analyst.isprintable():
        problems["analyst"] = f"Use at most {LONGEST_NAME} printable characters."
    if analyst and (not AMOUNT.fullmatch(percent) or not 0 < Decimal(percent) <= 100):
        problems["percent"] = "Write a percentage above 0 and at most 100."
    if analyst and not (days.isdecimal() and 1 <= int(days) <= MOST_DAYS):
        problems["days"] = f"Write a whole number of days, at most {MOST_DAYS:,}."
    return problems


def publish(
    draft: Draft, reading: DraftPolicy, *, drafts: Drafts, datasets: ServedDatasets, tokens: Tokens, user: str
) -> Publication:
    """Open the account, write the policy file, serve it, and create the analyst's token.

    Guarantee:
        The account is in the ledger before the file can be served, and the file is complete or does not exist. A draft is
        published once, also by two requests at the same time.

    Raises:
        Unsupported: The draft is not complete or was published, or the source has another account.
        TableError: The source cannot be read.
    """
    folder = datasets.folder
    policy = reading.policy(folder.path) if folder and not reading.is_untouched else None
    if folder is None or policy is None:
        raise Unsupported("The policy is not complete.", "Go back to the steps that are marked.")
    if draft.published:
        raise Unsupported("This draft was published before.", "Create further tokens on the page Access.")
    name = policy.dataset.name
    if name in datasets:
        raise Unsupported(f'The service already has a data set "{name}".', "Choose another name in step 2.")
    _open_account(policy, datasets, folder.path, reason=draft.value("publication", "reason").strip())
    folder.write_new(name, f"# Written by the console from a draft of {draft.owner}.\n{reading.own_text}")
    datasets.refresh()
    drafts.update(draft.id, lambda current: replace(current, published=name))
    analyst = draft.value("publication", "analyst").strip()
    if not analyst:
        return Publication(name)
    share = share_of(policy, draft.value("publication", "percent").strip())
    days = float(draft.value("publication", "days", "90"))
    text, stored = make_token(tokens, role=ANALYST, name=analyst, dataset=name, share=share, days=days, maker=user)
    return Publication(name, text, stored)


def _open_account(policy: Policy, datasets: ServedDatasets, folder: Path, *, reason: str) -> None:
    """Open the source and the account. Both can refuse, and then nothing was written into the folder."""
    session = Session(policy, ledger=datasets.address, folder=folder, is_from_file=True, new_account=reason)
    session.share_ledger(datasets.ledger)
    session.check_sources()
    problem: TidegateError | None = None
    try:
        _ = session.account
    except Unsupported as error:
        problem = error
    if problem:
        do = problem.do.replace(STATE_WHY, "state the reason below")
        raise Unsupported(problem.what, do, needs_reason=STATE_WHY in problem.do)


def share_of(policy: Policy, percent: str) -> str:
    """Return a percentage of the budget in the unit of the account, rounded down."""
    return str(Amount.down(budget_of(policy).ceiling.value * Fraction(Decimal(percent)) / 100))


def token_view(publication: Publication, *, address: str) -> Mapping[str, Any]:
    """Return the token with its sign-in link, for the only page that shows them."""
    if publication.stored is None:
        return {"token": None, "link": None, "name": None, "expires": None, "share": None}
    stored = publication.stored
    link = f"{address}/console/sign-in#{publication.token}"
    return {
        "token": publication.token,
        "link": link,
        "name": stored.name,
        "expires": stored.expires,
        "share": stored.share,
    }
