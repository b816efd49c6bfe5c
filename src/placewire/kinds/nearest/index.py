"""The index of `nearest` subscriptions: postings of their circles by term and hierarchical cell.

A circle is as large as it was when the index was made. Circles only shrink: a posting in a cell
that its circle has left costs a test of the circle and gives no result. Once such tests prevail,
the index is rebuilt (`segments/live.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placewire.kernels.jit import freeze, read_only
from placewire.kernels.space.circles import circles_to_boxes, points_to_units
from placewire.kinds.boolean.index import build_index
from placewire.kinds.boolean.kernels.postings import ROW, BooleanIndex
from placewire.kinds.nearest.rows import nearest_columns
from placewire.model.arrays import F32, F64, I32, I64, Array
from placewire.model.regions import CIRCLE, EVERYWHERE
from placewire.model.subscriptions import SubscriptionRows, take_rows
from placewire.storage.arrays import label_columns, read_columns


class RowPartition(NamedTuple):
    """Rows divided into parts: the part and the estimated cost of each row."""

    parts: int
    owner: I32
    cost: F32


class CircleIndex(NamedTuple):
    """Centres on the unit sphere f32[n, 3], radii f64[n] as indexed, and the postings.

    A plan may partition subscriptions among workers: then there is an index for each part, and the
    length of its longest list.
    """

    centres: F32
    radius: F64
    partition: RowPartition
    parts: tuple[BooleanIndex, ...]
    longest: tuple[int, ...]


def one_part(rows: int) -> RowPartition:
    """Put all rows in one part."""
    return RowPartition(1, np.zeros(rows, np.int32), np.zeros(rows, np.float32))


def take_partition(partition: RowPartition, picked: I64) -> RowPartition:
    """Return the parts of some rows."""
    return RowPartition(partition.parts, partition.owner[picked], partition.cost[picked])


def concat_partitions(partitions: Sequence[RowPartition]) -> RowPartition:
    """Concatenate the rows of several partitions; the result has as many parts as the largest."""
    return RowPartition(
        max(partition.parts for partition in partitions),
        np.concatenate([partition.owner for partition in partitions]),
        np.concatenate([partition.cost for partition in partitions]),
    )


def index_circles(rows: SubscriptionRows, radius: F64, partition: RowPartition) -> CircleIndex:
    """Index `nearest` rows by their circles."""
    own = nearest_columns(rows)
    lon, lat = own.lon, own.lat
    circles = rows._replace(
        region_kind=np.where(np.isinf(radius), EVERYWHERE, CIRCLE).astype(np.uint8),
        box=circles_to_boxes(lon, lat, radius),
    )
    indexes = []
    for part in range(partition.parts):
        picked = np.flatnonzero(partition.owner == part)
        whole = picked.size == rows.total
        index = build_index(circles if whole else take_rows(circles, picked))
        if not whole:
            postings = index.postings.copy()
            postings[:, ROW] = picked[postings[:, ROW]]
            index = freeze(BooleanIndex, (*index[:-1], postings))
        indexes.append(index)
    return CircleIndex(
        read_only(points_to_units(lon, lat)),
        read_only(radius),
        RowPartition(partition.parts, read_only(partition.owner), read_only(partition.cost)),
        tuple(indexes),
        tuple(index.longest for index in indexes),
    )


def save_circles(circles: CircleIndex) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the index as arrays and facts of a file."""
    arrays: dict[str, Array] = {
        "circles.centres": circles.centres,
        "circles.radius": circles.radius,
        "circles.owner": circles.partition.owner,
        "circles.cost": circles.partition.cost,
    }
    for part, index in enumerate(circles.parts):
        arrays |= label_columns(f"index{part}", index)
    return arrays, {"parts": circles.partition.parts, "longest": circles.longest}


def load_circles(arrays: dict[str, Array], facts: dict[str, Any]) -> CircleIndex:
    """Read the index from a file."""
    return CircleIndex(
        arrays["circles.centres"],
        arrays["circles.radius"],
        RowPartition(facts["parts"], arrays["circles.owner"], arrays["circles.cost"]),
        tuple(
            freeze(BooleanIndex, read_columns(BooleanIndex, arrays, f"index{part}"))
            for part in range(facts["parts"])
        ),
        tuple(facts["longest"]),
    )
