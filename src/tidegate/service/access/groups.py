"""Settings of an OpenID Connect provider, and the roles that its groups stand for. Needs no optional package."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tidegate.errors import Unsupported
from tidegate.extras import require
from tidegate.service.access.permissions import ANALYST, OWNER
from tidegate.service.access.tokens import SHARE
from tidegate.service.settings import Settings, is_loopback

SECRET, SECRET_FILE = "TIDEGATE_OIDC_SECRET", "TIDEGATE_OIDC_SECRET_FILE"
FORM = re.compile(r"(?P<group>.+)=(?P<role>owner|analyst)(:(?P<names>[\w.,-]+))?(@(?P<share>[\d.]+))?")


@dataclass(frozen=True)
class Grant:
    """What a group stands for: a role, data sets with commas between their names (empty: all), and a budget share."""

    role: str
    dataset: str = ""
    share: str = ""


def read_groups(lines: Iterable[str]) -> list[tuple[str, Grant]]:
    """Return groups and what they stand for, from ``GROUP=ROLE[:DATASET,DATASET][@SHARE]``."""
    return [_read_line(line) for line in lines]


def _read_line(line: str) -> tuple[str, Grant]:
    match = FORM.fullmatch(line.strip())
    if match is None:
        raise Unsupported(
            "A group must be written as GROUP=owner[:DATASET] or GROUP=analyst[:DATASET,DATASET][@SHARE].",
            "For example: --oidc-group stewards=owner --oidc-group research=analyst:people,survey@0.5",
        )
    role, names, share = match["role"], match["names"] or "", match["share"] or ""
    if role == OWNER and ("," in names or share):
        raise Unsupported(
            "A group of owners is for all data sets or for one, and has no budget share.",
            "Write stewards=owner:people.",
        )
    if share and not SHARE.fullmatch(share):
        raise Unsupported("The budget share of a group must be a number.", "For example: research=analyst:people@0.5")
    return match["group"].strip(), Grant(role, ",".join(sorted(set(filter(None, names.split(","))))), share)


def grant_of(groups: Iterable[str], mapping: list[tuple[str, Grant]]) -> Grant | None:
    """Return what a user's groups stand for together; None if no group is in the mapping.

    An owner's group comes before an analyst's. The data sets of several groups of analysts are put together; the largest of their
    budget shares counts, and a group without a share has no limit of its own.
    """
    own = set(groups)
    grants = [grant for group, grant in mapping if group in own]
    owners = [grant for grant in grants if grant.role == OWNER]
    if owners:  # one data set or all: two groups for two data sets cannot be put together
        return min(owners, key=lambda grant: grant.dataset)
    if not grants:
        return None
    names = {name for grant in grants for name in grant.dataset.split(",")}
    dataset = "" if "" in names else ",".join(sorted(names))
    shares = [grant.share for grant in grants]
    return Grant(ANALYST, dataset, "" if "" in shares else max(shares, key=float))


def groups_in(claims: Any, name: str) -> list[str] | None:
    """Return the groups in a claim; None if there is no such claim. Dots lead into nested claims."""
    value = claims
    for part in [name] if name in claims else name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, str):
        return [value]
    return [str(group) for group in value] if isinstance(value, list) else None


def client_secret() -> str:
    """Return the secret of the client from the environment, or a file that it names; empty for a public client."""
    if path := os.environ.get(SECRET_FILE):
        try:
            return Path(path).read_text("utf-8").strip()
        except OSError as error:
            problem = error.strerror or type(error).__name__
        raise Unsupported(
            f"The file in {SECRET_FILE} cannot be read: {problem}.", "Check its path and its permissions."
        )
    return os.environ.get(SECRET, "")


def check_oidc(settings: Settings) -> None:
    """Refuse settings that cannot work, without a request to the provider."""
    require("oidc", "Sign-in with OpenID Connect")
    parts = urlsplit(settings.oidc_issuer)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise Unsupported("`--oidc-issuer` must be an https:// URL.", "Use the issuer that the provider publishes.")
    if not settings.oidc_client:
        raise Unsupported("OpenID Connect needs the id of a client.", "Register one at the provider: --oidc-client ID.")
    if not read_groups(settings.oidc_groups):
        raise Unsupported(
            "No group has a role, so nobody could sign in with the provider.", "Add --oidc-group stewards=owner."
        )
    client_secret()


def provider_name(settings: Settings) -> str:
    """Return the name of the provider for the sign-in page; empty if there is none."""
    return settings.oidc_name or urlsplit(settings.oidc_issuer).hostname or ""
