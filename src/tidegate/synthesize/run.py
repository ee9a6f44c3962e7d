"""The procedure for synthetic tables: check, charge, learn, record.

The ledger records the diary of every table: all that was ever learned from the rows. The tables are drawn from it, now and
whenever the same request comes again. More rows of them are free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tidegate.accounting import Amount, budget_of
from tidegate.errors import BudgetExceeded, StalePolicy, Unsupported
from tidegate.ledger import Account, Charge, Ledger, Receipt
from tidegate.noise import Bits
from tidegate.policy import Policy
from tidegate.synthesize.checkpoint import Diaries, delete_diaries, open_diaries
from tidegate.synthesize.diary import Step
from tidegate.synthesize.learn import LearnedTable, Learning, learn_again, silent
from tidegate.synthesize.model import Progress
from tidegate.synthesize.plan import Plan, expected_rows, plan_for
from tidegate.synthesize.private_rows import EngineRows
from tidegate.synthesize.request import SynthesisRequest
from tidegate.synthesize.result import Description, Drawn, SynthesisPreview, SyntheticTable, SyntheticTables
from tidegate.tables import Table


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

    `folder` contains the diary while the synthesis runs. An interrupted run continues when the same request comes again, at
    no new cost.
    """
    plan = plan_for(request, policy)
    ledger.open_account(policy)
    receipt = ledger.asked_before(policy, question=plan.question(), request=key)
    learned: list[LearnedTable] = []
    if receipt is None:
        table = open_table()  # fails here, before anything is charged, if the source cannot be read
        rows = public_rows(plan, table)
        plan.stages(rows or expected_rows(policy)[0])  # refuses an impossible split before the charge
        EngineRows(table.without_rows()).rehearse(plan.columns.learnt)
        receipt = _charge(plan, ledger, key=key, user=user, share=budget_share)
        learning = Learning(plan, EngineRows(table), lambda: table.size, rows, bits, progress or silent)
        with open_diaries(folder, receipt.entry.hash) as checkpoint:
            stored = _charge(plan, ledger, key=key, user=user).stored  # another process may have finished first
            if stored is None:
                learned = _learn(learning, checkpoint)
                record = _record(learning, learned)
                stored = receipt.record(record)
                if stored != record:  # another machine recorded its result first: return that one
                    learned = []
            delete_diaries(folder, receipt.entry.hash)
    else:
        stored = receipt.stored
        delete_diaries(folder, receipt.entry.hash)
    return _tables(plan, stored, learned, Charge.of(receipt, policy), open_table)


def preview(request: SynthesisRequest, policy: Policy, account: Account) -> SynthesisPreview:
    """Return the cost, the model and the split of the loss without reading a row or charging anything."""
    plan = plan_for(request, policy)
    rows, known = expected_rows(policy)
    stages, price = plan.stages(rows), plan.request.event.price
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
    raise BudgetExceeded(
        refused.what,
        f"{refused.do.rstrip('.')}{shared}; see what was spent: tidegate ledger show POLICY",
        **refused.facts,
    )


def _learn(learning: Learning, checkpoint: Diaries) -> list[LearnedTable]:
    """Learn every table, each from the steps that its diary already contains."""
    about = {"model": learning.plan.model.name, "rows": learning.rows}
    if not checkpoint.about:
        checkpoint.begin(about)
    elif checkpoint.about != about:
        raise StalePolicy(
            "This synthesis was started on a table with a different number of rows.",
            "Use the table as it was, or set a new edition in [dataset] for the changed data and request again.",
        )
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


def _record(learning: Learning, learned: list[LearnedTable]) -> dict[str, Any]:
    """Return what the ledger stores: the model, the number of rows, and every learned number."""
    tables = [[step.to_dict() for step in table.steps] for table in learned]
    return {"model": learning.plan.model.name, "rows": learning.rows, "tables": tables}


def _tables(
    plan: Plan, stored: Any, learned: list[LearnedTable], charge: Charge, open_table: Callable[[], Table]
) -> SyntheticTables:
    """Return the tables of a stored result, with a public seed of their own if the request sets none."""
    seed = plan.request.seed if plan.request.seed is not None else int(charge.entry[:12], 16)
    drawn = []
    for number, diary in enumerate(stored["tables"]):
        steps = tuple(Step.from_dict(step) for step in diary)
        learn = _once(learned[number]) if learned else _later(plan, steps, stored["rows"])
        drawn.append(Drawn(plan, steps, learn, number, plan.request.rows, seed))
    tables = tuple(SyntheticTable(source, source.number) for source in drawn)
    description, first = Description.of(plan), drawn[0]
    return SyntheticTables(tables, description, charge, lambda: plan.stages(first.learned.rows), plan, open_table)


def _once(learned: LearnedTable) -> Callable[[], LearnedTable]:
    return lambda: learned


def _later(plan: Plan, steps: tuple[Step, ...], rows: int | None) -> Callable[[], LearnedTable]:
    return lambda: learn_again(plan, steps, rows)
