"""Compare A-Grid with Tornado's alternatives on a simulated cluster.

Speeds are those of a cluster while the subscriptions stand: dispatch, divided by the routing units,
then the busiest worker. Native has no routing layer: its workers are as many as the others' workers
and routing units together, and its objects are spread at no cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bench.clock import best_of
from bench.cluster import ClusterRun, run_native, run_plan, take_best
from bench.papers.tornado.queries import take_objects
from bench.papers.tornado.routing import UNITS, plan_uniform
from placewire.kinds.boolean.kernels.probes import Probe
from placewire.kinds.boolean.kind import make_boolean_segment
from placewire.kinds.boolean.match import match_segment, scan_segment
from placewire.model.subscriptions import SubscriptionRows
from placewire.plans.boolean.methods import METHODS
from placewire.plans.boolean.space_methods import plan_agrid
from placewire.plans.cost.measures import post_rows
from placewire.plans.cost.model import LoadModel, calibrate
from placewire.plans.leaves import BY_WORKER, NOTHING, Leaves
from placewire.plans.sample.sample import Sample, make_sample

WORKERS = 25
OTHERS = ("termhash", "grid", "kdtree")
SCANNED = 50  # objects: a list of all subscriptions takes milliseconds for each
PASSES = 2

ALTERNATIVE_HEADER = (
    "routing",
    "workers",
    "objects/s, critical path",
    "objects/s, workers alone",
    "with inserts",
    "busiest/mean",
    "copies an object",
    "dropped, %",
    "copies a subscription",
    "dispatch, ns an object",
    "latency of 1,000, ms",
)


class TornadoLoad(NamedTuple):
    """Objects and subscriptions, and the half of the objects that plans are made of.

    `cost` is for the plans that are not Tornado's.
    """

    objects: Probe
    rows: SubscriptionRows
    sample: Sample
    cost: LoadModel
    matches: int


def make_load(objects: Probe, rows: SubscriptionRows) -> TornadoLoad:
    """What all plans of an experiment have in common; their matches are those of one index."""
    half = take_objects(objects, 2)
    cost = calibrate().load.in_stream(objects.codes.size, rows.total)
    sample = make_sample(half.codes, half.term_offsets, half.terms, rows, cost.posting_work)
    matches = int(match_segment(objects, make_boolean_segment(rows)).object.size)
    return TornadoLoad(objects, rows, sample, cost, matches)


def tell_heaviest(load: TornadoLoad) -> str:
    """How much lies at one point: what no plan that cuts space alone can divide."""
    found = match_segment(load.objects, make_boolean_segment(load.rows)).object
    _, point, objects = np.unique(load.objects.codes, return_inverse=True, return_counts=True)
    matches = np.bincount(point[found], minlength=objects.size)
    at = int(matches.argmax())
    return (
        f"one point has {objects[at] / objects.sum():.1%} of the objects"
        f" and {matches[at] / max(found.size, 1):.1%} of the matches"
    )


def run_leaves(load: TornadoLoad, plans: Sequence[Leaves]) -> list[ClusterRun]:
    """Each plan on the load, in several passes of which the best is taken worker by worker.

    The busiest of many workers is easily one that was disturbed all through its few runs.
    """
    o, posted = load.objects, post_rows(load.rows)
    everything = make_sample(o.codes, o.term_offsets, o.terms, load.rows)
    passes = [
        [run_plan(leaves, o, posted, everything, load.cost, load.matches) for leaves in plans]
        for _ in range(PASSES)
    ]
    return [take_best(runs) for runs in zip(*passes, strict=True)]


def run_agrid(load: TornadoLoad, workers: int = WORKERS) -> ClusterRun:
    """Tornado's own plan."""
    return run_leaves(load, [plan_agrid(load.sample, workers)])[0]


def critical_per_s(run: ClusterRun, units: int = UNITS) -> float:
    """Objects a second with so many routing units."""
    return run.objects / (run.dispatch_s / units + float(run.busy_s.max()))


def workers_per_s(run: ClusterRun) -> float:
    """Objects a second if routing took no time; without end where all objects are dropped."""
    busiest = float(run.busy_s.max())
    return run.objects / busiest if busiest > 0 else float("inf")


def compare_alternatives(load: TornadoLoad) -> tuple[list[tuple[object, ...]], ClusterRun]:
    """Every routing of the paper, and two plans more; also the run of A-Grid."""
    plans = [
        plan_agrid(load.sample, WORKERS),
        plan_agrid(load.sample, WORKERS)._replace(name="agrid, no summary", summary=NOTHING),
        plan_uniform(load.objects, WORKERS, NOTHING),
        plan_uniform(load.objects, WORKERS, BY_WORKER)._replace(name="uniform, summary"),
        *(
            METHODS[name](load.sample, WORKERS, load.cost)
            for name in ("termhash", "grid", "kdtree")
        ),
    ]
    runs = run_leaves(load, plans)
    everywhere = [run_native(WORKERS + UNITS, load.objects, load.rows) for _ in range(PASSES)]
    native = take_best(everywhere)
    assert native.matches == load.matches
    lines = [*scan_everything(load), row_of_native(native), *map(row_of, runs)]
    return lines, runs[0]


def row_of(run: ClusterRun) -> tuple[object, ...]:
    m = run.measures
    assert m is not None
    whole_s = run.dispatch_s / UNITS + float((run.busy_s + run.insert_s).max())
    return (
        run.name,
        run.busy_s.size,
        critical_per_s(run),
        workers_per_s(run),
        run.objects / whole_s,
        float(run.busy_s.max() / run.busy_s.mean()),
        m.objects_replicated,
        100.0 * m.dropped / m.objects,
        m.subscriptions_replicated,
        1e9 * run.dispatch_s / run.objects,
        1e3 * run.small_batch_s,
    )


def row_of_native(run: ClusterRun) -> tuple[object, ...]:
    workers = run.busy_s.size
    return (
        "native, index",
        workers,
        workers_per_s(run),
        workers_per_s(run),
        run.objects / float((run.busy_s + run.insert_s).max()),
        float(run.busy_s.max() / run.busy_s.mean()),
        1.0,
        0.0,
        float(workers),
        0.0,
        1e3 * run.small_batch_s,
    )


def scan_everything(load: TornadoLoad) -> list[tuple[object, ...]]:
    """Native as the paper has it, each object against a list of all subscriptions.

    Some objects from everywhere are timed on one worker; the others would take as long each. The
    second row has the tests of boxes alone, four comparisons in a row of numbers: no list is
    faster, however it is written.
    """
    some = take_objects(load.objects, max(load.objects.codes.size // SCANNED, 1), SCANNED)
    segment = make_boolean_segment(load.rows)
    found = scan_segment(some, segment).object.size
    assert found == match_segment(some, segment).object.size
    west, south, east, north = np.ascontiguousarray(load.rows.box.T)

    def test_boxes() -> None:
        for lon, lat in zip(some.lon.tolist(), some.lat.tolist(), strict=True):
            np.flatnonzero((west <= lon) & (lon <= east) & (south <= lat) & (lat <= north))

    workers = WORKERS + UNITS
    lines: list[tuple[object, ...]] = []
    for name, scan in (
        ("native, list", lambda: scan_segment(some, segment)),
        ("native, boxes alone", test_boxes),
    ):
        speed = workers * some.codes.size / best_of(scan)
        copies = float(workers)
        lines.append((name, workers, *[speed] * 3, 1.0, 1.0, 0.0, copies, 0.0, 1e6 / speed))
    return lines
