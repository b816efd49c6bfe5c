"""Buffers of `relevant` rows: ranked objects that results may need as the window slides.

Row r's buffer is in slots offsets[r]:offsets[r + 1], the first counts[r] of them by rank: score
descending, then seq descending. Scores are whole numbers of 1e-9 (`nano`). An object leaves the
window when the horizon reaches its `exp`. An object dominates another of lower rank if it stays at
least as long; `dom` counts the objects that dominate one. An object with k dominators can never
enter the result again, and is removed.

A buffer has every object of the window that ranks at or above (theta, theta_seq) and was not
removed; if theta is ALL, every candidate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.blocks import NEVER, ranks_before
from placewire.kernels.jit import kernel, subkernel

ALL = -1
DONE = -1  # the status of a row that needs no refill
MOST_K = 1_000


class Buffers(NamedTuple):
    """Buffers of n rows with room for m objects.

    In a window of the last N objects, objects leave in order of seq, and `exp` is the seq.
    """

    offsets: NDArray[np.int64]  # [n + 1]
    counts: NDArray[np.int32]  # [n]
    nano: NDArray[np.int32]  # [m], as are the next three
    seq: NDArray[np.int64]
    exp: NDArray[np.int64]
    dom: NDArray[np.uint16]
    theta: NDArray[np.int32]  # [n]
    theta_seq: NDArray[np.int64]  # [n]


@subkernel
def first_reaching(values: np.ndarray, value: int) -> int:
    """Return the first position of ascending values with at least `value`."""
    low, high = 0, values.size
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@subkernel
def enter_buffer(
    row: int,
    nano: int,
    seq: int,
    exp: int,
    k: int,
    dominance: bool,
    trim: bool,
    buffers: Buffers,
) -> int:
    """Insert an object into a buffer; return its position, or -1 if k others rank before it.

    A full buffer evicts its lowest object, and theta rises. With `trim` it evicts several at once,
    which leaves room for later objects.
    """
    offsets, counts = buffers.offsets, buffers.counts
    theta, theta_seq = buffers.theta, buffers.theta_seq
    nanos, seqs, exps, doms = buffers.nano, buffers.seq, buffers.exp, buffers.dom
    first = offsets[row]
    room = offsets[row + 1] - first
    held = np.int64(counts[row])
    place = held
    while place > 0 and ranks_before(
        nano, seq, np.int64(nanos[first + place - 1]), seqs[first + place - 1]
    ):
        place -= 1
    own = 0
    if dominance:
        for at in range(first, first + place):
            if exps[at] >= exp:
                own += 1
        if own >= k:
            return -1
        kept = first + place
        for at in range(first + place, first + held):
            dom = np.int64(doms[at])
            if exps[at] <= exp:
                dom += 1
                if dom >= k:
                    continue
            nanos[kept], seqs[kept], exps[kept] = nanos[at], seqs[at], exps[at]
            doms[kept] = dom
            kept += 1
        held = kept - first
    full = held == room
    if full:
        held = min(room - 1, k + (room - k) // 2) if trim else room - 1
        if place > held or (trim and place == held):
            counts[row] = held if trim else room
            lowest = first + counts[row] - 1
            theta[row], theta_seq[row] = nanos[lowest], seqs[lowest]
            return -1
    for at in range(first + held, first + place, -1):
        nanos[at], seqs[at], exps[at] = nanos[at - 1], seqs[at - 1], exps[at - 1]
        doms[at] = doms[at - 1]
    at = first + place
    nanos[at], seqs[at], exps[at], doms[at] = nano, seq, exp, own
    counts[row] = held + 1
    if full:
        theta[row], theta_seq[row] = nanos[first + held], seqs[first + held]
    return place


@subkernel
def leave_buffer(row: int, horizon: int, buffers: Buffers) -> None:
    """Remove the objects that the horizon has reached."""
    nanos, seqs, exps, doms = buffers.nano, buffers.seq, buffers.exp, buffers.dom
    first = buffers.offsets[row]
    kept = first
    for at in range(first, first + buffers.counts[row]):
        if exps[at] > horizon:
            nanos[kept], seqs[kept], exps[kept] = nanos[at], seqs[at], exps[at]
            doms[kept] = doms[at]
            kept += 1
    buffers.counts[row] = kept - first


@subkernel
def soonest_in_buffer(row: int, buffers: Buffers) -> np.int64:
    """Return when the first object of a buffer leaves."""
    soonest = NEVER
    first = buffers.offsets[row]
    for at in range(first, first + buffers.counts[row]):
        soonest = min(soonest, buffers.exp[at])
    return soonest


@subkernel
def copy_slot(source: Buffers, at: int, buffers: Buffers, to: int) -> None:
    buffers.nano[to], buffers.seq[to] = source.nano[at], source.seq[at]
    buffers.exp[to], buffers.dom[to] = source.exp[at], source.dom[at]


@kernel
def entrants_into_buffers(
    rows: np.ndarray,
    entrant_nano: np.ndarray,
    entrant_seq: np.ndarray,
    entrant_exp: np.ndarray,
    horizon: int,
    ks: np.ndarray,
    dominance: bool,
    buffers: Buffers,
) -> None:
    """Reinsert objects that entered the buffers of rows[i], in place."""
    for i in range(rows.size):
        if entrant_exp[i] > horizon:
            enter_buffer(
                np.int64(rows[i]),
                np.int64(entrant_nano[i]),
                entrant_seq[i],
                entrant_exp[i],
                np.int64(ks[rows[i]]),
                dominance,
                False,
                buffers,
            )


@kernel
def buffers_above_theta(buffers: Buffers) -> None:
    """Remove objects that rank below (theta, theta_seq), in place."""
    counts, nanos, seqs = buffers.counts, buffers.nano, buffers.seq
    theta, theta_seq = buffers.theta, buffers.theta_seq
    for row in range(counts.size):
        if theta[row] == ALL:
            continue
        first = buffers.offsets[row]
        while counts[row] and ranks_before(
            np.int64(theta[row]),
            theta_seq[row],
            np.int64(nanos[first + counts[row] - 1]),
            seqs[first + counts[row] - 1],
        ):
            counts[row] -= 1


@kernel
def buffers_past_horizon(horizon: int, buffers: Buffers) -> np.ndarray:
    """Remove objects that have left the window, in place; return when each row's next leaves."""
    soonest = np.empty(buffers.counts.size, np.int64)
    for row in range(soonest.size):
        leave_buffer(row, horizon, buffers)
        soonest[row] = soonest_in_buffer(row, buffers)
    return soonest


