"""The session on this machine: a policy, a table and a ledger. The verbs live in their own packages."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from tidegate.accounting import FREE, Amount, budget_of
from tidegate.answer import Answer, Answers, Preview, Query
from tidegate.answer.derive import Derived, derive
from tidegate.answer.result import finish_sql
from tidegate.answer.run import answer, preview
from tidegate.answer.spending import Calibration, Planning, RequestedLoss, resolve_loss
from tidegate.answer.sql import MOST_CELLS, SqlPlan, plan_sql
from tidegate.errors import BudgetExceeded
from tidegate.exact import Number
from tidegate.ledger import Account, Charge, Ledger
from tidegate.ledger.known_sources import SourceGuard, registry_path
from tidegate.ledger.remarks import note_inspection
from tidegate.noise import SecureBits
from tidegate.policy import Policy, RowSource, read_policy
from tidegate.policy.row_source import read_row_source
from tidegate.policy.tables import with_references
from tidegate.session.address import ledger_address
from tidegate.session.protocol import Question, choose_poll
from tidegate.synthesize.progress import progress_display
from tidegate.tables import open_table
from tidegate.tables.source import (
    SourceNames,
    SourceState,
    is_current,
    snapshot_folder,
    source_address,
    source_names,
    source_state,
)

if TYPE_CHECKING:
    from tidegate.collect.survey import Survey
    from tidegate.release.desk import Desk
    from tidegate.release.hiding import Selection, ShowShort
    from tidegate.release.hiding_desk import HidingDesk
    from tidegate.release.request import Progress as DeskProgress
    from tidegate.synthesize.links import LinkedTables
    from tidegate.synthesize.model import Model, Progress
    from tidegate.synthesize.quality import PaidQuality
    from tidegate.synthesize.result import SynthesisPreview, SyntheticTables
    from tidegate.tables import Table


class Session:
    """One data set under one policy. Nothing is read or written before the first call."""

    def __init__(
        self,
        policy: Policy,
        *,
        table: Any = None,
        ledger: str = "",
        folder: Path | None = None,
        is_from_file: bool = False,
        new_account: str = "",
        witness: Sequence[str] = (),
    ) -> None:
        self._extra_witnesses = tuple(witness)
        self._is_from_file, self._new_account = is_from_file, new_account
        self._folder = folder or Path()
        self.policy = with_references(policy, self._folder)
        self._given = table
        self._linked: dict[RowSource, Table] = {}
        self._table: Table | None = None
        self._turn = threading.Lock()
        self._address = ledger

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger: the one passed to the session, the one of the policy, or a file beside the policy."""
        return self._watched(Ledger(self.ledger_address, witnesses=self._witnesses))

    @property
    def _witnesses(self) -> list[str]:
        return [self._from_folder(address) for address in (*self.policy.dataset.witness, *self._extra_witnesses)]

    def share_ledger(self, ledger: Ledger) -> None:
        """Use an open ledger, which other sessions use too."""
        ledger.add_witnesses(self._witnesses)
        vars(self)["ledger"] = self._watched(ledger)

    def _watched(self, ledger: Ledger) -> Ledger:
        is_named = self._is_from_file and source_address(self.policy, self._given, folder=self._folder)
        guard = SourceGuard(self._source_names, registry_path(self._folder), self._new_account) if is_named else None
        ledger.watch_source(self.policy.dataset.name, self._source_state, guard=guard)
        return ledger

    def _source_state(self) -> SourceState | None:
        """Return the present state of the source. A table in memory is read for this once."""
        tables = self._given.values() if isinstance(self._given, Mapping) else [self._given]
        in_memory = any(table is not None and not isinstance(table, str | Path) for table in tables)
        return self._frame_state if in_memory else self._read_state()

    def _source_names(self) -> SourceNames:
        return source_names(self.policy, self._given, lambda: self.table, folder=self._folder)

    @cached_property
    def _frame_state(self) -> SourceState | None:
        return self._read_state()

    def _read_state(self) -> SourceState | None:
        return source_state(self.policy, self._given, lambda: self.table, folder=self._folder)

    @property
    def ledger_address(self) -> str:
        return ledger_address(self.policy, folder=self._folder, ledger=self._address)

    def _from_folder(self, address: str) -> str:
        return address if "://" in address else str(self._folder / Path(address).expanduser())

    @property
    def table(self) -> Table:
        """The columns of the policy, in the source. A CSV file that has changed is read again."""
        with self._turn:
            if self._table is None or not is_current(self._table):
                snapshots = snapshot_folder(self.ledger_address)
                self._table = open_table(self.policy, self._given, folder=self._folder, snapshots=snapshots)
            return self._table

    def note_inspection(self) -> None:
        """Record that the owner has looked at the data, if that is needed to answer others again. Creates no ledger."""
        file = self.ledger_address.removeprefix("sqlite:///")
        if "://" in file or Path(file).exists():
            note_inspection(self.ledger.store, self.policy.dataset.name)

    def open_rows(self, rows: RowSource) -> Table:
        """Return the rows of a query on linked tables, in their sources. A CSV file that has changed is read again."""
        with self._turn:
            table = self._linked.get(rows)
            if table is None or not is_current(table):
                snapshots = snapshot_folder(self.ledger_address)
                from tidegate.tables import open_linked

                table = open_linked(self.policy, rows, self._given, folder=self._folder, snapshots=snapshots)
                turns = [other.turn for other in self._linked.values()]
                table.turn = turns[0] if turns else table.turn  # tables of one database can share a connection
                self._linked[rows] = table
            return table

    def open_parts(self) -> dict[str, Table]:
        """Return every private table of a policy with linked tables, for the owner's check."""
        from tidegate.tables.links import open_parts

        snapshots = snapshot_folder(self.ledger_address)
        return open_parts(self.policy, self._given, folder=self._folder, snapshots=snapshots)

    def check_sources(self) -> str:
        """Open every table and every join that the policy allows, without reading a row; return the engines."""
        from tidegate.tables.links import related_rows

        tables = [self.open_rows(rows) for rows in related_rows(self.policy)] if self.policy.tables else [self.table]
        return ", ".join(dict.fromkeys(table.engine for table in tables))

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
        anyway: bool = False,
    ) -> Answer: ...
    @overload
    def answer(
        self,
        question: str | SqlPlan,
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
        anyway: bool = False,
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
        anyway: bool = False,
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
        anyway: bool = False,
    ) -> Answer | Answers:
        """Answer one query (an Answer) or several under one charge (Answers), as values or as SQL.

        Specify exactly one of `rho` (identification by this answer alone), `epsilon` (its loss), `error` (the largest
        error, with `confidence`), or `share` (its part of the total budget); under the average guarantee, `z` replaces
        `epsilon`. See `resolve_loss` for `calibration` and `window`. Repeating a query costs nothing and returns the same
        answer. plan="auto" answers several counts from one measurement, if that has less error. `key` makes a request
        idempotent; `user` is recorded in the ledger, and `budget_share` is the most that `user` can spend in total. An answer
        that would say no more than the middle of its public range is refused, unless `anyway` is True.
        """
        sql = self.sql(question)
        queries = self.queries(sql or question)
        if sql is not None and not queries:
            return Answers((), Charge.nothing(self.account, self.policy), finish_sql(sql, ()))
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
            self.open_named,
            self.ledger,
            loss=loss,
            bits=SecureBits(),
            planning=plan,
            key=key,
            user=user,
            budget_share=budget_share,
            anyway=anyway,
        )
        if sql is not None and not sql.plain:
            return replace(answers, tables=finish_sql(sql, answers))
        is_single = isinstance(question, Query) or (isinstance(question, str | SqlPlan) and len(queries) == 1)
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
        if not queries and isinstance(question, str | SqlPlan):
            return Preview((), FREE, self.account, budget_of(self.policy), confidence)  # public numbers
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
            query.check(query.target(self.policy))
        return derive(queries[0], self.policy, self.ledger) if queries else None

    def release(self, promise: str = "", *, progress: DeskProgress | None = None) -> Desk | HidingDesk:
        """Return the release desk of a concealment or hiding promise (optional if the policy has only one).

        The first opening under a concealment promise fixes the baseline and the critical values in the ledger. A desk
        under a hiding promise requires an open selection (`open_release`).
        """
        promises = self.policy.release_promises
        name = promise or (next(iter(promises)) if len(promises) == 1 else "")
        source = source_address(self.policy, self._given, folder=self._folder)
        if self.policy.hidings:
            from tidegate.release.hiding_desk import HidingDesk

            return HidingDesk(name, self.policy, lambda: self.table, self.ledger)
        from tidegate.release.desk import Desk  # here: its compiler takes long to load

        return Desk(name, self.policy, lambda: self.table, self.ledger, source=source, progress=progress)

    def open_release(
        self,
        *,
        sensitive: Sequence[Sequence[str] | str] | None = None,
        later: bool = False,
        show_short: ShowShort | None = None,
    ) -> Selection:
        """Choose the records that can be released under the hiding promises. For the data holder; this is final.

        Args:
            sensitive: The groups to hide if the promise has `among` = k. They are private: a policy does not name them.
            later: Open the next selection, over the records that were added since the last one.
            show_short: Receives the cells (group, value) with too few records, if the selection cannot be opened.
        """
        from tidegate.release.hiding import open_selection

        source = source_address(self.policy, self._given, folder=self._folder)
        options: dict[str, Any] = {"sensitive": sensitive, "later": later, "show_short": show_short}
        return open_selection(self.policy, lambda: self.table, self.ledger, source=source, **options)

    def collect(self, name: str = "", *, reports: str = "") -> Survey:
        """Return the survey of a collection (optional if the policy has only one).

        The first opening of a version writes its public description into the ledger. `reports` is the folder or URL where
        the randomized reports are stored.
        """
        from tidegate.collect.survey import Survey  # here: arrays and engines take long to load

        chosen = name or (next(iter(self.policy.collections)) if len(self.policy.collections) == 1 else "")
        return Survey(chosen, self.policy, self.ledger, location=self.reports_location(reports))

    def poll(self, name: str = "", *, reports: str = "") -> Survey:
        """Return the survey of a poll (optional if the policy has only one)."""
        return self.collect(choose_poll(self.policy, name), reports=reports)

    def reports_location(self, reports: str = "") -> str:
        """Return where the randomized reports are stored: as named here, in the policy, or beside the ledger."""
        from tidegate.tables.segments import folder_next_to_ledger

        named = reports or self.policy.dataset.reports
        return self._from_folder(named) if named else folder_next_to_ledger(self.ledger_address)

    def synthesize_linked(
        self,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        z: Number | None = None,
        share: Number | None = None,
        delta: Number | None = None,
        rows: int | None = None,
        seed: int | None = None,
        key: str = "",
        user: str = "",
        progress: Progress | bool | None = None,
    ) -> LinkedTables:
        """Generate artificial linked tables of a policy with several: ``session.synthesize_linked(z="0.2")["visits"]``.

        The loss is that of all tables together about one person. `rows` is the number of persons. The other parameters are those
        of `synthesize`. Repeating a request costs nothing.
        """
        from tidegate.synthesize.checkpoint import diary_folder  # here: models take long to load
        from tidegate.synthesize.links import synthesize_linked
        from tidegate.synthesize.request import resolve_request

        request = resolve_request(
            self.policy, epsilon=epsilon, rho=rho, z=z, share=share, delta=delta, rows=rows, seed=seed, linked=True
        )
        snapshots = snapshot_folder(self.ledger_address)
        with progress_display(progress, work="synthesis") as show_progress:
            return synthesize_linked(
                request,
                self.policy,
                lambda part: part.open(self.policy, self._given, folder=self._folder, snapshots=snapshots),
                self.ledger,
                folder=diary_folder(self.ledger_address, self._folder, self.policy.dataset.name),
                bits=SecureBits(),
                key=key,
                user=user,
                progress=show_progress,
            )

    def synthesize(
        self,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        z: Number | None = None,
        share: Number | None = None,
        delta: Number | None = None,
        tables: int = 1,
        rows: int | None = None,
        target: str = "",
        seed: int | None = None,
        columns: Iterable[str] = (),
        model: str | Model = "forest/2",
        key: str = "",
        user: str = "",
        budget_share: Amount | None = None,
        progress: Progress | bool | None = None,
    ) -> SyntheticTables:
        """Generate artificial tables like the original, at an exact loss: ``session.synthesize(epsilon=1.0)[0].to_pandas()``.

        Specify exactly one of `epsilon` or `z` (the loss of each table), `rho` (identification by all of them), or `share`
        (their part of the total budget). Where the policy limits the average loss alone, `rho`, `share` and `z` are spent on
        Gaussian noise, which measures more for the same promise; so is `epsilon` with `delta`. Repeating a request costs
        nothing and returns the same tables; an interrupted run continues from its checkpoint.

        Args:
            delta: Together with `epsilon`: each table is (epsilon, delta)-differentially private.
            tables: The number of tables, learned independently; each costs the loss.
            rows: The number of rows of each table; that of the original if None. Changing it, or `seed`, is free.
            target: A column whose relations matter most.
            columns: The columns to learn; all if empty.
            model: "forest/2"; "forest/1" draws again what an earlier version learned; or a model of your own (see
                `tidegate.synthesize.model`).
            progress: Called with (stage, done, of). Without it, a terminal or notebook shows one line; False shows nothing.
        """
        from tidegate.synthesize.checkpoint import diary_folder  # here: models take long to load
        from tidegate.synthesize.request import resolve_request
        from tidegate.synthesize.run import synthesize

        request = resolve_request(
            self.policy,
            epsilon=epsilon,
            rho=rho,
            z=z,
            share=share,
            delta=delta,
            tables=tables,
            rows=rows,
            target=target,
            seed=seed,
            columns=columns,
            model=model,
        )
        with progress_display(progress, work="synthesis") as show_progress:
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
                progress=show_progress,
            )

    def preview_synthesis(
        self,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        z: Number | None = None,
        share: Number | None = None,
        delta: Number | None = None,
        tables: int = 1,
        rows: int | None = None,
        target: str = "",
        seed: int | None = None,
        columns: Iterable[str] = (),
        model: str | Model = "forest/2",
    ) -> SynthesisPreview:
        """Return what `synthesize` would cost and promise, and how the budget would be split. Free; reads no row."""
        from tidegate.synthesize.request import resolve_request
        from tidegate.synthesize.run import preview

        request = resolve_request(
            self.policy,
            epsilon=epsilon,
            rho=rho,
            z=z,
            share=share,
            delta=delta,
            tables=tables,
            rows=rows,
            target=target,
            seed=seed,
            columns=columns,
            model=model,
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
        """Return the queries of a question: values as they are (with full names of columns), SQL planned."""
        if isinstance(question, SqlPlan):
            return question.queries
        if isinstance(question, str):
            return plan_sql(question, self.policy).queries
        if isinstance(question, Query):
            return (question.resolve(self.policy),)
        return tuple(query for part in question for query in self.queries(part))

    def sql(self, question: Question, *, cells: int = MOST_CELLS) -> SqlPlan | None:
        """Return the plan of SQL, to be answered or previewed; None for other questions.

        Args:
            cells: The largest number of cells of a GROUP BY.
        """
        if isinstance(question, SqlPlan):
            return question
        if isinstance(question, list) and question and all(isinstance(part, str) for part in question):
            question = ";\n".join(question)
        return plan_sql(question, self.policy, cells=cells) if isinstance(question, str) else None

    def open_named(self, rows: str) -> Table:
        """Return the table of a query: the source, or the rows of linked tables."""
        return self.open_rows(read_row_source(self.policy, rows)) if self.policy.tables else self.table

    def __repr__(self) -> str:
        return f'Session("{self.policy.dataset.name}"): see its columns in `policy` and its budget in `account`'

    def _repr_html_(self) -> str:
        return self.policy._repr_html_()

    def close(self) -> None:
        """Close the ledger."""
        if "ledger" in self.__dict__:
            self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_session(
    policy: str | Path | Policy,
    *,
    table: Any = None,
    ledger: str = "",
    new_account: str = "",
    witness: Sequence[str] = (),
) -> Session:
    """Open a data set by its policy. Nothing is read or written before the first call.

        with tg.open("people.toml") as session:
            session.preview(tg.mean("age").by("sex"), epsilon=0.1)
            session.answer("SELECT sex, AVG(age) FROM people GROUP BY sex", epsilon=0.1).to_pandas()

    Args:
        policy: A policy file, or a `Policy`. Paths in the file are relative to its folder.
        table: Replaces the policy's source: a path, a URL, or a table in memory (pandas, polars, Arrow); for linked tables,
            a mapping of them by name.
        ledger: Replaces the policy's ledger: a path or postgresql://... The default is NAME.ledger beside the policy.
        new_account: The reason to open a second account over a source that has one under another name or in another ledger.
            It is recorded. Without it, a policy file with such a source is refused.
        witness: Addresses for the ledger's signed checkpoints, in addition to the policy's.
    """
    if isinstance(policy, Policy):
        return Session(policy, table=table, ledger=ledger, witness=witness)
    settings: dict[str, Any] = {"table": table, "ledger": ledger, "folder": Path(policy).parent, "witness": witness}
    return Session(read_policy(policy), **settings, is_from_file=True, new_account=new_account)
