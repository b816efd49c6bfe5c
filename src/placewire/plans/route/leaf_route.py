"""Route objects by the leaves of a plan, and place each retained object in one part.

SSTD places an object in the child of a text-divided node whose workload it increases least, by
keyword lists that every router grows separately. Here the lists belong to the plan and never grow:
an object goes to the part that lists most of its terms. Terms that no subscription asks for count
only if the object has no others. So the part is a pure function of plan and object, and any process
finds the same one without shared state.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import MAX_LEVEL
from placewire.plans.kernels.leaves import objects_to_parts
from placewire.plans.kernels.owners import (
    leaf_terms_to_table,
    objects_to_owners,
    objects_to_share,
    owners_to_workers,
)
from placewire.plans.leaves import Leaves
from placewire.plans.route.live_terms import CELL_LEVEL, MANNERS, LiveTables
from placewire.plans.route.protocol import RoutedShare, leaves_to_ranges


class RouteTables(NamedTuple):
    """A plan as routing reads it; every array can be mapped from disk."""

    range_start: NDArray[np.uint32]
    range_leaf: NDArray[np.int32]
    part_offsets: NDArray[np.int64]
    part_worker: NDArray[np.int32]
    term_table: NDArray[np.uint64]


class Owners(NamedTuple):
    """The worker of each (object, term) pair i32, of each object alone i32[n]; NO_WORKER for none.

    `of_object` i32[n] is the one worker of an object, SEVERAL where its pairs have to be looked at.
    """

    of_pair: NDArray[np.int32]
    alone: NDArray[np.int32]
    of_object: NDArray[np.int32]


class LeafRoute:
    """The router of one plan version and what is live under it."""

    def __init__(self, workers: int, summary: str, tables: RouteTables, live: LiveTables) -> None:
        self.workers = workers
        self.manner = MANNERS[summary]
        self.tables = RouteTables(*map(read_only, tables))
        self.live = LiveTables(*map(read_only, live))

    def own(
        self,
        codes: NDArray[np.uint32],
        term_offsets: NDArray[np.int64],
        terms: NDArray[np.uint64],
    ) -> Owners:
        """Who must see the objects of a block, and for which of their terms."""
        owners = objects_to_owners(
            read_only(codes),
            read_only(term_offsets),
            read_only(terms),
            *self.tables,
            self.manner,
            2 * (MAX_LEVEL - CELL_LEVEL),
            *self.live,
        )
        return Owners(*owners)

    def cut(
        self,
        codes: NDArray[np.uint32],
        term_offsets: NDArray[np.int64],
        terms: NDArray[np.uint64],
    ) -> Iterator[RoutedShare]:
        """The shares of all workers that must see any of a block's objects, in code order."""
        owners = self.own(codes, term_offsets, terms)
        offsets, objects = owners_to_workers(read_only(term_offsets), *owners, self.workers)
        for worker in np.flatnonzero(np.diff(offsets)).tolist():
            picked = objects[offsets[worker] : offsets[worker + 1]]
            yield RoutedShare(
                worker,
                picked,
                *objects_to_share(
                    read_only(term_offsets),
                    read_only(terms),
                    owners.of_pair,
                    owners.alone,
                    picked,
                    worker,
                ),
            )


def make_tables(leaves: Leaves) -> RouteTables:
    """The tables of a plan."""
    start, leaf = leaves_to_ranges(leaves.box)
    return RouteTables(
        start,
        leaf,
        leaves.part_offsets,
        leaves.part_worker,
        leaf_terms_to_table(
            read_only(leaves.term_offsets), read_only(leaves.terms), read_only(leaves.term_part)
        ),
    )


def place_objects(
    tables: RouteTables,
    codes: NDArray[np.uint32],
    term_offsets: NDArray[np.int64],
    terms: NDArray[np.uint64],
) -> NDArray[np.int32]:
    """The part i32[n] of each object (cell code, distinct terms), as in `Leaves.part_offsets`."""
    parts: NDArray[np.int32] = objects_to_parts(
        read_only(codes),
        read_only(term_offsets),
        read_only(terms),
        read_only(tables.range_start),
        read_only(tables.range_leaf),
        read_only(tables.part_offsets),
        read_only(tables.term_table),
    )
    return parts
