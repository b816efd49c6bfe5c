"""Vary Tornado's queries and workers: frequency and number of keywords, range, cluster size."""

from __future__ import annotations

from bench.cluster import ClusterRun
from bench.papers.ps2stream.queries import Drawn
from bench.papers.tornado.cluster import (
    WORKERS,
    TornadoLoad,
    critical_per_s,
    make_load,
    run_agrid,
    run_leaves,
    workers_per_s,
)
from bench.papers.tornado.queries import (
    BY_AREA,
    BY_SIDE,
    ask_band,
    find_band,
    make_queries,
    read_range,
    take_first,
    take_objects,
)
from bench.papers.tornado.routing import PARTITIONS
from placewire.model.subscriptions import SubscriptionRows
from placewire.plans.boolean.space_methods import plan_agrid
from placewire.plans.leaves import NOTHING

RANGES = (0.01, 0.05, 0.1, 0.5, 1.0, 1.5)
SOME_KEYWORDS = (1, 2, 3, 5, 7)
QUANTILES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
GROWTH = ((4, 0.2), (9, 0.36), (16, 0.64), (25, 1.0))  # workers, and so much of the subscriptions
HALVED = 2  # sweeps take every second object
THINNED = 16  # by area a range of 1.5% matches a thousand subscriptions an object
FREQUENCY_HEADER = (
    "quantile, %",
    "objects that have a keyword, %",
    "forwarded/objects",
    "dropped, %",
    "objects/s, summary",
    "objects/s, no summary",
    "summary/none",
    "workers alone, summary",
    "workers alone, no summary",
    "matches an object",
)
SWEEP_HEADER = (
    "objects/s, critical path",
    "objects/s, workers alone",
    "busiest/mean",
    "copies a subscription",
    "dispatch, ns an object",
    "all workers, ns an object",
    "matches an object",
)


def vary_frequency(drawn: Drawn, rows: SubscriptionRows) -> list[tuple[object, ...]]:
    """Keywords from the rarest to the most frequent, by A-Grid with its summary and without."""
    lines: list[tuple[object, ...]] = []
    for quantile in QUANTILES:
        band = find_band(drawn, quantile)
        load = make_load(drawn.objects, ask_band(rows, band))
        leaves = plan_agrid(load.sample, WORKERS)
        told, blind = run_leaves(load, [leaves, leaves._replace(summary=NOTHING)])
        m = told.measures
        assert m is not None
        lines.append(
            (
                100 * quantile,
                100 * band.per_object,
                m.objects_replicated,
                100.0 * m.dropped / m.objects,
                critical_per_s(told),
                critical_per_s(blind),
                critical_per_s(told) / critical_per_s(blind),
                workers_per_s(told),
                workers_per_s(blind),
                told.matches / told.objects,
            )
        )
    return lines


def sweep_row(run: ClusterRun) -> tuple[object, ...]:
    m = run.measures
    assert m is not None
    return (
        critical_per_s(run),
        workers_per_s(run),
        float(run.busy_s.max() / run.busy_s.mean()),
        m.subscriptions_replicated,
        1e9 * run.dispatch_s / run.objects,
        1e9 * float(run.busy_s.sum()) / run.objects,
        run.matches / run.objects,
    )


def vary_ranges(
    drawn: Drawn, count: int, readings: tuple[str, ...] = (BY_SIDE, BY_AREA)
) -> list[tuple[object, ...]]:
    """Ranges in both readings; those by area with fewer objects."""
    lines: list[tuple[object, ...]] = []
    for of in readings:
        objects = take_objects(drawn.objects, 1 if of == BY_SIDE else THINNED // HALVED)
        for share in RANGES:
            reading = read_range(drawn.objects, share, of)
            load = make_load(objects, make_queries(drawn, count, reading.side_km))
            lines.append((*reading, *sweep_row(run_agrid(load))))
    return lines


def vary_keywords(drawn: Drawn, count: int, side_km: float) -> list[tuple[object, ...]]:
    lines: list[tuple[object, ...]] = []
    for keywords in SOME_KEYWORDS:
        load = make_load(drawn.objects, make_queries(drawn, count, side_km, keywords))
        lines.append((keywords, *sweep_row(run_agrid(load))))
    return lines


def vary_workers(loads: dict[str, TornadoLoad]) -> list[tuple[object, ...]]:
    return [
        (workers, name, *sweep_row(run_agrid(load, workers)))
        for name, load in loads.items()
        for workers in PARTITIONS
    ]


def grow_together(drawn: Drawn, rows: SubscriptionRows) -> list[tuple[object, ...]]:
    """More workers as there are more subscriptions."""
    lines: list[tuple[object, ...]] = []
    for workers, share in GROWTH:
        load = make_load(drawn.objects, take_first(rows, int(share * rows.total)))
        lines.append((workers, load.rows.total, *sweep_row(run_agrid(load, workers))))
    return lines
