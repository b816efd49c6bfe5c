"""Buffers copied and put together again: for files, for what a batch changed, for merges."""

from __future__ import annotations

import numpy as np

from placewire.kernels.buffers import (
    ALL,
    Buffers,
    enter_buffer,
    leave_buffer,
    ranks_before,
    soonest_in_buffer,
)
from placewire.kernels.jit import inlined, kernel


@inlined
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
    """Put objects that entered the buffers of rows[i] there again, in place."""
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
    """Leave out what ranks below (theta, theta_seq), in place."""
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
    """Leave out what has left the window, in place; gives when the next object of each row does."""
    soonest = np.empty(buffers.counts.size, np.int64)
    for row in range(soonest.size):
        leave_buffer(row, horizon, buffers)
        soonest[row] = soonest_in_buffer(row, buffers)
    return soonest


@kernel
def buffers_taken(picked: np.ndarray, since_seq: int, source: Buffers, taken: Buffers) -> None:
    """Copy what came at `since_seq` or later in the buffers of the picked rows to others.

    These have room for it; they get their counts, not their thresholds.
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
    """How many objects in the buffers of the picked rows came at `since_seq` or later: i64[n]."""
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
    """Copy buffers to those of some rows; what finds no room there is below theta."""
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
