"""The index of `nearest` subscriptions: postings of their balls by term and hierarchical cell.

A ball is as large as it was when the index was made. Balls only shrink: a posting in a cell that
its ball has left costs a look at the ball, and no result; when that becomes dear, the index is
made anew (`state.live`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kernels.space.circles import balls_to_boxes, points_to_units
from placewire.kinds.boolean.index import BooleanIndex, build_index
from placewire.kinds.boolean.kernels.postings import ROW
from placewire.model.regions import CIRCLE, EVERYWHERE
from placewire.model.subscriptions import SubscriptionRows, take_rows


class Deal(NamedTuple):
    """Rows dealt out to parts, each to one: the part and the estimated cost of each row."""

    parts: int
    owner: NDArray[np.int32]
    cost: NDArray[np.float32]


class BallIndex(NamedTuple):
    """Centres on the unit sphere f32[n, 3], radii f64[n] as indexed, and the postings.

    A plan may deal subscriptions out to workers: there is an index for each part, and the length
    of its longest list.
    """

    centres: NDArray[np.float32]
    radius: NDArray[np.float64]
    deal: Deal
    parts: tuple[BooleanIndex, ...]
    longest: tuple[int, ...]


def one_part(rows: int) -> Deal:
    """Nothing is dealt out."""
    return Deal(1, np.zeros(rows, np.int32), np.zeros(rows, np.float32))


def take_deal(deal: Deal, picked: NDArray[np.int64]) -> Deal:
    """The same of some rows."""
    return Deal(deal.parts, deal.owner[picked], deal.cost[picked])


def concat_deals(deals: Sequence[Deal]) -> Deal:
    """All rows of some deals; if they are of different numbers of parts, by the largest."""
    return Deal(
        max(deal.parts for deal in deals),
        np.concatenate([deal.owner for deal in deals]),
        np.concatenate([deal.cost for deal in deals]),
    )


def points_of(rows: SubscriptionRows) -> tuple[NDArray[np.float64], ...]:
    """Longitudes, latitudes and farthest distances of `nearest` rows."""
    shape = rows.shape.reshape(-1, 3)
    return tuple(shape[:, column].copy() for column in range(3))


def index_balls(rows: SubscriptionRows, radius: NDArray[np.float64], deal: Deal) -> BallIndex:
    """Index `nearest` rows by their balls."""
    lon, lat, _ = points_of(rows)
    balls = rows._replace(
        region_kind=np.where(np.isinf(radius), EVERYWHERE, CIRCLE).astype(np.uint8),
        box=balls_to_boxes(lon, lat, radius),
    )
    indexes = []
    for part in range(deal.parts):
        picked = np.flatnonzero(deal.owner == part)
        whole = picked.size == rows.total
        index = build_index(balls if whole else take_rows(balls, picked))
        if not whole:
            index.postings[:, ROW] = picked[index.postings[:, ROW]]
        indexes.append(BooleanIndex(*map(read_only, index)))
    return BallIndex(
        read_only(points_to_units(lon, lat)),
        read_only(radius),
        Deal(deal.parts, read_only(deal.owner), read_only(deal.cost)),
        tuple(indexes),
        tuple(int(np.diff(index.cell_offsets).max(initial=0)) for index in indexes),
    )


def save_balls(balls: BallIndex) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The index as arrays and facts of a file."""
    arrays: dict[str, NDArray[Any]] = {
        "balls.centres": balls.centres,
        "balls.radius": balls.radius,
        "balls.owner": balls.deal.owner,
        "balls.cost": balls.deal.cost,
    }
    for part, index in enumerate(balls.parts):
        arrays |= {f"index{part}.{name}": array for name, array in index._asdict().items()}
    return arrays, {"parts": balls.deal.parts, "longest": balls.longest}


def load_balls(arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> BallIndex:
    """The index of a file."""
    return BallIndex(
        arrays["balls.centres"],
        arrays["balls.radius"],
        Deal(facts["parts"], arrays["balls.owner"], arrays["balls.cost"]),
        tuple(
            BooleanIndex(**{n: arrays[f"index{part}.{n}"] for n in BooleanIndex._fields})
            for part in range(facts["parts"])
        ),
        tuple(facts["longest"]),
    )
