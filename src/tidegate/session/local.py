"""The session on this machine: a policy, a table and a ledger. The verbs live in their own packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from tidegate.accounting import Amount
from tidegate.answer import Answer, Answers, Preview, Query
from tidegate.answer.derive import Derived, derive
from tidegate.answer.run import answer, preview
from tidegate.answer.spending import Calibration, Planning, RequestedLoss, resolve_loss
from tidegate.answer.sql import parse_sql
from tidegate.errors import BudgetExceeded
from tidegate.exact import Number
from tidegate.ledger import Account, Ledger
from tidegate.noise import SecureBits
from tidegate.policy import Policy, read_policy
from tidegate.session.protocol import Question
from tidegate.tables import Table, open_table
from tidegate.tables.source import SourceState, source_address, source_state

if TYPE_CHECKING:
    from tidegate.collect.survey import Survey
    from tidegate.release.desk import Desk
    from tidegate.release.plan import Progress as DeskProgress
    from tidegate.synthesize.model import Model, Progress
    from tidegate.synthesize.quality import PaidQuality
    from tidegate.synthesize.result import SynthesisPreview, SyntheticTables


class Session:
    """One data set under one policy. Nothing is read or written before the first call."""

    def __init__(self, policy: Policy, *, table: Any = None, ledger: str = "", folder: Path | None = None) -> None:
        self.policy = policy
        self._folder = folder or Path()
        self._given = table
        self._address = ledger or policy.dataset.ledger or f"{policy.dataset.name}.ledger"

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger: the one passed to the session, the one of the policy, or a file beside the policy."""
        ledger = Ledger(self.ledger_address)
        ledger.watch_source(self.policy.dataset.name, self._source_state)
        return ledger

    def _source_state(self) -> SourceState | None:
        """Return the present state of the source. A table in memory is read for this once."""
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
        """The columns of the policy, in the source."""
        return open_table(self.policy, self._given, folder=self._folder)

    @property
    def account(self) -> Account:
        """The spent and the remaining budget. Opens the account if there is none."""
        return self.ledger.open_account(self.policy)

    @overload
    def answer(
        self,
        question: Query,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        share: Number | None = None,
        z: Number | None = None,
        confidence: float = 0.95,
        calibration: Calibration = "equation-15",
        window: int = 1,
        plan: Planning = "one-by-one",
        key: str = "",
        user: str = "",
        budget_share: Amount | None = None,
    ) -> Answer: ...
    @overload
    def answer(
        self,
        question: str,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        share: Number | None = None,
        z: Number | None = None,
        confidence: float = 0.95,
        calibration: Calibration = "equation-15",
        window: int = 1,
        plan: Planning = "one-by-one",
        key: str = "",
        user: str = "",
        budget_share: Amount | None = None,
    ) -> Answer | Answers: ...
    @overload
    def answer(
        self,
        question: Sequence[Query] | list[str],
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        share: Number | None = None,
        z: Number | None = None,
        confidence: float = 0.95,
        calibration: Calibration = "equation-15",
        window: int = 1,
        plan: Planning = "one-by-one",
        key: str = "",
        user: str = "",
        budget_share: Amount | None = None,
    ) -> Answers: ...
    def answer(
        self,
        question: Question,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        share: Number | None = None,
        z: Number | None = None,
        confidence: float = 0.95,
        calibration: Calibration = "equation-15",
        window: int = 1,
        plan: Planning = "one-by-one",
        key: str = "",
        user: str = "",
        budget_share: Amount | None = None,
    ) -> Answer | Answers:
        """Answer one query (an Answer) or several under one charge (Answers), as values or as SQL.

        Specify exactly one of `rho` (identification by this answer alone), `epsilon` (its loss), `error` (the largest
        error, with `confidence`), or `share` (its part of the total budget); under the average guarantee, `z` replaces
        `epsilon`. See `resolve_loss` for `calibration` and `window`. Repeating a query costs nothing and returns the same
        answer. plan="auto" answers several counts from one measurement, if that has less error. `key` makes a request idempotent; `user` is recorded in the ledger, and `budget_share` is the most that
        `user` can spend in total.
        """
        queries = self.queries(question)
        loss = resolve_loss(
            queries,
            self.policy,
            rho=rho,
            epsilon=epsilon,
            error=error,
            share=share,
            z=z,
            confidence=confidence,
            calibration=calibration,
            window=window,
        )
        answers = answer(
            queries,
            self.policy,
            lambda: self.table,
            self.ledger,
            loss=loss,
            bits=SecureBits(),
            planning=plan,
            key=key,
            user=user,
            budget_share=budget_share,
        )
        is_single = isinstance(question, Query) or (isinstance(question, str) and len(queries) == 1)
        return answers[0] if is_single else answers

    def preview(
        self,
        question: Question,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        share: Number | None = None,
        z: Number | None = None,
        confidence: float = 0.95,
        calibration: Calibration = "equation-15",
        window: int = 1,
        plan: Planning = "one-by-one",
    ) -> Preview:
        """Return the cost and the expected error of an answer. Free; reads no row."""
        queries = self.queries(question)
        loss = resolve_loss(
            queries,
            self.policy,
            rho=rho,
            epsilon=epsilon,
            error=error,
            share=share,
            z=z,
            confidence=confidence,
            calibration=calibration,
            window=window,
        )
        account = self.account
        free = [known.says() if (known := derive(query, self.policy, self.ledger)) else "" for query in queries]
        return preview(queries, self.policy, account, loss=loss, confidence=confidence, planning=plan, free=free)

    def fit(self, question: Question, *, confidence: float = 0.95) -> Preview:
        """Return the accuracy of these queries if they share the remaining budget equally. Free; reads no row."""
        account = self.account
        if not account.left:
            raise BudgetExceeded(
                f'No budget remains for "{account.name}": {account.spent.say()} of {account.ceiling.say()} is spent.'
            )
        queries = self.queries(question)
        loss = RequestedLoss(account.left.value, account.unit)
        return preview(queries, self.policy, account, loss=loss, confidence=confidence)

    def derive(self, question: Query | str) -> Derived | None:
        """Return what follows from earlier answers at no cost, or None."""
        queries = self.queries(question)
        for query in queries:
            query.check(self.policy)
        return derive(queries[0], self.policy, self.ledger)

    def release(self, promise: str = "", *, progress: DeskProgress | None = None) -> Desk:
        """Return the release desk of a concealment promise (optional if the policy has only one).

        The first opening fixes the baseline and the critical values in the ledger.
        """
        from tidegate.release.desk import Desk  # here: its compiler takes long to load

        name = promise or (next(iter(self.policy.concealments)) if len(self.policy.concealments) == 1 else "")
        source = source_address(self.policy, self._given, folder=self._folder)
        return Desk(name, self.policy, lambda: self.table, self.ledger, source=source, progress=progress)

    def collect(self, name: str = "", *, reports: str = "") -> Survey:
        """Return the survey of a collection (optional if the policy has only one).

        The first opening of a version writes its public description into the ledger. `reports` is the folder or URL where
        the randomized reports are stored.
        """
        from tidegate.collect.survey import Survey  # here: arrays and engines take long to load

        chosen = name or (next(iter(self.policy.collections)) if len(self.policy.collections) == 1 else "")
        return Survey(chosen, self.policy, self.ledger, location=self.reports_location(reports))

    def reports_location(self, reports: str = "") -> str:
        """Return where the randomized reports are stored: as named here, in the policy, or beside the ledger."""
        from tidegate.tables.segments import folder_next_to_ledger

        named = reports or self.policy.dataset.reports
        return self._from_folder(named) if named else folder_next_to_ledger(self.ledger_address)

    def synthesize(
        self,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        share: Number | None = None,
        tables: int = 1,
        rows: int | None = None,
        model: str | Model = "auto",
        target: str = "",
        split: Mapping[str, Number] | None = None,
        seed: int | None = None,
        columns: Iterable[str] = (),
        key: str = "",
        user: str = "",
        budget_share: Amount | None = None,
        progress: Progress | None = None,
    ) -> SyntheticTables:
        """Generate artificial tables like the original, at an exact loss: ``session.synthesize(epsilon=1.0)[0].to_pandas()``.

        Specify exactly one of `epsilon` (the loss of each table), `rho` (identification by all of them), or `share` (their part of
        the total budget). Repeating a
        request costs nothing and returns the same tables; an interrupted run continues from its checkpoint.

        Args:
            tables: The number of tables, learned independently; each costs epsilon.
            rows: The number of rows of each table; that of the original if None. Changing it, or `seed`, is free.
            model: "auto", a name, or a model of your own (see `tidegate.synthesize.model`).
            target: A column whose relations matter most.
            split: Shares of epsilon by stage; those of the model if None.
            columns: The columns to learn; all if empty.
        """
        from tidegate.synthesize.checkpoint import diary_folder  # here: models take long to load
        from tidegate.synthesize.request import resolve_request
        from tidegate.synthesize.run import synthesize

        request = resolve_request(
            self.policy,
            epsilon=epsilon,
            rho=rho,
            share=share,
            tables=tables,
            rows=rows,
            model=model,
            target=target,
            split=split,
            seed=seed,
            columns=columns,
        )
        return synthesize(
            request,
            self.policy,
            lambda: self.table,
            self.ledger,
            folder=diary_folder(self.ledger_address, self._folder, self.policy.dataset.name),
            bits=SecureBits(),
            key=key,
            user=user,
            budget_share=budget_share,
            progress=progress,
        )

    def preview_synthesis(
        self,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        share: Number | None = None,
        tables: int = 1,
        rows: int | None = None,
        model: str | Model = "auto",
        target: str = "",
        split: Mapping[str, Number] | None = None,
        seed: int | None = None,
        columns: Iterable[str] = (),
    ) -> SynthesisPreview:
        """Return what `synthesize` would cost, by which model and why, and how the budget would be split. Free; reads no row."""
        from tidegate.synthesize.request import resolve_request
        from tidegate.synthesize.run import preview

        request = resolve_request(
            self.policy,
            epsilon=epsilon,
            rho=rho,
            share=share,
            tables=tables,
            rows=rows,
            model=model,
            target=target,
            split=split,
            seed=seed,
            columns=columns,
        )
        return preview(request, self.policy, self.account)

    def paid_quality(
        self,
        synthetic: Any,
        *,
        epsilon: Number,
        key: str = "",
        user: str = "",
        budget_share: Amount | None = None,
    ) -> PaidQuality:
        """Return how far synthetic tables are from the original, as two noisy numbers that an analyst can see.

        They are charged and recorded. `synthetic` is what `synthesize` returned, or one table or a list of tables from
        anywhere. (`tables.quality()` shows more at no cost, and is for the data holder only.)
        """
        from tidegate.synthesize.quality import private_quality  # here: it plots charts
        from tidegate.synthesize.result import SyntheticTables

        if isinstance(synthetic, SyntheticTables):
            synthetic = [table.to_arrow() for table in synthetic]
        return private_quality(
            synthetic,
            self.policy,
            lambda: self.table,
            self.ledger,
            epsilon=epsilon,
            bits=SecureBits(),
            key=key,
            user=user,
            budget_share=budget_share,
        )

    def queries(self, question: Question) -> tuple[Query, ...]:
        """Return the queries of a question: values as they are, SQL parsed."""
        if isinstance(question, str):
            return parse_sql(question, self.policy)
        if isinstance(question, Query):
            return (question,)
        return tuple(query for part in question for query in self.queries(part))

    def close(self) -> None:
        """Close the ledger."""
        if "ledger" in self.__dict__:
            self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_session(policy: str | Path | Policy, *, table: Any = None, ledger: str = "") -> Session:
    """Open a data set by its policy (a file or a value). Paths in the file are relative to its folder."""
    if isinstance(policy, Policy):
        return Session(policy, table=table, ledger=ledger)
    return Session(read_policy(policy), table=table, ledger=ledger, folder=Path(policy).parent)
