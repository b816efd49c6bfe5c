"""Route objects by the leaves of a plan, and place each retained object in one part.

A `Route` finds the workers that must see an object, and what each of them probes. Its null
implementation, `SpreadRoute`, spreads objects evenly and lets each worker probe everything.

SSTD places an object in the child of a text-divided node whose workload it increases least, by
keyword lists that every router grows separately. Here the lists belong to the plan and never grow:
an object goes to the part that lists most of its terms. Terms that no subscription asks for count
only if the object has no others. So the part is a pure function of plan and object, and any process
finds the same one without shared state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import MAX_LEVEL
from placewire.model.arrays import I32, I64, U8, U32, U64
from placewire.model.errors import Unusable
from placewire.model.subscriptions import take_slices
from placewire.plans.cost.model import LoadModel, read_cost
from placewire.plans.kernels.leaves import objects_to_parts
from placewire.plans.kernels.owners import (
    RouteTables,
    leaf_terms_to_table,
    objects_to_owners,
    objects_to_share,
    owners_to_workers,
)
from placewire.plans.kernels.term_maps import LiveTables, Objects
from placewire.plans.leaves import Leaves, arrays_to_leaves, check_leaves, leaves_to_arrays
from placewire.plans.route.live_terms import CELL_LEVEL, MANNERS
from placewire.plans.sample.sample import PLAN_LEVEL
from placewire.storage.arrays import (
    label_columns,
    map_arrays,
    open_arrays,
    read_columns,
    write_arrays,
)
from placewire.storage.layout import StateDir


class RoutedShare(NamedTuple):
    """A worker's share of a block: the objects' numbers, and what of them it probes.

    `probed` u8 marks the terms that this worker looks up, `alone` u8[k] the objects that it
    probes for subscriptions that need no term.
    """

    worker: int
    objects: I64
    term_offsets: I64
    terms: U64
    probed: U8
    alone: U8


class Route(Protocol):
    """Cuts the objects of a block into shares."""

    def cut(self, objects: Objects) -> Iterator[RoutedShare]:
        """The shares of all workers that must see any of a block's objects, in code order."""


class SpreadRoute:
    """Gives each worker an equal run of the block's objects, to probe for everything."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def cut(self, objects: Objects) -> Iterator[RoutedShare]:
        for worker, picked in enumerate(np.array_split(np.arange(objects.total), self.workers)):
            if picked.size:
                offsets, at = take_slices(objects.term_offsets, picked)
                every, alone = np.ones(at.size, np.uint8), np.ones(picked.size, np.uint8)
                yield RoutedShare(worker, picked, offsets, objects.terms[at], every, alone)


class RouteRef(Protocol):
    """The route of objects to subscriptions of one kind, by the names of its files."""

    @property
    def workers(self) -> int:
        """How many workers there are."""

    def open(self, root: str) -> Route:
        """The router, its tables mapped."""

    def parts(self, worker: int, parts: int) -> Sequence[int]:
        """Which parts of a segment's index a worker probes."""


class Owners(NamedTuple):
    """The worker of each (object, term) pair i32, of each object alone i32[n]; NO_WORKER for none.

    `of_object` i32[n] is the one worker of an object, SEVERAL where its pairs have to be looked at.
    """

    of_pair: I32
    alone: I32
    of_object: I32


class LeafRoute:
    """The router of one plan version and what is live under it."""

    def __init__(self, workers: int, summary: str, tables: RouteTables, live: LiveTables) -> None:
        self.workers = workers
        self.manner = MANNERS[summary]
        self.tables = RouteTables(*map(read_only, tables))
        self.live = LiveTables(*map(read_only, live))

    def own(self, objects: Objects) -> Owners:
        """The workers that must see the objects of a block, and for which of their terms."""
        cell_shift = 2 * (MAX_LEVEL - CELL_LEVEL)
        return Owners(
            *objects_to_owners(*objects.frozen(), *self.tables, self.manner, cell_shift, *self.live)
        )

    def cut(self, objects: Objects) -> Iterator[RoutedShare]:
        """The shares of all workers that must see any of a block's objects, in code order."""
        owners = self.own(objects)
        _, term_offsets, terms = objects.frozen()
        offsets, received = owners_to_workers(term_offsets, *owners, self.workers)
        for worker in np.flatnonzero(np.diff(offsets)).tolist():
            picked = received[offsets[worker] : offsets[worker + 1]]
            share = objects_to_share(
                term_offsets, terms, owners.of_pair, owners.alone, picked, worker
            )
            yield RoutedShare(worker, picked, *share)


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


def place_objects(tables: RouteTables, codes: U32, term_offsets: I64, terms: U64) -> I32:
    """The part i32[n] of each object (cell code, distinct terms), as in `Leaves.part_offsets`."""
    return objects_to_parts(*map(read_only, (codes, term_offsets, terms)), *map(read_only, tables))


