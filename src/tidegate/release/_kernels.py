"""The compiled decision loop of one concealment promise.

Symbols, as in the paper and its errata: c[x,y] counts of released records, n_y the records of target y, N all of them,
b the public baseline of X. With T(k) = k ln k,

    A record (x, y) adds  step = 2 (d_xy - e_y)  to  g_y = 2 n_y ln2 KL_y  and to  G = sum g_y = 2 N ln2 I,
    where  d_xy = T(c+1) - T(c) - ln b_x   and   e_y = T(n_y+1) - T(n_y).

So a test on mutual information or on a distance is a bound on d_xy alone, and one number per target (the smallest d of
its waiting cells) shows whether any of them can pass. Cells are numbered target by target: cell = y * NX + x.

A value so close to a critical value that rounding could matter is not decided here: `advance` stops with the cell and
the test, and the caller decides exactly, stores the decision and calls again.

Nothing is allocated, so reference counts are switched off (_nrt=False): with them the loop is ten times as slow. The state
is in few arrays with named rows, because each additional array slows down every call and takes seconds to compile. All
kernels are in one file because the compiler's cache does not notice changes in other files.

If a grant can release requests of any target (information, outliers) and there are many cells, waiting cells are stored in
blocks by age, each with the smallest d - e in it: the oldest admissible cell is in the first block whose bound is low enough.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tidegate.extras import require
from tidegate.kernels import kernel

require("release", "Releasing records")


def _cells(m: Any, *_: Any) -> int:
    """Return the work of a pass over all cells."""
    return 8 * int(m.cells.shape[1])


def _decisions(m: Any, cells: Any, numbers: Any, begin: Any, *_: Any) -> int:
    """Return the work of decisions: each looks at all cells once in the worst case."""
    return (int(cells.size) - int(begin)) * (40 + int(m.cells.shape[1]))


compiled = kernel(_nrt=False)
compiled_pass = kernel(_nrt=False, work=_cells)
compiled_with_memory = kernel(work=_cells)

MUTUAL, DISTANCE, FIT, OUTLIER, POSTERIOR = range(5)  # the five tests
FORWARD, SMALLER_NEIGHBOUR, SMALLEST_FIRST = range(3)  # rules for merging sparse bins
LEAST = 5  # records in a merged bin
SAME = 1e-12  # distances closer than this are one distance
DONE, NO_TARGET, UNTIDY = -1, -1, -2  # UNTIDY: the blocks must be rebuilt (`tidy`) first

# The rows of the arrays of a Machine
RELEASED, WAITING, LENGTH, FREE, SETTLED, TOTAL_AT, CHANGED_TARGET, STEPS, ACTIVE, BREAKS = range(10)  # whole
MERGING, FIT_AT, OUTLIER_AT, BLOCKS, CROWDED, FULL, USES = range(10, 17)  # whole; USES + test: whether it must hold
WHOLE = 21  # the length of whole
TOTAL, TOTAL_BEYOND, TARGET_BEYOND, ODDS, CARRY = range(5)  # numbers
COUNT, HEAD, TAIL, DENIED, DENIED_HERE, BIN_COUNT, SHIFTS, BLOCK, AFTER, BEFORE = range(10)  # cells
GAIN, BIN_SHARE = range(2)  # weights
SIZE, FIT_STATE, FIT_BINS = range(3)  # targets
DISTANCES, COST, LIMIT, LEAST_GAIN, SQUARES, ORDERED = range(6)  # sums
SHARE, LOG_SHARE, SCRATCH, RATIOS = range(4)  # values; ratios of the first profile, the second, ...
BEHIND, NUMBER = range(2)  # slots
FIRST, START, MEMBERS = range(3)  # blocks


class Machine(NamedTuple):
    """All arrays that a decision depends on. There is no other state."""

    whole: Any  # the number of RELEASED records, of WAITING requests ... USES
    numbers: Any  # G and its rounding error, critical values beyond the tables, the odds that rho allows
    cells: Any  # released COUNT, HEAD and TAIL slot of the queue (-1: none), state at which DENIED, merged bin, BLOCK
    weights: Any  # d (GAIN), the share of the cell's merged bin
    targets: Any  # n_y (SIZE), and the merged bins at that size
    sums: Any  # g_y (DISTANCES), e_y (COST), LIMIT and LEAST of d, SQUARES of merged bins; ORDERED distances per record
    values: Any  # b, ln b, room to merge bins, ln(q / b) of each profile
    scratch: Any  # (values,) room to merge bins
    slots: Any  # the slot BEHIND in the same cell's queue, the NUMBER of the request that waits
    total: Any  # (2, sizes) critical values of G by N
    critical: Any  # of g by n_y; from FIT_AT of Pearson's statistic by freedom; from OUTLIER_AT of Dixon's by number
    growth: Any  # growth[k] = T(k+1) - T(k)
    evidence: Any  # (targets, profiles) ln of the likelihood ratio so far
    prior_odds: Any  # (profiles,)
    answers: Any  # (ties, 3) cell, test, exact decision
    blocks: Any  # FIRST cell, START of its request numbers, MEMBERS; no room: no blocks
    bounds: Any  # of each block: no waiting cell in it has a smaller d - e


@compiled
def growth_of(m, k):
    """Return T(k+1) - T(k)."""
    return m.growth[k] if k < m.growth.size else math.log(k + 1.0) + k * math.log1p(1.0 / k)


@compiled_with_memory
def rebuild(m):
    """Recompute every sum from the counts."""
    nx, ny = m.values.shape[1], m.targets.shape[1]
    m.whole[RELEASED], m.whole[ACTIVE] = 0, 0
    m.numbers[TOTAL], m.numbers[CARRY] = 0.0, 0.0
    for y in range(ny):
        size, distance, carry = 0, 0.0, 0.0
        for x in range(nx):
            size += m.cells[COUNT, y * nx + x]
        for x in range(nx):
            c = m.cells[COUNT, y * nx + x]
            if c > 0:
                term = c * math.log(c / (size * m.values[SHARE, x])) - carry
                carry = ((distance + term) - distance) - term
                distance += term
            m.weights[GAIN, y * nx + x] = growth_of(m, c) - m.values[LOG_SHARE, x]
        for k in range(m.prior_odds.size):
            m.evidence[y, k] = 0.0
            for x in range(nx):
                if m.cells[COUNT, y * nx + x] > 0:
                    m.evidence[y, k] += m.cells[COUNT, y * nx + x] * m.values[RATIOS + k, x]
        m.targets[SIZE, y], m.sums[DISTANCES, y] = size, 2.0 * distance
        m.sums[COST, y] = growth_of(m, size)
        m.whole[RELEASED] += size
        add_to_total(m, m.sums[DISTANCES, y])
        set_target_limit(m, y)
        set_least_gain(m, y)
        if m.whole[USES + OUTLIER] and size > 0:
            m.sums[ORDERED, m.whole[ACTIVE]] = m.sums[DISTANCES, y] / (2.0 * size)
            m.whole[ACTIVE] += 1
    m.sums[ORDERED, : m.whole[ACTIVE]].sort()
    m.whole[BREAKS] = 0
    for i in range(1, m.whole[ACTIVE]):
        m.whole[BREAKS] += apart(m.sums[ORDERED, i - 1], m.sums[ORDERED, i])
    m.whole[TOTAL_AT] = np.searchsorted(m.total[0], m.whole[RELEASED] + 1)
    m.cells[DENIED, :] = -1
    m.cells[DENIED_HERE, :] = -1
    m.targets[FIT_STATE, :] = -1
    m.whole[SETTLED], m.whole[STEPS] = 0, 0


@compiled
def add_to_total(m, amount):
    """Add to G with compensated summation (Kahan 1965): G is large and its steps are small."""
    amount -= m.numbers[CARRY]
    total = m.numbers[TOTAL] + amount
    m.numbers[CARRY] = (total - m.numbers[TOTAL]) - amount
    m.numbers[TOTAL] = total


@compiled
def total_critical(m):
    """Return the critical value of G with one more record, interpolated linearly between listed sizes."""
    at, after = m.whole[TOTAL_AT], m.whole[RELEASED] + 1
    if at >= m.total.shape[1]:
        return m.numbers[TOTAL_BEYOND]
    if at == 0 or m.total[0, at] == after:
        return m.total[1, at]
    share = (after - m.total[0, at - 1]) / (m.total[0, at] - m.total[0, at - 1])
    return m.total[1, at - 1] + share * (m.total[1, at] - m.total[1, at - 1])


@compiled
def target_critical(m, y):
    """Return the critical value of g_y with one more record."""
    after = m.targets[SIZE, y] + 1
    return m.critical[after] if after < m.whole[FIT_AT] else m.numbers[TARGET_BEYOND]


@compiled
def set_target_limit(m, y):
    m.sums[LIMIT, y] = (
        (target_critical(m, y) - m.sums[DISTANCES, y]) / 2.0 + m.sums[COST, y] if m.whole[USES + DISTANCE] else np.inf
    )


@compiled
def set_least_gain(m, y):
    nx = m.values.shape[1]
    least = np.inf
    for cell in range(y * nx, y * nx + nx):
        if m.cells[HEAD, cell] >= 0 and m.weights[GAIN, cell] < least:
            least = m.weights[GAIN, cell]
    m.sums[LEAST_GAIN, y] = least


@compiled
def doubt(m, critical, records):
    """Return a generous bound on rounding errors near a critical value: the error of each step is at most 2e-14."""
    return 1e-13 * critical + 2e-14 * (records + m.whole[STEPS] + 1)


@compiled
def compare(m, cell, test, value, critical, near):
    """Return 1 if value < critical, 0 if not, and -1 - test if exact arithmetic must decide and has not done so yet."""
    if value < critical - near:
        return 1
    if value > critical + near:
        return 0
    for i in range(m.whole[SETTLED]):
        if m.answers[i, 0] == cell and m.answers[i, 1] == test:
            return m.answers[i, 2]
    return -1 - test


@compiled
def note_denial(m, cell, y, decision):
    """Return a decision; store a denial by a test of one target, which holds until that target changes."""
    if decision == 0:
        m.cells[DENIED_HERE, cell] = m.targets[SIZE, y]
    return decision


@compiled
def verdict(m, cell):
    """Return whether every test holds with one more record in the cell: 1, 0, or -1 - test (see `compare`)."""
    nx = m.values.shape[1]
    y = cell // nx
    x = cell - y * nx
    step = 2.0 * (m.weights[GAIN, cell] - m.sums[COST, y])
    if m.whole[USES + MUTUAL]:
        critical = total_critical(m)
        decision = compare(m, cell, MUTUAL, m.numbers[TOTAL] + step, critical, doubt(m, critical, m.whole[RELEASED]))
        if decision != 1:
            return decision
    if m.whole[USES + DISTANCE]:
        critical = target_critical(m, y)
        decision = compare(
            m, cell, DISTANCE, m.sums[DISTANCES, y] + step, critical, doubt(m, critical, m.targets[SIZE, y])
        )
        if decision != 1:
            return note_denial(m, cell, y, decision)
    if m.whole[USES + POSTERIOR]:
        odds = 0.0
        for k in range(m.prior_odds.size):
            odds += m.prior_odds[k] * math.exp(m.evidence[y, k] + m.values[RATIOS + k, x])
        near = 1e-9 * m.numbers[ODDS] + m.numbers[ODDS] * 1e-12 * (m.whole[STEPS] + m.targets[SIZE, y] + 1)
        decision = compare(m, cell, POSTERIOR, odds, m.numbers[ODDS], near)
        if decision != 1:
            return note_denial(m, cell, y, decision)
    if m.whole[USES + FIT]:
        statistic, freedom = pearson_after(m, x, y)
        if freedom > 0:
            critical = m.critical[m.whole[FIT_AT] + freedom]
            decision = compare(m, cell, FIT, statistic, critical, 1e-9 * critical + 1e-14 * (m.targets[SIZE, y] + 1))
            if decision != 1:
                return note_denial(m, cell, y, decision)
    if m.whole[USES + OUTLIER]:
        return outlier(m, cell, y, step)
    return 1


@compiled
def pearson_after(m, x, y):
    """Return Pearson's statistic of a target with one more record of value x, and its degrees of freedom (0: not testable)."""
    if m.whole[MERGING] == FORWARD:
        squares, bins = forward_after(m, x, y)
    else:
        squares, bins = merged_squares(m, x, y)
    after = m.targets[SIZE, y] + 1
    return squares / after - after, bins - 1


