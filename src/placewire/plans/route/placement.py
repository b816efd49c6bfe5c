"""Placement: where a plan keeps each object, in exactly one part.

SSTD gives an object to the child of a text-divided node whose workload it increases least, by
keyword lists that every router grows on its own. Here the lists are the plan's and never grow: the
part that lists most of the object's terms is the one to which they bring fewest new ones, and terms
that nobody asked for bring no workload, so they have no say unless an object has no other. So the
place is a pure function of plan and object: any process, at any time, finds it alike, and no state
has to be kept or agreed on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import points_to_codes
from placewire.plans.kernels.leaves import objects_to_parts
from placewire.plans.leaves import Leaves
from placewire.plans.route.leaf_route import RouteTables, make_tables

NO_TERMS = np.empty(0, np.uint64)


def place_objects(
    leaves: Leaves,
    codes: NDArray[np.uint32],
    term_offsets: NDArray[np.int64],
    terms: NDArray[np.uint64],
) -> NDArray[np.int32]:
    """The part i32[n] of each object (cell code, distinct terms), as in `Leaves.part_offsets`.

    For block after block `place_by_tables` is meant: to make the tables takes some milliseconds.
    """
    return place_by_tables(make_tables(leaves), codes, term_offsets, terms)


def place_by_tables(
    tables: RouteTables,
    codes: NDArray[np.uint32],
    term_offsets: NDArray[np.int64],
    terms: NDArray[np.uint64],
) -> NDArray[np.int32]:
    """The same by the tables of a router, which may be mapped from disk."""
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


def nearest_part(
    leaves: Leaves, lon: float, lat: float, terms: NDArray[np.uint64] = NO_TERMS
) -> int:
    """The part to ask first about a point: k objects that it has bound the search in all others.

    Leaves tile the world, so the nearest one is the one around the point. If that is divided by
    text, it is the part that would keep an object of the same distinct `terms`.
    """
    return nearest_by_tables(make_tables(leaves), lon, lat, terms)


def nearest_by_tables(
    tables: RouteTables, lon: float, lat: float, terms: NDArray[np.uint64] = NO_TERMS
) -> int:
    """The same by the tables of a router."""
    codes = points_to_codes(np.array([lon], np.float64), np.array([lat], np.float64))
    return int(place_by_tables(tables, codes, np.array([0, terms.size], np.int64), terms)[0])
