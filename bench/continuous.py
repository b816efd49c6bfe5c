"""Continuous queries under each plan: SSTD section 7.4, eight workers.

Boolean subscriptions stand at the workers that their boxes reach, as in `partitioning`. Those to
what is nearest are at every worker, as in SSTD, and plans divide the objects. Trending ones are
measured on the engine in one process, as what their reports add to the same log without them.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import msgspec
import numpy as np

from bench.cluster import ClusterRun
from bench.endless import BEGIN_US, describe
from bench.engine import KEY, probe_of, rows_of
from bench.nearest import PLANNED_OBJECTS, say
from bench.nearest_cluster import Changes, Undealt, run_ticks
from bench.nearest_data import MADE_UP, TICK_OBJECTS, VENUES, Standing, read_source, stand
from bench.partitioning import run_all
from bench.queries import QuerySet, centres
from bench.settings import Choice
from bench.tables import draw_lines, save_table
from bench.workload import Workload
from placewire import api
from placewire.kernels.blocks import codes_to_order
from placewire.kernels.space.cells import points_to_codes
from placewire.kernels.space.circles import balls_to_boxes
from placewire.model.regions import CIRCLE
from placewire.model.subscriptions import SubscriptionRows
from placewire.model.times import format_timestamp
from placewire.plans.boolean.methods import METHODS
from placewire.plans.cost.calibrate import calibrate
from placewire.plans.leaves import NOTHING
from placewire.plans.route.leaf_route import LeafRoute, make_tables
from placewire.plans.route.live_terms import LiveTerms
from placewire.plans.sample.questions import assume_kind
from placewire.plans.sample.sample import CKQ, Sample, make_sample
from placewire.text.analyzer import Analyzer

PLANS = ("qt", "quadtree", "text", "agrid", "kdt")
WORKERS = 8
SUBSCRIPTIONS, MANY = 200_000, 1_000_000
OBJECTS = 30_000
SHARES = (0.01, 0.1, 1.0)  # percent of the space
PASSES = 2
NEAREST_INITIAL, NEAREST_TICKS = 300_000, 10
TRENDING = (1_000, 2_000, 5_000)
TRENDING_OBJECTS = 60_000
TRENDING_HOURS = 6
Space = tuple[float, float, float, float]


def run(choice: Choice) -> None:
    """The three kinds, one after another."""
    run_boolean(choice)
    run_nearest(choice)
    run_trending(choice)


def run_boolean(choice: Choice) -> None:
    """Objects a second by the size of regions."""
    count = MANY if choice.full else SUBSCRIPTIONS
    workload = choice.workload(OBJECTS, count)
    analyzer = Analyzer(*KEY)
    objects = probe_of(workload.objects.combine_chunks(), analyzer)
    rows = rows_of(workload, analyzer)
    space = find_space(objects.lon, objects.lat)
    cost = calibrate().load
    runs: dict[float, dict[str, ClusterRun]] = {}
    for share in SHARES:
        queries = QuerySet(f"{share}%", objects, with_share(rows, space, share))
        runs[share] = run_all(queries, WORKERS, PLANS, cost, PASSES)
        say(f"boolean, region {share:g}%")
    names = ("native", *PLANS)
    for title, figure in {
        "critical path": lambda run: run.critical_per_s,
        "workers alone": lambda run: run.workers_per_s,
        "all work on one core": lambda run: run.objects / run.total_s,
    }.items():
        save_table(
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
    save_table(
        "continuous-boolean-copies",
        ("boolean: copies a subscription", *PLANS),
        [
            (f"region {share:g}%", *(copies(of[name]) for name in PLANS))
            for share, of in runs.items()
        ],
    )
    draw_lines(
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


def run_nearest(choice: Choice) -> None:
    """Objects a second when plans divide the objects and all workers have all subscriptions."""
    count = MANY if choice.full else SUBSCRIPTIONS
    source = read_source(choice, VENUES if choice.data else MADE_UP, NEAREST_TICKS, NEAREST_INITIAL)
    standing = stand(source, count)
    changes = Changes(standing, NEAREST_TICKS)
    sample = sample_nearest(standing)
    cost = calibrate().load.in_stream(sample.objects, sample.subscriptions)
    rows, checked = [], set()
    for name in PLANS:
        leaves = METHODS[name](sample, WORKERS, cost)._replace(summary=NOTHING)
        tables = LiveTerms(leaves).tables
        route = LeafRoute(WORKERS, NOTHING, make_tables(leaves), tables)
        ticks = run_ticks(changes, Undealt(standing, route, WORKERS))
        checked.add(tuple(tick.checksum for tick in ticks))
        knn = np.array([tick.knn_s for tick in ticks])
        rows.append(
            (
                name,
                TICK_OBJECTS / float(np.median([tick.update_s for tick in ticks])),
                TICK_OBJECTS / float(np.median(knn.max(axis=1))),
                1e3 * float(np.median([tick.route_s for tick in ticks])),
                1e3 * float(np.median(knn.max(axis=1))),
                1e3 * float(np.median([tick.merge_s for tick in ticks])),
                float(np.median(knn.max(axis=1) / knn.mean(axis=1))),
                float(np.mean([tick.copies for tick in ticks])),
            )
        )
        say(f"nearest, {name}")
    assert len(checked) == 1, "plans differ in what enters"
    save_table(
        "continuous-nearest",
        ("nearest", "objects/s, critical path", "objects/s, workers alone", "route, ms",
         "busiest worker, ms", "merge, ms", "busiest/mean", "copies an object"),
        rows,
    )  # fmt: skip


def sample_nearest(standing: Standing) -> Sample:
    """What plans are made of: some of the first objects, and the balls as they are."""
    o = standing.source.initial.take(np.arange(PLANNED_OBJECTS))
    codes = points_to_codes(o.lon, o.lat)
    order = codes_to_order(codes)
    o = o.take(order)
    rows, balls = standing.rows, standing.sample()
    rows = rows._replace(
        region_kind=np.full(rows.total, CIRCLE, np.uint8),
        box=balls_to_boxes(balls.lon, balls.lat, standing.radius),
    )
    sample = make_sample(codes[order], o.term_offsets, o.terms, rows)
    return sample._replace(traits=assume_kind(sample, CKQ))


class Trend(NamedTuple):
    """Trending subscriptions that are alike; times in minutes."""

    count: int = TRENDING[0]
    share: float = 0.01
    window: int = 60
    every: int = 10


def run_trending(choice: Choice) -> None:
    """What reports cost by the size of regions, their number, window and every."""
    most = 20_000 if choice.full else TRENDING[-1]
    workload = choice.workload(TRENDING_OBJECTS, most)
    usual = Trend()
    trends = {
        **{f"region {share:g}%": usual._replace(share=share) for share in SHARES},
        **{f"{n:,} subscriptions": usual._replace(count=n) for n in (*TRENDING[1:-1], most)},
        "window 10 min": usual._replace(window=10),
        "window 180 min": usual._replace(window=180),
        "every 1 min": usual._replace(every=1),
        "every 60 min": usual._replace(every=60),
    }
    replay_trend(choice, workload, usual._replace(count=50))  # kernels are ready then
    bare_s, _ = replay_trend(choice, workload, None)
    rows = []
    for label, trend in trends.items():
        seconds, reports = replay_trend(choice, workload, trend)
        added = seconds - bare_s
        rows.append(
            (
                label,
                trend.count,
                reports,
                added,
                1e6 * added / max(reports, 1),
                1e6 * added / TRENDING_OBJECTS,
                TRENDING_OBJECTS / seconds,
            )
        )
        say(f"trending, {label}")
    print(f"\nwithout any: {bare_s:.3g} s, {TRENDING_OBJECTS / bare_s:,.0f} objects/s\n")
    save_table(
        "continuous-trending",
        ("trending", "subscriptions", "reports", "s for reports", "µs a report", "µs an object",
         "objects/s, one core"),
        rows,
    )  # fmt: skip


def replay_trend(choice: Choice, workload: Workload, trend: Trend | None) -> tuple[float, int]:
    """Processor seconds of a replay on one core, and how many reports it made."""
    log = choice.folder / "trending.jsonl"
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
        log, choice.folder / "trending-results.jsonl", settings={"retention": "PT6H"},
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
