"""Where the ledger of a policy is."""

from __future__ import annotations

from pathlib import Path

from tidegate.policy import Policy, read_policy


def ledger_address(policy: Policy, *, folder: Path, ledger: str = "") -> str:
    """Return the address of the ledger: `ledger`, the policy's own, or a file that is named after the data set.

    Paths are relative to `folder`, the policy file's folder.
    """
    address = ledger or policy.dataset.ledger or f"{policy.dataset.name}.ledger"
    return address if "://" in address else str(folder / Path(address).expanduser())


def ledger_of_file(path: str | Path) -> str:
    """Return the address of the ledger of a policy file."""
    return ledger_address(read_policy(path), folder=Path(path).parent)
