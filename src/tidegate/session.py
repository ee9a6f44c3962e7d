"""The front door: a policy, a table and a ledger. The verbs live in their own packages."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from tidegate import answer as answering
from tidegate.ledger import Account, Ledger
from tidegate.noise import SecureBits
from tidegate.policy import Policy, read_policy
from tidegate.policy.exact import Number
from tidegate.tables import Table, open_table


class Session:
    """One data set under one policy. Nothing is read or written until something is asked."""

    def __init__(self, policy: Policy, *, table: Any = None, ledger: str = "", folder: Path | None = None) -> None:
        self.policy = policy
        self._folder = folder or Path()
        self._given = table
        self._address = ledger or policy.dataset.ledger or f"{policy.dataset.name}.ledger"

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger: the one given, the policy's, or a file beside the policy."""
        return Ledger(self.ledger_address)

    @property
    def ledger_address(self) -> str:
        return self._address if "://" in self._address else str(self._folder / Path(self._address).expanduser())

    @cached_property
    def table(self) -> Table:
        """The policy's columns, where they are."""
        return open_table(self.policy, self._given, folder=self._folder)

    @property
    def account(self) -> Account:
        """What was spent and what is left. Opens the account where there is none."""
        return self.ledger.open_account(self.policy)

    def answer(self, request: answering.Count, *, epsilon: Number, key: str = "", who: str = "") -> answering.Answer:
        """Ask. The same question again costs nothing and gives the same answer."""
        return answering.answer(request, self.table, self.ledger, epsilon=epsilon, bits=SecureBits(), key=key, who=who)

    def preview(self, request: answering.Count, *, epsilon: Number) -> answering.Preview:
        """What asking would cost and how wrong the answer may be. Free; touches no row."""
        return answering.preview(request, self.policy, self.account, epsilon=epsilon)

    def close(self) -> None:
        """Let go of the ledger."""
        if "ledger" in self.__dict__:
            self.ledger.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_session(policy: str | Path | Policy, *, table: Any = None, ledger: str = "") -> Session:
    """Open a data set by its policy (a file or a value). Paths in the file start from the file's folder."""
    if isinstance(policy, Policy):
        return Session(policy, table=table, ledger=ledger)
    return Session(read_policy(policy), table=table, ledger=ledger, folder=Path(policy).parent)
