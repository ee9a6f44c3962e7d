"""The front door: a policy, a table and a ledger. The verbs live in their own packages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from tidegate.accounting import Amount
from tidegate.answer import Answer, Answers, Preview, Query
from tidegate.answer.derive import Derived, derived
from tidegate.answer.run import answer, preview
from tidegate.answer.spending import loss_wanted
from tidegate.answer.sql import parse_sql
from tidegate.errors import BudgetExceeded
from tidegate.exact import Number
from tidegate.ledger import Account, Ledger
from tidegate.noise import SecureBits
from tidegate.policy import Policy, read_policy
from tidegate.tables import Table, open_table
from tidegate.tables.source import SourceState, source_address, source_state

if TYPE_CHECKING:
    from tidegate.collect.survey import Survey
    from tidegate.release.desk import Desk
    from tidegate.synthesize.quality import PaidQuality
    from tidegate.synthesize.result import SynthesisPreview, SyntheticTables

Asked = Query | Sequence[Query] | str


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
        ledger = Ledger(self.ledger_address)
        ledger.watch_source(self.policy.dataset.name, self._source_state)
        return ledger

    def _source_state(self) -> SourceState | None:
        """The state of the source now; a table in memory is read for it once."""
        in_memory = self._given is not None and not isinstance(self._given, str | Path)
        return self._frame_state if in_memory else self._read_state()

    @cached_property
    def _frame_state(self) -> SourceState | None:
        return self._read_state()

    def _read_state(self) -> SourceState | None:
        return source_state(self.policy, self._given, lambda: self.table, folder=self._folder)

    @property
    def ledger_address(self) -> str:
        return self._from_folder(self._address)

    def _from_folder(self, address: str) -> str:
        return address if "://" in address else str(self._folder / Path(address).expanduser())

    @cached_property
    def table(self) -> Table:
        """The policy's columns, where they are."""
        return open_table(self.policy, self._given, folder=self._folder)

    @property
    def account(self) -> Account:
        """What was spent and what is left. Opens the account where there is none."""
        return self.ledger.open_account(self.policy)

    @overload
    def answer(
        self,
        question: Query,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        confidence: float = 0.95,
        calibration: str = "equation-15",
        window: int = 1,
        key: str = "",
        user: str = "",
        share: Amount | None = None,
    ) -> Answer: ...
    @overload
    def answer(
        self,
        question: Sequence[Query] | str,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        confidence: float = 0.95,
        calibration: str = "equation-15",
        window: int = 1,
        key: str = "",
        user: str = "",
        share: Amount | None = None,
    ) -> Answer | Answers: ...
    def answer(
        self,
        question: Asked,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        confidence: float = 0.95,
        calibration: str = "equation-15",
        window: int = 1,
        key: str = "",
        user: str = "",
        share: Amount | None = None,
    ) -> Answer | Answers:
        """Ask one question (an Answer) or several under one charge (Answers), as values or as SQL.

        Exactly one of `rho` (identification by this answer alone), `epsilon` (its loss) and `error` (how far it may be
        off, with `confidence`) says how much to spend; see `loss_wanted` for `calibration` and `window`. The same question
        again costs nothing and gives the same answer; `key` makes a request idempotent; `user` goes into the ledger, and
        `share` is the most that `user` may spend in all.
        """
        queries = self.queries(question)
        loss = loss_wanted(
            queries,
            self.policy,
            rho=rho,
            epsilon=epsilon,
            error=error,
            confidence=confidence,
            calibration=calibration,
            window=window,
        )
        answers = answer(
            queries,
            self.policy,
            lambda: self.table,
            self.ledger,
            epsilon=loss,
            bits=SecureBits(),
            key=key,
            user=user,
            share=share,
        )
        return answers[0] if len(queries) == 1 else answers

    def preview(
        self,
        question: Asked,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        confidence: float = 0.95,
        calibration: str = "equation-15",
        window: int = 1,
    ) -> Preview:
        """What asking would cost and how wrong the answer may be. Free; touches no row."""
        queries = self.queries(question)
        loss = loss_wanted(
            queries,
            self.policy,
            rho=rho,
            epsilon=epsilon,
            error=error,
            confidence=confidence,
            calibration=calibration,
            window=window,
        )
        account = self.account
        free = [found.says() if (found := derived(query, self.policy, self.ledger)) else "" for query in queries]
        return preview(queries, self.policy, account, epsilon=loss, confidence=confidence, free=free)

    def fit(self, asked: Asked, *, confidence: float = 0.95) -> Preview:
        """How accurate these questions can be with all that is left, in equal parts. Free; touches no row."""
        account = self.account
        if not account.left:
            raise BudgetExceeded(
                f'nothing is left of "{account.name}": {account.spent.say()} of {account.ceiling.say()} is spent.'
            )
        return preview(self.queries(asked), self.policy, account, epsilon=account.left.value, confidence=confidence)

    def derive(self, asked: Query | str) -> Derived | None:
        """What follows from answers already given, at no cost; None where nothing does."""
        queries = self.queries(asked)
        for query in queries:
            query.check(self.policy)
        return derived(queries[0], self.policy, self.ledger)

    def release(self, promise: str = "", *, progress: Any = None) -> Desk:
        """The desk of a concealment promise, by its name (which may be left out where the policy makes one). Opening it
        for the first time fixes the baseline and the critical values in the ledger."""
        from tidegate.release.desk import Desk  # here: its compiler takes long to load

        name = promise or (next(iter(self.policy.concealments)) if len(self.policy.concealments) == 1 else "")
        source = source_address(self.policy, self._given, folder=self._folder)
        return Desk(name, self.policy, lambda: self.table, self.ledger, source=source, progress=progress)

    def collect(self, name: str = "", *, reports: str = "") -> Survey:
        """The survey of a collection, by its name (which may be left out where the policy has one). Opening a version for
        the first time puts its public description into the ledger. `reports`: where the randomized reports are kept."""
        from tidegate.collect.survey import Survey  # here: arrays and engines take long to load

        chosen = name or (next(iter(self.policy.collections)) if len(self.policy.collections) == 1 else "")
        return Survey(chosen, self.policy, self.ledger, place=self.reports_place(reports))

    def reports_place(self, reports: str = "") -> str:
        """Return where the randomized reports are stored: as named here, in the policy, or beside the ledger."""
        from tidegate.tables.segments import beside_ledger

        named = reports or self.policy.dataset.reports
        return self._from_folder(named) if named else beside_ledger(self.ledger_address)

    def synthesize(
        self,
        epsilon: Any = None,
        *,
        key: str = "",
        user: str = "",
        share: Amount | None = None,
        progress: Any = None,
        **wanted: Any,
    ) -> SyntheticTables:
        """Artificial tables like the original, at an exact loss: ``session.synthesize(epsilon=1.0)[0].to_pandas()``.

        Exactly one of `epsilon` (the loss of each table) and `rho` (identification by all of them) says how much to spend.
        `tables` (1) are learnt independently and each costs epsilon; `rows`, `seed`, `model` ("auto", a name, or a model
        of your own), `target`, `split` (shares of epsilon by stage) and `columns` are in `resolve_request`. The same
        again costs nothing and gives the same tables; a run that was cut short goes on where it was.
        """
        from tidegate.synthesize.checkpoint import beside  # here: models take long to load
        from tidegate.synthesize.request import resolve_request
        from tidegate.synthesize.run import synthesize

        asked = resolve_request(self.policy, epsilon=epsilon, **wanted)
        place = beside(self.ledger_address, self._folder, self.policy.dataset.name)
        told: dict[str, Any] = {"key": key, "user": user, "share": share, "progress": progress}
        return synthesize(asked, self.policy, lambda: self.table, self.ledger, place=place, bits=SecureBits(), **told)

    def preview_synthesis(self, epsilon: Any = None, **wanted: Any) -> SynthesisPreview:
        """What `synthesize` would cost, by which model and why, and how the loss would be shared. Free; touches no row."""
        from tidegate.synthesize.request import resolve_request
        from tidegate.synthesize.run import preview

        return preview(resolve_request(self.policy, epsilon=epsilon, **wanted), self.policy, self.account)

    def paid_quality(
        self, synthetic: Any, *, epsilon: Any, key: str = "", user: str = "", share: Amount | None = None
    ) -> PaidQuality:
        """How far synthetic tables are from the original, in two noisy numbers that an analyst may see: charged and recorded.
        (`tables.quality()` tells more, is not paid for, and is for the data holder's eyes.)"""
        from tidegate.synthesize.quality import private_quality  # here: it draws pictures

        told: dict[str, Any] = {"epsilon": epsilon, "bits": SecureBits(), "key": key, "user": user, "share": share}
        return private_quality(synthetic, self.policy, lambda: self.table, self.ledger, **told)

    def queries(self, asked: Asked) -> tuple[Query, ...]:
        """Questions as values, from values or SQL."""
        if isinstance(asked, str):
            return parse_sql(asked, self.policy)
        return (asked,) if isinstance(asked, Query) else tuple(asked)

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
