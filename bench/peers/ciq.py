"""CIQ, the index that the Skype paper compares with: covering cells, lists by row, row at a time.

A row is posted in a number of cells that together cover the space: along the path of a quadtree
down to its place, the three siblings at each level and the last cell itself. With every cell goes
the text that an object from there needs (MinT), for its proximity is at most that of the nearest
edge. An object goes through the cells of its own path; in each it walks the lists of its terms
together, row after row, adds up the similarity, and takes those that reach MinT as candidates.

As kind to it as can be: a posting that no text can reach is left out, lists are cut into blocks
with the largest weight and the least MinT of each, and stretches of rows are skipped if the blocks
that are met there together cannot reach it. Depth and block size are arguments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench.peers.ciq_kernels import lists_to_blocks, objects_in_cells, rows_to_cells
from placewire.kernels.jit import read_only
from placewire.kernels.text.hash_table import hashes_to_numbers, numbers_to_groups
from placewire.kinds.relevant.kernels.score import LAT, LON
from placewire.kinds.relevant.match import Relevance, RelevanceBlock
from placewire.model.subscriptions import SubscriptionRows

DEPTH, BLOCK = 5, 64


class Space(NamedTuple):
    """The box that is quartered."""

    west: float
    south: float
    width: float
    height: float


class CiqIndex(NamedTuple):
    """Lists by cell and term, ascending by row, and their blocks."""

    space: Space
    depth: int
    block: int
    key_table: np.ndarray
    list_offsets: np.ndarray
    block_offsets: np.ndarray
    block_weight: np.ndarray
    block_need: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    need: np.ndarray

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self[3:])


def build_ciq(
    rows: SubscriptionRows, theta: np.ndarray, depth: int = DEPTH, block: int = BLOCK
) -> CiqIndex:
    """Post rows in their covering cells, for thresholds that are at least `theta`."""
    lon, lat = (rows.shape[rows.shape_offsets[:-1] + axis] for axis in (LON, LAT))
    (west, east), (south, north) = (np.percentile(axis, (0.5, 99.5)) for axis in (lon, lat))
    space = Space(float(west), float(south), float(east - west), float(north - south))
    columns = tuple(
        map(
            read_only,
            (
                rows.shape_offsets,
                rows.shape,
                rows.literal_offsets,
                rows.literal_term,
                theta,
            ),
        )
    )
    total = 0
    for counting in (True, False):
        keys, out_row = np.empty(total, np.uint64), np.empty(total, np.uint32)
        weight, need = np.empty(total, np.float32), np.empty(total, np.float32)
        total = rows_to_cells(*columns, tuple(space), depth, counting, keys, out_row, weight, need)
    table, numbers, distinct = hashes_to_numbers(read_only(keys))
    list_offsets, order = numbers_to_groups(numbers, distinct.size)
    weight, need = weight[order], need[order]
    blocks = lists_to_blocks(list_offsets, weight, need, block)
    return CiqIndex(space, depth, block, table, list_offsets, *blocks, out_row[order], weight, need)


def find_ciq(
    block: RelevanceBlock,
    rows: SubscriptionRows,
    index: CiqIndex,
    theta: np.ndarray,
    term_table: np.ndarray,
    term_idf: np.ndarray,
) -> Relevance:
    """The same pairs as `find_relevant`; scores differ by the rounding of 32-bit weights."""
    counters = np.zeros(3, np.int64)
    found = objects_in_cells(
        *map(read_only, (block.lon, block.lat, block.term_offsets, block.terms, block.norms)),
        read_only(term_table),
        read_only(term_idf),
        tuple(index.space),
        *index[1:3],
        *map(read_only, index[3:]),
        read_only(rows.shape_offsets),
        read_only(rows.shape),
        read_only(theta),
        counters,
    )
    return Relevance(*found, counters)
