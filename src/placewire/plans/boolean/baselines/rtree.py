"""Plan `rtree`: the leaves of a packed R-tree of the objects, grouped over workers by load."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from placewire.plans.allocation import share_heaviest_first
from placewire.plans.boolean.cuts import run_along
from placewire.plans.boolean.subset import Box, SampleSubset, take_box, whole_sample
from placewire.plans.cost.model import LoadModel
from placewire.plans.leaves import NO_SPLIT, NOTHING, Leaves, make_leaves
from placewire.plans.sample.sample import SIDE, Sample

# Few, since every further tile copies subscriptions to the workers of its neighbours: of 2, 4, 8
# and 16 tiles a worker, 2 left the busiest worker the least load on posts in the United States.
TILES_PER_WORKER = 2


def plan_rtree(sample: Sample, workers: int, cost: LoadModel) -> Leaves:
    """Sort-tile-recursive packing: slices of equally many objects, each cut into tiles likewise.

    A tile reaches to where the next one begins and the outermost to the edges of the world, so
    that they tile it. Heaviest tile first, each to the worker with the least load so far.
    """
    tiles = TILES_PER_WORKER * workers
    slices = math.isqrt(tiles)
    everything = whole_sample(sample)
    boxes: list[Box] = []
    loads: list[NDArray[np.float64]] = []
    before = np.arange(slices + 1) * tiles // slices  # tiles west of each slice; not always equal
    edges, last = edges_of_shares(sample.object_column, before)
    for (west, east), quota in zip(pairwise(edges), np.diff(before[last]).tolist(), strict=True):
        subset = take_box(sample, everything, (west, 0, east, SIDE))
        ends, _ = edges_of_shares(sample.object_row[subset.objects], np.arange(quota + 1))
        boxes += [(west, south, east, north) for south, north in pairwise(ends)]
        loads.append(loads_of_tiles(sample, subset, ends, cost))
    tile_worker = share_heaviest_first(np.concatenate(loads), np.zeros(workers))
    return make_leaves(
        "rtree", workers, NOTHING, boxes, [NO_SPLIT] * len(boxes), tile_worker.tolist()
    )


def edges_of_shares(
    places: NDArray[np.int32], shares: NDArray[np.int64]
) -> tuple[list[int], NDArray[np.int64]]:
    """Rising edges from 0 to SIDE, with places below them as `shares` (rising from 0) say.

    Where one cell has several shares their edges are one. Each edge has the number of the last of
    its shares. Without places the shares are of the length.
    """
    wanted = shares / shares[-1]
    if places.size == 0:
        edges = (SIDE * wanted).astype(np.int64)
    else:
        running = np.bincount(places, minlength=SIDE).cumsum()
        edges = 1 + np.searchsorted(running, places.size * wanted)
        edges[0], edges[-1] = 0, SIDE
    distinct = np.unique(edges)
    return distinct.tolist(), np.searchsorted(edges, distinct, side="right") - 1


def loads_of_tiles(
    sample: Sample, subset: SampleSubset, edges: list[int], cost: LoadModel
) -> NDArray[np.float64]:
    """The load of each tile of a slice, between two neighbouring rows of `edges`."""
    objects, begun, ended = (running[edges] for running in run_along(sample, subset, 1))
    # Touches a tile: begins before its end and does not end before its beginning.
    return cost.of_counts(np.diff(objects), begun[1:] - ended[:-1])