@compiled
def forward_after(m, x, y):
    """Return the sum of O^2 / B over bins, and their number. Bins are closed from left to right; the rest joins the last.

    One more record in a bin with the same end changes one term. A bin ends earlier only if it had four records before its
    last value. Only then, or if the rest at the end becomes a bin, everything is summed again.
    """
    first = y * m.values.shape[1]
    if m.targets[FIT_STATE, y] != m.targets[SIZE, y]:
        m.sums[SQUARES, y], m.targets[FIT_BINS, y] = forward_squares(m, first, -1)
        m.targets[FIT_STATE, y] = m.targets[SIZE, y]
    cell = first + x
    if m.cells[SHIFTS, cell]:
        return forward_squares(m, first, x)
    return m.sums[SQUARES, y] + (2 * m.cells[BIN_COUNT, cell] + 1) / m.weights[BIN_SHARE, cell], m.targets[FIT_BINS, y]


@compiled
def forward_squares(m, first, x):
    """Return the sum and the number of bins with one more record of value x.

    With x < 0, store what `forward_after` needs for each cell: the count and share of its merged bin, and whether one more
    record would move a boundary.
    """
    nx = m.values.shape[1]
    squares, bins, last_count, last_share, last_start = 0.0, 0, 0, 0.0, 0
    count, share, start = 0, 0.0, 0
    for i in range(nx):
        here = m.cells[COUNT, first + i] + (i == x)
        count += here
        share += m.values[SHARE, i]
        if count < LEAST:
            continue
        if bins > 0:
            squares += last_count * last_count / last_share
            if x < 0:
                note(m, first + last_start, first + start, last_count, last_share)
        if x < 0:
            for j in range(start, i + 1):
                m.cells[SHIFTS, first + j] = j < i and count - here == LEAST - 1
        bins += 1
        last_count, last_share, last_start = count, share, start
        count, share, start = 0, 0.0, i + 1
    if x < 0:
        for j in range(start, nx):
            m.cells[SHIFTS, first + j] = count == LEAST - 1
        note(m, first + last_start, first + nx, last_count + count, last_share + share)
    last_count += count
    last_share += share
    return squares + last_count * last_count / last_share, max(bins, 1)


