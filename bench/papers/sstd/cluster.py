"""Simulate a cluster for snapshot queries: workers keep the objects of their parts, timed apart.

A query goes to the workers with a part that its box overlaps; a `nearest` one first to the part
about its place, whose k-th object bounds the ball that all others are asked for. The critical path
is routing, then the busiest worker of each phase, then the merge. A worker has one index of its own
parts, and of these searches the ones that the query was sent to. Times are of this thread on its
processor, no messages.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.papers.sstd.queries import BOOLEAN, NEAREST
from placewire.ingest.queries import Query
from placewire.kernels.space.cells import (
    MAX_LEVEL,
    boxes_to_ranges,
    points_to_codes,
    ranges_coarsened,
)
from placewire.kinds.boolean.answer import answer_boolean
from placewire.kinds.nearest.answer import answer_nearest
from placewire.kinds.trending.answer import Counted, count_section, top_terms
from placewire.model.regions import CIRCLE, Region, circle_bounds
from placewire.model.subscriptions import take_slices
from placewire.model.times import FAR_PAST_US
from placewire.objects.index import Rows, build_retained, take_retained, used_words
from placewire.objects.sections import FAR_FUTURE, Section, Span, make_section, region_of
from placewire.objects.store import describe
from placewire.plans.kernels.owners import RouteTables
from placewire.plans.leaves import Leaves
from placewire.plans.route.leaf_route import make_tables, place_objects
from placewire.plans.sample.sample import PLAN_LEVEL
from placewire.text.words import Words

EVERYTHING = Span(FAR_PAST_US, FAR_FUTURE)
Fields = dict[str, Any]
clock = time.thread_time


class RoutedQuery(NamedTuple):
    """A query, and the hashes of its keywords."""

    query: Query
    terms: np.ndarray


class SnapshotCluster(NamedTuple):
    """A plan, what its router knows, and each worker's objects; None if it has none.

    `rows` i64[parts, 2] are those of every part at its worker.
    """

    leaves: Leaves
    tables: RouteTables
    workers: list[Section | None]
    rows: np.ndarray

    @property
    def objects(self) -> np.ndarray:
        """How many objects each worker keeps."""
        return np.array([0 if one is None else one.retained.total for one in self.workers])


class Trace(NamedTuple):
    """One query: its answer, seconds of the router and the merger, of workers f64[phases, w]."""

    answer: Fields
    route_s: float
    busy_s: np.ndarray
    merge_s: float
    parts: int

    @property
    def critical_s(self) -> float:
        return self.route_s + float(self.busy_s.max(axis=1).sum()) + self.merge_s

    @property
    def total_s(self) -> float:
        return self.route_s + float(self.busy_s.sum()) + self.merge_s

    @property
    def asked(self) -> int:
        """How many workers had to do something."""
        return int(np.count_nonzero(self.busy_s.any(axis=0)))


def whole_section(rows: Rows, words: Words) -> Section:
    """A file of these objects, all parts of which are asked."""
    retained = build_retained(rows, words)
    return make_section(retained, describe("", retained))


def make_cluster(leaves: Leaves, rows: Rows, words: Words) -> SnapshotCluster:
    """Every object in its part, every part at its worker."""
    tables = make_tables(leaves)
    part = place_objects(tables, rows.code, rows.term_offsets, words.hashes[rows.terms])
    rows = rows._replace(part=part)
    owner = leaves.part_worker[part]
    workers: list[Section | None] = [None] * leaves.workers
    of_part = np.zeros((leaves.part_worker.size, 2), np.int64)
    for worker in np.unique(owner).tolist():
        mine = np.flatnonzero(owner == worker)
        section = whole_section(*used_words(take_retained(rows, mine), words))
        workers[worker] = section
        of_part[section.retained.part] = section.rows
    return SnapshotCluster(leaves, tables, workers, of_part)


def ask(cluster: SnapshotCluster, asked: RoutedQuery) -> Trace:
    """Route a query, let the workers answer one after another, and merge."""
    if asked.query.kind == NEAREST:
        return ask_nearest(cluster, asked)
    started = clock()
    parts = parts_overlapping(cluster.leaves, asked.query.region.box)
    by_worker = group_parts(cluster.leaves, parts)
    route_s = clock() - started
    partial, busy_s = work(cluster, asked.query, by_worker)
    started = clock()
    answer = merge(asked.query, partial)
    return Trace(answer, route_s, busy_s[None], clock() - started, parts.size)


def nearest_part(tables: RouteTables, lon: float, lat: float, terms: NDArray[np.uint64]) -> int:
    """The part to search first about a point: its k objects bound the search in all others.

    Leaves tile the world, so the nearest leaf contains the point. If it is divided by text, the
    part is the one that would keep an object with the same distinct `terms`.
    """
    codes = points_to_codes(np.array([lon], np.float64), np.array([lat], np.float64))
    return int(place_objects(tables, codes, np.array([0, terms.size], np.int64), terms)[0])


def ask_nearest(cluster: SnapshotCluster, asked: RoutedQuery) -> Trace:
    """First the part about the place, then whatever its k-th object leaves to be looked at."""
    query = asked.query
    started = clock()
    first = nearest_part(cluster.tables, query.lon, query.lat, asked.terms)
    by_worker = {int(cluster.leaves.part_worker[first]): [first]}
    route_s = clock() - started
    near, first_s = work(cluster, query, by_worker)
    started = clock()
    query = narrow(query, near)
    parts = parts_overlapping(cluster.leaves, query.region.box)
    by_worker = group_parts(cluster.leaves, parts[parts != first])
    route_s += clock() - started
    others, busy_s = work(cluster, query, by_worker)
    started = clock()
    answer = merge(query, near + others)
    return Trace(answer, route_s, np.stack([first_s, busy_s]), clock() - started, 1 + parts.size)


def parts_overlapping(leaves: Leaves, box: tuple[float, float, float, float]) -> np.ndarray:
    """All parts, ascending, of the leaves that a box touches, counted as in `Leaves.part_offsets`.

    The box is west, south, east, north in degrees, closed on all sides; west > east crosses the
    antimeridian. Keywords are not looked at, as in SSTD: an object is kept in one part, which need
    not be that of any single keyword.
    """
    ranges = boxes_to_ranges(np.array([box], np.float64))
    first, low, last, high = ranges_coarsened(ranges, MAX_LEVEL - PLAN_LEVEL)[0].tolist()
    west, south, east, north = leaves.box.T
    begins, ends = west <= last, east > first
    across = begins & ends if first <= last else begins | ends
    touched = np.flatnonzero(across & (south <= high) & (north > low))
    _, parts = take_slices(leaves.part_offsets, touched)
    return parts.astype(np.int32)


def narrow(query: Query, near: Sequence[Fields]) -> Query:
    """The query for a ball that reaches as far as the k-th object that was found."""
    found = [named for answer in near for named in answer["objects"]]
    if len(found) < query.k:
        return query
    within = max(found[-1]["distance_m"], 0.001)
    box = circle_bounds(query.lon, query.lat, within)
    return query._replace(
        within_m=within, region=Region(CIRCLE, box, (query.lon, query.lat, within))
    )


def group_parts(leaves: Leaves, parts: np.ndarray) -> dict[int, list[int]]:
    """Parts by their worker."""
    grouped: dict[int, list[int]] = {}
    owners = leaves.part_worker[parts].tolist()
    for part, owner in zip(parts.tolist(), owners, strict=True):
        grouped.setdefault(owner, []).append(part)
    return grouped


def work(
    cluster: SnapshotCluster, query: Query, by_worker: dict[int, list[int]]
) -> tuple[list[Any], np.ndarray]:
    """What each worker answers from its parts, and the seconds that takes each."""
    partial: list[Any] = []
    busy_s = np.zeros(cluster.leaves.workers)
    for worker, parts in by_worker.items():
        section = cluster.workers[worker]
        if section is None:
            continue
        started = clock()
        rows = cluster.rows[parts]
        rows = rows[rows[:, 1] > rows[:, 0]]
        if rows.size:
            partial.append(answer_part(query, section.of_parts(rows)))
        busy_s[worker] = clock() - started
    return partial, busy_s


def answer_part(query: Query, section: Section) -> Fields | Counted:
    """A worker's answer; of a trending query, counts of all terms."""
    if query.kind == BOOLEAN:
        return answer_boolean(query, EVERYTHING, [section], False)
    if query.kind == NEAREST:
        return answer_nearest(query, EVERYTHING, [section], False)
    return count_section(section, region_of(query.region), EVERYTHING)


def merge(query: Query, partial: list[Any]) -> Fields:
    """The workers' answers as one."""
    if query.kind == BOOLEAN:
        named = [one for answer in partial for one in answer["objects"]]
        named.sort(key=seq_of, reverse=True)
        total = sum(answer["total"] for answer in partial)
        return {"total": total, "objects": named[: query.limit]}
    if query.kind == NEAREST:
        named = [one for answer in partial for one in answer["objects"]]
        named.sort(key=lambda one: (one["distance_m"], seq_of(one)))
        return {"objects": named[: query.k]}
    return {"terms": top_terms(partial, query.k)}


def seq_of(named: Fields) -> int:
    """The benchmark names an object by its seq."""
    return int(named["object"][1:])
