"""Simulate a cluster on one core: workers with their own index, run and timed one after another.

Throughput is by the critical path: dispatch, then the busiest worker. Subscriptions are copied to
every worker that must hold them, as in the papers' systems; the engine itself shares its segments.
All workers together must find the matches of one index over everything. Times are processor time
of this thread.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from bench.clock import best_of
from placewire.kinds.boolean.index import counts_among_rows
from placewire.kinds.boolean.kernels.probes import Probe
from placewire.kinds.boolean.kind import make_boolean_segment
from placewire.kinds.boolean.match import make_probe, match_segment
from placewire.model.subscriptions import COLUMNS, SubscriptionRows, take_rows, take_slices
from placewire.plans.cost.measures import Measures, Posted, find_holders, measure_plan
from placewire.plans.cost.model import LoadModel
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.leaves import Leaves
from placewire.plans.route.leaf_route import LeafRoute, Route, RoutedShare, SpreadRoute, make_tables
from placewire.plans.route.live_terms import LiveTerms
from placewire.plans.sample.sample import Sample
from placewire.segments.segment import Segment

OBJECTS_AN_INSERT = 5  # PS2Stream's stream: an insert or a delete for every five objects
DISPATCHERS = 4  # as PS2Stream has for its workers; every task of the engine is one
SMALL = 1_000  # objects, with their inserts, of the batch whose latency is reported


class ClusterRun(NamedTuple):
    """One plan on a cluster of `busy_s.size` workers; seconds for all objects of the stream."""

    name: str
    objects: int
    matches: int
    dispatch_s: float
    busy_s: np.ndarray
    insert_s: np.ndarray
    router_bytes: int
    worker_bytes: np.ndarray
    small_batch_s: float
    measures: Measures | None

    @property
    def critical_per_s(self) -> float:
        """Objects a second of a cluster: dispatch, then the busiest worker with its inserts."""
        busiest_s = float((self.busy_s + self.insert_s).max())
        return self.objects / (self.dispatch_s / DISPATCHERS + busiest_s)

    @property
    def workers_per_s(self) -> float:
        """The same with dispatchers that keep up: the busiest worker alone."""
        return self.objects / float((self.busy_s + self.insert_s).max())

    @property
    def total_s(self) -> float:
        """All work of all, dispatch too: what one core needs."""
        return self.dispatch_s + float((self.busy_s + self.insert_s).sum())


def run_plan(
    leaves: Leaves,
    objects: Probe,
    posted: Posted,
    sample: Sample,
    cost: LoadModel,
    reference: int | None = None,
) -> ClusterRun:
    """Dispatch the objects by the plan and let every worker match its share.

    `sample` is of all these objects, for measuring.
    """
    columns = Objects(objects.codes, objects.term_offsets, objects.terms)
    tables = make_tables(leaves)
    live = LiveTerms(leaves)
    live.rebuild([posted.rows])
    route = LeafRoute(leaves.workers, leaves.summary, tables, live.tables)
    offsets, held = find_holders(leaves, posted, tables=tables)
    holdings = [held[offsets[w] : offsets[w + 1]] for w in range(leaves.workers)]
    run = run_route(leaves.name, route, holdings, objects, posted.rows)
    if reference is not None:
        assert run.matches == reference, f"{leaves.name}: {run.matches} matches, not {reference}"
    measures = measure_plan(leaves, columns, posted, sample, cost)
    return run._replace(router_bytes=measures.router_bytes, measures=measures)


def run_native(workers: int, objects: Probe, rows: SubscriptionRows) -> ClusterRun:
    """Every subscription at every worker, objects spread evenly."""
    everything = np.arange(rows.total)
    return run_route("native", SpreadRoute(workers), [everything] * workers, objects, rows)


def run_route(
    name: str, route: Route, holdings: list[np.ndarray], objects: Probe, rows: SubscriptionRows
) -> ClusterRun:
    """Cut, then match worker by worker; inserts are charged as they come with the stream."""
    workers = len(holdings)
    counts = counts_among_rows(rows)
    block = Objects(objects.codes, objects.term_offsets, objects.terms)
    dispatch_s = best_of(lambda: list(route.cut(block)))
    shares = {share.worker: share for share in route.cut(block)}
    busy, insert, sizes = np.zeros(workers), np.zeros(workers), np.zeros(workers)
    matches = 0
    slowest = 0.0
    inserts = objects.codes.size / OBJECTS_AN_INSERT / 2
    shared: tuple[Segment, float] | None = None
    for worker, rows_held in enumerate(holdings):
        if shared is None or name != "native":
            part = take_rows(rows, rows_held)
            # Posted as by the router, under the terms that are rare among all rows.
            part_counts = counts[take_slices(rows.literal_offsets, rows_held)[1]]
            started = time.thread_time()
            segment = make_boolean_segment(part, part_counts)
            shared = segment, (time.thread_time() - started) / max(rows_held.size, 1)
        segment, insert_each_s = shared
        insert[worker] = insert_each_s * inserts * rows_held.size / max(rows.total, 1)
        sizes[worker] = segment_bytes(segment)
        if worker not in shares:
            continue
        share = shares[worker]
        matches += match_share(objects, share, segment)
        busy[worker] = best_of(partial(match_share, objects, share, segment))
        few = max(1, share.objects.size * SMALL // objects.codes.size)
        few_s = best_of(partial(match_share, objects, share, segment, few))
        slowest = max(slowest, few_s + insert[worker] * SMALL / objects.codes.size)
    small_s = slowest + dispatch_s * SMALL / objects.codes.size
    return ClusterRun(
        name, objects.codes.size, matches, dispatch_s, busy, insert, 0, sizes, small_s, None
    )


def match_share(
    objects: Probe, share: RoutedShare, segment: Segment, most: int | None = None
) -> int:
    """What a worker does with its share, or with the first few objects of it."""
    of = share.objects[:most]
    ends = int(share.term_offsets[of.size])
    probe = make_probe(
        objects.codes[of],
        objects.lon[of],
        objects.lat[of],
        objects.now_us[of],
        share.term_offsets[: of.size + 1],
        share.terms[:ends],
        share.probed[:ends],
        share.alone[: of.size],
    )
    return int(match_segment(probe, segment).object.size)


def segment_bytes(segment: Segment) -> int:
    """What a worker keeps in memory."""
    columns = [getattr(segment.rows, name) for name in COLUMNS]
    arrays = [*columns, *segment.index, segment.directory_hash, segment.directory_row]
    return sum(array.nbytes for array in arrays)


def take_best(runs: Sequence[ClusterRun]) -> ClusterRun:
    """Several runs of one plan as one."""
    return runs[0]._replace(
        dispatch_s=min(run.dispatch_s for run in runs),
        busy_s=np.minimum.reduce([run.busy_s for run in runs]),
        insert_s=np.minimum.reduce([run.insert_s for run in runs]),
        small_batch_s=min(run.small_batch_s for run in runs),
    )
