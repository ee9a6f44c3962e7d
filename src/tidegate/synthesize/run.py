"""The story of synthetic tables: check, charge, run, record.

What is recorded is the diary of every table: all that was ever learnt from the rows. The tables are drawn from it, now and
whenever they are asked for again, and more rows of them are free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tidegate.accounting import Amount, budget_of
from tidegate.errors import BudgetExceeded, SourceUnreadable, StalePolicy, Unsupported
from tidegate.ledger import Account, Charge, Ledger, Receipt
from tidegate.noise import Bits
from tidegate.policy import Policy
from tidegate.synthesize.checkpoint import Diaries, diaries, forget
from tidegate.synthesize.diary import Step
from tidegate.synthesize.learn import Learning, Told, learnt_again, silent
from tidegate.synthesize.model import Progress
from tidegate.synthesize.plan import Plan, expected_rows, plan_for
from tidegate.synthesize.private_rows import EngineRows
from tidegate.synthesize.request import Synthesis
from tidegate.synthesize.result import SynthesisPreview, SyntheticTable, SyntheticTables
from tidegate.tables import Table


def synthesize(
    wanted: Synthesis,
    policy: Policy,
    open_table: Callable[[], Table],
    ledger: Ledger,
    *,
    place: Path,
    bits: Bits,
    key: str = "",
    user: str = "",
    share: Amount | None = None,
    progress: Progress | None = None,
) -> SyntheticTables:
    """Synthetic tables, charged in full before a row is read and recorded before they leave. `place`: where the diary is
    kept meanwhile. A run that was cut short goes on when the same is asked again, at no new cost."""
    plan = plan_for(wanted, policy)
    ledger.open_account(policy)
    receipt = ledger.asked_before(policy, question=plan.question(), request=key)
    told: list[Told] = []
    if receipt is None:
        table = open_table()  # a source that cannot be read is found here, before anything is charged
        rows = public_rows(plan, table)
        plan.stages(rows or expected_rows(policy)[0])  # a split that cannot be kept is refused here
        EngineRows(table.without_rows()).rehearse(plan.columns.learnt)
        receipt = _charged(plan, ledger, key=key, user=user, share=share)
        learning = Learning(plan, EngineRows(table), lambda: table.size, rows, bits, progress or silent)
        with diaries(place, receipt.entry.hash) as kept:
            stored = _charged(plan, ledger, key=key, user=user).stored  # another process may have been quicker
            if stored is None:
                told = _learnt(learning, kept)
                made = _record(learning, told)
                stored = receipt.record(made)
                told = (
                    told if stored == made else []
                )  # on another machine somebody was quicker: theirs leaves, not ours
            forget(place, receipt.entry.hash)
    else:
        stored = receipt.stored
        forget(place, receipt.entry.hash)
    return _tables(plan, stored, told, Charge.of(receipt, policy), open_table)


def preview(wanted: Synthesis, policy: Policy, account: Account) -> SynthesisPreview:
    """What `synthesize` would charge, by which model, and how the loss would be shared. Reads no row, spends nothing."""
    plan = plan_for(wanted, policy)
    rows, known = expected_rows(policy)
    return SynthesisPreview(plan, plan.stages(rows), known, account, budget_of(policy))


def public_rows(plan: Plan, table: Table) -> int | None:
    """The number of rows, where it is public: it must be the policy's. None where it must be learnt."""
    if not plan.size_is_public:
        return None
    told, rows = plan.policy.dataset.rows, table.size
    if told is not None and told != rows:
        raise SourceUnreadable(
            f"the policy says that there are {told:,} rows, and the source holds another number.",
            "Correct rows in [dataset]; synthetic tables are as long as that.",
        )
    if rows < 2:
        raise Unsupported(
            f"the table has {'one row' if rows else 'no row'}: there is nothing to learn that is not about one person.",
            "A synthetic table needs 2 rows or more; useful ones start at some hundreds.",
        )
    return rows


def _charged(plan: Plan, ledger: Ledger, *, key: str, user: str, share: Amount | None = None) -> Receipt:
    """The receipt of the whole loss of all tables; the same one again where it was charged before."""
    refused = None
    try:
        event, question = plan.wanted.event, plan.question()
        told: dict[str, Any] = {"says": plan.says(), "request": key, "who": user, "share": share}
        return ledger.charge(plan.policy, event, question=question, **told)
    except BudgetExceeded as error:
        refused = error
    shared = f", for all {plan.wanted.tables:,} tables together" if plan.wanted.tables > 1 else ""
    raise BudgetExceeded(
        refused.what,
        f"{refused.do.rstrip('.')}{shared}; see what was spent: tidegate ledger show POLICY",
        **refused.facts,
    )


def _learnt(learning: Learning, kept: Diaries) -> list[Told]:
    """Every table, each from what its diary holds already."""
    about = {"model": learning.plan.model.name, "rows": learning.rows}
    if not kept.about:
        kept.begin(about)
    elif kept.about != about:
        raise StalePolicy(
            "this synthesis was begun on a table with another number of rows.",
            "Ask with the table as it was; or give the changed data a new edition in [dataset], and ask anew.",
        )
    many = learning.plan.wanted.tables
    found = []
    for number in range(many):
        one = replace(learning, progress=_named(learning.progress, number, many))
        found.append(one.learn(kept.steps(number), keep=kept.keeper(number)))
    return found


def _named(progress: Progress, number: int, many: int) -> Progress:
    if many == 1:
        return progress
    return lambda stage, done, of: progress(f"table {number + 1:,} of {many:,}, {stage}", done, of)


def _record(learning: Learning, told: list[Told]) -> dict[str, Any]:
    """What the ledger keeps: model, number of rows, and every number that was learnt."""
    tables = [[step.to_dict() for step in one.steps] for one in told]
    return {"model": learning.plan.model.name, "rows": learning.rows, "tables": tables}


def _tables(
    plan: Plan, stored: Any, told: list[Told], charge: Charge, open_table: Callable[[], Table]
) -> SyntheticTables:
    """The tables of a stored result, with a public seed of their own where none was given."""
    seed = plan.wanted.seed if plan.wanted.seed is not None else int(charge.entry[:12], 16)
    made = []
    for number, diary in enumerate(stored["tables"]):
        steps = tuple(Step.from_dict(step) for step in diary)
        learn = _once(told[number]) if told else _later(plan, steps, stored["rows"])
        made.append(SyntheticTable(plan, steps, learn, number, plan.wanted.rows, seed))
    return SyntheticTables(tuple(made), plan, charge, open_table)


def _once(told: Told) -> Callable[[], Told]:
    return lambda: told


def _later(plan: Plan, steps: tuple[Step, ...], rows: int | None) -> Callable[[], Told]:
    return lambda: learnt_again(plan, steps, rows)
