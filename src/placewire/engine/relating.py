"""A worker's part for `relevant`: objects that reach the thresholds of rows, each pair once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.engine.worker import NONE_DEAD
from placewire.index.groups import GroupIndex
from placewire.kernels.jit import read_only
from placewire.kernels.relevance import objects_relevant_to_rows
from placewire.model.subscriptions import SubscriptionRows

ALL_PRUNINGS = 0xFF


class RelevanceBlock(NamedTuple):
    """Objects in cell order, with the norms f64[m] of their terms."""

    codes: NDArray[np.uint32]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    now_us: NDArray[np.int64]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint64]
    norms: NDArray[np.float64]


class Relevance(NamedTuple):
    """Candidates of a block: object u32[m], row u32[m], score in billionths i32[m]; counters."""

    object: NDArray[np.uint32]
    row: NDArray[np.uint32]
    nano: NDArray[np.int32]
    counters: dict[str, int]


def find_relevant(
    block: RelevanceBlock,
    rows: SubscriptionRows,
    index: GroupIndex,
    theta: NDArray[np.int32],
    dead: NDArray[np.uint64] = NONE_DEAD,
    prunings: int = ALL_PRUNINGS,
) -> Relevance:
    """Every (object, row) with a shared posted term and a score of at least `theta`, once."""
    return scan_relevant(block, rows, theta, dead)


def scan_relevant(
    block: RelevanceBlock,
    rows: SubscriptionRows,
    theta: NDArray[np.int32],
    dead: NDArray[np.uint64] = NONE_DEAD,
) -> Relevance:
    """The same by looking at every pair."""
    found = objects_relevant_to_rows(
        *map(read_only, block[1:]),
        read_only(rows.expires_us),
        read_only(rows.shape_offsets),
        read_only(rows.shape),
        read_only(rows.literal_offsets),
        read_only(rows.literal_term),
        read_only(theta),
        read_only(dead),
    )
    return Relevance(*found, {})
