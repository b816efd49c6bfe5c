"""Methods of `nearest` plans that exist for comparison with published systems: `sop` and `ps2`.

`sop`, the space-oriented partition of Tsuruoka et al. (section 3.2; see `methods`), quarters the
world by what falls into the circles. A quarter without subscriptions is no subset.

`ps2` is PS2Stream's hybrid partitioning, which the paper extends to `nearest` subscriptions without
saying how. Here `plans/boolean/kdt.py` cuts the world by space and text, with the rectangles around
circles for regions and |O| |S| for load. A subscription then goes to the worker of the leaf of its
place and of its least frequent term. What counts is how many subscriptions a part has, not what
updating each of them costs.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import MAX_LEVEL, codes_to_columns_rows, points_to_codes
from placewire.model.arrays import F64, I32, I64, U64
from placewire.model.subscriptions import take_slices
from placewire.plans.allocation import share_heaviest_first
from placewire.plans.boolean.kdt import plan_kdt
from placewire.plans.cost.model import LoadModel
from placewire.plans.kernels.leaves import (
    objects_counted_by_part,
    points_to_leaves,
    terms_to_leaf_parts,
)
from placewire.plans.kernels.owners import leaf_terms_to_table
from placewire.plans.kernels.parts import rows_least_frequent
from placewire.plans.nearest.assignment import (
    Assignment,
    Parts,
    Rule,
    make_assignment,
    price_counts,
)
from placewire.plans.nearest.sample import (
    CircleSample,
    ObjectCounts,
    Rows,
    SampleCircles,
    count_inside,
    count_objects_by_term,
    count_terms,
    enclose_circles,
    find_terms,
    place_circles,
    quarter_rows,
    rows_on_curve,
)
from placewire.plans.sample.sample import ANY, PLAN_LEVEL, Sample, cells_of_boxes, choose_evenly


class Quarter(NamedTuple):
    """The rows of a cell, in curve order, and how many initial objects are around them: |O_R|."""

    rows: Rows
    objects: int


def plan_sop(sample: CircleSample, workers: int, *, theta: int = 20) -> Assignment:
    """Split until there are `theta` subsets a worker, and share these out whole.

    C(S_r) = P(R) |S_r| (equation 3), with R around the circles of S_r; so that each subscription of
    a subset costs P(R) = |O_R| / |O_init| (equation 2).
    """
    object_counts = count_objects_by_term(sample)
    quarters = split_space(object_counts, place_circles(sample), theta * workers)
    prices = price_counts(np.array([q.objects for q in quarters], np.int64), sample.objects)
    sizes = np.array([q.rows.size for q in quarters], np.int64)
    chosen = share_heaviest_first(prices * sizes, np.zeros(workers))
    worker = np.empty(sample.subscriptions, np.int32)
    cost: F64 = np.empty(sample.subscriptions)
    for quarter, price, one in zip(quarters, prices, chosen, strict=True):
        worker[quarter.rows] = one
        cost[quarter.rows] = price
    return make_assignment(Rule("sop", object_counts), workers, worker, cost)


def split_space(object_counts: ObjectCounts, circles: SampleCircles, least: int) -> list[Quarter]:
    """Quarter the subset of the largest cost until there are `least`, or none can be quartered."""
    heap: list[tuple[int, int, Quarter]] = []
    solid: list[Quarter] = []  # at one place
    pushed = 0
    rows = rows_on_curve(circles)
    if rows.size:
        whole = measure_quarter(object_counts, circles, rows)
        heapq.heappush(heap, (-whole.objects * rows.size, pushed, whole))
        pushed += 1
    while heap and len(heap) + len(solid) < least:
        _, _, heaviest = heapq.heappop(heap)
        parts = quarter_rows(circles, heaviest.rows)
        if len(parts) == 1:
            solid.append(heaviest)
            continue
        for part in parts:
            quarter = measure_quarter(object_counts, circles, heaviest.rows[part])
            heapq.heappush(heap, (-quarter.objects * quarter.rows.size, pushed, quarter))
            pushed += 1
    return solid + [quarter for _, _, quarter in heap]


def measure_quarter(object_counts: ObjectCounts, circles: SampleCircles, rows: Rows) -> Quarter:
    """A quarter with the objects around it."""
    return Quarter(rows, int(count_inside(object_counts, enclose_circles(circles, rows)[None])[0]))


CHECKS_ONLY = LoadModel(per_check=1.0, per_object=0.0, per_insert=0.0, per_delete=0.0)
SAMPLE_ROWS = 100_000  # `kdt` weighs every node's rows again and again


def plan_ps2near(sample: CircleSample, workers: int, *, rows: int = SAMPLE_ROWS) -> Assignment:
    """Cut by up to `rows` objects and subscriptions each, taken at even steps; assign all.

    A subscription costs the share of the initial objects that its part sees.
    """
    object_counts = count_terms(sample)
    leaves = plan_kdt(thin_sample(sample, object_counts, rows), workers, CHECKS_ONLY)
    parts = Parts(
        leaves.box,
        leaves.part_offsets,
        leaves.term_offsets,
        leaves.terms,
        leaves.term_part,
        objects=np.empty(0, np.int64),
    )
    parts = parts._replace(objects=count_objects(parts, sample))
    part = find_parts(
        parts, object_counts, sample.lon, sample.lat, sample.term_offsets, sample.terms
    )
    return make_assignment(
        Rule("ps2", object_counts, parts=parts),
        workers,
        leaves.part_worker[part],
        price_counts(parts.objects[part], sample.objects),
    )


def find_parts(
    parts: Parts, object_counts: ObjectCounts, lon: F64, lat: F64, term_offsets: I64, terms: U64
) -> I32:
    """The part of each subscription: that of its place and of its least frequent term."""
    least = rows_least_frequent(
        read_only(term_offsets),
        find_terms(object_counts, terms),
        read_only(terms),
        object_counts.frequency,
    )
    term = np.append(terms, np.uint64(0))[least]  # the last is for one without terms
    return terms_to_leaf_parts(
        find_leaves(parts, lon, lat), term, read_only(parts.part_offsets), make_table(parts)
    )


def find_leaves(parts: Parts, lon: F64, lat: F64) -> I32:
    """The leaf of each place."""
    columns, rows = plan_cells(lon, lat)
    return points_to_leaves(columns, rows, read_only(parts.box))


def count_objects(parts: Parts, sample: CircleSample) -> I64:
    """How many of the initial objects each part sees."""
    return objects_counted_by_part(
        find_leaves(parts, sample.object_lon, sample.object_lat),
        read_only(sample.object_term_offsets),
        read_only(sample.object_terms),
        read_only(parts.part_offsets),
        make_table(parts),
    )


def make_table(parts: Parts) -> U64:
    """The listed terms of all leaves, to be looked up."""
    return leaf_terms_to_table(
        read_only(parts.term_offsets), read_only(parts.terms), read_only(parts.term_part)
    )


def thin_sample(sample: CircleSample, object_counts: ObjectCounts, most: int) -> Sample:
    """What `kdt` plans by: each subscription posted once, under its least frequent term."""
    objects = choose_evenly(np.arange(sample.objects), most)
    rows = choose_evenly(np.arange(sample.subscriptions), most)
    least = rows_least_frequent(
        read_only(sample.term_offsets),
        find_terms(object_counts, sample.terms),
        read_only(sample.terms),
        object_counts.frequency,
    )[rows]
    posted = np.append(sample.terms, np.uint64(0))[least]
    offsets, places = take_slices(sample.object_term_offsets, objects)
    terms = sample.object_terms[places]
    lexicon = np.unique(np.concatenate([terms, posted[least >= 0]]))
    numbers = np.searchsorted(lexicon, terms).astype(np.int32)
    posts = np.where(least >= 0, np.searchsorted(lexicon, posted), ANY).astype(np.int32)
    columns, object_rows = plan_cells(sample.object_lon[objects], sample.object_lat[objects])
    return Sample(
        object_column=columns,
        object_row=object_rows,
        term_offsets=offsets,
        terms=numbers,
        cell=cells_of_boxes(place_circles(sample).rectangle[rows]),
        post_offsets=np.arange(rows.size + 1, dtype=np.int64),
        posts=posts,
        lexicon=lexicon,
        frequency=np.bincount(numbers, minlength=lexicon.size).astype(np.int64),
    )


def plan_cells(lon: F64, lat: F64) -> tuple[I32, I32]:
    """The columns and rows of places, in plan cells."""
    columns, rows = codes_to_columns_rows(points_to_codes(read_only(lon), read_only(lat)))
    return columns >> (MAX_LEVEL - PLAN_LEVEL), rows >> (MAX_LEVEL - PLAN_LEVEL)