@kernel
def buffers_taken(picked: np.ndarray, since_seq: int, source: Buffers, taken: Buffers) -> None:
    """Copy the objects of picked rows that arrived at `since_seq` or later to other buffers.

    The target has room for them; it receives counts, but not thresholds.
    """
    for i in range(picked.size):
        row = np.int64(picked[i])
        first = source.offsets[row]
        to = taken.offsets[i]
        for at in range(first, first + source.counts[row]):
            if source.seq[at] >= since_seq:
                copy_slot(source, at, taken, to)
                to += 1
        taken.counts[i] = to - taken.offsets[i]


@kernel
def newcomers_counted(picked: np.ndarray, since_seq: int, buffers: Buffers) -> np.ndarray:
    """Count objects in the picked rows' buffers that arrived at `since_seq` or later: i64[n]."""
    newcomers = np.zeros(picked.size, np.int64)
    for i in range(picked.size):
        row = np.int64(picked[i])
        first = buffers.offsets[row]
        for at in range(first, first + buffers.counts[row]):
            if buffers.seq[at] >= since_seq:
                newcomers[i] += 1
    return newcomers


@kernel
def buffers_put(rows: np.ndarray, source: Buffers, buffers: Buffers) -> None:
    """Copy buffers to those of some rows; objects that do not fit there are below theta."""
    theta, theta_seq = buffers.theta, buffers.theta_seq
    for i in range(rows.size):
        row = rows[i]
        first = buffers.offsets[row]
        room = buffers.offsets[row + 1] - first
        held = min(np.int64(source.counts[i]), room)
        for slot in range(held):
            copy_slot(source, source.offsets[i] + slot, buffers, first + slot)
        buffers.counts[row] = held
        theta[row], theta_seq[row] = source.theta[i], source.theta_seq[i]
        if held < source.counts[i]:
            lowest = first + held - 1
            theta[row], theta_seq[row] = buffers.nano[lowest], buffers.seq[lowest]


@kernel
def cheapest_sizes(ks: np.ndarray, looked: np.ndarray, growth: float) -> np.ndarray:
    """Return how many objects above the threshold make a buffer cheapest to keep: i64[n].

    With n of them, a buffer has about k (1 + ln(n / k)) that are not dominated, and an object that
    enters or leaves is moved past these. A search tests `looked` objects; it is needed once the
    number above the threshold, a random walk with a reflecting barrier at 2 n, falls to k - 1.
    During it `growth` objects arrive for each that leaves.
    Both costs are per arriving object, without their common factor. The sum falls, then rises;
    descent finds the minimum.
    """
    sizes = np.empty(ks.size, np.int64)
    for i in range(ks.size):
        k = np.float64(ks[i])
        n = k
        step = max(1.0, np.floor(k / 2))
        cost = buffer_cost(n, k, looked[i], growth)
        while step >= 1.0:
            more = buffer_cost(n + step, k, looked[i], growth)
            less = buffer_cost(max(n - step, k), k, looked[i], growth)
            if more < cost and more <= less:
                n += step
                cost = more
            elif less < cost:
                n = max(n - step, k)
                cost = less
            else:
                step = np.floor(step / 2)
        sizes[i] = np.int64(n)
    return sizes


@kernel
def buffer_cost(n: float, k: float, looked: float, growth: float) -> float:
    keeping = n * k * (1.0 + np.log(n / k))
    searching = SEARCH_STEP * (looked + SEARCH_BASE)
    return keeping + searching * n / steps_down(n - k + 1.0, n, growth)


@kernel
def steps_down(above: float, n: float, growth: float) -> float:
    """Return the expected steps of a walk to fall by `above`, its barrier n above the start.

    A step down from a place d below the barrier takes (1 + growth) (1 + growth + .. + growth^d)
    steps; the function sums these. Far up there are so many that the exact number is irrelevant.
    """
    if abs(growth - 1.0) < 1e-6:
        return 2.0 * above * n + above * (above + 1.0)
    far = growth ** min(n + 1.0, 200.0) * (growth ** min(above, 200.0) - 1.0) / (growth - 1.0)
    return (far - above) * (1.0 + growth) / (growth - 1.0)


# The cost of a search besides scoring, in scored objects: word lookups in every file, bounds of
# pages, cache misses; some tenths of a millisecond in all.
SEARCH_BASE = 30_000.0
SEARCH_STEP = 4.0  # the cost of scoring an object, in steps along a buffer
