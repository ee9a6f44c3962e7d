"""The procedure for synthetic tables: check, charge, learn, record.

The ledger records the diary of every table (all that was ever learned from the rows) and the fitted model. The tables are drawn
from that model, now and whenever the same request comes again, also by later versions. More rows of them are free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tidegate.accounting import FREE, Amount, budget_of
from tidegate.errors import BudgetExceeded, LedgerNewer, LedgerUnavailable, StalePolicy, Unsupported
from tidegate.ledger import Account, Charge, Ledger, Receipt
from tidegate.noise import Bits
from tidegate.policy import Policy
from tidegate.synthesize.checkpoint import Diaries, delete_diaries, open_diaries
from tidegate.synthesize.description import Description
from tidegate.synthesize.diary import Step
from tidegate.synthesize.files import describe_request
from tidegate.synthesize.learn import LearnedTable, Learning, learn_again, restore
from tidegate.synthesize.model import Fitted, Progress, Stage
from tidegate.synthesize.plan import Plan, expected_rows, plan_for
from tidegate.synthesize.private_rows import EngineRows
from tidegate.synthesize.progress import silent
from tidegate.synthesize.request import DEFAULT, OLD, SynthesisRequest
from tidegate.synthesize.result import SynthesisPreview, SyntheticTable, SyntheticTables
from tidegate.synthesize.source import Drawn
from tidegate.tables import Table

VERSION = 1  # of a fitted model in the ledger; earlier records have only the diaries


def synthesize(
    request: SynthesisRequest,
    policy: Policy,
    open_table: Callable[[], Table],
    ledger: Ledger,
    *,
    folder: Path,
    bits: Bits,
    key: str = "",
    user: str = "",
    budget_share: Amount | None = None,
    progress: Progress | None = None,
) -> SyntheticTables:
    """Return synthetic tables, charged in full before a row is read and recorded before they are returned.

    The ledger contains the diary while the synthesis runs. An interrupted run continues when the same request comes again, at
    no new cost. `folder` is where an earlier version wrote the diary.
    """
    plan = plan_for(request, policy)
    ledger.open_account(policy)
    is_old = plan.model.name == OLD
    receipt = ledger.asked_before(policy, question=plan.question(), request="" if is_old else key)
    if receipt is None and is_old:
        raise Unsupported(
            f'The ledger contains no such table of "{OLD}", which only draws what an earlier version of Tidegate learned.',
            f'Repeat the earlier request exactly (epsilon, tables, columns, target), or use "{DEFAULT}".',
        )
    if receipt is None:
        table = open_table()  # fails here, before anything is charged, if the source cannot be read
        rows = public_rows(plan, table)
        plan.stages(rows or expected_rows(policy)[0])  # refuses a loss that the model cannot use before the charge
        EngineRows(table.without_rows()).rehearse(plan.columns.learnt)
        receipt = _charge(plan, ledger, key=key, user=user, share=budget_share)
        learning = Learning(
            plan, EngineRows(table, plan.columns.learnt), lambda: table.size, rows, bits, progress or silent
        )
        with open_diaries(ledger, receipt.entry, folder=folder) as checkpoint:
            stored = _charge(plan, ledger, key=key, user=user).stored  # another process may have finished first
            if stored is None:
                _begin(learning, checkpoint)
                model = plan.model.name
                stored = learn_and_record(receipt, model, rows, lambda: _learn(learning, checkpoint))
            delete_diaries(ledger, receipt.entry, folder=folder)
    else:
        stored = receipt.stored
        delete_diaries(ledger, receipt.entry, folder=folder)
    return _tables(plan, stored, Charge.of(receipt, policy), open_table)


def preview(request: SynthesisRequest, policy: Policy, account: Account) -> SynthesisPreview:
    """Return the cost, the model and the split of the loss without reading a row or charging anything."""
    plan = plan_for(request, policy)
    rows, known = expected_rows(policy)
    is_free = plan.model.name == OLD  # it only draws what was paid for before
    stages, price = plan.stages(rows), FREE if is_free else plan.request.event.price
    return SynthesisPreview(Description.of(plan), stages, known, price, account, budget_of(policy))


def public_rows(plan: Plan, table: Table) -> int | None:
    """Return the number of rows if it is public, checked against the policy, or None if it must be learned."""
    if not plan.size_is_public:
        return None
    table.check_rows()
    rows = table.size
    if rows < 2:
        raise Unsupported(
            f"The table has {'one row' if rows else 'no row'}: anything learned would be about one person.",
            "A synthetic table needs at least 2 rows; several hundred are useful.",
        )
    return rows


def _charge(plan: Plan, ledger: Ledger, *, key: str, user: str, share: Amount | None = None) -> Receipt:
    """Charge the loss of all tables and return the receipt; return the same receipt if it was charged before."""
    refused = None
    event, question = plan.request.event, plan.question()
    try:
        return ledger.charge(
            plan.policy, event, question=question, says=plan.says(), request=key, who=user, share=share
        )
    except BudgetExceeded as error:
        refused = error
    shared = f", for all {plan.request.tables:,} tables together" if plan.request.tables > 1 else ""
    raise BudgetExceeded(refused.what, f"{refused.do.rstrip('.')}{shared}.", **refused.facts)


def _begin(learning: Learning, checkpoint: Diaries) -> None:
    """Write the public facts of a run, or refuse to continue one that started with others."""
    about = {"model": learning.plan.model.name, "rows": learning.rows}
    if not checkpoint.about:
        checkpoint.begin(about)
    elif checkpoint.about != about:
        raise StalePolicy(
            "This synthesis was started on a table with a different number of rows.",
            "Use the table as it was, or set a new edition in [dataset] for the changed data and request again.",
        )


def learn_and_record(
    receipt: Receipt, model: str, rows: int | None, learn: Callable[[], list[LearnedTable]]
) -> dict[str, Any]:
    """Learn tables and return what the ledger stores. A failure is recorded, and its message is always the same.

    A diary that cannot be written is reported as it is, because that does not depend on a row.
    """
    problems: list[LedgerUnavailable] = []

    def run() -> dict[str, Any]:
        try:
            return _record(model, rows, learn())
        except LedgerUnavailable as error:
            problems.append(error)
        return {}

    record: dict[str, Any] = receipt.run(run)
    if problems:
        raise problems[0]
    return receipt.record(record)  # type: ignore[no-any-return]


def _learn(learning: Learning, checkpoint: Diaries) -> list[LearnedTable]:
    """Learn every table, each from the steps that its diary already contains."""
    tables = learning.plan.request.tables
    learned = []
    for number in range(tables):
        named = replace(learning, progress=_name_table(learning.progress, number, tables))
        learned.append(named.learn(checkpoint.steps(number), keep=checkpoint.writer(number)))
    return learned


def _name_table(progress: Progress, number: int, tables: int) -> Progress:
    if tables == 1:
        return progress
    return lambda stage, done, of: progress(f"table {number + 1:,} of {tables:,}, {stage}", done, of)


def _record(model: str, rows: int | None, learned: list[LearnedTable]) -> dict[str, Any]:
    """Return what the ledger stores of each table: every learned number, and the fitted model that rows are drawn from."""
    tables = [[step.to_dict() for step in table.steps] for table in learned]
    record = {"model": model, "rows": rows, "tables": tables}
    fitted = [
        {"version": VERSION, "rows": table.rows, "model": table.learnt.to_dict()}
        for table in learned
        if isinstance(table.learnt, Fitted)
    ]
    return {**record, "fitted": fitted} if fitted else record


def _tables(plan: Plan, stored: Any, charge: Charge, open_table: Callable[[], Table]) -> SyntheticTables:
    """Return the tables of a stored result, with a public seed of their own if the request sets none."""
    fitted = stored.get("fitted", [])
    if any(table["version"] > VERSION for table in fitted):
        raise LedgerNewer(
            "A newer version of Tidegate stored these tables.", "Install that version, or a later one, to draw them."
        )
    seed = plan.request.seed if plan.request.seed is not None else int(charge.entry[:12], 16)
    sources = [
        Drawn(
            plan.columns,
            _later(plan, diary, fitted[number] if fitted else None, stored["rows"]),
            lambda: describe_request(result),
            number,
            plan.request.rows,
            seed,
        )
        for number, diary in enumerate(stored["tables"])
    ]

    def stages() -> tuple[Stage, ...]:
        return plan.stages(sources[0].learned.rows)

    tables = tuple(SyntheticTable(source, source.number) for source in sources)
    result = SyntheticTables(tables, Description.of(plan), charge, stages, plan, open_table)
    return result


def _later(plan: Plan, diary: Any, fitted: Any, rows: int | None) -> Callable[[], LearnedTable]:
    """Return how to get a table's model: as stored, or rebuilt from its diary if an earlier version stored only that."""

    def learned() -> LearnedTable:
        steps = tuple(Step.from_dict(step) for step in diary)
        if fitted is None:
            return learn_again(plan, steps, rows)
        return LearnedTable(restore(plan.model.name, fitted["model"], plan.model), fitted["rows"], steps)

    return learned