@compiled
def note(m, begin, end, count, share):
    for cell in range(begin, end):
        m.cells[BIN_COUNT, cell], m.weights[BIN_SHARE, cell] = count, share


@compiled
def merged_squares(m, x, y):
    """Return the same for merging a sparse bin (the leftmost or the smallest) with its smaller neighbor, ties to the right."""
    nx = m.values.shape[1]
    counts, shares = m.scratch, m.values[SCRATCH]
    for i in range(nx):
        counts[i] = m.cells[COUNT, y * nx + i] + (i == x)
        shares[i] = m.values[SHARE, i]
    bins = nx
    while bins > 1:
        at = sparse_bin(counts, bins, m.whole[MERGING])
        if at < 0:
            break
        left = at - 1 if at > 0 and (at == bins - 1 or counts[at - 1] < counts[at + 1]) else at
        counts[left] += counts[left + 1]
        shares[left] += shares[left + 1]
        for i in range(left + 1, bins - 1):
            counts[i], shares[i] = counts[i + 1], shares[i + 1]
        bins -= 1
    squares = 0.0
    for i in range(bins):
        squares += counts[i] * counts[i] / shares[i]
    return squares, bins


@compiled
def sparse_bin(counts, bins, merging):
    """Return the bin to merge next, or -1 if none is sparse."""
    sparse = -1
    for i in range(bins):
        if counts[i] < LEAST and (sparse < 0 or counts[i] < counts[sparse]):
            sparse = i
            if merging == SMALLER_NEIGHBOUR:
                return sparse
    return sparse