def leaves_to_ranges(box: I32) -> tuple[U32, I32]:
    """Where each range of codes begins (ascending from 0) and the leaf that it belongs to.

    Goes down the quadtree level by level with the pairs of a cell and a leaf that touch; a cell
    touched by one leaf lies in it, because leaves tile the world.
    """
    leaf = np.arange(box.shape[0], dtype=np.int64)
    column = np.zeros(leaf.size, np.int64)
    row = np.zeros(leaf.size, np.int64)
    code = np.zeros(leaf.size, np.int64)
    starts, owners = [], []
    for level in range(PLAN_LEVEL + 1):
        # Pairs of one cell stand together: children are made in order, and filtered in order.
        first = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]]))
        alone = np.diff(np.append(first, code.size)) == 1
        done = first[alone]
        starts.append(code[done] << (2 * (MAX_LEVEL - level)))
        owners.append(leaf[done])
        left = np.ones(code.size, np.bool_)
        left[done] = False
        if not left.any():
            break
        code, column, row, leaf = code[left], column[left], row[left], leaf[left]
        parts = []
        for child in range(4):
            c, r = 2 * column + (child & 1), 2 * row + (child >> 1)
            size = 1 << (PLAN_LEVEL - level - 1)
            west, south = c * size, r * size
            touches = (
                (box[leaf, 0] < west + size)
                & (box[leaf, 2] > west)
                & (box[leaf, 1] < south + size)
                & (box[leaf, 3] > south)
            )
            parts.append((4 * code + child, c, r, leaf, touches))
        kept = [tuple(column[part[4]] for column in part[:4]) for part in parts]
        code, column, row, leaf = (np.concatenate(columns) for columns in zip(*kept, strict=True))
        order = np.argsort(code, kind="stable")
        code, column, row, leaf = code[order], column[order], row[order], leaf[order]
    start, owner = np.concatenate(starts), np.concatenate(owners)
    order = np.argsort(start)
    start, owner = start[order], owner[order]
    changes = np.concatenate([[True], owner[1:] != owner[:-1]])
    return start[changes].astype(np.uint32), owner[changes].astype(np.int32)


class PlanRef(NamedTuple):
    """A plan version and what is live under it, as files of a state directory."""

    workers: int
    summary: str
    file: str
    live: str

    def open(self, root: str) -> LeafRoute:
        """The router, its tables mapped."""
        live = open_arrays(StateDir.at(root).file(self.live)).arrays
        return LeafRoute(self.workers, self.summary, self.tables(root), LiveTables(**live))

    def parts(self, worker: int, parts: int) -> Sequence[int]:
        """All of a segment: objects are divided, and subscriptions are not."""
        return range(parts)

    def tables(self, root: str) -> RouteTables:
        """The plan's part of the router."""
        plan = open_arrays(StateDir.at(root).file(self.file)).arrays
        return read_columns(RouteTables, plan, "route")


class PreviousRef(NamedTuple):
    """The previous plan, and the segments that still use it."""

    plan: PlanRef
    segments: tuple[str, ...]


class SavedPlan(NamedTuple):
    """A plan and the key of its terms' hashes: under another key they are other terms.

    `cost` is what it was made by, None if nothing was measured for it.
    """

    leaves: Leaves
    key: tuple[int, int]
    cost: LoadModel | None = None


def write_plan(
    path: Path, leaves: Leaves, key: tuple[int, int], cost: LoadModel | None = None
) -> None:
    """Write a plan and its router tables to a new file."""
    arrays = {f"leaves.{name}": array for name, array in leaves_to_arrays(leaves).items()}
    arrays |= label_columns("route", make_tables(leaves))
    facts: dict[str, Any] = {
        "name": leaves.name,
        "workers": leaves.workers,
        "summary": leaves.summary,
        "key": key,
    }
    if cost is not None:
        facts["cost"] = cost._asdict()
    write_arrays(path, arrays, facts)


def read_plan(path: Path) -> SavedPlan:
    """The plan of a file that `write_plan` wrote; raises Unusable.

    The file is mapped again each time, because users may replace it.
    """
    try:
        file = map_arrays(path)
    except Unusable as error:
        raise Unusable(f"plan {path}: is not a plan that was saved: {error}") from None
    arrays = {
        name.removeprefix("leaves."): array
        for name, array in file.arrays.items()
        if name.startswith("leaves.")
    }
    try:
        k0, k1 = (int(half) for half in file.facts["key"])
        if not (0 <= k0 < 1 << 64 and 0 <= k1 < 1 << 64):
            raise ValueError("its key is not one of two 64-bit numbers")
        if file.facts["summary"] not in MANNERS:
            raise ValueError(f"its summary is unknown, got {file.facts['summary']!r}")
        leaves = arrays_to_leaves(
            file.facts["name"], file.facts["workers"], file.facts["summary"], arrays
        )
        check_leaves(leaves)
        cost = read_cost(file.facts["cost"]) if "cost" in file.facts else None
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise Unusable(f"plan {path}: is not a plan: {error}") from None
    return SavedPlan(leaves, (k0, k1), cost)
