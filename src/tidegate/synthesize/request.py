"""The request: how many tables, at which loss, of which columns. A frozen value, priced before any row is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tidegate.accounting import Amount, Filtered, FilteredGaussian, budget_of, zcdp_for
from tidegate.errors import UnknownColumn, Unsupported, did_you_mean
from tidegate.exact import Number, positive, root_below, say
from tidegate.policy import Policy
from tidegate.policy.fingerprint import texts
from tidegate.synthesize.diary import Loss

MOST_TABLES, MOST_ROWS = 1_000, 2**31
DEFAULT, OLD = "forest/2", "forest/1"  # the model, and the one that only draws what an old ledger contains
LEAST_DELTA, MOST_EPSILON = Fraction(1, 10**30), Fraction(1_000)
PAIRWISE = Fraction(12, 5)  # zcdp of a grant of z: choices and scalars cost 4 z, counts 2 z


@dataclass(frozen=True)
class SynthesisRequest:
    """A checked request for synthetic tables.

    Attributes:
        limit: The loss of each table: a pure one, or z and zcdp.
        rows, seed: How many rows to draw and from which public seed. Drawing is free, so they are not part of the
            question.
        delta: The delta of the epsilon that is shown beside a limit on z, if the request named one.
    """

    limit: Loss
    tables: int = 1
    rows: int | None = None
    target: str = ""
    seed: int | None = None
    columns: tuple[str, ...] = ()
    model: Any = DEFAULT
    delta: Fraction | None = None

    @property
    def epsilon(self) -> Fraction | None:
        """The pure loss of each table; None if it is limited by z."""
        return self.limit.pure

    @property
    def event(self) -> Filtered | FilteredGaussian:
        """The charge, whatever the model does with it."""
        if self.limit.pure is not None:
            return Filtered(self.limit.pure, self.tables)
        return FilteredGaussian(self.limit.z, self.limit.zcdp, self.tables)

    def question(self, policy: Policy, *, model: str) -> dict[str, Any]:
        """Return the identity of the question in the ledger: the request, and the values, cells and unit it concerns."""
        public = policy.public_dict()
        question = {"verb": "synthesize", "model": model, "event": self.event.to_dict(), "target": self.target}
        if model == OLD:  # stored in old ledgers, where a request could split its epsilon
            question["split"] = {}
        question["columns"] = list(self.columns)
        return {
            **question,
            "of": public["attributes"],
            "shapes": texts(policy.synthesis.to_dict()),
            "unit": public["dataset"]["unit"],
            "rows": policy.dataset.rows,
            "edition": policy.dataset.edition,
        }

    def says(self, *, model: str, columns: int) -> str:
        """Return the request as text that follows the word "asked"."""
        tables = "a synthetic table" if self.tables == 1 else f"{self.tables:,} synthetic tables"
        return f"for {tables} of {columns} column{'s' if columns != 1 else ''} by {model}"


def resolve_request(
    policy: Policy,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    z: Number | None = None,
    share: Number | None = None,
    delta: Number | None = None,
    tables: int = 1,
    rows: int | None = None,
    target: str = "",
    seed: int | None = None,
    columns: Iterable[str] = (),
    model: Any = DEFAULT,
    linked: bool = False,
) -> SynthesisRequest:
    """Return the checked request. `linked`: for all tables of a policy with several.

    Exactly one of `epsilon`, `z` (the loss of each table), `rho` (identification by all tables of this request together)
    and `share` (their part of the total budget) sets the loss. Where the policy limits z alone, `rho` and `share` are spent
    as z. `epsilon` with `delta` means (epsilon, delta)-differential privacy of each table, which is spent as z.
    """
    if bool(policy.tables) != linked:
        raise Unsupported(
            f'The policy "{policy.dataset.name}" has {"only one table" if linked else "several tables"}.',
            f"Use `session.{'synthesize' if linked else 'synthesize_linked'}`.",
        )
    table_count = check_whole(tables, "tables", most=MOST_TABLES)
    limit = _limit(policy, table_count, epsilon=epsilon, rho=rho, z=z, share=share, delta=delta)
    if not limit.z:
        raise Unsupported(
            "The loss is too small to be charged.", "Use a larger `epsilon`, `rho`, `z` or `share`, or fewer tables."
        )
    if target and target not in policy.attributes:
        raise UnknownColumn(
            f'There is no column "{target}" in policy "{policy.dataset.name}".',
            did_you_mean(target, policy.attributes),
            column=target,
        )
    return SynthesisRequest(
        limit,
        table_count,
        None if rows is None else check_whole(rows, "rows", most=MOST_ROWS),
        target,
        None if seed is None else check_whole(seed, "seed", least=0, most=2**63 - 1),
        tuple(dict.fromkeys([columns] if isinstance(columns, str) else columns)),
        model,
        None if delta is None else positive(delta, "delta"),
    )


def _limit(
    policy: Policy,
    tables: int,
    *,
    epsilon: Number | None,
    rho: Number | None,
    z: Number | None,
    share: Number | None,
    delta: Number | None,
) -> Loss:
    """Return the loss of each table, in whole grains: the charge never exceeds the request."""
    if sum(value is not None for value in (epsilon, rho, z, share)) != 1:
        raise Unsupported(
            "Specify exactly one of `epsilon`, `rho`, `z`, or `share`.",
            "`epsilon` and `z` are the loss of each table; `rho` limits the probability of identification by all tables "
            "together; `share` is their part of the total budget.",
        )
    if delta is not None and epsilon is None:
        raise Unsupported("`delta` requires `epsilon`.", "Specify both, or leave out `delta`.")
    budget = budget_of(policy)
    if z is not None or delta is not None:
        name = "z" if z is not None else "delta"
        if budget.unit != "z":
            raise Unsupported(
                f"`{name}` requires a policy that limits the average loss alone, and this one does not.",
                'Specify `epsilon`, `rho` or `share`, or write guarantee = "average" in [promise.identification].',
            )
    if z is not None:
        return _average(positive(z, "z"))
    if epsilon is not None and delta is not None:
        return _pairwise(positive(epsilon, "epsilon"), positive(delta, "delta"))
    if epsilon is not None:
        return Loss.of_pure(Amount.down(positive(epsilon, "epsilon")).value)
    if rho is not None:
        total, is_z = budget.loss_alone(positive(rho, "rho")).value, budget.guarantee == "average"
    else:
        total, is_z = budget.part(positive(share or 0, "share")), budget.unit == "z"
    if budget.unit == "z":
        return _average(total / tables)
    if is_z:  # an average guarantee beside a limit on epsilon: z = tables * epsilon**2 / 8
        return Loss.of_pure(Amount.down(root_below(8 * total / tables)).value)
    return Loss.of_pure(Amount.down(total / tables).value)


def _average(z: Fraction) -> Loss:
    """Return a grant of z, of which a fifth can be spent on choices and scalars; z and zcdp are whole grains."""
    grant = 5 * Amount.down(z / 5).value
    return Loss(None, grant, PAIRWISE * grant)


def _pairwise(epsilon: Fraction, delta: Fraction) -> Loss:
    """Return a grant of the zcdp of (epsilon, delta), everything charged at its pairwise price: z is at most half of it."""
    if not LEAST_DELTA <= delta < 1 or epsilon > MOST_EPSILON:
        raise Unsupported(
            f"`delta` must be from {float(LEAST_DELTA):g} to below 1, and `epsilon` beside it at most {say(MOST_EPSILON)}.",
            "Use a small delta, such as 1e-5.",
        )
    half = Amount.down(zcdp_for(epsilon, delta).value / 2).value
    return Loss(None, half, 2 * half)


def check_whole(value: Any, name: str, *, least: int = 1, most: int) -> int:
    """Return a whole number within bounds, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Unsupported(f"`{name}` must be a whole number from {least:,} to {most:,}.")
    return value
