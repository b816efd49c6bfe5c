"""Buffers: what `relevant` subscriptions hold of the sliding window, and what a batch changed.

A segment's file has the buffers of its rows as they were when it was written. Each batch adds a
delta: what entered and is still there, thresholds that changed, and whole buffers that were filled
anew. Applying the deltas in order, without what has left the window, gives the buffers of the last
commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.buffercopies import buffers_taken, newcomers_counted
from placewire.kernels.buffers import ALL, Buffers
from placewire.kernels.jit import read_only
from placewire.model.subscriptions import concat_offsets, lengths_to_offsets

EVERY_SEQ = -1


class Entrants(NamedTuple):
    """Objects and the rows whose buffers they entered."""

    row: NDArray[np.uint32]
    nano: NDArray[np.int32]
    seq: NDArray[np.int64]
    exp: NDArray[np.int64]


class BufferDelta(NamedTuple):
    """What a batch changed: rows and objects that entered, thresholds, buffers filled anew."""

    entrant_row: NDArray[np.uint32]
    entrant_nano: NDArray[np.int32]
    entrant_seq: NDArray[np.int64]
    entrant_exp: NDArray[np.int64]
    theta_row: NDArray[np.uint32]
    theta: NDArray[np.int32]
    theta_seq: NDArray[np.int64]
    refill_row: NDArray[np.uint32]
    refill_counts: NDArray[np.int32]
    refill_nano: NDArray[np.int32]
    refill_seq: NDArray[np.int64]
    refill_exp: NDArray[np.int64]

    def entrants(self) -> tuple[Entrants, Entrants]:
        """Those of buffers that were filled anew, and the others."""
        rows = np.repeat(self.refill_row, self.refill_counts)
        return Entrants(rows, self.refill_nano, self.refill_seq, self.refill_exp), Entrants(
            *self[:4]
        )


def empty_buffers(lengths: NDArray[np.int64], by_time: bool) -> Buffers:
    """Buffers without objects and with room for as many as said, complete."""
    offsets = lengths_to_offsets(lengths)
    slots = int(offsets[-1])
    seq = np.zeros(slots, np.int64)
    return Buffers(
        offsets,
        np.zeros(lengths.size, np.int32),
        np.zeros(slots, np.int32),
        seq,
        np.zeros(slots, np.int64) if by_time else seq,
        np.zeros(slots, np.uint16),
        np.full(lengths.size, ALL, np.int32),
        np.zeros(lengths.size, np.int64),
    )


def take_buffers(
    buffers: Buffers,
    picked: NDArray[np.int64],
    by_time: bool,
    room: NDArray[np.int64] | None = None,
    since_seq: int = EVERY_SEQ,
) -> Buffers:
    """The buffers of some rows, with room for as many objects as said, or as there are.

    With `since_seq` only the objects that came then or later.
    """
    # Mapped from a file or made here: one type to the compiler.
    source = Buffers(*map(read_only, buffers))
    if room is None:
        room = buffers.counts[picked].astype(np.int64)
        if since_seq > 0:
            room = newcomers_counted(picked, since_seq, source)
    taken = empty_buffers(room, by_time)
    buffers_taken(picked, since_seq, source, taken)
    return taken._replace(theta=buffers.theta[picked], theta_seq=buffers.theta_seq[picked])


def concat_buffers(parts: Sequence[Buffers], by_time: bool) -> Buffers:
    """The buffers of all rows of `parts`, which have room for no more than there are."""
    columns = [np.concatenate([part[i] for part in parts]) for i in range(1, len(Buffers._fields))]
    joined = Buffers(concat_offsets([part.offsets for part in parts]), *columns)
    return joined if by_time else joined._replace(exp=joined.seq)


def buffer_arrays(buffers: Buffers) -> dict[str, NDArray[Any]]:
    """Buffers as arrays of a file."""
    arrays = {f"buffers.{name}": array for name, array in buffers._asdict().items()}
    if buffers.exp is buffers.seq:
        del arrays["buffers.exp"]
    return arrays


def read_buffers(arrays: dict[str, NDArray[Any]]) -> Buffers:
    """Buffers of a file."""
    columns = {name: arrays.get(f"buffers.{name}") for name in Buffers._fields}
    if columns["exp"] is None:
        columns["exp"] = columns["seq"]
    return Buffers(**columns)  # type: ignore[arg-type]


def make_delta(
    buffers: Buffers,
    touched: NDArray[np.int64],
    refilled: NDArray[np.int64],
    since_seq: int,
    by_time: bool,
) -> BufferDelta:
    """What changed since an event, of rows that were touched and of some filled anew."""
    touched = np.setdiff1d(touched, refilled)
    came = take_buffers(buffers, touched, by_time, since_seq=since_seq)
    anew = take_buffers(buffers, refilled, by_time)
    both = np.concatenate([touched, refilled])
    return BufferDelta(
        np.repeat(touched, came.counts).astype(np.uint32),
        came.nano,
        came.seq,
        came.exp,
        both.astype(np.uint32),
        buffers.theta[both],
        buffers.theta_seq[both],
        refilled.astype(np.uint32),
        anew.counts,
        anew.nano,
        anew.seq,
        anew.exp,
    )


def delta_arrays(label: str, delta: BufferDelta) -> dict[str, NDArray[Any]]:
    """A delta as arrays of a file."""
    return {f"{label}.{name}": array for name, array in delta._asdict().items()}


def read_delta(arrays: dict[str, NDArray[Any]], label: str) -> BufferDelta:
    return BufferDelta(*(arrays[f"{label}.{name}"] for name in BufferDelta._fields))
