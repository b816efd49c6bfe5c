"""Compare plans for continuous queries on eight workers (SSTD, section 7.4).

Boolean subscriptions stand at the workers that their boxes reach, as in `partitioning`. Those to
what is nearest are at every worker, as in SSTD, and plans divide the objects. Trending ones are
measured on the engine in one process, as what their reports add to the same log without them.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import msgspec
import numpy as np

from bench.clock import say
from bench.cluster import ClusterRun
from bench.columns import KEY, probe_of, rows_of
from bench.figures import Figures, LinePlot, Table
from bench.harness import Setup
from bench.papers.dkm_sks.cluster import TickChanges, Undealt, run_ticks
from bench.papers.dkm_sks.data import (
    MADE_UP,
    TICK_OBJECTS,
    VENUES,
    StandingResults,
    read_source,
    stand,
)
from bench.papers.dkm_sks.plans import PLANNED_OBJECTS
from bench.papers.ps2stream.partitioning import run_plans
from bench.papers.ps2stream.queries import QuerySet, centres
from bench.product.soak import BEGIN_US, describe
from bench.workload import Workload
from placewire import api
from placewire.kernels.blocks import codes_to_order
from placewire.kernels.space.cells import points_to_codes
from placewire.kernels.space.circles import circles_to_boxes
from placewire.model.regions import CIRCLE
from placewire.model.subscriptions import SubscriptionRows
from placewire.model.times import format_timestamp
from placewire.plans.boolean.methods import METHODS
from placewire.plans.cost.model import calibrate
from placewire.plans.leaves import NOTHING
from placewire.plans.route.leaf_route import LeafRoute, make_tables
from placewire.plans.route.live_terms import LiveTerms
from placewire.plans.sample.questions import assume_kind
from placewire.plans.sample.sample import CKQ, Sample, make_sample
from placewire.text.analyzer import Analyzer

PLANS = ("qt", "quadtree", "text", "agrid", "kdt")
WORKERS = 8
SHARES = (0.01, 0.1, 1.0)  # percent of the space
PASSES = 2
TRENDING = (1_000, 2_000, 5_000)
TRENDING_HOURS = 6
Space = tuple[float, float, float, float]


def compare_kinds(
    setup: Setup,
    subscriptions: int = 200_000,
    objects: int = 30_000,
    nearest_objects: int = 300_000,
    nearest_ticks: int = 10,
    trending: tuple[int, ...] = TRENDING,
    trending_objects: int = 60_000,
) -> Figures:
    """The three kinds, one after another."""
    yield from run_boolean(setup, subscriptions, objects)
    yield from run_nearest(setup, subscriptions, nearest_objects, nearest_ticks)
    yield from run_trending(setup, trending, trending_objects)


def run_boolean(setup: Setup, subscriptions: int, count: int) -> Figures:
    """Objects a second by the size of regions."""
    workload = setup.workload(count, subscriptions)
    analyzer = Analyzer(*KEY)
    objects = probe_of(workload.objects.combine_chunks(), analyzer)
    rows = rows_of(workload, analyzer)
    space = find_space(objects.lon, objects.lat)
    cost = calibrate().load
    runs: dict[float, dict[str, ClusterRun]] = {}
    for share in SHARES:
        queries = QuerySet(f"{share}%", objects, with_share(rows, space, share))
        runs[share] = run_plans(queries, WORKERS, PLANS, cost, PASSES)
        say(f"boolean, region {share:g}%")
    names = ("native", *PLANS)
    for title, figure in {
        "critical path": lambda run: run.critical_per_s,
        "workers alone": lambda run: run.workers_per_s,
        "all work on one core": lambda run: run.objects / run.total_s,
    }.items():
        yield Table(
            f"continuous-boolean-{title.replace(' ', '-')}",
            (f"boolean: objects/s, {title}", *names, "qt / agrid", "matches an object"),
            [
                (
                    f"region {share:g}%",
                    *(figure(of[name]) for name in names),
                    figure(of["qt"]) / figure(of["agrid"]),
                    of["qt"].matches / of["qt"].objects,
                )
                for share, of in runs.items()
            ],
        )
    yield Table(
        "continuous-boolean-copies",
        ("boolean: copies a subscription", *PLANS),
        [
            (f"region {share:g}%", *(copies(of[name]) for name in PLANS))
            for share, of in runs.items()
        ],
    )
    yield LinePlot(
        "continuous-boolean",
        {n: [(share, of[n].critical_per_s) for share, of in runs.items()] for n in names},
        x_label="region, % of the space",
        y_label="objects/s on the critical path",
    )


def copies(run: ClusterRun) -> float:
    """At how many workers a subscription is, on average."""
    assert run.measures is not None
    return run.measures.subscriptions_replicated


def find_space(lon: np.ndarray, lat: np.ndarray) -> Space:
    """The box of objects from the 1st to the 99th percentile."""
    (west, east), (south, north) = (np.percentile(x, (1, 99)) for x in (lon, lat))
    return float(west), float(south), float(east), float(north)


def with_share(rows: SubscriptionRows, space: Space, share: float) -> SubscriptionRows:
    """The same subscriptions with boxes of a share, in percent, of the space."""
    west, south, east, north = space
    half = np.sqrt(share / 100) / 2
    across, up = half * (east - west), half * (north - south)
    lon, lat = centres(rows)
    box = np.column_stack([lon - across, lat - up, lon + across, lat + up])
    return rows._replace(box=np.clip(box, (-180, -90, -180, -90), (180, 90, 180, 90)))


def run_nearest(setup: Setup, subscriptions: int, initial: int, ticks: int) -> Figures:
    """Objects a second when plans divide the objects and all workers have all subscriptions."""
    source = read_source(setup, VENUES if setup.data else MADE_UP, ticks, initial)
    standing = stand(source, subscriptions)
    changes = TickChanges(standing, ticks)
    sample = sample_nearest(standing)
    cost = calibrate().load.in_stream(sample.objects, sample.subscriptions)
    rows, checked = [], set()
    for name in PLANS:
        leaves = METHODS[name](sample, WORKERS, cost)._replace(summary=NOTHING)
        tables = LiveTerms(leaves).tables
        route = LeafRoute(WORKERS, NOTHING, make_tables(leaves), tables)
        passed = run_ticks(changes, Undealt(standing, route, WORKERS))
        checked.add(tuple(tick.checksum for tick in passed))
        knn = np.array([tick.knn_s for tick in passed])
        rows.append(
            (
                name,
                TICK_OBJECTS / float(np.median([tick.update_s for tick in passed])),
                TICK_OBJECTS / float(np.median(knn.max(axis=1))),
                1e3 * float(np.median([tick.route_s for tick in passed])),
                1e3 * float(np.median(knn.max(axis=1))),
                1e3 * float(np.median([tick.merge_s for tick in passed])),
                float(np.median(knn.max(axis=1) / knn.mean(axis=1))),
                float(np.mean([tick.copies for tick in passed])),
            )
        )
        say(f"nearest, {name}")
    assert len(checked) == 1, "plans differ in what enters"
    yield Table(
        "continuous-nearest",
        ("nearest", "objects/s, critical path", "objects/s, workers alone", "route, ms",
         "busiest worker, ms", "merge, ms", "busiest/mean", "copies an object"),
        rows,
    )  # fmt: skip


def sample_nearest(standing: StandingResults) -> Sample:
    """What plans are made of: some of the first objects, and the balls as they are."""
    o = standing.source.initial.take(
        np.arange(min(PLANNED_OBJECTS, standing.source.initial.lon.size))
    )
    codes = points_to_codes(o.lon, o.lat)
    order = codes_to_order(codes)
    o = o.take(order)
    rows, balls = standing.rows, standing.sample()
    rows = rows._replace(
        region_kind=np.full(rows.total, CIRCLE, np.uint8),
        box=circles_to_boxes(balls.lon, balls.lat, standing.radius),
    )
    sample = make_sample(codes[order], o.term_offsets, o.terms, rows)
    return sample._replace(traits=assume_kind(sample, CKQ))


class Trend(NamedTuple):
    """Trending subscriptions that are alike; times in minutes."""

    count: int
    share: float = 0.01
    window: int = 60
    every: int = 10


def run_trending(setup: Setup, counts: tuple[int, ...], objects: int) -> Figures:
    """What reports cost by the size of regions, their number, window and every."""
    workload = setup.workload(objects, counts[-1])
    usual = Trend(counts[0])
    trends = {
        **{f"region {share:g}%": usual._replace(share=share) for share in SHARES},
        **{f"{n:,} subscriptions": usual._replace(count=n) for n in counts[1:]},
        "window 10 min": usual._replace(window=10),
        "window 180 min": usual._replace(window=180),
        "every 1 min": usual._replace(every=1),
        "every 60 min": usual._replace(every=60),
    }
    replay_trend(
        setup, workload, usual._replace(count=min(50, counts[0]))
    )  # kernels are ready then
    bare_s, _ = replay_trend(setup, workload, None)
    rows = []
    for label, trend in trends.items():
        seconds, reports = replay_trend(setup, workload, trend)
        added = seconds - bare_s
        rows.append(
            (
                label,
                trend.count,
                reports,
                added,
                1e6 * added / max(reports, 1),
                1e6 * added / objects,
                objects / seconds,
            )
        )
        say(f"trending, {label}")
    say(f"without any: {bare_s:.3g} s, {objects / bare_s:,.0f} objects/s")
    yield Table(
        "continuous-trending",
        ("trending", "subscriptions", "reports", "s for reports", "µs a report", "µs an object",
         "objects/s, one core"),
        rows,
    )  # fmt: skip


def replay_trend(setup: Setup, workload: Workload, trend: Trend | None) -> tuple[float, int]:
    """Processor seconds of a replay on one core, and how many reports it made."""
    log = setup.folder / "trending.jsonl"
    objects = workload.objects
    space = find_space(objects["lon"].to_numpy(), objects["lat"].to_numpy())
    step_us = TRENDING_HOURS * 3_600_000_000 // objects.num_rows
    events: list[dict[str, Any]] = []
    if trend is not None:
        drawn = workload.subscriptions.slice(0, trend.count).to_pylist()
        events = [
            {
                "type": "subscribe",
                "id": f"t{number}",
                "ts": format_timestamp(BEGIN_US),
                **describe("trending", resize(row, space, trend.share)),
                "window": f"PT{trend.window}M",
                "every": f"PT{trend.every}M",
            }
            for number, row in enumerate(drawn)
        ]
    events += [
        {"type": "object", **row, "ts": format_timestamp(BEGIN_US + at * step_us)}
        for at, row in enumerate(objects.to_pylist())
    ]
    log.write_bytes(msgspec.json.Encoder().encode_lines(events))
    started = time.process_time()
    totals = api.replay(
        log, setup.folder / "trending-results.jsonl", settings={"retention": "PT6H"},
        batch_rows=20_000,
    )  # fmt: skip
    return time.process_time() - started, totals.results


def resize(row: dict[str, Any], space: Space, share: float) -> dict[str, Any]:
    """A drawn row with a box of a share of the space about the same place."""
    west, south, east, north = space
    half = float(np.sqrt(share / 100)) / 2
    lon, lat = (row["west"] + row["east"]) / 2, (row["south"] + row["north"]) / 2
    across, up = half * (east - west), half * (north - south)
    corners = (lon - across, lat - up, lon + across, lat + up)
    limits = ((-180, 180), (-90, 90)) * 2
    clipped = [
        round(min(max(x, low), high), 6) for x, (low, high) in zip(corners, limits, strict=True)
    ]
    return row | dict(zip(("west", "south", "east", "north"), clipped, strict=True))