@compiled
def apart(low, high):
    return 1 if high - low > SAME else 0


@compiled
def index_of(m, value):
    """Return the index of a value among the ordered distances."""
    low, high = 0, m.whole[ACTIVE]
    while low < high:
        middle = (low + high) >> 1
        if m.sums[ORDERED, middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def outlier(m, cell, y, step):
    """Apply Dixon's test with target y's distance replaced. Takes logarithmic time in the number of targets."""
    s, active, breaks = m.sums[ORDERED], m.whole[ACTIVE], m.whole[BREAKS]
    new = (m.sums[DISTANCES, y] + step) / (2.0 * (m.targets[SIZE, y] + 1))
    gone = active  # a target without records has no old distance
    rest = active
    if m.targets[SIZE, y] > 0:
        gone = index_of(m, m.sums[DISTANCES, y] / (2.0 * m.targets[SIZE, y]))
        rest = active - 1
        if gone > 0:
            breaks -= apart(s[gone - 1], s[gone])
        if gone < active - 1:
            breaks -= apart(s[gone], s[gone + 1])
        if gone > 0 and gone < active - 1:
            breaks += apart(s[gone - 1], s[gone + 1])
    at = index_of(m, new)
    if at > gone:
        at -= 1
    before = s[at - 1 if at - 1 < gone else at] if at > 0 else -np.inf
    after = s[at if at < gone else at + 1] if at < rest else np.inf
    if at > 0 and at < rest:
        breaks -= apart(before, after)
    if at > 0:
        breaks += apart(before, new)
    if at < rest:
        breaks += apart(new, after)
    if breaks + 1 < 3:
        return 1
    last = s[rest - 1 if rest - 1 < gone else rest]
    first = s[0 if gone > 0 else 1]
    highest, lowest = max(last, new), min(first, new)
    if at == rest:
        second = last
    elif at == rest - 1:
        second = new
    else:
        second = s[rest - 2 if rest - 2 < gone else rest - 1]
    coefficient = (highest - second) / (highest - lowest)
    critical = m.critical[m.whole[OUTLIER_AT] + breaks + 1]
    near = 1e-9 + 1e-12 / (highest - lowest)
    return compare(m, cell, OUTLIER, coefficient, critical, near)


@compiled
def reorder(m, y, step):
    """Move a target's distance to its new index. SIZE and DISTANCES are still the old ones."""
    s, active = m.sums[ORDERED], m.whole[ACTIVE]
    new = (m.sums[DISTANCES, y] + step) / (2.0 * (m.targets[SIZE, y] + 1))
    at = active
    if m.targets[SIZE, y] > 0:
        at = index_of(m, m.sums[DISTANCES, y] / (2.0 * m.targets[SIZE, y]))
    else:
        m.whole[ACTIVE] += 1
    while at > 0 and s[at - 1] > new:
        s[at] = s[at - 1]
        at -= 1
    while at < m.whole[ACTIVE] - 1 and s[at + 1] < new:
        s[at] = s[at + 1]
        at += 1
    s[at] = new
    m.whole[BREAKS] = 0
    for i in range(1, m.whole[ACTIVE]):
        m.whole[BREAKS] += apart(s[i - 1], s[i])


@compiled
def grant(m, cell):
    """Count one more record in a cell."""
    nx = m.values.shape[1]
    y = cell // nx
    x = cell - y * nx
    step = 2.0 * (m.weights[GAIN, cell] - m.sums[COST, y])
    if m.whole[USES + OUTLIER]:
        reorder(m, y, step)
    m.cells[COUNT, cell] += 1
    m.targets[SIZE, y] += 1
    m.whole[RELEASED] += 1
    m.whole[STEPS] += 1
    add_to_total(m, step)
    m.sums[DISTANCES, y] += step
    m.weights[GAIN, cell] = growth_of(m, m.cells[COUNT, cell]) - m.values[LOG_SHARE, x]
    m.sums[COST, y] = growth_of(m, m.targets[SIZE, y])
    for k in range(m.prior_odds.size):
        m.evidence[y, k] += m.values[RATIOS + k, x]
    while m.whole[TOTAL_AT] < m.total.shape[1] and m.total[0, m.whole[TOTAL_AT]] < m.whole[RELEASED] + 1:
        m.whole[TOTAL_AT] += 1
    set_target_limit(m, y)
    set_least_gain(m, y)
    lower_bounds(m, y)
    m.whole[SETTLED] = 0


@compiled
def score(m, cell, y):
    """Return d - e, which the test on mutual information bounds; infinite if the distance test denies the cell."""
    if m.weights[GAIN, cell] > m.sums[LIMIT, y] + 1e-6:
        return np.inf
    return m.weights[GAIN, cell] - m.sums[COST, y] if m.whole[USES + MUTUAL] else -np.inf


@compiled
def attach(m, cell, newest):
    """Add a cell to the block of its oldest request; the newest cell can start a new block."""
    if m.whole[BLOCKS] == 0 or m.cells[HEAD, cell] < 0:
        return
    number = m.slots[NUMBER, m.cells[HEAD, cell]]
    last = m.whole[BLOCKS] - 1
    if newest and m.blocks[MEMBERS, last] >= m.whole[CROWDED] // 4 and last + 1 < m.bounds.size:
        last += 1
        m.whole[BLOCKS] = last + 1
        m.blocks[FIRST, last], m.blocks[START, last], m.blocks[MEMBERS, last] = -1, number, 0
        m.bounds[last] = np.inf
    low, high = 0, last
    while low < high:
        middle = (low + high + 1) >> 1
        if m.blocks[START, middle] <= number:
            low = middle
        else:
            high = middle - 1
    first = m.blocks[FIRST, low]
    m.cells[BLOCK, cell], m.cells[BEFORE, cell], m.cells[AFTER, cell] = low, -1, first
    if first >= 0:
        m.cells[BEFORE, first] = cell
    m.blocks[FIRST, low] = cell
    m.blocks[MEMBERS, low] += 1
    if m.blocks[MEMBERS, low] > m.whole[CROWDED]:
        m.whole[FULL] = 1
    m.bounds[low] = min(m.bounds[low], score(m, cell, cell // m.values.shape[1]))


@compiled
def detach(m, cell):
    """Remove a cell from its block."""
    if m.whole[BLOCKS] == 0:
        return
    before, after = m.cells[BEFORE, cell], m.cells[AFTER, cell]
    if before >= 0:
        m.cells[AFTER, before] = after
    else:
        m.blocks[FIRST, m.cells[BLOCK, cell]] = after
    if after >= 0:
        m.cells[BEFORE, after] = before
    m.blocks[MEMBERS, m.cells[BLOCK, cell]] -= 1


@compiled
def lower_bounds(m, y):
    """Lower the bounds of blocks after a grant to a target: its waiting cells can have lower scores."""
    if m.whole[BLOCKS] == 0:
        return
    nx = m.values.shape[1]
    for cell in range(y * nx, y * nx + nx):
        if m.cells[HEAD, cell] >= 0:
            block = m.cells[BLOCK, cell]
            m.bounds[block] = min(m.bounds[block], score(m, cell, y))


@compiled_with_memory
def tidy(m):
    """Rebuild the blocks in order of age; each has about the square root of the number of waiting cells."""
    if m.bounds.size == 0:
        return
    waiting = np.flatnonzero(m.cells[HEAD] >= 0)
    heads = np.empty(waiting.size, np.int64)
    for i in range(waiting.size):
        heads[i] = m.slots[NUMBER, m.cells[HEAD, waiting[i]]]
    order = np.argsort(heads)
    most = m.bounds.size // 2
    size = max(16, int(math.sqrt(waiting.size)), waiting.size // most + 1)
    m.whole[CROWDED], m.whole[BLOCKS], m.whole[FULL] = 4 * size, 1, 0
    m.blocks[FIRST, 0], m.blocks[START, 0], m.blocks[MEMBERS, 0], m.bounds[0] = -1, -1, 0, np.inf
    for i in range(waiting.size):
        attach(m, waiting[order[i]], True)


@compiled
def is_untidy(m):
    """Return whether a block is too long or there is no room for more."""
    if m.whole[BLOCKS] == 0:
        return False
    return m.whole[FULL] > 0 or (
        m.whole[BLOCKS] == m.bounds.size and m.blocks[MEMBERS, m.whole[BLOCKS] - 1] >= m.whole[CROWDED] // 4
    )


@compiled
def push(m, cell, number):
    """Append a request to the queue of its cell."""
    slot = m.whole[FREE]
    if slot >= 0:
        m.whole[FREE] = m.slots[BEHIND, slot]
    else:
        slot = m.whole[LENGTH]
        m.whole[LENGTH] += 1
    m.slots[NUMBER, slot], m.slots[BEHIND, slot] = number, -1
    if m.cells[HEAD, cell] < 0:
        m.cells[HEAD, cell] = slot
        y = cell // m.values.shape[1]
        m.sums[LEAST_GAIN, y] = min(m.sums[LEAST_GAIN, y], m.weights[GAIN, cell])
        attach(m, cell, True)
    else:
        m.slots[BEHIND, m.cells[TAIL, cell]] = slot
    m.cells[TAIL, cell] = slot
    m.whole[WAITING] += 1


@compiled
def pop(m, cell):
    """Remove and return the oldest request of a cell."""
    slot = m.cells[HEAD, cell]
    detach(m, cell)
    m.cells[HEAD, cell] = m.slots[BEHIND, slot]
    attach(m, cell, False)
    free(m, slot)
    return m.slots[NUMBER, slot]


@compiled
def free(m, slot):
    m.slots[BEHIND, slot] = m.whole[FREE]
    m.whole[FREE] = slot
    m.whole[WAITING] -= 1


@compiled
def withdraw(m, cell, number):
    """Remove a waiting request from its cell; return whether it was there."""
    before, slot = -1, m.cells[HEAD, cell]
    while slot >= 0 and m.slots[NUMBER, slot] != number:
        before, slot = slot, m.slots[BEHIND, slot]
    if slot < 0:
        return False
    if before < 0:
        detach(m, cell)
        m.cells[HEAD, cell] = m.slots[BEHIND, slot]
        attach(m, cell, False)
    else:
        m.slots[BEHIND, before] = m.slots[BEHIND, slot]
    if m.cells[TAIL, cell] == slot:
        m.cells[TAIL, cell] = before
    free(m, slot)
    set_least_gain(m, cell // m.values.shape[1])
    return True


@compiled
def state_of(m, y):
    """Return the count that a denial depends on: the records of the target, or all records."""
    return m.whole[RELEASED] if m.whole[USES + MUTUAL] or m.whole[USES + OUTLIER] else m.targets[SIZE, y]


@compiled
def slack_of(m):
    """Return the approximate upper bound on d - e for the test on mutual information."""
    return (total_critical(m) - m.numbers[TOTAL]) / 2.0 + 1e-6 if m.whole[USES + MUTUAL] else np.inf


@compiled
def limit_of(m, y, slack):
    """Return the approximate upper bound on d for the tests on information and distance, for a quick denial."""
    return min(m.sums[LIMIT, y] + 1e-6, slack + m.sums[COST, y])


@compiled
def oldest_in_blocks(m):
    """Return `oldest_admissible` from the blocks, which are ordered by age."""
    nx = m.values.shape[1]
    slack = slack_of(m)
    for block in range(m.whole[BLOCKS]):
        if m.bounds[block] > slack:
            continue
        best, oldest, least = np.int64(2**62), -1, np.inf
        cell = m.blocks[FIRST, block]
        while cell >= 0:
            y = cell // nx
            at = score(m, cell, y)
            least = min(least, at)
            number = m.slots[NUMBER, m.cells[HEAD, cell]]
            known = m.cells[DENIED, cell] == m.whole[RELEASED] or m.cells[DENIED_HERE, cell] == m.targets[SIZE, y]
            if at <= slack and number < best and not known:
                holds = verdict(m, cell)
                if holds == 1:
                    best, oldest = number, cell
                elif holds == 0:
                    m.cells[DENIED, cell] = m.whole[RELEASED]
                else:
                    m.answers[m.whole[SETTLED], 0] = cell
                    return -1 + holds
            cell = m.cells[AFTER, cell]
        m.bounds[block] = least
        if oldest >= 0:
            return oldest
    return -1


@compiled
def oldest_admissible(m, changed):
    """Return the cell of the next request; -1 if there is none, -2 - test if exact arithmetic must decide (the cell is stored)."""
    if m.whole[BLOCKS] > 0:
        return oldest_in_blocks(m)
    nx = m.values.shape[1]
    slack = slack_of(m)
    everywhere = m.whole[USES + MUTUAL] or m.whole[USES + OUTLIER]
    best, oldest = np.int64(2**62), -1
    for y in range(0 if everywhere else changed, m.targets.shape[1] if everywhere else changed + 1):
        limit = limit_of(m, y, slack)
        if m.sums[LEAST_GAIN, y] > limit:
            continue
        state = state_of(m, y)
        for cell in range(y * nx, y * nx + nx):
            slot = m.cells[HEAD, cell]
            if (
                slot < 0
                or m.weights[GAIN, cell] > limit
                or m.slots[NUMBER, slot] >= best
                or m.cells[DENIED, cell] == state
            ):
                continue
            holds = verdict(m, cell)
            if holds == 1:
                best, oldest = m.slots[NUMBER, slot], cell
            elif holds == 0:
                m.cells[DENIED, cell] = state
            else:
                m.answers[m.whole[SETTLED], 0] = cell
                return -1 + holds
    return oldest


@kernel(_nrt=False, work=_decisions)
def advance(m, cells, numbers, begin, out, filled, ends):
    """Decide requests in order from `begin`. Return (next request, filled, cell, test).

    Released request numbers are written to `out`; `ends[i]` is the number of releases after request i. `test` is DONE,
    UNTIDY, or the test that must be decided exactly.
    """
    i = begin
    while i < cells.size:
        y = m.whole[CHANGED_TARGET]
        if y == NO_TARGET:
            if is_untidy(m):
                return i, filled, -1, UNTIDY
            cell = cells[i]
            y = cell // m.values.shape[1]
            state = state_of(m, y)
            holds = 0
            here = m.cells[DENIED_HERE, cell] == m.targets[SIZE, y]
            if not here and m.cells[DENIED, cell] != state and m.weights[GAIN, cell] <= limit_of(m, y, slack_of(m)):
                holds = verdict(m, cell)
            if holds < 0:
                return i, filled, cell, -1 - holds
            if holds == 0:
                m.cells[DENIED, cell] = state
                push(m, cell, numbers[i])
                ends[i] = filled
                i += 1
                continue
            grant(m, cell)
            out[filled] = numbers[i]
            filled += 1
            m.whole[CHANGED_TARGET] = y
        while m.whole[WAITING] > 0:
            cell = oldest_admissible(m, y)
            if cell < -1:
                return i, filled, m.answers[m.whole[SETTLED], 0], -2 - cell
            if cell < 0:
                break
            out[filled] = pop(m, cell)
            filled += 1
            grant(m, cell)
        m.whole[CHANGED_TARGET] = NO_TARGET
        ends[i] = filled
        i += 1
    return i, filled, -1, DONE


@compiled_pass
def admissible(m, verdicts):
    """Write the verdict of every cell: 1, 0, or -1 - test if it must be decided exactly."""
    for cell in range(m.cells.shape[1]):
        verdicts[cell] = verdict(m, cell)
